"""Every operation on 1D to 4D meshes, axes of size 1 among them, with its inputs placed in many ways.

Three or more copies of an operation, each placed differently, share one program, so that one compilation checks them
all: explicit, single and partitioned against numpy, planned collectives against counted ones.
"""

from __future__ import annotations

import math
import random
import zlib
from collections import Counter
from dataclasses import replace

import pytest
from core.sweep.catalog import CATALOG, Entry
from core.sweep.checking import check, kinds
from core.sweep.drawing import placed_text
from core.sweep.programs import Case, Input, Line
from core.sweep.reference import names_in

import mtfcore as mtf

SMALL = ("x:4", "x:2 y:2", "x:2 y:3", "rows:2 cols:4", "x:2 y:1 z:2", "x:2 y:2 z:2")
LARGE = ("x:4 y:2 z:2", "w:2 x:2 y:2 z:2")  # 16 devices take several times as long here
MESHES = SMALL + LARGE
COPIES = 3  # placements of one operation in one program


def a_place(chosen: random.Random, sizes: dict[str, int], mesh: dict[str, int], partial: bool) -> str:
    """Each axis on a dimension that it divides, mostly; with `partial` some are still to be summed over."""
    on: dict[str, list[str]] = {name: [] for name in sizes}
    sums = []
    for axis in chosen.sample(sorted(mesh), len(mesh)):
        fits = [n for n, axes in on.items() if sizes[n] % (math.prod(mesh[a] for a in axes) * mesh[axis]) == 0]
        place = chosen.choice([None, *fits, *fits, *fits, *(["partialsum"] if partial else [])])
        if place == "partialsum":
            sums.append(axis)
        elif place:
            on[place].append(axis)
    return placed_text(on, sorted(sums))


def renamed(line: Line, names: dict[str, str]) -> Line:
    """The same line on other tensors; the names inside a block are its own, but for what it reads from outside."""

    def other(operand: object) -> object:
        return tuple(names[n] for n in operand) if isinstance(operand, tuple) else names.get(operand, operand)

    block = tuple(renamed(inner, names) for inner in line.block)
    results = tuple(names.get(name, name) for name in line.results)
    return replace(line, results=results, operands=tuple(map(other, line.operands)), block=block)


def swept(name: str, entry: Entry, mesh_text: str, dtype: str = "f32") -> Case:
    """Copies of an entry, each with its inputs placed differently and its last result wanted somewhere else."""
    chosen = random.Random(zlib.crc32(f"{name} {mesh_text}".encode()))
    mesh = {axis: size for axis, size in names_in(mesh_text) if size is not None}
    inputs, lines, outputs = [], [], []
    for copy in "abc"[:COPIES]:
        made = {result for line in entry.lines for result in line.results}
        names = {given: f"{given}_{copy}" for given in [*entry.inputs, *made]}
        for given, sizes in entry.inputs.items():
            other = "i32" if given.startswith("ids") else "bool" if given.startswith("bits") else None
            place = a_place(chosen, sizes, mesh, partial=other != "bool" and copy == "c")
            wide = dtype == "f32" or other == "i32"
            inputs.append(Input(names[given], tuple(sizes.items()), place, other, wide=wide))
        lines += [renamed(line, names) for line in entry.lines]
        outputs += lines[-1].results
        if copy == "b":
            lines[-1] = with_out(lines[-1], chosen, Case(mesh_text, tuple(inputs), tuple(lines), tuple(outputs)), mesh)
    return Case(mesh_text, tuple(inputs), tuple(lines), tuple(outputs), dtype=dtype)


def with_out(line: Line, chosen: random.Random, case: Case, mesh: dict[str, int]) -> Line:
    """The line with an exact place for its result, partial or not."""
    if line.call in ("settle", "index", "repeat", "write"):
        return line
    t = case.expected()[case.outputs.index(line.results[0])]
    new = {name: size for name, size in dict(line.more).items() if name == "out"}.get("out", "")
    words = dict(names_in(new))
    place = a_place(chosen, {n: size for n, size in t.sizes.items() if not words.get(n)}, mesh, t.dtype == "f32")
    place = " ".join([place, *[f"{n}:{size}" for n, size in words.items() if size]])
    return replace(line, more=(*[pair for pair in line.more if pair[0] != "out"], ("out", place)))


