"""What steps read from and write to HBM, against sums worked out by hand."""

from __future__ import annotations

import math

import pytest
from costs.functions_to_search import SMALL, language_model, layers_trained, two_layers

import mtfcore as mtf
from mtfcore.costs.pricing.step_work import hbm_bytes, works
from mtfcore.costs.pricing.work import local_size

NEVER = math.inf  # a fast memory that holds every value between
NET = "batch:64 io:512 hidden:2048"


def reads(program: mtf.Program, fast_memory: float = NEVER) -> list[int]:
    """HBM bytes of every product and reduction."""
    return [hbm_bytes(work, program.mesh, fast_memory) for work in works(program) if work.reads]


def test_two_layers_read_x_and_both_weights():
    program = mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes=NET, dtype="bf16")
    x, w, h = 16 * 512 * 2, 512 * 1024 * 2, 16 * 1024 * 2
    assert reads(program) == [x + w, w]
    assert reads(program, h) == [x + w, w]  # h fits just so
    assert reads(program, h - 1) == [x + w + h, h + w]  # y, a quarter of it, still fits
    assert reads(program, 0) == [x + w + h, h + w + x]


def test_weights_are_read_as_they_are_stored():
    @mtf.function(dtypes={"w": "i8"})
    def quantized(x: "batch io", w: "io hidden", scale: " hidden"):
        return mtf.einsum(x, mtf.cast(w, "bf16") * scale, out="batch hidden")

    program = mtf.plan(quantized, "rows:4 cols:2", "batch:rows hidden:cols", sizes=NET, dtype="bf16")
    assert reads(program) == [16 * 512 * 2 + 512 * 1024 + 1024 * 2]


def test_only_the_part_that_is_used_is_read():
    @mtf.function
    def last(x: "batch length io", w: "io hidden"):
        return mtf.einsum(mtf.slice(x, "length", 7, 8), w, out="batch length hidden")

    @mtf.function
    def halves(x: "batch length io"):
        return mtf.sum(mtf.slice(x, "length", 0, 4) * mtf.slice(x, "length", 4, 8), out="")

    sizes = "batch:4 length:8 io:16"
    assert reads(mtf.plan(last, "all:1", sizes=f"{sizes} hidden:32", dtype="f32")) == [4 * 16 * 4 + 16 * 32 * 4]
    whole = 4 * 8 * 16 * 4
    assert reads(mtf.plan(halves, "all:1", sizes=sizes, dtype="f32"))[0] == whole  # both halves: all of x, once


def test_a_slice_along_a_free_axis_reads_its_own_part():
    program = mtf.plan(two_layers, "rows:4", "batch:rows", sizes=NET, dtype="f32", place={"x": "batch io"})
    assert reads(program)[0] == 16 * 512 * 4 + 512 * 2048 * 4


def test_a_loop_reads_one_entry_of_a_stack_a_turn():
    @mtf.function
    def deep(x: "batch io", ws: "layers io hidden:16"):
        def turn(x, w):
            return mtf.rename(mtf.relu(mtf.einsum(x, w, out="batch hidden")), "hidden", "io")

        return mtf.repeat(turn, 5, ws, x)

    program = mtf.plan(deep, "all:2", "batch:all", sizes="batch:8 io:16 layers:5", dtype="bf16")
    found = [work for work in works(program) if work.step.flops]
    assert [(work.step.times, hbm_bytes(work, program.mesh, NEVER)) for work in found] == [(5, 16 * 16 * 2)]
    assert [access.name for access in found[0].reads] == ["", "ws"]  # what is carried is a value between


def test_lookups_are_read_and_written_where_they_are_large():
    @mtf.function(dtypes={"ids": "i32"})
    def look_up(table: "words io", ids: " batch"):
        return mtf.gather(table, ids, "words")

    program = mtf.plan(look_up, "all:1", sizes="words:1024 io:32 batch:8", dtype="f32")
    rows = 8 * 32 * 4
    assert (reads(program), reads(program, rows - 1)) == ([0], [2 * rows])


@pytest.mark.parametrize(("fn", "layout", "sizes"), [
    (two_layers, "batch:rows hidden:cols", NET),
    (layers_trained(), "B:rows F:cols H:cols V:cols", "B:4 L:8"),
    (language_model, "batch:rows d_ff:cols heads:cols vocab:cols", SMALL),
])  # fmt: skip
def test_products_make_the_flops_of_their_steps(fn, layout, sizes):
    program = mtf.plan(fn, "rows:2 cols:2", layout, sizes=sizes)
    found = [work for work in works(program) if work.step.kind == "einsum" and len(work.step.before) == 2]
    assert found
    for work in found:
        assert 2 * math.prod(local_size(part, program.mesh) for part in work.product) == work.step.flops
    walked = [(step.kind, step.times) for step in program.walk() if step.kind != "repeat"]
    assert sorted(walked) == sorted((work.step.kind, work.step.times) for work in works(program))
