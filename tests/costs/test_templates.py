"""Templates against the programs that they stand for, planned freshly at random sizes and on random meshes."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from costs.functions_to_search import two_layers

import mtfcore as mtf
from mtfcore.costs.pricing.step_work import hbm_bytes, works
from mtfcore.costs.templates.template import Template
from mtfcore.errors import LayoutError

FAST = 100_000  # a fast memory that holds some values and not others

# ---- functions at given sizes -----------------------------------------------------------------------------------


def plan_two_layers(sizes: dict[str, int], mesh: dict[str, int], layout: str) -> mtf.Program:
    said = " ".join(f"{name}:{size}" for name, size in sizes.items())
    return mtf.plan(two_layers, mtf.Mesh(mesh), layout, sizes=said, dtype="bf16")


def plan_model(name: str, sizes: dict[str, int], mesh: dict[str, int], layout: str) -> mtf.Program:
    s = dict(sizes)
    heads = s["H"] if "H" in s else s["K"] * s["G"]
    cfg = mtf.model.config(name, layers=s["layers"], d_model=s["E"], d_ff=s["F"], heads=heads, head_size=s["D"],
                           kv_heads=s.get("K", 1 if name == "tiny-palm" else 0), vocab=s["V"])  # fmt: skip
    read = mtf.model.read_layout(layout)
    return mtf.plan(mtf.model.forward(cfg), mtf.Mesh(mesh), read, sizes=f"B:{s['B']} L:{s['L']}", dtype="bf16")


NET = ({"batch": 16, "io": 3 * 64, "hidden": 5 * 128}, {"batch": 24, "io": 7 * 64, "hidden": 11 * 128})
MODEL = ({"layers": 3, "B": 64, "L": 5 * 16, "E": 64, "F": 256, "D": 16, "V": 512},
         {"layers": 7, "B": 17 * 32, "L": 19 * 4, "E": 11 * 32, "F": 13 * 64, "D": 46, "V": 29 * 64})  # fmt: skip
HEADS = ({"H": 8}, {"H": 3 * 16})
GROUPS = ({"K": 8, "G": 3}, {"K": 16, "G": 5})
MESHES = {
    "batch:rows hidden:cols": ({"rows": 2, "cols": 4}, {"rows": 4, "cols": 8}),
    "batch:rows": ({"rows": 2}, {"rows": 4}),
    "io:(rows cols)": ({"rows": 2, "cols": 4}, {"rows": 4, "cols": 8}),
    "mtf-2d": ({"rows": 2, "cols": 4}, {"rows": 4, "cols": 8}),
    "mtf-3d": ({"rows": 2, "cols": 4, "planes": 4}, {"rows": 4, "cols": 8, "planes": 16}),
}


def case(name: str, layout: str):
    """How to plan it, and the sizes of the two plans of which its template is made."""
    if name == "two_layers":
        return (lambda sizes, mesh: plan_two_layers(sizes, mesh, layout)), NET
    heads = GROUPS if name == "tiny-grouped" else HEADS
    return (lambda sizes, mesh: plan_model(name, sizes, mesh, layout)), tuple(map(dict.__or__, MODEL, heads))


def template_of(plan, sizes, meshes) -> Template:
    return Template.of(*[plan(each, mesh) for each, mesh in zip(sizes, meshes, strict=True)])


def named(sizes: dict[str, int]) -> dict[str, int]:
    """The sizes that a template knows: heads, not groups."""
    more = {"H": sizes["K"] * sizes["G"]} if "G" in sizes else {}
    return {name: size for name, size in (sizes | more).items() if name != "G"}


def random_sizes(rng: random.Random, like: dict[str, int], unit: int) -> dict[str, int]:
    free = {"layers": 1, "L": 1, "D": 2}
    return {name: rng.randint(2, 9) * free.get(name, unit) for name in like}


# ---- step by step -----------------------------------------------------------------------------------------------


def of_steps(program: mtf.Program) -> list[tuple]:
    """What every step that costs something asks of a device."""
    found = [(work, work.step) for work in works(program)]
    return [
        (s.kind, s.times, s.flops, s.n_bytes, s.group, hbm_bytes(work, program.mesh, FAST))
        for work, s in found
        if s.flops or s.is_collective or work.reads or work.writes
    ]


def of_rows(template: Template, sizes: dict[str, int], mesh: dict[str, int]) -> list[tuple]:
    """The same, from the template."""
    e = template.evaluate(sizes, mesh, fast_memory=FAST)
    turns = e.times / [row.count for row in template.rows]
    rows = [
        (row.kind, *[int(array[number]) for array in (turns, e.flops, e.n_bytes, e.group, e.hbm_bytes)])
        for number, row in enumerate(template.rows)
    ]
    return [rows[number] for number in template.row_of_step if number >= 0]


CASES = [
    ("two_layers", "batch:rows hidden:cols"), ("two_layers", "batch:rows"), ("two_layers", "io:(rows cols)"),
    ("tiny-lm", "mtf-2d"), ("tiny-palm", "mtf-2d"), ("tiny-grouped", "mtf-2d"), ("tiny-lm", "mtf-3d"),
    ("tiny-palm", "mtf-3d"), ("tiny-grouped", "mtf-3d"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_every_step_is_that_of_a_fresh_plan(name, layout):
    plan, sizes = case(name, layout)
    template, rng = template_of(plan, sizes, MESHES[layout]), random.Random(name + layout)
    same = 0
    for _ in range(12):
        mesh = {axis: rng.choice((2, 4, 8)) for axis in MESHES[layout][0]}
        some = random_sizes(rng, sizes[0], math.prod(mesh.values()))
        program = plan(some, mesh)
        if steps_of(program) == steps_of(plan(sizes[0], MESHES[layout][0])):
            assert of_rows(template, named(some), mesh) == of_steps(program)
            same += 1
    assert same >= (4 if layout == "mtf-3d" else 12)  # there small sums take other ways over few planes or rows


def steps_of(program: mtf.Program) -> list[str]:
    return [f"{step.label()} {step.arrow()}" for step in program.walk() if step.kind != "repeat"]


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_axes_of_size_one_send_nothing_as_in_a_plan(name, layout):
    plan, sizes = case(name, layout)
    template, rng = template_of(plan, sizes, MESHES[layout]), random.Random(layout + name)
    for _ in range(6):
        mesh = {axis: rng.choice((1, 2, 4)) for axis in MESHES[layout][0]}
        mesh[rng.choice([*mesh])] = 1
        if "planes" in mesh:
            mesh["planes"] = 4
        some = random_sizes(rng, sizes[0], math.prod(mesh.values()))
        ours, fresh = of_rows(template, named(some), mesh), of_steps(plan(some, mesh))
        for place in (2, 3, 5):  # FLOPs, bytes held before collectives, HBM bytes
            assert sum(row[1] * row[place] for row in ours) == sum(step[1] * step[place] for step in fresh)
        assert all(row[3] == 0 for row in ours if row[4] == 1)


def test_planned_at_two_sizes_by_itself():
    """The second plan's sizes are the first's times odd primes; its mesh is the same, and others are as good."""
    plan, sizes = case("tiny-grouped", "mtf-2d")
    template, rng = Template.planned(lambda some: plan(some, {"rows": 2, "cols": 4}), sizes[0]), random.Random(4)
    for mesh in ({"rows": 4, "cols": 2}, {"rows": 8, "cols": 8}):
        some = random_sizes(rng, sizes[0], 64)
        assert of_rows(template, named(some), mesh) == of_steps(plan(some, mesh))
    fixed = Template.planned(lambda some: plan(some, {"rows": 2, "cols": 4}), sizes[0], fixed=("L", "layers"))
    assert fixed.evaluate(named({**sizes[0], "V": 64}), {"rows": 2, "cols": 2}).divides
    with pytest.raises(LayoutError, match="size L is 80 in every plan"):
        fixed.evaluate(named({**sizes[0], "L": 81}), {"rows": 2, "cols": 2})


def test_sizes_that_a_planner_makes_of_the_mesh_are_known_from_two_meshes():
    """The k largest of every part: k times as many as there are parts."""

    @mtf.function
    def best(x: "batch vocab"):
        return mtf.top_k(x, "vocab", 3)[0]

    def plan(batch: int, parts: int) -> mtf.Program:
        return mtf.plan(best, mtf.Mesh(x=parts), "vocab:x", sizes=f"batch:{batch} vocab:1024", dtype="f32")

    template = Template.of(plan(5, 4), plan(7, 8))
    assert of_rows(template, {"batch": 2}, {"x": 16}) == of_steps(plan(2, 16))
    with pytest.raises(LayoutError, match="axis x is 4 in every plan"):
        Template.of(plan(5, 4), plan(7, 4)).evaluate({"batch": 2}, {"x": 16})


# ---- arrays -----------------------------------------------------------------------------------------------------


def test_arrays_broadcast_and_equal_one_by_one():
    plan, sizes = case("tiny-grouped", "mtf-2d")
    template = template_of(plan, sizes, MESHES["mtf-2d"])
    batch, cols, one = np.arange(8, 80, 8), np.array([[1], [2], [4]]), named(sizes[0])
    many = template.evaluate({**one, "B": batch}, {"rows": 2, "cols": cols}, fast_memory=FAST)
    assert many.flops.shape == (len(template.rows), 3, 9)
    for i, j in ((0, 0), (1, 3), (2, 8)):
        each = template.evaluate({**one, "B": int(batch[j])}, {"rows": 2, "cols": int(cols[i, 0])}, fast_memory=FAST)
        for what in ("flops", "hbm_bytes", "n_bytes", "group", "times"):
            assert np.array_equal(getattr(many, what)[:, i, j], getattr(each, what))


def test_sizes_that_do_not_divide_are_marked():
    plan, sizes = case("tiny-lm", "mtf-2d")
    template = template_of(plan, sizes, MESHES["mtf-2d"])
    found = template.evaluate({**sizes[0], "H": np.array([4, 6, 8])}, {"rows": 2, "cols": 4})
    assert found.divides.tolist() == [True, False, True]


def test_numbers_are_exact_far_beyond_what_logarithms_hold():
    template = template_of(*case("two_layers", "batch:rows"), MESHES["batch:rows"])
    batch, io, hidden = 999_983, 1031, 1_000_003
    found = template.evaluate({"batch": batch * 4, "io": io, "hidden": hidden}, {"rows": 4})
    assert [int(flops) for flops in found.flops if flops] == [2 * batch * io * hidden] * 2


def test_bytes_read_are_told_apart_by_their_input():
    template = template_of(*case("two_layers", "batch:rows hidden:cols"), MESHES["batch:rows hidden:cols"])
    read = template.evaluate({"batch": 8, "io": 32, "hidden": 64}, {"rows": 4, "cols": 2}).read_bytes()
    assert {name: int(n_bytes) for name, n_bytes in read.items()} == {"x": 128, "w": 2048, "v": 2048, "": 0}


def test_equal_steps_are_one_row_with_a_count():
    plan, sizes = case("tiny-grouped", "mtf-2d")
    template = template_of(plan, sizes, MESHES["mtf-2d"])
    reduces = [row for row in template.rows if row.kind == "all_reduce"]
    assert [(row.count, str(row.turns)) for row in reduces] == [(1, "1"), (2, "layers")]
    assert str(reduces[1].n_bytes) == "2 · B/rows · E · L"
