"""Heads of zeros leave every output as it was, in models of all three kinds; how many are needed; what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from core.sweep.checking import quick

import mtfcore as mtf
from mtfcore.model.head_padding import Heads, least_padding, padded, padding_words
from mtfcore.model.reasons import possible

SIZES = {"layers": 2, "d_model": 24, "d_ff": 32, "head_size": 4, "vocab": 17, "max_length": 8}
KINDS = {  # heads and key heads, then what is asked for, and what comes of it
    "multiquery": ((6, 1), {"heads": 8}, (8, 1)),
    "grouped": ((9, 3), {"heads": 12}, (12, 4)),
    "grouped, larger groups": ((9, 3), {"heads": 12, "kv_heads": 3}, (12, 3)),
    "grouped, both": ((6, 2), {"heads": 20, "kv_heads": 4}, (20, 4)),
    "multihead": ((3, 3), {"heads": 4}, (4, 4)),
    "key heads alone": ((6, 3), {"kv_heads": 5}, (10, 5)),
}


def model(heads: int, kv_heads: int, **more):
    """A configuration with biases everywhere, and parameters none of which is 0 or 1 everywhere."""
    cfg = mtf.model.config("tiny-lm", heads=heads, kv_heads=kv_heads, biases=True, **SIZES, **more)
    random = np.random.default_rng(0)
    return cfg, {name: random.normal(size=p.shape).astype(np.float32) * 0.3 for name, p in cfg.params.items()}


def logits(cfg, params):
    plan = mtf.plan(mtf.model.forward(cfg), "x:1", sizes="B:2 L:6")
    tokens = np.random.default_rng(1).integers(0, cfg.vocab, (2, 6), np.int32)
    return quick(mtf.single(plan))(inputs=tokens, **params)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_unchanged(kind):
    (heads, kv_heads), asked, right = KINDS[kind]
    cfg, params = model(heads, kv_heads)
    wider, arrays = padded(cfg, params, **asked)
    assert (wider.heads, wider.kv_heads, wider.head_size) == (*right, cfg.head_size)
    assert {name: array.shape for name, array in arrays.items()} == {n: p.shape for n, p in wider.params.items()}
    before = logits(cfg, params)
    np.testing.assert_allclose(logits(wider, arrays), before, rtol=0, atol=1e-5 * np.abs(before).max())


def test_a_serving_step_with_padded_heads_runs_where_the_plain_one_is_refused():
    cfg, params = model(9, 3, positions="rotary")
    mesh = "x:1 y:2 z:2"
    assert any("heads" in fault for fault in possible(cfg, "ws2d", "heads", mesh, 4))
    wider, arrays = padded(cfg, params, *least_padding(cfg, "ws2d", "heads", mesh, 4))
    assert (wider.heads, wider.kv_heads) == (12, 4) and not possible(wider, "ws2d", "heads", mesh, 4)
    tokens = np.random.default_rng(1).integers(0, cfg.vocab, (4, 6), np.int32)
    plan = mtf.model.plan_phase(wider, "prefill", mesh, batch=4, new_tokens=6, weights="f32", cache="f32")
    given = mtf.model.stored(wider, arrays, "f32")
    found = quick(mtf.simulate(plan))(tokens=tokens, **given)["logits"]
    whole = mtf.plan(mtf.model.forward(cfg), "x:1", sizes="B:4 L:6")
    right = quick(mtf.single(whole))(inputs=tokens, **params)[:, -1]
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-5 * np.abs(right).max())


class Counting(Mapping):
    """Parameters that notice what is asked for."""

    def __init__(self, arrays: Mapping) -> None:
        self.arrays, self.asked = arrays, []

    def __getitem__(self, name: str) -> np.ndarray:
        self.asked.append(name)
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


def test_arrays_are_made_one_at_a_time_when_they_are_asked_for():
    cfg, params = model(3, 3)
    given = Counting(params)
    _, arrays = padded(cfg, given, 4)
    assert list(arrays) == list(params) and len(arrays) == len(params) and given.asked == []
    assert arrays["embedding"] is params["embedding"]
    assert (arrays["wo"][:, 3] == 0).all() and np.array_equal(arrays["wo"][:, :3], params["wo"])
    assert given.asked == ["embedding", "wo", "wo"]


def test_a_grouped_head_stands_with_its_own_keys():
    cfg, params = model(6, 2)
    arrays = padded(cfg, params, 9, 3)[1]
    np.testing.assert_array_equal(arrays["wq"][:, :, :6], params["wq"])  # whole groups: all behind
    arrays = padded(cfg, params, 8, 2)[1]
    apart = arrays["wq"].reshape(2, 24, 2, 4, 4)
    np.testing.assert_array_equal(apart[:, :, :, :3].reshape(params["wq"].shape), params["wq"])
    assert (apart[:, :, :, 3] == 0).all()


@pytest.mark.parametrize(
    ("name", "ffn", "attention", "mesh", "right"),
    [
        ("palm-540b", "ws2d", "heads", "x:4 y:4 z:4", (48, 1)),
        ("palm-540b", "ws2d", "heads", "x:2 y:8 z:4", (64, 1)),
        ("smollm2-135m", "ws2d", "heads", "x:2 y:2 z:2", (12, 4)),
        ("smollm2-135m", "ws2d", "heads", "y:3 z:3", (9, 3)),
        ("smollm2-135m", "ws2d", "batch", "x:2 y:2 z:2", (9, 3)),
        ("tiny-lm", "ws2d", "heads", "y:4 z:4", (16, 16)),
    ],
)
def test_the_least_padding_that_divides(name, ffn, attention, mesh, right):
    found = least_padding(name, ffn, attention, mesh, batch=8)
    assert found == Heads(*right)
    assert not any("heads do not" in f for f in possible(padded(name, {}, *found)[0], ffn, attention, mesh, 8))


def test_what_it_costs_in_words():
    palm = mtf.model.config("palm-540b")
    wider = padded(palm, {}, 64)[0]
    per_head = 2 * palm.layers * palm.d_model * palm.head_size  # wq and wo
    assert wider.n_params - palm.n_params == 16 * per_head
    share = 16 * per_head / palm.n_params
    assert f"heads 48 → 64: +{share:.1%} parameters, +" in padding_words(palm, wider)
    small, grown = mtf.model.config("smollm2-135m"), padded("smollm2-135m", {}, 12)[0]
    assert padding_words(small, grown).startswith("heads 9 → 12, key/value heads 3 → 4: +")
    assert "+33.3% cache (modelled)" in padding_words(small, grown)
    assert padding_words(small, small) == "heads 9: not padded"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"heads": 8}, "heads is 8; expected a whole number of at least 9"),
        ({"heads": 12, "kv_heads": 5}, "heads 12 are no groups of at least 3 for each of 5 key/value heads; nearest: "
         "heads=15"),
        ({"heads": 10, "kv_heads": 3}, "nearest: heads=12"),
        ({"kv_heads": "4"}, "kv_heads is '4'"),
    ],
)  # fmt: skip
def test_faults_name_the_nearest_choice(asked, words):
    with pytest.raises(mtf.LayoutError, match="padded") as error:
        padded("smollm2-135m", {}, **asked)
    assert words in str(error.value)
    with pytest.raises(mtf.LayoutError, match="share one key head"):
        padded("palm-540b", {}, 64, 2)


def test_a_mesh_of_a_slip_of_the_keyboard_is_refused_before_anything_is_tried():
    with pytest.raises(mtf.LayoutError, match="2,000,000,000 devices; grouped heads are padded for at most 1,024"):
        least_padding("smollm2-135m", "ws2d", "heads", "x:1000000000 y:2", 8)
