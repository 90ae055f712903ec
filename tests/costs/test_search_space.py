"""The space of a layout search, plans made by copying, and bounds: each against the planner itself."""

from __future__ import annotations

import itertools
import random

import pytest
from costs.brute_force import every_layout, seconds
from costs.functions_to_search import SMALL, language_model, layers_trained, random_function, trained, two_layers

import mtfcore as mtf
from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.costs.search.bounds import Bounds
from mtfcore.costs.search.problem import Problem
from mtfcore.costs.search.space import Space, as_layout, factorings
from mtfcore.costs.search.times import Rates, time_by_operation, time_of
from mtfcore.costs.search.tree import Branches
from mtfcore.costs.search.walk import Walk
from mtfcore.costs.search.work import Work

NET = "batch:8 io:4 hidden:12"


def test_factorings_are_all_products_once():
    assert [str(mesh) for mesh in factorings(8)] == ["all:8", "rows:2 cols:4", "rows:2 cols:2 planes:2"]
    assert [str(mesh) for mesh in factorings(1)] == ["all:1"]
    sizes = [tuple(mesh.shape.values()) for mesh in factorings(512)]
    assert len(sizes) == 12 and (16, 32) in sizes and len(set(sizes)) == 12
    assert len(factorings(512, ordered=True)) == 1 + 8 + 28


def plannable(fn, mesh, layouts, **how):
    """The layouts that `mtf.plan` takes."""
    for layout in layouts:
        try:
            mtf.plan(fn, mesh, layout, **how)
        except mtf.LayoutError:
            continue
        yield layout


@pytest.mark.parametrize("mesh", ["all:4", "rows:2 cols:4", "rows:2 cols:2"])
def test_legal_layouts_are_those_that_the_planner_takes(mesh):
    """Of each renaming of equal axes one; without equal axes, each."""
    mesh, space = mtf.Mesh(mesh), Space.of(two_layers.trace(NET))
    ours = {as_layout(places) for places in space.layouts(mesh)}
    theirs = list(plannable(two_layers, mesh, every_layout(mesh, ["batch", "io", "hidden"]), sizes=NET))
    assert ours <= set(theirs)
    names = [dict(zip(mesh.names, order, strict=True)) for order in itertools.permutations(mesh.names)]
    alike = [new for new in names if all(mesh[a] == mesh[b] for a, b in new.items())]
    renamed = {mtf.Layout([(d, tuple(new[a] for a in on)) for d, on in one.rules]) for one in ours for new in alike}
    assert renamed == set(theirs)
    assert len(alike) == 1 or len(ours) < len(theirs)


def test_axes_named_in_the_function_are_not_collapsed():
    @mtf.function
    def pinned(x: "batch io", w: "io hidden"):
        return mtf.reshard(mtf.einsum(x, w, out="batch hidden"), "batch:cols hidden")

    space = Space.of(pinned.trace(NET))
    assert space.named == {"cols"}
    assert all("cols" in mesh.names for mesh in space.meshes(8)) and mtf.Mesh("rows:4 cols:2") in space.meshes(8)
    assert Space.of(two_layers.trace(NET), {"x": "batch:rows io"}).named == {"rows"}


def assert_same(ours: mtf.Program, theirs: mtf.Program) -> None:
    assert [port.sharding for port in ours.inputs] == [port.sharding for port in theirs.inputs]
    assert [(p.value, p.sharding) for p in ours.outputs] == [(p.value, p.sharding) for p in theirs.outputs]
    assert len(ours.steps) == len(theirs.steps)
    for a, b in zip(ours.steps, theirs.steps, strict=True):
        for name in ("kind", "inputs", "outputs", "before", "after", "dtype", "axes", "group", "n_bytes", "flops"):
            assert getattr(a, name) == getattr(b, name), name
        if a.body is not None:
            assert_same(a.body, b.body)


def test_a_walk_gives_the_steps_of_plan_for_gradients():
    mesh, fn, sizes = mtf.Mesh("rows:2 cols:4"), layers_trained(), "B:8 L:8"
    graph = fn.trace(sizes, "bf16")
    walk, layouts = Walk(graph, mesh), list(Space.of(graph).layouts(mesh))
    for places in random.Random(4).sample(layouts, 8):
        layout = as_layout(places)
        again = walk.program(layout)
        assert_same(walk.program(layout), mtf.plan(fn, mesh, layout, sizes=sizes, dtype="bf16"))
        assert_same(walk.program(layout), again)


