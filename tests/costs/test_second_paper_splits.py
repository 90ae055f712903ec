"""Which split and which layout where: whole numbers, physical grids, crossovers, the lower envelope."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import mtfcore.costs.second_paper as forms
from mtfcore.costs.second_paper import crossovers, splits
from mtfcore.errors import LayoutError
from mtfcore.mesh import Mesh
from mtfcore.reference import rows

LAYER = {"d_model": 16384, "d_ff": 65536}
MIB = 2**20
GRIDS = (8, 12, "4x4x4", "4x4x8", "8x8", "4x8x8", "2x2x4", "16x16x2", "8", 17)


# ---- 1D and 2D


@pytest.mark.parametrize(("devices", "mib"), [(16, 16), (32, 12), (64, 8), (256, 4)])
def test_case_c07(devices, mib):
    """B L = 256, bf16: 1D moves 16 MiB whatever n; the best whole split of 32 moves 12 MiB, not the formula's 11.3."""
    assert forms.ws1d(256, 16384, devices=devices) == 16 * MIB
    best = forms.best_split(devices, **LAYER)
    assert best.n_bytes(256) == mib * MIB and best.x * best.yz == devices
    assert splits.least_bytes(256, **LAYER, devices=devices) <= best.n_bytes(256)


def test_no_formula_value_that_no_split_reaches_is_a_plan():
    """32 devices: 11.3 MiB is a bound, X of 2 and of 4 reach 12; the smaller comes first."""
    assert splits.least_bytes(256, **LAYER, devices=32) / MIB == pytest.approx(11.3137, rel=1e-4)
    assert {x: forms.ws2d(256, **LAYER, x=x, yz=32 // x) / MIB for x in (2, 4)} == {2: 12, 4: 12}
    assert forms.best_split(32, **LAYER).x == 2


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_the_best_split_is_the_least_of_those_that_exist(grid, ratio):
    best = forms.best_split(grid, 1024, 1024 * ratio)
    n = math.prod(splits.axes_of(grid))
    all_splits = [forms.ws2d(1, 1024, 1024 * ratio, x, n // x) for x in splits.x_choices(grid)]
    assert best.n_bytes(1) == min(all_splits) and best.devices == n
    if best.x > 1:  # with X of 1 nothing moves over x, and the two-term bound does not apply
        assert best.n_bytes(1) >= splits.least_bytes(1, 1024, 1024 * ratio, n) * (1 - 1e-12)


def test_the_splits_that_a_physical_grid_offers():
    assert splits.x_choices("4x4x8") == [1, 4, 8, 16, 32, 128]
    assert splits.x_choices("4x4") == [1, 4, 16] and splits.x_choices(16) == [1, 2, 4, 8, 16]
    assert forms.best_split("4x4", **LAYER).x == 1  # X of 4 moves E/4 + 4E/4, more than 1D's E
    assert forms.best_split(16, **LAYER).n_bytes(1) == forms.ws1d(1, 16384)


@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_2d_wins_above_four_times_the_ratio(ratio):
    """n > 4 F/E: at equality the best even split ties, and no smaller number of devices wins."""
    threshold = forms.devices_from_which_2d_wins(1024, 1024 * ratio)
    assert threshold == 4 * ratio
    wins = [n for n in range(1, 80) if splits.wins_2d(1024, 1024 * ratio, n)]
    powers = {2**k for k in range(7)}
    assert min(wins) > threshold and powers & set(wins) == {n for n in powers if n > threshold}
    at = splits.least_bytes(1, 1024, 1024 * ratio, threshold)
    assert at == pytest.approx(forms.ws1d(1, 1024))


def test_the_ideal_split_at_f_of_4_e():
    """X = sqrt(n)/2, YZ = 2 sqrt(n), 8 BL E / sqrt(n). Section 3.2.2."""
    assert forms.ideal_split(64, **LAYER) == (4, 16)
    assert splits.least_bytes(256, **LAYER, devices=64, itemsize=1) == 8 * 256 * 16384 / 8


# ---- crossovers


@pytest.mark.parametrize(
    ("first", "second", "in_units_of_e"),
    [("ws2d", "wg_x", 1), ("wg_x", "wg_xy", 4), ("wg_xy", "wg_xyz", 48), ("ws2d", "wg_xyz", 8)],
)
def test_crossovers_on_4x4x4_at_f_of_4_e(first, second, in_units_of_e):
    """E, F, 12 F, and 2 F at once: not one 'BL > F'."""
    for d_model in (16384, 18432):
        assert forms.crossover(first, second, d_model, 4 * d_model, (4, 4, 4)) == in_units_of_e * d_model


def test_published_crossings():
    found = rows(table="Figure 3, crossings")
    assert len(found) >= 4
    for row in found:
        about = row.setup
        mesh = tuple(Mesh(about["mesh"]).shape.values())
        assert forms.crossover(*about["between"], about["d_model"], about["d_ff"], mesh) == row.value


@pytest.mark.parametrize("ratio", [2, 4, 8])
def test_at_a_crossover_both_move_the_same_and_around_it_each_wins_once(ratio):
    for first, second in itertools.combinations(forms.LAYOUTS, 2):
        mesh, sizes = (2, 4, 8), (512, 512 * ratio)
        try:
            tokens = forms.crossover(first, second, *sizes, mesh)
        except LayoutError:
            continue
        before, at, after = (
            forms.layout_bytes(first, t, *sizes, *mesh) - forms.layout_bytes(second, t, *sizes, *mesh)
            for t in (float(tokens) * 0.9, float(tokens), float(tokens) * 1.1)
        )
        assert at == pytest.approx(0, abs=1e-6 * abs(before)) and before * after < 0


def test_layouts_that_never_meet_are_refused():
    with pytest.raises(LayoutError, match="ws1d and ws2d never move the same on 4x4x4"):
        forms.crossover("ws1d", "ws2d", 1024, 4096, (4, 4, 4))


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("ratio", [1, 4, 8])
@pytest.mark.parametrize("gated", [False, True])
def test_the_envelope_is_the_best_layout_everywhere(grid, ratio, gated):
    """Between, at and beyond the crossovers, the envelope moves what the best of all layouts and meshes moves."""
    sizes = (768, 768 * ratio)
    parts = forms.winners(*sizes, grid, gated=gated)
    ends = [part.tokens for part in parts] + [parts[-1].tokens * 2 + 100_000]
    assert ends == sorted(set(ends))
    for part, (start, end) in zip(parts, itertools.pairwise(ends), strict=True):
        for tokens in {start, (start + end) / 2, end} - {0}:
            every = {
                (layout, mesh): moved(layout, tokens, sizes, mesh, gated)
                for layout in forms.LAYOUTS for mesh in forms.meshes(grid)
            }  # fmt: skip
            least = min(every.values())
            assert every[part.layout, part.mesh] == least
            best = forms.best_layout(tokens, *sizes, grid, gated=gated)
            assert best.n_bytes == float(least) == min(best.candidates.values())


def moved(layout: str, tokens: Fraction, sizes: tuple[int, int], mesh: tuple[int, ...], gated: bool) -> Fraction:
    return forms.layout_bytes(layout, tokens, *map(Fraction, (*sizes, *mesh)), gated=gated)


def test_decode_keeps_its_weights_and_a_large_prefill_gathers_them_all():
    """Table 2's choices for PaLM 540B on 64 chips: 2D for 64 and 512 tokens and for 2,048, wg_xyz for 512 of 2,048."""
    palm = {"d_model": 18432, "d_ff": 73728, "grid": "4x4x4"}
    layouts = [forms.best_layout(tokens, **palm).layout for tokens in (64, 512, 2048, 512 * 2048)]
    assert layouts == ["ws2d", "ws2d", "ws2d", "wg_xyz"]


def test_many_numbers_of_tokens_at_once():
    """B L x F/E x n: each name is that of `best_layout`."""
    for ratio, grid in itertools.product((2, 4, 8), ("4x4x4", "4x4x8", 16)):
        tokens = [1, 512, 1024, 4096, 40_000, 300_000, 10**7]
        names = forms.layouts_at(np.array(tokens), 1024, 1024 * ratio, grid)
        moved = [forms.best_layout(t, 1024, 1024 * ratio, grid).candidates for t in tokens]
        assert all(each[name] == min(each.values()) for each, name in zip(moved, names, strict=True))
    assert forms.layouts_at(512, 1024, 4096, "4x4x4") == "ws2d"
    with pytest.raises(LayoutError, match="for many ask layouts_at"):
        forms.best_layout(np.array([1, 2]), 1024, 4096, "4x4x4")


def test_pinned_weights_keep_their_mesh():
    free = forms.best_layout(200_000, 18432, 73728, "4x4x8")
    pinned = forms.best_layout(200_000, 18432, 73728, "4x4x8", pinned=(8, 4, 4))
    assert free.mesh == (4, 4, 8) and pinned.mesh == (8, 4, 4) and pinned.n_bytes > free.n_bytes


def test_layouts_that_are_others_in_disguise_are_not_candidates():
    assert set(forms.best_layout(64, 768, 3072, "8").candidates) == {"ws1d", "ws2d", "wg_xyz"}
    assert set(forms.best_layout(64, 768, 3072, 1).candidates) == {"ws1d", "wg_xyz"}


def test_meshes_of_a_number_and_of_a_grid():
    assert forms.meshes(4) == ((1, 1, 4), (1, 2, 2), (1, 4, 1), (2, 1, 2), (2, 2, 1), (4, 1, 1))
    assert forms.meshes("4x4x8") == ((4, 4, 8), (4, 8, 4), (8, 4, 4)) and forms.meshes((4, 8)) == ((4, 8, 1), (8, 4, 1))
    two_together = {*itertools.permutations((2, 2, 6)), *itertools.permutations((2, 3, 4))}
    assert set(forms.meshes("2x2x2x3")) == two_together
    assert crossovers.line("ws1d", 8, 32, (2, 2, 2)).n_bytes(10) == 320
