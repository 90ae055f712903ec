"""Seconds of templates against `price` of programs planned freshly, step by step."""

from __future__ import annotations

import random

import numpy as np
import pytest
from costs.test_templates import MESHES, case, named, random_sizes, steps_of, template_of

import mtfcore as mtf
from mtfcore.costs.links.wiring import Leg, wire
from mtfcore.costs.pricing.price import price
from mtfcore.costs.pricing.rates import rates
from mtfcore.costs.templates.routes import routes_on
from mtfcore.costs.templates.template import Template
from mtfcore.errors import LayoutError

SLICES = ("v4:4x4x4", "v5e:8x8", "v6e:8x8", "h100:8x8", "v2:8x8", "v3:8x8")
MODELS = ("physical", "paper", "calibrated")
CASES = [("two_layers", "batch:rows hidden:cols"), ("two_layers", "io:(rows cols)"), ("tiny-palm", "mtf-2d"),
         ("tiny-grouped", "mtf-2d"), ("tiny-lm", "mtf-3d")]  # fmt: skip


def is_near(ours: np.ndarray, theirs: float) -> bool:
    return abs(ours - theirs) <= 1e-12 * abs(theirs)


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_seconds_are_those_of_the_priced_program(name, layout):
    plan, sizes = case(name, layout)
    template, rng, priced = template_of(plan, sizes, MESHES[layout]), random.Random(name), 0
    usual = steps_of(plan(sizes[0], MESHES[layout][0]))
    for _ in range(8):
        mesh = {axis: rng.choice((2, 4)) for axis in MESHES[layout][0]}
        some = random_sizes(rng, sizes[0], 64 * rng.choice((1, 9)))
        program, where = plan(some, mesh), rng.choice(SLICES)
        if steps_of(program) != usual:
            continue
        wired = wire(program.mesh, where)
        for model in MODELS:
            cost = price(program, where, model, wired)
            found = template.seconds(named(some), mesh, cost.rates, wired.legs)
            assert is_near(found.total, cost.additive_seconds)
            for part, took in cost.parts.items():
                assert abs(found.parts[part] - took) <= 1e-12 * cost.additive_seconds
            steps = [step.seconds for step in cost.steps]
            rows = [found.rows[row] / template.rows[row].count if row >= 0 else 0.0 for row in template.row_of_step]
            assert np.allclose(rows, steps, rtol=1e-12, atol=0)
            priced += 1
    assert priced >= 6


def test_many_meshes_and_batches_at_once():
    """Legs with arrays: meshes of a 4x4x4 torus, each axis on its own, of which some have size 1."""
    plan, sizes = case("tiny-grouped", "mtf-2d")
    template, at = template_of(plan, sizes, MESHES["mtf-2d"]), rates("v4", "physical")
    some, batch = named(sizes[0]), np.array([[64], [192], [320]])
    mesh = {"rows": np.array([1, 1, 2, 2, 4, 4]), "cols": np.array([2, 4, 1, 4, 2, 4])}
    found = template.seconds({**some, "B": batch}, mesh, at, lambda axes: [leg(mesh[axis]) for axis in axes])
    assert found.total.shape == (3, 6)
    for (i, j), total in np.ndenumerate(found.total):
        one = {axis: int(size[j]) for axis, size in mesh.items()}
        program = plan({**sizes[0], "B": int(batch[i, 0])}, one)
        cost = price(program, "v4:4x4x4", "physical", wire(program.mesh, "v4:4x4x4", {"rows": 0, "cols": 1}))
        assert is_near(total, cost.additive_seconds)
        for part, took in cost.parts.items():
            assert abs(found.parts[part][i, j] - took) <= 1e-12 * total


def leg(size: np.ndarray) -> Leg:
    axis = mtf.topology("v4:4x4x4").axes[0]
    return Leg(size, size == axis.size, axis.bytes_per_second, axis.kind, axis.hop_seconds)


