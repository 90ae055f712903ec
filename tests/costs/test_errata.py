"""Every wrong claim in circulation: our functions give the right value, and not the claimed one."""

from __future__ import annotations

import math

import pytest

import mtfcore as mtf
from mtfcore.costs.first_paper.iteration_space import Blocks
from mtfcore.costs.second_paper import errata, errata_table
from mtfcore.costs.second_paper.wrong_claims import FORMULAS, TOPICS

CHECKS = [(row, number) for row in errata().values() for number in range(len(row.checks))]
STRUCTURAL = {"ws2d-axes", "rows-and-cols", "no-forward-traffic", "cubes", "serial-block"}


@pytest.mark.parametrize(("row", "number"), CHECKS, ids=lambda value: getattr(value, "id", value))
def test_the_right_value_is_computed_and_the_claimed_one_is_not(row, number):
    check = row.checks[number]
    assert math.isclose(check.computed(), check.value, rel_tol=check.within, abs_tol=1e-12)
    assert check.accepts(check.value)
    assert check.claimed is None or not check.accepts(check.claimed)


def test_rows_are_whole():
    for row in errata().values():
        assert row.topic in TOPICS and all((row.claim, row.right, row.why, row.source))
        assert not row.checks or any(check.claimed is not None for check in row.checks)
    assert {row.id for row in errata().values() if not row.checks} == STRUCTURAL
    assert {check.formula for row in errata().values() for check in row.checks} <= set(FORMULAS)


def test_the_table_has_the_rows_asked_for():
    assert [row["claim"] for row in errata_table("one-pool", "adam").rows] == [
        errata()[n].claim for n in ("one-pool", "adam")
    ]
    assert len(errata_table().rows) == len(errata()) == sum(len(errata_table(topic).rows) for topic in TOPICS)
    with pytest.raises(mtf.LayoutError, match="no wrong claim or topic 'memoy'; did you mean 'memory'"):
        errata_table("memoy")


# ---- those without numbers: planned


@mtf.function
def layer(x: "B L E", w_in: "E F", w_out: "F E"):
    h = mtf.gelu(mtf.einsum(x, w_in, out="B L F:zyx", at=["B L E:x", "E:x F:zy"]))
    return mtf.einsum(h, w_out, out="B L E:xzy", at=["B L F:zy", "F:zy E:x"])


@mtf.function
def summed(x: "batch hidden"):
    return mtf.sum(x, out="batch")


def test_ws2d_axes():
    """2D weight-stationary: gather yz, scatter x into F, gather x, scatter yz into E; its bytes are the formula's."""
    plan = mtf.plan(
        layer, mtf.Mesh("x:2 y:2 z:4"), sizes="B:2 L:8 E:64 F:256", dtype="bf16",
        place={"x": "B L E:xzy", "w_in": "E:x F:zy", "w_out": "F:zy E:x"},
    )  # fmt: skip
    found = [(step.kind, set(step.axes)) for step in plan.collectives()]
    yz, x = {"y", "z"}, {"x"}
    assert found == [("all_gather", yz), ("reduce_scatter", x), ("all_gather", x), ("reduce_scatter", yz)]


def test_rows_and_cols():
    """A dimension over cols is summed in groups whose members share their row."""
    mesh = mtf.Mesh("rows:2 cols:3")
    groups: dict[int, list[dict[str, int]]] = {}
    for device in range(mesh.size):
        groups.setdefault(mesh.block(device, ["rows"]), []).append(mesh.coordinates(device))
    plan = mtf.plan(summed, mesh, "batch:rows hidden:cols", sizes="batch:4 hidden:6")
    (step,) = plan.collectives()
    assert (step.kind, step.axes) == ("all_reduce", ("cols",)) and mesh.group_size(step.axes) == 3
    assert [{each["rows"] for each in group} for group in groups.values()] == [{0}, {1}]
    assert [[each["cols"] for each in group] for group in groups.values()] == [[0, 1, 2], [0, 1, 2]]


def test_no_forward_traffic():
    """Heads and d_ff over one axis: one all-reduce in each sublayer of each layer."""
    cfg = mtf.model.config("tiny-lm")
    plan = mtf.plan(mtf.model.forward(cfg), mtf.Mesh("all:4"), "H:all F:all", sizes="B:4 L:8")
    sums = [step for step in plan.collectives() if step.kind == "all_reduce"]
    assert len(sums) == 2 and len(plan.collectives()) == 2  # of one layer: a loop's body stands once
    assert plan.link_bytes().total == 2 * cfg.layers * 2 * (4 * 8 * cfg.d_model) * 4 * 3 / 4


@pytest.mark.parametrize(("block", "norms"), [("serial", 2), ("parallel", 1)])
def test_serial_block(block, norms):
    """A serial block normalises before each sublayer, a parallel one once; so they share out parameters."""
    params = mtf.model.config("tiny-palm", block=block).params
    scales = [name for name in params if name.endswith("norm_scale") and not name.startswith("final")]
    assert len(scales) == norms


def test_cubes():
    assert Blocks(8, 8, 1).kind == "pencils" and Blocks(4, 4, 4).kind == "cubes"
    assert all(Blocks(*cut).kind != "cubes" for cut in ((64, 1, 1), (2, 32, 1), (1, 8, 8)))
