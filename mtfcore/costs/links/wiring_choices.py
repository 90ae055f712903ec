"""The ways to cut a grid's axes among a mesh's axes: what `wiring` chooses from.

    >>> [[part.size for part in parts] for parts in choices(Mesh("x:4 y:16"), topology("v4:4x4x4"))[0]]
    [[4], [4, 4]]

A *table* says how many positions of each grid axis (column) each mesh axis (row) takes: the product along a row is
the mesh axis, down a column the grid axis. Every cut of a torus axis costs a ring, so only tables with the fewest
parts are kept; switches are cut freely. Then the parts of each column are put in order, outermost first. What the
mesh leaves idle is one more row, always outermost, so that the mesh lies on one contiguous block; its cuts are free.
Next file to read: `numbers_or_arrays`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mtfcore.dims import divisors
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.mesh import Mesh
from mtfcore.topologies import GridAxis, Topology

Given = str | Mapping[str, object] | None
Pin = tuple[int, int | None, int | None]  # grid axis, then size and stride where they are given
Pins = tuple[tuple[str, tuple[Pin, ...]], ...]
Table = tuple[tuple[int, ...], ...]  # a row of sizes for each mesh axis
Columns = tuple[tuple[tuple[int, int], ...], ...]  # for each grid axis its (mesh axis, size), outermost first
IDLE = -1  # stands for the row of what is left idle
MOST = 256  # choices that are offered; a mesh of eight axes of 2 on 16 x 16 has 20,160
LOOKED_AT = 4096  # of which these are compared, found in about the order of mesh and grid
_ARROW, _PART = re.compile(r"→|->|:"), re.compile(r"(\w+)(?::(\d{1,9})(?: by (\d{1,9}))?)?")


class Part(NamedTuple):
    """A part of a grid axis: `size` positions, `stride` apart."""

    grid_axis: int
    size: int
    stride: int = 1


Parts = tuple[tuple[Part, ...], ...]  # of each mesh axis


def choices(mesh: Mesh, topology: Topology) -> list[Parts]:
    """Every sensible choice, least sharing of links first, then in the order of mesh and grid; no mirror images."""
    order = list(range(len(mesh.axes)))
    found = itertools.islice(_every(mesh, topology, ()), LOOKED_AT)
    once: dict[object, Columns] = {}
    for columns in sorted(found, key=lambda columns: _badness(columns, topology, order)):
        once.setdefault(_up_to_symmetry(columns, topology), columns)
    return [_parts(columns, order) for columns in itertools.islice(once.values(), MOST)]


def best(mesh: Mesh, topology: Topology, pins: Pins) -> Parts:
    """The first choice that agrees with the pins, mesh axes named earlier lying further out; empty where none does."""
    names = list(dict.fromkeys([*(name for name, _ in pins), *mesh.names]))
    order = [mesh.names.index(name) for name in names]
    fits = [columns for columns in _every(mesh, topology, pins) if _agrees(_parts(columns, order), mesh, pins)]
    if not fits:
        return ()
    least = min(fits, key=lambda columns: _by_order(_badness(columns, topology, order)))
    return _as_written(_parts(least, sorted(order)), mesh, pins)


def read(given: Given, mesh: Mesh, topology: Topology) -> Pins:
    """Which grid axes each mesh axis shall take, from a text or a mapping; names every fault at once."""
    if given is not None and not isinstance(given, (str, Mapping)):
        raise LayoutError(f"expected a wiring such as 'x→0, y→1+2' or {{'x': 0, 'y': (1, 2)}}, got {given!r:.200}")
    if not given or (mesh.size == 1 and isinstance(given, str)):
        return ()
    items = given.items() if isinstance(given, Mapping) else _items(given)
    faults: list[str] = []
    pins = tuple((name, tuple(_pin(word, topology, faults) for word in _words(where))) for name, where in items)
    faults += [f"no mesh axis {name!r}; {nearest(name, mesh.names)}" for name, _ in pins if name not in mesh]
    faults += [f"mesh axis {name!r} stands twice" for name, n in Counter(name for name, _ in pins).items() if n > 1]
    faults += [f"{name} takes grid axis {at} twice" for name, of in pins
               for at, n in Counter(pin[0] for pin in of).items() if n > 1]  # fmt: skip
    refuse(list(filter(None, faults)), f"wiring {given!r:.200} of mesh '{mesh}' on '{topology}'")
    return pins


def _items(text: str) -> list[tuple[str, str]]:
    """`x→0, y→1+2` as pairs; a note in brackets at the end is dropped."""
    plain = re.sub(r"\(.*\)$", "", text.strip())
    pairs = [_ARROW.split(item.strip(), maxsplit=1) for item in re.split("[,;]", plain) if item.strip()]
    return [(pair[0].strip(), pair[1].strip() if len(pair) > 1 else "") for pair in pairs]


def _words(where: object) -> list[str]:
    if isinstance(where, str):
        return [word.strip() for word in where.split("+")]
    if isinstance(where, Part) or not isinstance(where, (tuple, list)):
        where = (where,)
    return ["{}:{} by {}".format(*word) if isinstance(word, Part) else str(word) for word in where]


def _pin(word: str, topology: Topology, faults: list[str]) -> Pin:
    names = [str(at) if axis.kind == "links" else axis.kind for at, axis in enumerate(topology.axes)]
    match = _PART.fullmatch(word)
    if not match or not (match[1] in names or (match[1].isdecimal() and int(match[1]) < len(names))):
        faults.append(f"no grid axis {word!r}; {nearest(word, names)}")
        return (0, None, None)
    at = names.index(match[1]) if match[1] in names else int(match[1])
    return (at, int(match[2]) if match[2] else None, int(match[3] or 1) if match[2] else None)


# ---- all ways


def _every(mesh: Mesh, topology: Topology, pins: Pins) -> Iterator[Columns]:
    """Every choice with the fewest parts."""
    axes, idle = topology.axes, topology.devices // mesh.size
    rows = [(IDLE, idle), *((at, size) for at, (_, size) in enumerate(mesh.axes))]
    rows = [row for row in rows if row[1] > 1]
    everywhere, pinned = set(range(len(axes))), {mesh.names.index(name): {pin[0] for pin in of} for name, of in pins}
    open_to = [_left_idle(axes, idle) if at == IDLE else pinned.get(at, everywhere) for at, _ in rows]
    for table in _fewest([size for _, size in rows], axes, open_to, free=idle > 1):
        yield from _orders(table, [at for at, _ in rows], axes)


def _left_idle(axes: tuple[GridAxis, ...], idle: int) -> set[int]:
    """Where idle devices may lie: whole chips and nodes first, cores or parts of nodes if those are not enough."""
    outer = {at for at, axis in enumerate(axes) if axis.kind in ("links", "network")}
    enough = math.prod(axes[at].size for at in outer) % idle == 0
    return outer if enough else set(range(len(axes)))


def _fewest(rows: list[int], axes: tuple[GridAxis, ...], open_to: list[set[int]], free: bool) -> Iterator[Table]:
    """The tables with the fewest parts of torus axes; if `free`, the first row's do not count, being idle."""
    sizes = tuple(axis.size for axis in axes)
    for budget in range(sum(len(allowed) for allowed in open_to) + 1):
        found = _tables(rows, sizes, axes, open_to, budget, free)
        if (first := next(found, None)) is not None:
            return itertools.chain((first,), found)
    return iter(())