@pytest.mark.parametrize("mesh", ["rows:2 cols:4", "rows:2 cols:2 planes:2"])
def test_a_walk_gives_the_steps_of_plan(mesh):
    """Also when most of what it gives was recorded under other layouts, loops included."""
    mesh, graph = mtf.Mesh(mesh), language_model.trace(SMALL, "bf16")
    walk, layouts = Walk(graph, mesh), list(Space.of(graph).layouts(mesh))
    for places in random.Random(3).sample(layouts, 40):
        layout = as_layout(places)
        again = walk.program(layout)
        assert_same(walk.program(layout), mtf.plan(language_model, mesh, layout, sizes=SMALL, dtype="bf16"))
        assert_same(walk.program(layout), again)


@pytest.mark.parametrize("seed", range(12))
def test_no_layout_takes_less_than_its_bound(seed):
    fn, sizes = random_function(seed)
    where, graph = mtf.topology("v5e:2x2"), fn.trace(sizes, "bf16")
    rates, space = Rates(where.peak_flops_per_device, where.link_bytes_per_second), Space.of(graph)
    for mesh in space.meshes(4):
        dims = list(space.dims)
        branches = Branches(space, mesh, dims, Bounds(mesh, dims, Work.of(graph, {}), rates))
        for places in space.layouts(mesh):
            program = mtf.plan(fn, mesh, as_layout(places), sizes=sizes, dtype="bf16")
            for depth in range(len(dims) + 1):
                bit = {name: 1 << k for k, name in enumerate(mesh.names)}
                chosen = [(sum(bit[a] for a in places[dim]), places[dim]) for dim in dims[:depth]]
                least, most = branches.masks(chosen)
                assert branches.bounds.time(least, most) <= seconds(program, where) * (1 + 1e-9)
                assert branches.bounds.memory(most) <= peak_memory(program).total


def learned(fn, sizes: str, mesh: mtf.Mesh, most: int):
    """(bound, time) of some layouts after others have been planned and learned from; chosen at random."""
    where, graph = mtf.topology("v2:2x2"), fn.trace(sizes, "bf16")
    rates, space = Rates(where.peak_flops_per_device, where.link_bytes_per_second), Space.of(graph)
    dims, walk = list(space.dims), Walk(graph, mesh)
    branches = Branches(space, mesh, dims, Bounds(mesh, dims, Work.of(graph, {}), rates))
    layouts = list(space.layouts(mesh))
    random.Random(5).shuffle(layouts)
    n_seen = min(most, len(layouts)) // 2
    bit = {name: 1 << k for k, name in enumerate(mesh.names)}
    for number, places in enumerate(layouts[:most]):
        node = tuple((sum(bit[a] for a in places[dim]), places[dim]) for dim in dims)
        program = walk.program(as_layout(places))
        if number >= n_seen:
            yield branches.bound(node), sum(time_of(program, rates))
        branches.bounds.learn(node, time_by_operation(program, rates, walk.asked))


@pytest.mark.parametrize(
    ("fn", "sizes", "mesh", "most"),
    [
        (two_layers, "batch:8 io:8 hidden:16", "rows:2 cols:2 planes:2", 200),
        (trained, "batch:8 io:8 hidden:16", "rows:2 cols:4", 100),
        (language_model, SMALL, "rows:2 cols:4", 250),
        (layers_trained(), "B:8 L:8", "rows:2 cols:4", 120),
    ],
)
def test_what_was_learned_is_never_more_than_a_layout_takes(fn, sizes, mesh, most):
    found = list(learned(fn, sizes, mtf.Mesh(mesh), most))
    assert all(bound <= time * (1 + 1e-9) for bound, time in found)
    assert any(bound > 0.9 * time for bound, time in found), "and it says something"


def test_time_is_that_of_flops_and_link_bytes():
    problem = Problem.of(language_model, "v2:2x2", SMALL, "bf16", None, None, "paper")
    program = problem.plan(mtf.Mesh("rows:2 cols:4"), mtf.Layout("batch:rows d_ff:cols heads:cols vocab:cols"))
    work, sent = time_of(program, problem.rates)
    assert work == pytest.approx(program.flops() / 22.5e12)
    assert sent == pytest.approx(float(program.link_bytes()) / 60e9) and sent > 0
