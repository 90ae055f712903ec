"""`plan` and what a program tells: FLOPs, bytes by axis, forms used again, loops, and only steps that are needed."""

from __future__ import annotations

import math
import time
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from core.sweep.checking import counted_traffic, planned_traffic
from core.sweep.making import programs
from hypothesis import given, settings

import mtfcore as mtf
from mtfcore.traffic import COLLECTIVES, link_bytes


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


SIZES = "batch:64 io:512 hidden:2048"


def kinds(program: mtf.Program) -> list[str]:
    return [step.kind for step in program.steps]


def test_flops_are_those_of_one_device():
    program = mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes=SIZES)
    assert program.flops() == 2 * 2 * 64 * 512 * 2048 // 8


def test_the_readme_layout_costs_one_all_reduce():
    program = mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes=SIZES)
    (step,) = program.collectives()
    assert (step.kind, step.axes, step.group, step.times) == ("all_reduce", ("cols",), 2, 1)
    assert step.n_bytes == 16 * 512 * 4
    assert step.link_bytes == 2 * step.n_bytes * 1 // 2
    assert program.link_bytes() == step.link_bytes
    assert program.link_bytes().by_axis == {"rows": 0, "cols": step.link_bytes}


@pytest.mark.parametrize(("dtype", "size"), [("f32", 4), ("bf16", 2), ("f16", 2), ("f64", 8)])
def test_bytes_follow_the_dtype(dtype, size):
    program = mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes=SIZES, dtype=dtype)
    assert program.link_bytes() == 16 * 512 * size


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("all_gather", 1000 * 3),
        ("reduce_scatter", 750),
        ("all_reduce", 1500),
        ("all_to_all", 750),
        ("permute", 1000),
        ("slice", 0),
        ("mask", 0),
    ],
)
def test_bytes_sent_in_a_group_of_four_that_holds_a_thousand(kind, sent):
    assert link_bytes(kind, 1000, 4) == sent
    assert link_bytes(kind, 1000, 1) == 0


def test_bytes_that_do_not_divide_stay_exact():
    assert link_bytes("reduce_scatter", 100, 3) == Fraction(200, 3)


@settings(max_examples=60)
@given(programs())
def test_totals_are_the_sums_of_their_parts(case):
    program = case.build()
    traffic, steps = program.link_bytes(), list(program.walk())
    assert sum(traffic.by_axis.values()) == pytest.approx(float(traffic))
    assert float(traffic) == pytest.approx(float(sum(Fraction(s.link_bytes) * s.times for s in steps)))
    assert set(traffic.by_axis) == set(program.mesh.names)
    assert [s.output for s in program.collectives()] == [s.output for s in steps if s.kind in COLLECTIVES]
    assert program.flops() == sum(s.flops * s.times for s in steps)
    assert all(s.group == program.mesh.group_size(s.axes) > 1 for s in program.collectives())


@settings(max_examples=60)
@given(programs())
def test_every_step_is_read_by_a_later_one_or_returned(case):
    program = case.build()
    read = {value for step in program.steps for value in step.inputs} | {port.value for port in program.outputs}
    assert [step for step in program.steps if step.output not in read] == []


def test_what_no_output_needs_is_not_planned():
    @mtf.function
    def wasteful(x: "A:8 B:8"):
        mtf.reshard(x, "A B:x")
        return mtf.relu(x)

    program = mtf.plan(wasteful, "x:4", place={"x": "A:x B"})
    assert kinds(program) == ["pointwise"]
    assert program.memory() == 2 * 8 * 8 * 4 // 4


def test_a_form_that_lies_there_already_is_used_again():
    """Gathered once for the first product, the weight is a free source for the second."""

    @mtf.function
    def twice(x: "B:8 E:8", y: "B:8 E:8", w: "E:8 F:8"):
        first = mtf.einsum(x, w, out="B:x F", at=["B:x E", "E F"])
        return first, mtf.einsum(y, w, out="B:x F", at=["B:x E", "E F"])

    program = mtf.plan(twice, "x:4", place={"x": "B:x E", "y": "B:x E", "w": "E F:x"})
    assert [step.kind for step in program.collectives()] == ["all_gather"]


def test_the_nearest_form_is_the_source():
    """From A:x B the next place is one all-gather away; from A:xy B, where x lies too, it would be two."""

    @mtf.function
    def moved(t: "A:8 B:8"):
        near = mtf.reshard(t, "A:x B")
        return near, mtf.reshard(t, "A B")

    program = mtf.plan(moved, "x:2 y:2", place={"t": "A:xy B"})
    assert [step.axes for step in program.collectives()] == [("y",), ("x",)]


def test_axes_of_size_one_make_no_steps():
    assert mtf.plan(two_layers, "rows:1 cols:1", "batch:rows hidden:cols", sizes=SIZES).collectives() == []
    with_one = mtf.plan(two_layers, "rows:4 cols:1", "batch:rows hidden:cols", sizes=SIZES)
    without = mtf.plan(two_layers, "rows:4", "batch:rows", sizes=SIZES)
    assert [repr(step) for step in with_one.steps] == [repr(step) for step in without.steps]


# ---- loops --------------------------------------------------------------------------------------------------------


