"""What int8 rounds away, against numbers worked out by hand; and parameters as they are stored, one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from core.sweep.checking import quick

import mtfcore as mtf
from mtfcore.model.quantising import logits_error, rounded_once
from mtfcore.model.storing import OUTPUTS, stored_one_by_one, stored_texts


@pytest.fixture(scope="module")
def grouped():
    cfg = mtf.model.config("tiny-grouped")
    return cfg, mtf.model.initial(cfg, seed=3)


def test_one_output_by_hand(grouped):
    """Weights of one output 127, 64.4 and -1.3 in units of its step: rounding errors 0, 0.4 and 0.3 of it."""
    cfg, params = grouped
    w = np.zeros_like(params["w_out"])
    w[0, :3, 0] = np.array([127, 64.4, -1.3], np.float32) / 64
    row = next(r for r in mtf.model.quantisation_error(cfg, params | {"w_out": w}).rows if r["matrix"] == "w_out")
    assert row["largest"] == pytest.approx(0.4 / 127, rel=1e-3)
    assert row["rms"] == pytest.approx(np.sqrt((0.4**2 + 0.3**2) / (127**2 + 64.4**2 + 1.3**2)), rel=1e-3)
    assert row["weights"] == w.size


def test_every_matrix_has_a_row_and_no_error_is_beyond_half_a_step(grouped):
    cfg, params = grouped
    table = mtf.model.quantisation_error(cfg, params)
    assert [row["matrix"] for row in table.rows] == [name for name in cfg.params if name in OUTPUTS]
    assert all(0 < row["rms"] < 0.02 and 0 < row["largest"] <= 0.5001 / 127 for row in table.rows)
    assert min(r["rms"] for r in table.rows) < table.total["rms"] < max(r["rms"] for r in table.rows)
    assert table.total["weights"] == sum(cfg.params[row["matrix"]].n_elements for row in table.rows)
    assert "tiny-grouped: what int8 weights round away" in str(table) and "(counted)" in str(table)


def test_a_large_weight_spoils_its_own_output_only(grouped):
    cfg, params = grouped
    w = params["wo"].copy()
    w[0, 0, 0, 0] = 100
    spoiled = mtf.model.quantisation_error(cfg, params | {"wo": w})
    plain = {row["matrix"]: row["rms"] for row in mtf.model.quantisation_error(cfg, params).rows}
    (worst,) = [row for row in spoiled.rows if row["matrix"] == "wo"]
    exact, back = w[0, :, :, 1], rounded_once(cfg, params | {"wo": w})["wo"][0, :, :, 1]
    np.testing.assert_array_equal(back, rounded_once(cfg, params)["wo"][0, :, :, 1])
    assert np.abs(back - exact).max() < np.abs(exact).max() / 253
    assert worst["rms"] < plain["wo"]  # beside the one large weight the errors are small; this is why largest is shown
    assert worst["largest"] > 0.5 * 0.5 / 127


def test_logits_are_those_of_the_weights_as_a_phase_stores_them(grouped):
    """The errors again, from arrays that `stored` made, put back into parameters by hand."""
    cfg, params = grouped
    prompts = [[1, 5, 9, 4], [2, 7]]
    found = logits_error(cfg, params, prompts)
    given, back = mtf.model.stored(cfg, params, "int8"), dict(params)
    for name, parts in (("wq", ["wq"]), ("wkv", ["wk", "wv"]), ("w_in_gate", ["w_in", "w_gate"])):
        whole = given[name] * given[f"{name}_scale"][:, None]
        for place, part in enumerate(parts):
            back[part] = (whole if len(parts) == 1 else whole[:, :, place]).reshape(cfg.params[part].shape)
    for name in ("wo", "w_out"):
        scale = given[f"{name}_scale"]
        whole = given[name] * scale.reshape(scale.shape[0], *[1] * (given[name].ndim - 2), -1)
        back[name] = whole.reshape(cfg.params[name].shape)
    tokens = np.array([[1, 5, 9, 4], [2, 7, 0, 0]], np.int32)
    forward = quick(mtf.single(mtf.plan(mtf.model.forward(cfg), "x:1", sizes="B:2 L:4")))
    real = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
    exact, other = (np.asarray(forward(inputs=tokens, **p))[real] for p in (params, back))
    apart = np.abs(other - exact)
    right = (np.sqrt(np.mean(apart**2) / np.mean(exact**2)), apart.max(), np.abs(exact).max())
    assert found[1:4] == pytest.approx(right, rel=1e-3)
    assert (found.tokens, found.same) == (6, (exact.argmax(-1) == other.argmax(-1)).sum())
    assert mtf.model.quantisation_error(cfg, params, prompts).notes[-1].startswith("logits of 6 tokens: error, rms ")


@pytest.mark.parametrize(("weights", "floats", "dtypes"), [
    ("f32", None, {"wq": "float32", "embedding": "float32"}),
    ("bf16", None, {"wq": "bfloat16", "wkv": "bfloat16", "embedding": "bfloat16"}),
    ("int8", None, {"wq": "int8", "wq_scale": "float32", "embedding": "float32"}),
    ("int8", "bf16", {"wkv": "int8", "wkv_scale": "bfloat16", "final_norm_scale": "bfloat16"}),
])  # fmt: skip
def test_parameters_come_one_by_one_in_their_dtype(grouped, weights, floats, dtypes):
    cfg, params = grouped
    given = {name: (array, array.shape) for name, array in stored_one_by_one(cfg, params, weights, floats)}
    assert {name: given[name][0].dtype.name for name in dtypes} == dtypes
    assert {name for name in given if not name.endswith("_scale") or name[:-6] not in given} == set(stored_texts(cfg))
    for name, array in mtf.model.stored(cfg, params, weights, floats).items():
        np.testing.assert_array_equal(array.astype(np.float32), given[name][0].astype(np.float32))


def test_scales_divide_as_they_are_stored(grouped):
    """So weights come back with the error of int8 alone, not with that of a scale rounded afterwards."""
    cfg, params = grouped
    given = mtf.model.stored(cfg, params, "int8", "bf16")
    scale = given["wq_scale"].astype(np.float32)[:, None]
    wq = params["wq"].reshape(given["wq"].shape)
    assert (np.abs(given["wq"] * scale - wq) <= 0.501 * scale).all()
    assert given["wq"].max() == 127 == -given["wq"].min()


def test_parameters_are_asked_for_when_their_turn_comes(grouped):
    cfg, params = grouped
    asked = []

    class Noticing(dict):
        def __getitem__(self, name):
            asked.append(name)
            return super().__getitem__(name)

    turns = stored_one_by_one(cfg, Noticing(params), "int8")
    first = next(turns)[0]
    assert first == "embedding" and asked == ["embedding"]
    next(turns)
    assert len(asked) == 2
