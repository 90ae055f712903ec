"""Checks of lesson 01: named dimensions, meshes and slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import mtfcore as mtf
from widgets.learning.exercises import Case, at_most, equal, holds

from . import draw
from .book import exercise

WEIGHT = "d_model:512 d_ff:1536"


@exercise(
    "01 place",
    task="Write where batch and hidden lie: batch over rows, hidden over cols.",
    hint="A placement is a text: a dimension's name, a colon, the mesh axis that cuts it.",
    gives="a text such as 'batch:rows'",
    bigger_hint="Two items separated by a blank. The first is batch:rows.",
)
def place(answer: str, rng: Random) -> Iterator[Case]:
    for _ in range(4):
        mesh = draw.mesh(rng, "rows cols")
        dims = f"batch:{draw.size(rng, mesh)} hidden:{draw.size(rng, mesh)}"
        wanted, given = mtf.Sharding(dims, "batch:rows hidden:cols"), mtf.Sharding(dims, answer)
        yield from same_slices(mesh, wanted, given)


def same_slices(mesh: mtf.Mesh, wanted: mtf.Sharding, given: mtf.Sharding) -> Iterator[Case]:
    """One case for the local shape, then one for the first device whose slice differs, or for all devices."""
    about = f"{' '.join(map(str, wanted.dims))} on {mesh}"
    yield equal(f"{about}: shape on a device", wanted.local_shape(mesh), given.local_shape(mesh), "elements")
    for device in range(mesh.size):
        theirs, right = given.slices(mesh, device), wanted.slices(mesh, device)
        if theirs != right:
            where = f"{draw.name(mesh, device)}, slice {draw.ranges(right)}"
            yield equal(f"{about}: slice", draw.ranges(right), draw.ranges(theirs), where=where)
            return
    yield holds(f"{about}: slices", True, f"all {mesh.size} devices agree", "")


@exercise(
    "01 row_range",
    task="Compute which rows a device holds.",
    hint="Number the blocks first: the outermost axis counts slowest, like the first digit of a number.",
    bigger_hint="Go through the axes from the outermost: block = block * size + position. Then rows start at block "
    "times the rows of one device, which is n_rows divided by the product of all sizes.",
)
def row_range(answer: Callable[..., tuple[int, int]], rng: Random) -> Iterator[Case]:
    for axes in ("a", "a b", "b a", "a b c", "c a b"):
        mesh = draw.mesh(rng, "a b c")
        n_rows = draw.size(rng, mesh)
        sharding = mtf.Sharding(f"batch:{n_rows}", f"batch:({axes})")
        for device in {draw.device(rng, mesh), mesh.size - 1}:
            at = mesh.coordinates(device)
            sizes, position = tuple(mesh[a] for a in axes.split()), tuple(at[a] for a in axes.split())
            (rows,) = sharding.slices(mesh, device)
            what = f"row_range({n_rows}, {sizes}, {position})"
            where = f"{draw.name(mesh, device)} of mesh {mesh}, batch on ({axes})"
            yield equal(what, (rows.start, rows.stop), answer(n_rows, sizes, position), "rows", where)


@exercise(
    "01 copies",
    task="Count how many devices hold the same slice.",
    hint="A mesh axis that cuts no dimension has devices with equal slices along it.",
    bigger_hint="Multiply the sizes of the mesh axes that are not in `used`. With all axes used the product is 1.",
)
def copies(answer: Callable[[mtf.Mesh, tuple[str, ...]], int], rng: Random) -> Iterator[Case]:
    for count in (0, 1, 2, 3):
        mesh = draw.mesh(rng, "rows cols planes", (2, 3, 4, 5, 6, 8))
        used = tuple(rng.sample(mesh.names, count))
        placed = f"batch:({' '.join(used)})" if used else "batch"
        right = mtf.Sharding(f"batch:{mesh.size}", placed).copies(mesh)
        yield equal(f"copies(Mesh('{mesh}'), {used})", right, answer(mesh, used), "devices")


@exercise(
    "01 place_within",
    task="Choose a placement of the weight that meets a budget of bytes a device and keeps as many copies as it can.",
    hint="There are only a few placements. Try each one and keep those within the budget.",
    bigger_hint="mtf.Sharding(WEIGHT, placed) has .bytes_per_device(mesh, 'bf16') and .copies(mesh): filter by the "
    "first, then take max(..., key=...) by the second.",
)
def place_within(answer: Callable[[mtf.Mesh, int], str], rng: Random) -> Iterator[Case]:
    options = ("", "d_ff:rows", "d_ff:cols", "d_ff:(rows cols)")
    for wanted in rng.sample(options, len(options)):
        mesh = draw.mesh(rng, "rows cols")
        budget = mtf.Sharding(WEIGHT, wanted).bytes_per_device(mesh, "bf16") + rng.randrange(999)
        given, about = mtf.Sharding(WEIGHT, answer(mesh, budget)), f"Mesh('{mesh}'), budget {budget:,} bytes"
        yield at_most(f"{about}: bytes a device", budget, given.bytes_per_device(mesh, "bf16"), "bytes")
        yield equal(f"{about}: copies", mtf.Sharding(WEIGHT, wanted).copies(mesh), given.copies(mesh), "devices")