def test_parts_add_up():
    """Few tokens wait for weights, many compute."""
    plan, sizes = case("tiny-palm", "mtf-2d")
    template, wired = template_of(plan, sizes, MESHES["mtf-2d"]), wire("rows:4 cols:2", "v4:2x2x2")
    some = {**sizes[0], "E": 8192, "F": 32768, "L": 1, "B": np.array([4, 64, 1024, 16384])}
    found = template.seconds(some, {"rows": 4, "cols": 2}, rates("v4", "physical"), wired.legs)
    assert np.allclose(sum(found.parts.values()), found.total, rtol=1e-12)
    assert np.allclose(found.rows.sum(0), found.total, rtol=1e-12)
    assert found.parts["hbm"][0] > found.parts["compute"][0]
    assert found.parts["hbm"][-1] < found.parts["compute"][-1]


def test_permutes_take_their_way_over_the_real_grid():
    @mtf.function
    def turned(x: "a b"):
        return mtf.reshard(x, "a:(planes rows cols) b")

    def plan(sizes: str, mesh: mtf.Mesh) -> mtf.Program:
        return mtf.plan(turned, mesh, place={"x": "a:(rows cols planes) b"}, sizes=sizes, dtype="f32")

    meshes = [mtf.Mesh(rows=r, cols=c, planes=p) for r, c, p in ((2, 4, 8), (4, 4, 4), (2, 2, 2), (4, 1, 2))]
    template = Template.of(*[plan(sizes, meshes[0]) for sizes in ("a:192 b:20", "a:320 b:28")])
    some, sizes = {"a": 384, "b": np.array([8, 2**20])[:, None]}, "a:384 b:1048576"
    shape = {axis: np.array([mesh[axis] for mesh in meshes]) for axis in meshes[0].names}
    with pytest.raises(LayoutError, match=r"permute over .* takes a way over the real grid: give routes"):
        template.seconds(some, shape, rates("v4", "physical"), leg)
    for where in ("v4:4x4x4", "v5e:8x8", "v3:8x8"):
        wired = [wire(mesh, where) for mesh in meshes]
        at = rates(where.split(":")[0], "physical")
        found = template.seconds(some, shape, at, leg, routes_on(wired, np.arange(len(meshes))))
        for number, mesh in enumerate(meshes):
            cost = price(plan(sizes, mesh), where, "physical", wired[number])
            assert is_near(found.total[1, number], cost.additive_seconds)
            assert abs(found.parts["link"][1, number] - cost.parts["link"]) <= 1e-12 * cost.additive_seconds
        assert (found.total[0] < found.total[1]).all()


def test_neighbours_rows_take_as_many_hops_as_they_go():
    """Shifts by one device and by two: rows of their own, each with its way over the ring."""

    @mtf.function
    def shifted(t: "batch length"):
        return mtf.shift(t, "length", 64) + mtf.shift(t, "length", 128)

    def plan(parts: int, batch: int) -> mtf.Program:
        return mtf.plan(shifted, mtf.Mesh(x=parts), "length:x", sizes=f"batch:{batch} length:{64 * parts}", dtype="f32")

    template = Template.of(plan(4, 6), plan(8, 10))
    assert [row.kind for row in template.rows] == ["halo_exchange", "halo_exchange", "pointwise"]
    for parts in (4, 8):
        program = plan(parts, 2**16)
        wired = wire(program.mesh, "v5e:4x8" if parts == 8 else "v4:4x4x4")
        at, sizes = rates(wired.topology.chip, "physical"), {"batch": 2**16, "length": 64 * parts}
        found = template.seconds(sizes, {"x": parts}, at, wired.legs, routes_on([wired]))
        assert is_near(found.total, price(program, wired.topology, "physical", wired).additive_seconds)
        assert (found.rows[1] > found.rows[0]) == (parts == 8)  # to the device across a ring of 4 both ways are open
