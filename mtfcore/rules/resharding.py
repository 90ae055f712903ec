"""Resharding: the cheapest way to move one tensor from one sharding to another.

A shortest path (A*) over shardings, whose edges are the moves of `moves`. Cost is the bytes that one device sends;
among equals, fewer moves. Gathers, scatters and slices are searched one axis at a time and joined afterwards at equal
cost; all-reduces and all-to-alls are searched as groups, since two small ones cost more than one large. The lower
bounds never overestimate, so the path found is shortest. Next file to read: `choosing`.
"""

from __future__ import annotations

import heapq
import itertools
import math
from functools import lru_cache
from typing import NamedTuple

from mtfcore.errors import sure
from mtfcore.rules.moves import MeshItems, Move, State, local_bytes, neighbours, put


class Path(NamedTuple):
    """A shortest path: its moves in order and the bytes that one device sends."""

    cost: float
    moves: tuple[Move, ...]


Key = tuple[State, State, tuple[int, ...], MeshItems, int]
MOST_KEPT = 200_000
_paths: dict[Key, Path] = {}  # what was found, and the limits that were found too low
_beyond: dict[Key, float] = {}


def shortest(start: State, goal: State, sizes: tuple[int, ...], mesh_items: MeshItems, item_bytes: int) -> Path:
    """The cheapest moves from `start` to `goal` for a tensor of these global sizes."""
    return sure(within(math.inf, start, goal, sizes, mesh_items, item_bytes))


def within(
    limit: float, start: State, goal: State, sizes: tuple[int, ...], mesh_items: MeshItems, item_bytes: int
) -> Path | None:
    """The same, or None where every path sends more than `limit` bytes: then the search can stop early."""
    key = (start, goal, sizes, mesh_items, item_bytes)
    if known := _paths.get(key):  # asked once: another thread may empty it in between
        return known
    if limit <= _beyond.get(key, -1.0):
        return None
    path = Path(0.0, ()) if start == goal else _free_slices(start, goal)
    path = path or _search(start, goal, sizes, dict(mesh_items), item_bytes, limit)
    if len(_paths) + len(_beyond) > MOST_KEPT:
        forget()
    if path is None:
        _beyond[key] = limit
    else:
        _paths[key] = path
    return path


def forget() -> None:
    """Empty what was kept of earlier searches."""
    _paths.clear()
    _beyond.clear()


def _free_slices(start: State, goal: State) -> Path | None:
    """Most reshards only cut finer; that is free, so nothing can be cheaper."""
    if start.partial != goal.partial or any(b[: len(a)] != a for a, b in zip(start.axes, goal.axes, strict=True)):
        return None
    moves, state = [], start
    for dim, (a, b) in enumerate(zip(start.axes, goal.axes, strict=True)):
        if len(b) > len(a):
            state = put(state, (dim, b))
            moves.append(Move("slice", b[len(a) :], (dim,), state, 0.0))
    return Path(0.0, tuple(moves))


def _search(
    start: State, goal: State, sizes: tuple[int, ...], mesh: dict[str, int], item_bytes: int, limit: float
) -> Path | None:
    """A*. Costs are kept in bytes times the mesh's size, which makes every (g-1)/g a whole number and sums exact."""
    items, scale = tuple(mesh.items()), math.prod(mesh.values())
    goal_bytes = local_bytes(goal, sizes, mesh, item_bytes) * scale * (1 - 1e-12)  # a bound may not round upward
    best: dict[State, tuple[float, int]] = {start: (0.0, 0)}
    came: dict[State, tuple[State, Move]] = {}
    bounds: dict[State, float] = {}
    heap = [(0.0, 0, 0, 0.0, start)]
    tie = itertools.count(1)
    while heap:
        bound, count, _, spent, state = heapq.heappop(heap)
        if bound > limit * scale:
            return None
        if state == goal:
            return Path(spent / scale, _joined(_walk_back(came, start, goal)))
        if (spent, count) > best[state]:
            continue
        held, count = local_bytes(state, sizes, mesh, item_bytes), count + 1
        for move in neighbours(state, sizes, items, goal.partial):
            after, reached = move.state, (spent + held * move.cost, count)
            if after not in best or reached < best[after]:
                best[after], came[after] = reached, (state, move._replace(cost=held * move.cost / scale))
                if after not in bounds:
                    bounds[after] = 0.0 if after == goal else goal_bytes * send_share(after, goal, items)
                heapq.heappush(heap, (reached[0] + bounds[after], count, next(tie), reached[0], after))
    raise AssertionError(f"no path from {start} to {goal}: unreachable, since gather, reduce and slice always make one")


def _walk_back(came: dict[State, tuple[State, Move]], start: State, goal: State) -> list[Move]:
    found, state = [], goal
    while state != start:
        state, move = came[state]
        found.append(move)
    return found[::-1]


def _joined(path: list[Move]) -> tuple[Move, ...]:
    """Join neighbouring gathers, scatters or slices of one dimension into one move over several axes (same bytes)."""
    out: list[Move] = []
    for move in path:
        last = out[-1] if out else None
        joins = move.kind in ("slice", "all_gather", "reduce_scatter")
        if last is not None and joins and (move.kind, move.dims) == (last.kind, last.dims):
            axes = move.axes + last.axes if move.kind == "all_gather" else last.axes + move.axes
            out[-1] = Move(move.kind, axes, move.dims, move.state, last.cost + move.cost)
        else:
            out.append(move)
    return tuple(out)


@lru_cache(maxsize=500_000)
def send_share(start: State, goal: State, mesh_items: MeshItems) -> float:
    """A lower bound of the bytes that a device sends, as a share of what it holds at the goal."""
    mesh = dict(mesh_items)
    if start.partial != goal.partial:
        return _sums_share(start, goal, mesh)
    kept = 1
    for a, b in zip(start.axes, goal.axes, strict=True):
        same = 0
        while same < min(len(a), len(b)) and a[same] == b[same]:
            same += 1
        if same < len(a) and same < len(b):
            return 1.0  # the first axes that differ: some device holds nothing of what it wants
        kept *= math.prod(mesh[axis] for axis in a[same:])
    return 1 - 1 / kept


def _sums_share(start: State, goal: State, mesh: dict[str, int]) -> float:
    """Each element is sent K-1 times to be summed, then once to every further device that shall hold it."""
    if not set(goal.partial) <= set(start.partial):
        return 0.0  # masks are free, so no bound is known
    due = [axis for axis in start.partial if axis not in goal.partial]
    used = {axis for on in goal.axes for axis in on}
    addends = math.prod(mesh[axis] for axis in due)
    scattered = math.prod(mesh[axis] for axis in due if axis in used)
    copies = math.prod(mesh[axis] for axis in mesh if axis not in used and axis not in start.partial)
    holders = copies * addends // scattered
    return (addends + holders - 2) / holders


def must_send(start: State, goal: State, goal_bytes: float, mesh: dict[str, int]) -> float:
    """A lower bound, in bytes a device, of any path from `start` to `goal`."""
    return 0.0 if start == goal else goal_bytes * send_share(start, goal, tuple(mesh.items()))