def _tables(
    rows: list[int], left: tuple[int, ...], axes: tuple[GridAxis, ...], open_to: list[set[int]], budget: int,
    free: bool = False,
) -> Iterator[Table]:  # fmt: skip
    if not rows:
        if math.prod(left) == 1:
            yield ()
        return
    for row in _splits(rows[0], left, open_to[0]):
        cut = [size > 1 and axis.kind in ("links", "cores") for size, axis in zip(row, axes, strict=True)]
        parts = 0 if free else sum(cut)
        if parts <= budget:
            rest = tuple(size // taken for size, taken in zip(left, row, strict=True))
            for table in _tables(rows[1:], rest, axes, open_to[1:], budget - parts):
                yield (row, *table)


def _splits(size: int, left: tuple[int, ...], allowed: set[int], at: int = 0) -> Iterator[tuple[int, ...]]:
    """Every way to write a size as a product of what is left of the grid axes that it may take."""
    if at == len(left):
        if size == 1:
            yield ()
        return
    for part in reversed(divisors(math.gcd(size, left[at]) if at in allowed else 1)):  # so that the order is kept first
        for rest in _splits(size // part, left, allowed, at + 1):
            yield (part, *rest)


def _orders(table: Table, rows: list[int], axes: tuple[GridAxis, ...]) -> Iterator[Columns]:
    """The parts of each grid axis in every order; of a switch in one, for there all are equal."""
    columns = []
    for at, axis in enumerate(axes):
        parts = [(row, sizes[at]) for row, sizes in zip(rows, table, strict=True) if sizes[at] > 1]
        idle, busy = [part for part in parts if part[0] == IDLE], [part for part in parts if part[0] != IDLE]
        free = axis.kind in ("switch", "network")
        columns.append([(*idle, *busy)] if free else [(*idle, *order) for order in itertools.permutations(busy)])
    yield from itertools.product(*columns)


def _badness(columns: Columns, topology: Topology, order: list[int]) -> tuple[int, int, int, int]:
    """How many groups share links, summed over the parts; rings that are cut; parts in another order than the mesh's;
    where."""
    shared = rings = 0
    axes = topology.axes
    for axis, column in zip(axes, columns, strict=True):
        stride = 1
        for row, size in reversed(column):
            shared += stride if row != IDLE and axis.kind == "links" else 0
            rings += row != IDLE and axis.wraps and size < axis.size
            stride *= size
    ranks = [order.index(row) for column in columns for row, _ in column if row != IDLE]
    used = sum(at * size for at, column in enumerate(columns) for row, size in column if row != IDLE)
    return shared, rings, sum(a > b for a, b in itertools.combinations(ranks, 2)), used


def _by_order(badness: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """The order counts first where some of it was given."""
    shared, rings, turned, where = badness
    return turned, shared, rings, where


def _up_to_symmetry(columns: Columns, topology: Topology) -> tuple[object, ...]:
    """The same for two choices that differ by a swap of equal grid axes."""
    axes = [(axis.kind, axis.size, axis.wraps) for axis in topology.axes]
    return tuple(sorted(zip(axes, columns, strict=True)))


def _parts(columns: Columns, order: list[int]) -> Parts:
    """For each mesh axis the parts of grid axes that it takes, in the order of the grid."""
    taken: dict[int, list[Part]] = {at: [] for at in sorted(order)}
    for at, column in enumerate(columns):
        stride = 1
        for row, size in reversed(column):
            if row != IDLE:
                taken[row].append(Part(at, size, stride))
            stride *= size
    return tuple(tuple(parts) for parts in taken.values())


def _agrees(parts: Parts, mesh: Mesh, pins: Pins) -> bool:
    """Whether every pinned mesh axis takes exactly the grid axes that it shall, in sizes and strides where given."""
    for name, wanted in pins:
        has = {part.grid_axis: part for part in parts[mesh.names.index(name)]}
        if set(has) != {pin[0] for pin in wanted if mesh[name] > 1}:
            return False
        for at, size, stride in wanted:
            if at in has and (size not in (None, has[at].size) or stride not in (None, has[at].stride)):
                return False
    return True


def _as_written(parts: Parts, mesh: Mesh, pins: Pins) -> Parts:
    """The parts of each mesh axis in the order in which they were given, outermost first."""
    written = {name: [pin[0] for pin in wanted] for name, wanted in pins}
    return tuple(
        tuple(sorted(of, key=lambda part: written[name].index(part.grid_axis))) if name in written else of
        for name, of in zip(mesh.names, parts, strict=True)
    )