def deep(n: int) -> mtf.Program:
    @mtf.function
    def layers(x: "B:8 E:16", ws: "N E:16 F:32", vs: "N F:32 E:16"):
        def layer(x, w, v):
            return mtf.einsum(mtf.relu(mtf.einsum(x, w, out="B F")), v, out="B E")

        return mtf.repeat(layer, n, [ws, vs], x)

    return mtf.plan(layers, "x:2 y:2", "B:x F:y", sizes={"N": n})


def test_a_loop_is_planned_once_and_counted_n_times():
    one, many = deep(1), deep(118)
    assert len(list(many.walk())) == len(list(one.walk()))
    assert [step.times for step in many.collectives()] == [118]
    assert many.flops() == 118 * one.flops()
    assert many.link_bytes() == 118 * one.link_bytes()


def test_loops_inside_loops_multiply():
    @mtf.function
    def nested(x: "A:8 B:8"):
        def outer(x):
            return mtf.repeat(lambda y: mtf.reshard(mtf.reshard(y, "A B:x"), "A:x B"), 3, [], x)

        return mtf.repeat(outer, 5, [], x)

    program = mtf.plan(nested, "x:4", place={"x": "A:x B"})
    assert [step.times for step in program.collectives()] == [15, 15]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (lambda c, p: mtf.relu(c), {}),  # the stack is not read, so it is not gathered over N
        (lambda c, p: mtf.add(c, p), {"all_gather": 1}),
        (lambda c, p: mtf.settle(mtf.sum(mtf.multiply(c, p), out="A B")), {"all_gather": 1}),
    ],
    ids=["unread", "read", "read twice"],
)
def test_only_what_a_turn_reads_is_taken_into_the_loop(block, expected):
    @mtf.function
    def looped(t: "A:8 B:8", u: "N:2 B:8"):
        return mtf.repeat(block, 2, [u], t)

    program = mtf.plan(looped, "x:2 y:2", place={"t": "A:x B:y", "u": "N:x B:y"}, layout="A:x B:y")
    run = mtf.simulate(program)
    assert Counter(step.kind for step in program.collectives()) == expected
    assert planned_traffic(program) == counted_traffic(mtf.count(run.fn, *run.shapes))
    t, u = np.arange(64.0).reshape(8, 8) / 64, np.arange(16.0).reshape(2, 8) / 16
    assert np.allclose(run(t, u), mtf.single(program)(t, u))


def fastest(act: object, repeats: int = 7) -> float:
    """The shortest of several runs: what the work takes when nothing else disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


def test_118_layers_plan_as_fast_as_one():
    """The same work, so the same time; three times leaves room for a busy machine, 118 times would not pass."""
    deep(1), deep(118)
    assert fastest(lambda: deep(118)) < 3 * fastest(lambda: deep(1))


# ---- what is refused, and asked for -------------------------------------------------------------------------------


def test_all_faults_of_the_places_come_at_once():
    with pytest.raises(mtf.LayoutError) as caught:
        mtf.plan(two_layers, "rows:4 cols:2", sizes=SIZES, place={"x": "batch:planes", "w": "io:rows hidden:rows"})
    assert "planes" in str(caught.value)
    assert "'rows' is used twice" in str(caught.value)


def test_an_unknown_input_is_refused_with_the_nearest_name():
    with pytest.raises(mtf.LayoutError, match="no input 'xs'; did you mean 'x'"):
        mtf.plan(two_layers, "rows:4", sizes=SIZES, place={"xs": "batch:rows io"})


def test_sizes_that_do_not_divide_are_refused_before_anything_is_planned():
    with pytest.raises(mtf.LayoutError, match="does not divide over mesh axis rows:3"):
        mtf.plan(two_layers, "rows:3", "batch:rows", sizes=SIZES)


@pytest.mark.parametrize("place", ["A partialsum:x", "A:y partialsum:x"])
def test_truth_values_have_no_partial_sums(place):
    @mtf.function(dtypes={"bits": "bool"})
    def negated(bits: "A:8"):
        return mtf.logical_not(bits)

    with pytest.raises(mtf.LayoutError, match=r"input bits: tensor .* is bool, which has no sums"):
        mtf.plan(negated, "x:2 y:2", place={"bits": place})


def test_truth_values_are_not_wanted_as_partial_sums():
    @mtf.function
    def compared(t: "A:8"):
        return mtf.greater(t, 0, out="A partialsum:x")

    with pytest.raises(mtf.LayoutError, match=r"result of greater: .* is bool, which has no sums"):
        mtf.plan(compared, "x:2 y:2")


def test_each_output_lies_where_it_was_asked_for():
    @mtf.function
    def out_of(x: "A:8 B:8"):
        return {"partial": mtf.sum(x, "A", out="B partialsum:x"), "split": mtf.sum(x, "A", out="B:x")}

    program = mtf.plan(out_of, "x:2", place={"x": "A:x B"})
    assert [port.sharding.text() for port in program.outputs] == ["B partialsum:x", "B:x"]
    assert [port.name for port in program.outputs] == ["partial", "split"]
    assert math.isclose(program.link_bytes(), 8 * 4 / 2)
