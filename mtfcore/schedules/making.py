"""`schedule`: the hops of any collective on a ring, a two-way ring, a line, or several torus axes at once.

    all_gather       every block spreads to all devices; each device passes on what it has just received
    reduce_scatter   an all-gather run backwards: arrows turned round, and the receiver adds what arrives
    all_reduce       a reduce-scatter, then an all-gather
    all_to_all       every device has a block for each other one; all go hop by hop, through the devices between
    permute          each device sends its block to one other, over the devices between
    halo_exchange    a permute to the next position whose last device sends to nobody

    >>> schedules.schedule("all_reduce", (4, 4, 4), "two_way", n_bytes=1 << 20)
    <Schedule two-way ring all-reduce over 3 axes at once on 4x4x4: 12 steps, ... hops>

Bytes are exact: where a block does not divide into whole bytes, they are fractions. Source: arXiv 2211.05102,
appendix A.1 (rings). Lesson 03 is about these. Next file to read: `replaying`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.notation import as_size, as_whole
from mtfcore.numbers import count
from mtfcore.schedules.grid import WAYS, Grid
from mtfcore.schedules.hops import ROUTED, Bytes, Hop, Schedule, plain
from mtfcore.schedules.spreading import Messages, backwards, route, spread
from mtfcore.traffic import COLLECTIVES

KINDS = COLLECTIVES
RINGS = "arXiv 2211.05102, appendix A.1"
ROUTES = "hop by hop through the neighbours, one axis after another"
MOST_DEVICES = {"all_to_all": 256}  # more hops than that are of use to nobody; the others: 1024


def schedule(
    kind: str,
    sizes: int | Sequence[int],
    way: str | Sequence[str] = "two_way",
    n_bytes: int = 1,
    *,
    pairs: Iterable[tuple[int, int]] | None = None,
    at_once: bool = True,
) -> Schedule:
    """The hops of a collective in a group of devices, each of which holds `n_bytes` before.

    `sizes` are those of the group's axes, outermost first; `way` is one for all axes or one for each. `pairs`
    (from, to) belong to a permute or a halo exchange; without them every device sends to the next position.
    `at_once`: several axes carry shares of the data at the same time; otherwise the axes take turns.

    `kind`: all_gather, reduce_scatter, all_reduce, all_to_all, permute or halo_exchange. `n_bytes` is a whole number.

    Raises `LayoutError` with every fault at once.

    Source: arXiv 2211.05102, appendix A.1 (rings).
    """
    grid = _grid(kind, sizes, way, n_bytes, at_once)
    n_bytes, wanted = int(n_bytes), _pairs(kind, grid.group, pairs)
    parts = len(grid.orders)
    piece_bytes = plain(Fraction(_block_bytes(kind, n_bytes, grid.group), parts))
    return Schedule(
        kind, grid.sizes, grid.ways, n_bytes, parts, piece_bytes, _hops(kind, grid, piece_bytes, wanted),
        _name(kind, grid), ROUTES if kind in ROUTED else RINGS, tuple(range(grid.group)),
        () if kind == "all_to_all" else tuple(wanted),
    )  # fmt: skip


def _hops(kind: str, grid: Grid, piece_bytes: Bytes, pairs: list[tuple[int, int]]) -> tuple[Hop, ...]:
    parts = len(grid.orders)
    if kind in ROUTED:
        return _written(route(grid, pairs), parts, piece_bytes, "store")
    sums = kind != "all_gather"  # an all-reduce sums and then gathers
    hops = _written(backwards(spread(grid.turned)), parts, piece_bytes, "add") if sums else ()
    if kind == "reduce_scatter":
        return hops
    return hops + _written(spread(grid), parts, piece_bytes, "store", hops[-1].time if hops else 0)


def _written(messages: Messages, parts: int, piece_bytes: Bytes, combine: str, after: int = 0) -> tuple[Hop, ...]:
    """The messages as hops, in order of step and link; `after` steps come before."""
    most = max(map(len, messages.values()), default=0)
    n_bytes = [plain(piece_bytes * n) for n in range(most + 1)]
    return tuple(
        Hop(after + time, link.source, link.target, tuple(pieces), n_bytes[len(pieces)], link, combine, parts)
        for (time, link), pieces in sorted(messages.items())
    )


def _block_bytes(kind: str, n_bytes: int, group: int) -> Fraction:
    """Bytes of one block: what a device holds, or its part for each of the group."""
    return Fraction(n_bytes, group if kind in ("reduce_scatter", "all_reduce", "all_to_all") else 1)


def _name(kind: str, grid: Grid) -> str:
    """`two-way ring all-gather`, `line all-to-all over 2 axes at once`."""
    words = {"ring": "one-way ring", "two_way": "two-way ring", "line": "line"}
    ways = " and ".join(dict.fromkeys(words[way] for way in grid.ways)) or "no axis:"
    axes = sum(size > 1 for size in grid.sizes)
    over = f" over {axes} axes {'at once' if grid.at_once else 'in turn'}" if axes > 1 else ""
    return f"{ways} {kind.replace('_', '-')}{over}"


# ---- what was asked ----------------------------------------------------------------------------------------------


def _grid(kind: object, sizes: Any, way: Any, n_bytes: object, at_once: bool) -> Grid:
    sizes = (sizes,) if as_whole(sizes) is not None else sizes
    if not isinstance(sizes, (tuple, list)):
        raise LayoutError(f"sizes are whole numbers such as 8 or (4, 4, 4), not {sizes!r:.200}")
    ways = tuple(way) if isinstance(way, (tuple, list)) else (way,) * len(sizes)
    faults = [] if kind in KINDS else [f"unknown kind; {nearest(kind, KINDS)}"]
    faults += [f"unknown way {way!r:.100}; {nearest(way, WAYS)}" for way in ways if way not in tuple(WAYS)]
    faults += [f"size {size!r:.100}; a size is a whole number, at least 1" for size in sizes if as_size(size) is None]
    if len(ways) != len(sizes):
        faults.append(
            f"{count(len(ways), 'way')} for {count(len(sizes), 'axis', 'axes')}; give one way, or one for each"
        )
    if (as_whole(n_bytes) or 0) < 0 or as_whole(n_bytes) is None:
        faults.append(f"n_bytes is {n_bytes!r:.100}; it is a whole number of bytes")
    group, most = math.prod(size for size in map(as_size, sizes) if size), MOST_DEVICES.get(str(kind), 1024)
    if group > most:
        faults.append(f"{group:,} devices; hops are listed for at most {most:,}: closed_forms has bytes for any number")
    refuse(faults, f"schedule of {kind!r:.100} over {sizes!r:.100}")
    return Grid(tuple(map(int, sizes)), ways, at_once)


def _pairs(kind: str, group: int, pairs: Iterable[Any] | None) -> list[tuple[int, int]]:
    """Who sends to whom; what a device keeps for itself makes no hop."""
    if pairs is not None:
        if not isinstance(pairs, Iterable) or isinstance(pairs, (str, bytes)):
            raise LayoutError(f"pairs is {pairs!r:.200}; expected (from, to) positions, e.g. [(0, 1), (1, 0)]")
        return _checked(kind, group, [tuple(pair) if isinstance(pair, Iterable) else (pair,) for pair in pairs])
    if kind == "all_to_all":
        return list(itertools.permutations(range(group), 2))
    if kind == "permute":
        return [(i, (i + 1) % group) for i in range(group)]
    return [(i, i + 1) for i in range(group - 1)] if kind == "halo_exchange" else []


def _checked(kind: str, group: int, pairs: list[tuple]) -> list[tuple[int, int]]:
    if kind not in ("permute", "halo_exchange"):
        raise LayoutError(f"an {kind} has no pairs: all devices of the group take part")
    refuse([f"{pair!r:.100} is no pair (from, to)" for pair in pairs if len(pair) != 2], kind)
    faults = [f"no device {one} in the pair {pair}; the group has 0 to {group - 1}"
              for pair in pairs for one in pair if one not in range(group)]  # fmt: skip
    for place, does in enumerate(("sends", "receives")):
        found = Counter(pair[place] for pair in pairs)
        faults += [f"device {device} {does} twice" for device, times in found.items() if times > 1]
    refuse(faults, f"{kind} in a group of {group}")
    return sorted(pairs)
