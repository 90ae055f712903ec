"""The cheat sheet: what it calls JAX's and ours runs, and where both do the same they send the same."""

from __future__ import annotations

import re
from typing import Any

import pytest

import mtfcore as mtf
from lessons import notebooks
from mtfcore.model import partitions
from mtfcore.model.serving import ServingPartition

TEXT = (notebooks.HERE / "CHEATSHEET.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("| ")]
IDEA, OTHERS, PAPER, JAX, OURS = range(5)
ARROW = re.compile(r", (B F.*?) → (B[^,]*)")
GROUPS = ("words", "notation", "operations", "collectives", "partitions")


def group(name: str) -> list[list[str]]:
    """The rows below one of the table's bold headings."""
    at = [row[IDEA] for row in ROWS]
    behind = [at.index(f"**{each}**") for each in GROUPS] + [len(at)]
    place = GROUPS.index(name)
    return ROWS[behind[place] + 1 : behind[place + 1]]


def calls(cell: str) -> list[str]:
    """Code of a cell that runs by itself: it has brackets, and needs no t, x or loss of a function around it."""
    code = re.findall(r"`([^`]+)`", cell)
    return [each for each in code if "(" in each and not re.search(r"\b(t|x|loss)[,)]|\.\.\.|\(t, ", each)]


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    """Names after the page's own block of Python."""
    names: dict[str, Any] = {}
    exec(re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1], names)
    return names


def named(rows: list[list[str]]) -> Any:
    """These rows as parameters."""
    return pytest.mark.parametrize("row", rows, ids=lambda row: row[IDEA][:40])


@named([row for row in ROWS if calls(row[JAX]) + calls(row[OURS])])
def test_what_it_calls_runs(row, given):
    for code in calls(row[JAX]) + calls(row[OURS]):
        assert eval(code, given) is not None, code


@named([row for row in ROWS if ARROW.search(row[IDEA])])
def test_a_collective_of_jax_and_ours_send_the_same(row, given):
    before, after = (text.strip() for text in ARROW.search(row[IDEA]).groups())

    @mtf.function
    def moved(t: "B:8 F:16"):
        return eval(re.search(r"`(.*)`", row[OURS])[1], {"mtf": mtf, "t": t})

    plan = mtf.plan(moved, "x:4", place={"t": before}, dtype="f32")
    assert plan.steps[-1].after.text() == after
    kind = re.match(r"\[?([\w-]+)", row[IDEA])[1].replace("-", "_")
    assert [step.kind for step in plan.steps] == [kind]

    jax, P = given["jax"], given["P"]
    local = mtf.Sharding("B:8 F:16", before).local_shape(plan.mesh)
    wires = jax.sharding.Mesh(given["devices"].ravel()[:4], ("x",))
    body = eval(f"lambda t: {re.search(r'`(.*)`', row[JAX])[1]}", given)
    mapped = jax.shard_map(body, mesh=wires, in_specs=P(), out_specs=P(), check_vma=False)
    counted = mtf.count(mapped, jax.ShapeDtypeStruct(local, "f4"))
    assert counted.link_bytes == plan.link_bytes().total
    assert jax.eval_shape(mapped, jax.ShapeDtypeStruct(local, "f4")).shape == plan.steps[-1].after.local_shape(
        plan.mesh
    )


@named(group("partitions"))
def test_partitions_lie_as_it_says(row, given):
    found = partitions[re.search(r'\["([\w-]+)"\]', row[OURS])[1]]
    spec = eval(re.search(r"`(P\(.*?\))`", row[JAX])[1], given)
    if row[IDEA].startswith("attention"):
        return assert_cache(found, spec)
    if isinstance(found, ServingPartition):
        sharding = mtf.Sharding("E:64 F:256", found.ffn.sites["stored"])
    else:
        axes = " ".join(f"{axis}:2" for axis in found.axes)
        sharding = found.layout.sharding("E:64 F:256", mtf.Mesh(axes))
        rules = "; ".join(found.words.split())
        assert rules in row[OTHERS]
    assert padded(sharding.partition_spec()) == padded(spec)


def assert_cache(found: ServingPartition, spec: Any) -> None:
    """Where a decode step of a model with one key head keeps its keys: B, S and D of each layer."""
    asked = {"ffn": found.ffn.name, "attention": found.attention, "batch": 8, "cached_tokens": 8}
    plan = mtf.model.plan_phase("palm-8b", "decode", "x:2 y:2 z:2", **asked)
    (keys,) = (port.sharding for port in plan.inputs if port.name == "cache_k")
    assert padded(keys.partition_spec()[1:]) == padded(spec)


def padded(spec: Any) -> tuple[Any, ...]:
    """Two places of a PartitionSpec, which leaves out those at the end that have no axis."""
    return (*spec, None, None)[:2]


def test_every_group_has_rows_and_every_row_five_cells():
    assert all(len(row) == 5 for row in ROWS) and all(len(group(name)) >= 2 for name in GROUPS)
    assert len([row for row in ROWS if ARROW.search(row[IDEA])]) == 5
