"""Memory at the fullest moment, against sums worked out by hand and against a slow way to find it."""

from __future__ import annotations

import random

import pytest
from costs.functions_to_search import SMALL, language_model, layers_trained, random_function, two_layers

import mtfcore as mtf
from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.costs.search.space import Space, as_layout

NET = "batch:64 io:512 hidden:2048"


def test_two_layers_on_one_device():
    """x, w, v stay; h lives with relu's result; then relu's result with y, which is the output."""
    memory = peak_memory(mtf.plan(two_layers, "all:1", "", sizes=NET, dtype="bf16"))
    x, w, h = 64 * 512 * 2, 512 * 2048 * 2, 64 * 2048 * 2
    assert (memory.inputs, memory.outputs, memory.between) == (x + 2 * w, x, 2 * h)
    assert memory.total == memory.inputs + memory.outputs + memory.between and memory.fullest == "relu"
    assert str(memory) == "inputs 4.06 MiB, outputs 64 KiB, between 512 KiB"


def test_inputs_count_as_they_lie_and_gathered_copies_besides():
    @mtf.function
    def gathered(x: "batch io", w: "io hidden"):
        return mtf.einsum(x, mtf.reshard(w, "io hidden"), out="batch hidden")

    whole, cut = (
        mtf.plan(gathered, "all:4", "batch:all", sizes=NET, dtype="bf16", place=place)
        for place in ({}, {"w": "io:all hidden"})
    )
    w = 512 * 2048 * 2
    assert [step.kind for step in cut.collectives()] == ["all_gather"]
    assert peak_memory(whole).inputs - peak_memory(cut).inputs == w - w // 4
    assert (peak_memory(whole).between, peak_memory(cut).between) == (0, w)


def test_a_loop_holds_one_turn_and_what_it_carries():
    sizes = "batch:8 io:16 layers:{}"

    @mtf.function
    def deep(x: "batch io", ws: "layers io hidden:16"):
        def turn(x, w):
            return mtf.rename(mtf.relu(mtf.einsum(x, w, out="batch hidden")), "hidden", "io")

        return mtf.repeat(turn, ws.dim("layers").size, ws, x)

    two, ten = (peak_memory(mtf.plan(deep, "all:1", "", sizes=sizes.format(n), dtype="bf16")) for n in (2, 10))
    assert two.between == ten.between and ten.inputs - two.inputs == 8 * 16 * 16 * 2


def test_a_new_parameter_takes_the_place_of_the_old_one():
    """Not so a gradient under the parameter's name: whoever asked for it still has the parameter."""

    def change(x, w):
        return mtf.einsum(x, mtf.einsum(x, w, out="batch hidden"), out="io hidden")

    @mtf.function
    def step(w: "io hidden", x: "batch io"):
        return {"w": mtf.reshard(w - 0.1 * change(x, w), "io hidden"), "other": w * 2}

    @mtf.function
    def gradient(w: "io hidden", x: "batch io"):
        return {"w": change(x, w)}

    for fn in (step, gradient):
        program = mtf.plan(fn, "all:2", "hidden:all", sizes="io:8 hidden:16 batch:4", dtype="f32")
        assert peak_memory(program).outputs == 8 * 8 * 4


def slow_peak(program: mtf.Program) -> int:
    """Bytes alive during each step, counted step by step from who reads what later; without loops."""
    ports = {p.value for p in (*program.inputs, *program.outputs)}
    size = {v: s.bytes_per_device(program.mesh, program.dtypes[v]) for v, s in program.shardings.items()}
    most = 0
    for now, step in enumerate(program.steps):
        made = {v for earlier in program.steps[: now + 1] for v in earlier.outputs}
        needed = {*step.outputs} | {v for later in program.steps[now:] for v in later.inputs}
        most = max(most, sum(size[v] for v in (made & needed) - ports))
    return most


@pytest.mark.parametrize("seed", range(8))
def test_random_functions_against_the_slow_way(seed):
    fn, sizes = random_function(seed)
    mesh, graph = mtf.Mesh("rows:2 cols:2"), fn.trace(sizes, "bf16")
    layouts = list(Space.of(graph).layouts(mesh))
    for places in random.Random(seed).sample(layouts, min(6, len(layouts))):
        program = mtf.plan(fn, mesh, as_layout(places), sizes=sizes, dtype="bf16")
        assert peak_memory(program).between == slow_peak(program)


@pytest.mark.parametrize(("fn", "sizes"), [(language_model, SMALL), (layers_trained(), "B:8 L:8")])
def test_never_more_than_the_upper_bound_of_the_program(fn, sizes):
    """`Program.memory` counts every value at once; a loop's body is not in it."""
    program = mtf.plan(fn, "rows:2 cols:4", "", sizes=sizes, dtype="bf16")
    bodies = sum(step.body.memory() for step in program.steps if step.body is not None)
    assert peak_memory(program).total <= program.memory() + bodies