@pytest.mark.parametrize("name", CATALOG)
def test_every_operation_on_every_mesh(name, request):
    """A part of the meshes in the ordinary run, all of them in the long one; every way to run on one of them."""
    chosen = random.Random(name)
    meshes = [*chosen.sample(SMALL, 2), *([chosen.choice(LARGE)] if chosen.random() < 0.25 else [])]
    for number, mesh in enumerate(MESHES if request.config.getoption("--long") else meshes):
        ways = ("explicit", "single", "partitioned") if number == 0 else ("explicit",)
        check(swept(name, CATALOG[name], mesh), ways, stablehlo=number == 1)


@pytest.mark.parametrize("name", [name for name, entry in CATALOG.items() if name != "sort_key" and not {"dtype"} & {
    key for line in entry.lines for key, _ in line.more}])  # fmt: skip
@pytest.mark.long
def test_every_operation_in_bfloat16(name):
    """But for what says its own dtype, and sort_key, which is of f32 alone."""
    check(swept(name, CATALOG[name], "x:2 y:2", "bf16"), ("explicit", "single"))


def test_every_operation_is_tried():
    """A new operation that nobody sweeps fails here, and says its name."""
    homes = {f"mtfcore.{name}" for name in ("elementwise", "reductions", "along", "reshapes", "lookups", "spatial")}
    public = {name for name in mtf.__all__ if getattr(getattr(mtf, name), "__module__", None) in homes}
    calls = {line.call for entry in CATALOG.values() for line in entry.lines}
    assert len(public) > 40 and public - calls - {"reshard"} == set()  # reshard is swept by its places, as `settle`


def test_the_sweep_has_every_kind_of_step():
    cases = [swept(name, entry, mesh) for name, entry in CATALOG.items() for mesh in ("x:2 y:3", "x:2 y:2 z:2")]
    found = {kind for case in cases for kind in kinds(case.build())}
    missing = {
        "slice", "mask", "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "einsum", "pointwise",
        "reduce", "gather", "window", "pad", "concat", "cumsum", "top_k", "reshape", "constant", "index", "repeat",
        "random", "dropout", "write",
        "shift", "windows", "overlap", "conv", "edge", "halo_exchange", "extend", "trim", "fold",
    } - found  # fmt: skip
    assert missing == set()


def pinned(name: str, mesh_text: str) -> Case:
    """An einsum with `at`: each mesh axis cuts a dimension in all operands, or keeps one operand partial, or idles."""
    entry, chosen = CATALOG[name], random.Random(f"{name} {mesh_text}")
    mesh = {axis: size for axis, size in names_in(mesh_text) if size is not None}
    inputs, lines = [], []
    for copy in "abcd":
        names = {given: f"{given}_{copy}" for given in entry.inputs}
        sizes = {n: size for dims in entry.inputs.values() for n, size in dims.items()}
        roles: dict[str, list[str]] = {n: [] for n in sizes} | {given: [] for given in entry.inputs}
        for axis, parts in mesh.items():
            cuts = [n for n in sizes if sizes[n] % (parts * math.prod(mesh[a] for a in roles[n])) == 0]
            roles.setdefault(chosen.choice([*cuts, *cuts, *entry.inputs, "idle"]), []).append(axis)
        for given, dims in entry.inputs.items():
            place = a_place(chosen, dims, mesh, partial=copy == "d")
            inputs.append(Input(names[given], tuple(dims.items()), place, wide=True))
        (line,) = entry.lines
        at = tuple(placed_text({n: roles[n] for n in entry.inputs[o]}, roles[o]) for o in line.operands)
        lines.append(replace(renamed(line, {**names, "r": f"r_{copy}"}), more=(*line.more, ("at", at))))
    return Case(mesh_text, tuple(inputs), tuple(lines), tuple(f"r_{copy}" for copy in "abcd"))


@pytest.mark.parametrize("mesh", ["x:2 y:2", "rows:2 cols:4", "x:2 y:2 z:2"])
@pytest.mark.parametrize("name", ["einsum of two", "einsum with a batch dimension", "einsum of three"])
def test_products_with_their_operands_pinned(name, mesh):
    """Whatever the pins, the value is the same; the operands lie exactly as pinned during the product."""
    case = pinned(name, mesh)
    program = check(case)
    pins = [text for line in case.lines for text in dict(line.more)["at"]]
    held = Counter(s.text() for step in program.steps if step.kind == "einsum" for s in step.before)
    assert Counter(pins) <= held  # a chain of three has the product of two among its operands as well
