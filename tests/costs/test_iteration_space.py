"""Appendix B: slabs, pencils and cubes; printed ratios, and the planned program's bytes."""

from __future__ import annotations

from fractions import Fraction

import pytest

import mtfcore as mtf
from mtfcore.costs.first_paper.iteration_space import Blocks, best, factorings, planned
from mtfcore.counting import count_stablehlo

SLABS, PENCILS, CUBES = Blocks(64, 1, 1), Blocks(8, 8, 1), Blocks(4, 4, 4)


def test_the_printed_ratios_on_64_processors():
    """Published: about 0.12 u for pencils, 0.17 u for cubes, about 40 % better."""
    assert PENCILS.ratio(1) == Fraction(2, 17) and round(float(PENCILS.ratio(1)), 2) == 0.12
    assert CUBES.ratio(1) == Fraction(1, 6) and round(float(CUBES.ratio(1)), 2) == 0.17
    assert CUBES.ratio(1) / PENCILS.ratio(1) == Fraction(17, 12) and round(17 / 12 - 1, 1) == 0.4


def test_slabs_touch_a_whole_matrix():
    """Computed: u²/64 of A and of C, and all of B."""
    assert SLABS.touched(64) == 64 * 64 * (1 + Fraction(2, 64)) and SLABS.ratio(1) == Fraction(1, 33)


@pytest.mark.parametrize(
    ("blocks", "kind", "owner"),
    [(Blocks(), "the whole cube", True), (SLABS, "slabs", True), (PENCILS, "pencils", True), (CUBES, "cubes", False),
     (Blocks(1, 8, 8), "pencils", False), (Blocks(2, 4, 8), "boxes", False)],
)  # fmt: skip
def test_kinds(blocks, kind, owner):
    assert (blocks.kind, blocks.owner_computes) == (kind, owner)


def test_a_two_dimensional_layout_gives_pencils():
    """`the 2D layout gives the cubic partition` is a mistake in circulation: only a 3D one does."""
    layout, mesh = mtf.Layout("batch:rows hidden:cols"), mtf.Mesh("rows:8 cols:8")

    def cut(name: str) -> int:
        return mesh.group_size(layout.axes(name))

    assert Blocks(cut("batch"), cut("hidden"), cut("io")).kind == "pencils"


@pytest.mark.parametrize("processors", [1, 7, 12, 64, 512])
def test_every_factoring_once(processors):
    found = list(factorings(processors))
    brute = {
        (i, j, k) for i in range(1, processors + 1) if processors % i == 0
        for j in range(1, processors // i + 1) if processors // i % j == 0 for k in [processors // i // j]
    }  # fmt: skip
    assert {(b.i, b.j, b.k) for b in found} == brute and len(found) == len(brute)


@pytest.mark.parametrize("processors", [8, 12, 60, 64, 512])
def test_more_edges_never_communicate_more(processors):
    faces = [best(processors, edges).touched(1) for edges in (1, 2, 3)]
    assert faces == sorted(faces, reverse=True)
    assert best(processors, owner_computes=True).touched(1) == faces[1]  # the owner's best are pencils


def test_the_best_blocks_of_64():
    assert [best(64, edges) for edges in (1, 2, 3)] == [SLABS, PENCILS, CUBES]


def test_no_blocks_beat_the_bound_of_a_cube():
    """Of all boxes of volume u³/p a cube has the least face: 3 (u³/p)^(2/3)."""
    for processors in (8, 27, 30, 64, 100):
        assert min(float(b.touched(1)) for b in factorings(processors)) >= 3 * processors ** (-2 / 3) - 1e-12


@pytest.mark.parametrize("blocks", [*factorings(8), SLABS, PENCILS, CUBES, Blocks(2, 4, 8)], ids=str)
def test_what_the_collectives_send_is_the_touched_tiles_less_what_lies_there(blocks):
    """Bytes of the planned program = 4 (touched - 3 u²/p), exactly, on 64, 8 x 8, 4 x 4 x 4 and others."""
    u = 64
    program = planned(blocks, u)
    assert (
        program.link_bytes() == 4 * blocks.sent(u) == 4 * (blocks.touched(u) - Fraction(3 * u * u, blocks.processors))
    )
    assert program.flops() == blocks.computation(u)
    kinds = {step.kind: step.axes for step in program.collectives()}
    assert ("reduce_scatter" in kinds) == (not blocks.owner_computes)


@pytest.mark.parametrize("blocks", [SLABS, PENCILS, CUBES], ids=str)
def test_the_same_bytes_are_counted(blocks):
    run = mtf.simulate(planned(blocks, 64))
    for counts in (mtf.count(run.fn, *run.shapes), count_stablehlo(run.lower())):
        assert (counts.link_bytes, counts.flops) == (4 * blocks.sent(64), blocks.computation(64))
