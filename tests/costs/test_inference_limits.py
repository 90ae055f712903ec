"""What `mtf.costs.inference` says would fit does fit, as it stands; what it says is too much is refused or does not."""

from __future__ import annotations

import random

import pytest

import mtfcore as mtf
from mtfcore.costs.serving_memory.cuts import core
from mtfcore.costs.serving_memory.inference_memory import device_bytes
from mtfcore.costs.serving_memory.memory_limits import longest_read
from mtfcore.errors import LayoutError
from mtfcore.model.serving import ATTENTION, FEEDFORWARD

inference = mtf.costs.inference
TORI = ("v4:4x4x4", "v5p:4x4x4")  # every way round is the same, so another batch finds the same mesh
MODELS = ("palm-62b", "llama-3.1-70b", "llama-2-13b", "llama-3-8b")


def drawn(rng: random.Random) -> dict:
    return {
        "cfg": rng.choice(MODELS), "topology": rng.choice(TORI), "batch": rng.choice((4, 64, 512)),
        "input_tokens": rng.choice((128, 2048, 32768)), "output_tokens": rng.choice((0, 64)),
        "cached_tokens": rng.choice((0, 500)), "weights": rng.choice(("bf16", "int8")),
        "cache": rng.choice(("bf16", "int8")), "attention": rng.choice(tuple(ATTENTION)),
        "ffn": {"prefill": rng.choice(tuple(FEEDFORWARD)), "decode": rng.choice(tuple(FEEDFORWARD))},
    }  # fmt: skip


def estimates(rng: random.Random, times: int):
    for _ in range(times):
        asked = drawn(rng)
        try:
            yield asked, inference(**asked)
        except LayoutError:
            continue


def test_the_batch_that_is_offered_can_be_taken():
    offered = 0
    for asked, est in estimates(random.Random(5), 14):
        if est.max_batch:
            offered += 1
            assert inference(**{**asked, "batch": est.max_batch}).fits, (asked, est.max_batch)
        assert not est.fits or est.max_batch >= asked["batch"]
    assert offered > 5


def test_the_context_that_is_offered_can_be_read():
    """Reading makes activations as long as the text: the room for the cache alone would be an empty promise."""
    offered = 0
    for asked, est in estimates(random.Random(6), 14):
        if est.max_context:
            offered += 1
            read = est.max_context - asked["cached_tokens"] - asked["output_tokens"]
            assert inference(**{**asked, "input_tokens": read}).fits, (asked, est.max_context)
            assert not inference(**{**asked, "input_tokens": read + 64}).fits
    assert offered > 5


def test_a_prompt_too_long_to_be_read_is_offered_a_shorter_one():
    how = {"batch": 512, "ffn": "ws2d", "attention": "batch", "output_tokens": 64}
    est = inference("palm-62b", "v4:4x4x4", input_tokens=32768, **how)
    assert not est.fits and 0 < est.max_context < 32768
    assert est.max_context == est.max_context_by_phase["prefill"] < est.max_context_by_phase["decode"]
    assert inference("palm-62b", "v4:4x4x4", input_tokens=est.max_context - 64, **how).fits


def test_batches_that_only_one_phase_can_cut_are_not_offered():
    """Decoding has room for a batch that wg_x, which reads, cannot cut."""
    how = {"input_tokens": 2048, "output_tokens": 0, "weights": "int8", "ffn": "wg_x", "attention": "heads"}
    est = inference("llama-3-8b", "v6e:4x4", batch=128, **how)
    assert est.max_batch_by_phase["decode"] % 4 and est.max_batch % 4 == 0
    assert inference("llama-3-8b", "v6e:4x4", batch=est.max_batch, **how).fits


def test_what_is_read_a_few_at_a_time_does_not_limit_what_is_decoded():
    how = {"input_tokens": 8192, "ffn": "ws2d", "attention": "batch", "batch": 64}
    est = inference(["palm-62b"], "v4:4x4x4", prefill_batch=[4, 64, 4096], **how)
    decode = est.max_batch_by_phase["decode"]
    assert est.max_batch[0] == decode[0] > est.max_batch[1] == est.max_batch[2] > 0
    assert est.prefill_seconds[1] == est.prefill_seconds[2]  # no more are read than there are


def test_learned_positions_limit_the_context():
    est = inference("mt-nlg-530b", "v4:8x8x8", batch=1, input_tokens=128)
    assert est.max_context == 2048


@pytest.mark.parametrize("name", ["palm-540b", "llama-3.1-70b", "qwen2.5-7b"])
def test_the_longest_reading_fits_and_one_step_more_does_not(name):
    cfg, rng = mtf.model.config(name), random.Random(name)
    for _ in range(40):
        grid = tuple(rng.choice((1, 2, 4)) for _ in "xyz")
        how = {"ffn": rng.choice(tuple(FEEDFORWARD)), "attention": rng.choice(tuple(ATTENTION)),
               "batch": rng.choice((1, 8, 64)), "capacity": rng.randint(8, 200) * 2**30 + 777}  # fmt: skip
        cached = rng.choice((0, 1000))
        step = int(core(cfg, grid, how["ffn"], how["attention"], how["batch"], 64).length)
        longest = longest_read(cfg, grid, cached=cached, **how)
        new = longest - cached if longest else 0
        assert not new or device_bytes(cfg, grid, context=longest, new_tokens=new, **how).fits
        assert not device_bytes(cfg, grid, context=cached + new + step, new_tokens=new + step, **how).fits


def test_a_reading_refuses_what_it_looks_for():
    cfg = mtf.model.config("palm-62b")
    for name, value in {"context": 3, "new_tokens": 3, "scores": "whole"}.items():
        with pytest.raises(LayoutError, match=name):
            longest_read(cfg, (4, 4, 4), capacity=2**35, **{name: value})


@pytest.mark.parametrize(("asked", "named"), [
    ({"grid": 4}, "grid is 4; expected three sizes"), ({"cfg": "palm-62b"}, "got 'palm-62b'"),
    ({"batch": None}, "batch is None"), ({"batch": [1, 2], "context": [1, 2, 3]}, "context is [1, 2, 3]"),
    ({"new_tokens": [[1], [2, 3]]}, "many as an array"), ({"capacity": [2**30]}, "capacity is"),
])  # fmt: skip
def test_memory_refuses_what_is_no_size_in_words(asked, named):
    with pytest.raises(LayoutError) as caught:
        device_bytes(**{"cfg": mtf.model.config("palm-62b"), "grid": (4, 4, 4), **asked})
    assert named in str(caught.value)
