"""Parts on arrays of sizes, held against the placements that planned programs use, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mtfcore as mtf
from mtfcore.costs.serving_memory.cache_bytes import cache
from mtfcore.costs.serving_memory.cuts import fewest, hand_out
from mtfcore.costs.serving_memory.weight_bytes import stored
from mtfcore.model.serving import FEEDFORWARD

MODELS = {
    "tiny-lm": {}, "tiny-grouped": {"kv_heads": 4}, "tiny-palm": {}, "odd": {"heads": 6, "kv_heads": 3, "vocab": 250},
    "qkv": {"qkv_biases": True}, "norms": {"norm": "layer", "biases": True, "positions": "learned"},
}  # fmt: skip
SIZES = st.sampled_from([1, 2, 4])


def model(name: str) -> mtf.model.Config:
    return mtf.model.config(name if name.startswith("tiny") else "tiny-grouped", **MODELS[name])


def test_axes_go_to_the_first_dimension_that_they_divide():
    parts, over = hand_out([4, 4, 4], {"H": 48, "D": 256})
    assert ({name: int(n) for name, n in parts.items()}, int(over)) == ({"H": 16, "D": 4}, 1)
    parts, over = hand_out([np.array([3, 5])], {"K": 6, "G": 10})
    assert (parts["K"].tolist(), parts["G"].tolist(), over.tolist()) == ([3, 1], [1, 5], [1, 1])
    assert int(hand_out([7, 2], {"K": 8})[1]) == 7


def test_fewest_copies_of_heads():
    assert fewest(np.array([64, 48, 8, 1, 4]), np.array([64, 64, 16, 64, 6])).tolist() == [64, 16, 8, 1, 2]


def inputs(prog: mtf.Program, prefix: str) -> int:
    """Bytes of one device's share of the inputs whose names begin so; "" for the parameters."""
    own = {"tokens"} if prefix else {"tokens", *[p.name for p in prog.inputs if p.name.startswith("cache_")]}
    ports = [port for port in prog.inputs if port.name not in own and port.name.startswith(prefix)]
    return sum(port.sharding.bytes_per_device(prog.mesh, port.dtype) for port in ports)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(list(MODELS)), grid=st.tuples(SIZES, SIZES, SIZES), ffn=st.sampled_from(list(FEEDFORWARD)),
    attention=st.sampled_from(["heads", "batch"]), batch=st.sampled_from([4, 6, 8, 16]),
    weights=st.sampled_from(["bf16", "int8", "f32"]), kept=st.sampled_from(["bf16", "int8"]),
)  # fmt: skip
def test_weights_and_cache_are_the_bytes_that_a_planned_program_takes_in(
    name, grid, ffn, attention, batch, weights, kept
):
    cfg, mesh = model(name), "x:{} y:{} z:{}".format(*grid)
    assume(not mtf.model.possible(cfg, ffn, attention, mesh, batch, 1, 12))
    prog = mtf.model.plan_phase(
        cfg, "decode", mesh, ffn=ffn, attention=attention, batch=batch, cached_tokens=12, weights=weights, cache=kept
    )
    scales = "f32" if weights == "f32" else "bf16"
    assert stored(cfg, grid, ffn, weights, scales).weights == inputs(prog, "")
    held = cache(cfg, grid, batch=batch, context=12, dtype=kept, ffn=ffn, attention=attention, scales=scales)
    assert held.bytes == inputs(prog, "cache_")


@pytest.mark.parametrize("attention", ["heads", "batch"])
def test_arrays_give_what_numbers_give(attention):
    cfg, random = mtf.model.config("llama-3-70b"), np.random.default_rng(1)
    x, y, z, batch = (2 ** random.integers(0, most, 40) for most in (4, 4, 4, 9))
    together = cache(cfg, (x, y, z), batch=batch, context=64, attention=attention)
    for n in range(40):
        one = cache(cfg, (x[n], y[n], z[n]), batch=batch[n], context=64, attention=attention)
        assert (one.bytes, one.copies) == (together.bytes[n], together.copies[n])
    for weights in (np.array(["bf16", "int8"])[:, None], "int8"):
        assert stored(cfg, (x, y, z), "ws2d", weights).weights.shape == np.broadcast_shapes(np.shape(weights), (40,))
