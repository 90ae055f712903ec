"""The second paper's closed forms: Figure 3, Table 1, the tables' own arithmetic, arrays as numbers, refusals."""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil
from fractions import Fraction

import numpy as np
import pytest

import mtfcore.costs.second_paper as forms
from mtfcore.costs.second_paper import cache, collectives, feedforward, serving, splits
from mtfcore.errors import LayoutError
from mtfcore.mesh import Mesh
from mtfcore.reference import rows

PALM = {"layers": 118, "kv_heads": 1, "head_size": 256}
MODULES = [importlib.import_module(found.name) for found in pkgutil.iter_modules(forms.__path__, forms.__name__ + ".")]


@pytest.mark.parametrize("module", [forms, *MODULES], ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_examples_in_docstrings_are_true(module):
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert not failed and tried


# ---- against what was published


@pytest.mark.parametrize("row", rows(table="Figure 3"), ids=lambda row: row.name)
def test_figure_3(row):
    """All 56 points, of four layouts and 14 batches, within 0.1 %."""
    about = row.setup
    sizes = Mesh(about["mesh"]).shape.values()
    ours = forms.layout_bytes(about["ffn"], about["tokens"], about["d_model"], about["d_ff"], *sizes)
    assert ours / 1e9 == pytest.approx(row.value, rel=1e-3)


@pytest.mark.parametrize("row", rows(table="Table 1", quantity="context"), ids=lambda row: row.name)
def test_table_1_longest_contexts(row):
    about = row.setup
    shape = {**PALM, **{name: about["changes"][name] for name in PALM if name in about["changes"]}}
    ours = forms.longest_context(
        **shape, batch=about["batch"], hbm_bytes=32 * 2**30, devices=64, by=about["attention"],
        fraction=about["cache_share"],
    )  # fmt: skip
    assert row.agrees(ours)


def test_the_cache_of_a_multihead_model_is_three_times_its_weights():
    """Section 2.1: 3 TB at batch 512 and 2,048 tokens, for 48 heads of 128."""
    kept = cache.cache_bytes(118, 48, 128, 512, 2048)
    assert round(kept / 1e12) == 3 and round(kept / (2 * 540e9)) == 3


@pytest.mark.parametrize("row", rows(table="Table 2", quantity="MFU"), ids=lambda row: row.name)
def test_the_printed_mfu_follows_from_the_printed_latency(row):
    seconds = next(other.seconds for other in rows(table="Table 2", quantity="latency") if other.name == row.name)
    about = row.setup
    tokens = about["batch"] * about["input_tokens" if about["phase"] == "prefill" else "output_tokens"]
    found = serving.mfu(about["counted_params"], tokens, seconds, chips=64, peak_flops=275e12)
    assert 100 * found == pytest.approx(row.value, abs=1.0)
    assert serving.seconds_at_mfu(about["counted_params"], tokens, found, 64, 275e12) == pytest.approx(seconds)


def test_floors_of_decoding():
    """Reading int8 weights takes 7.04 ms a step, bfloat16 ones twice; 3.93 chip-ms a token are the least."""
    assert serving.weight_seconds(540.35e9, 64, 1.2e12, itemsize=1) == pytest.approx(7.036e-3, rel=1e-3)
    assert serving.weight_seconds(540.35e9, 64, 1.2e12) == 2 * serving.weight_seconds(540.35e9, 64, 1.2e12, 1)
    assert serving.chip_seconds_per_token(512 * 64, 6.0, 64) > serving.least_chip_seconds_per_token(540e9, 275e12)
    assert serving.critical_tokens(1.97e14, 8.2e11) == pytest.approx(240, abs=0.5)
    assert serving.critical_tokens(1.97e14, 8.2e11, itemsize=1) == pytest.approx(120, abs=0.5)


# ---- the formulas among themselves


def test_collectives_of_one_device_move_nothing():
    """0, 64, 96, 112, 120 and 126 MiB for an all-reduce of 64 MiB; gather and scatter are half."""
    groups = np.array([1, 2, 4, 8, 16, 64])
    moved = collectives.all_reduce(64, groups, 1, exact=True)
    assert moved.tolist() == [0, 64, 96, 112, 120, 126]
    assert (collectives.all_gather(64, groups, 1, exact=True) * 2 == moved).all()
    assert (collectives.reduce_scatter(64, groups, 1, exact=True) * 2 == moved).all()
    assert collectives.all_gather(64, groups, 1).tolist() == [0] + [64] * 5


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_layouts_become_one_another_at_their_ends(gated, exact):
    """2D over one x is 1D; gathering from one device is 1D; gathering from all moves no activations."""
    sizes, how = (300, 48, 160), {"gated": gated, "exact": exact}
    one = feedforward.ws1d(300, 48, devices=12, exact=exact)
    assert feedforward.ws2d(*sizes, 1, 12, **how) == pytest.approx(one)
    assert feedforward.weight_gathered(*sizes, 1, 12, **how) == pytest.approx(one)
    for layout in forms.LAYOUTS:
        ours = forms.layout_bytes(layout, *sizes, 2, 3, 2, **how)
        assert forms.layout_bytes(layout, *sizes, 2, 3, 2, itemsize=4, **how) == 2 * ours
    everything = forms.layout_bytes("wg_xyz", *sizes, 2, 3, 2, **how)
    matrices = 3 if gated else 2
    assert everything == pytest.approx(matrices * 48 * 160 * 2 * (11 / 12 if exact else 1))


@pytest.mark.parametrize("layout", forms.LAYOUTS)
def test_the_simplified_volume_is_the_exact_one_over_its_groups_share(layout):
    """Each collective's exact volume, summed by hand for x y z = 2, 3, 4."""
    tokens, e, f, x, y, z = 7, 240, 480, 2, 3, 4
    n = x * y * z
    moves = {  # (elements of the larger side, group): every collective of the layer
        "ws1d": [(tokens * e, n)] * 2,
        "ws2d": [(tokens * e / x, y * z)] * 2 + [(tokens * f / (y * z), x)] * 2,
        "wg_x": [(e * f * x / n, x)] * 2 + [(tokens * e / x, y * z)] * 2,
        "wg_xy": [(e * f * x * y / n, x * y)] * 2 + [(tokens * e / (x * y), z)] * 2,
        "wg_xyz": [(e * f, n)] * 2,
    }[layout]
    paper, exact = (forms.layout_bytes(layout, tokens, e, f, x, y, z, exact=exact) for exact in (False, True))
    assert paper == pytest.approx(2 * sum(elements for elements, _ in moves))
    assert exact == pytest.approx(2 * sum(elements * (group - 1) / group for elements, group in moves))


def test_int8_weights_halve_the_gathered_weights_alone():
    bf16, int8 = (forms.layout_bytes("wg_xy", 512, 64, 256, 2, 2, 2, weight_itemsize=size) for size in (2, 1))
    assert bf16 - int8 == feedforward.gathered_weights(64, 256, 4, 8, itemsize=1)


def test_the_best_n_of_a_2_2():
    tokens, n = 1_048_576, 64
    best = feedforward.best_gathered(tokens, 73728, n)
    near = np.array([best * 0.99, best, best * 1.01])
    moved = forms.weight_gathered(tokens, 18432, 73728, near, n)
    assert moved[1] == pytest.approx(feedforward.least_gathered(tokens, 18432, 73728, n))
    assert (moved[1] < moved[[0, 2]]).all()


def test_arrays_give_what_numbers_give():
    tokens, x = np.array([[1], [512], [2048]]), np.array([1, 2, 4, 8])
    many = {layout: forms.layout_bytes(layout, tokens, 512, 2048, x, 4, 2) for layout in forms.LAYOUTS}
    for layout, moved in many.items():
        for (i, j), found in np.ndenumerate(moved):
            assert found == forms.layout_bytes(layout, int(tokens[i, 0]), 512, 2048, int(x[j]), 4, 2)
    heads = cache.cache_bytes_per_device(1, np.array([1, 8, 48]), 128, 1, 1, 64, "heads")
    assert heads.tolist() == [512, 512, 3 * 512]


def test_fractions_stay_exact():
    third = forms.layout_bytes("ws2d", Fraction(1), Fraction(5), Fraction(7), Fraction(3), Fraction(3))
    assert third == 2 * 2 * (Fraction(5, 3) + Fraction(7, 3)) and isinstance(third, Fraction)


def test_overlap_hides_all_but_one_turn_of_the_shorter():
    assert collectives.overlapped(5.0, 2.0) == 7.0 and collectives.overlapped(2.0, 5.0, turns=4) == 5.5
    speedup = 7.0 / collectives.overlapped(5.0, 2.0, np.array([1, 2, 10**9]))
    assert (np.diff(speedup) > 0).all() and speedup[-1] == pytest.approx(1.4)


def test_by_batch_a_device_keeps_its_sequences_and_by_heads_all_of_the_one_head():
    """1.98 GB against 126.7 GB; batch 8 on 64 chips is cut 8 ways, not 64."""
    at, whole = {**PALM, "context": 2048, "devices": 64}, cache.cache_bytes(**PALM, batch=512, context=2048)
    assert cache.cache_bytes_per_device(**at, batch=512, by="batch") == pytest.approx(1.98e9, rel=1e-3)
    assert cache.cache_bytes_per_device(**at, batch=512, by="heads") == whole
    assert cache.cache_bytes_per_device(**at, batch=8, by="batch") == pytest.approx(0.247e9, rel=2e-3)


# ---- refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: feedforward.ws1d(0, 64), "tokens is 0; expected more than 0"),
        (lambda: feedforward.ws2d(1, 64, -1, 0, 4), "d_ff is -1; expected more than 0"),
        (lambda: feedforward.ws2d(1, 64, 64, 0, np.nan), r"2 faults\n  1. x is 0; expected 1 or more\n  2. yz is nan"),
        (lambda: forms.layout_bytes("ws3d", 1, 64, 64, 2), "no layout 'ws3d'; did you mean 'ws2d'"),
        (lambda: forms.weight_gathered(1, 64, 64, 8, 4), "weights gathered over 8 of 4 devices; at most all of them"),
        (lambda: cache.ways(8, 1, 4, "head"), "no attention by 'head'; did you mean 'heads'"),
        (lambda: cache.cache_bytes(0, 8, 128, 1, 0), "context is 0; expected more than 0"),
        (lambda: serving.mfu(1e9, "many", 1, 1, 1), "tokens is 'many'; expected more than 0"),
        (lambda: collectives.all_gather(1, 4, math.inf), "bytes_per_second is inf"),
        (lambda: splits.axes_of("4x"), "no grid '4x'; write devices, 64, or the sizes of its axes, '4x4x4'"),
        (lambda: forms.best_layout(64, 64, 256, "0x4"), "no grid '0x4'"),
    ],
    ids=range(11),
)
def test_refusals(call, message):
    with pytest.raises(LayoutError, match=message):
        call()
