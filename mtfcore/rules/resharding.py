"""Resharding: the cheapest way to move one tensor from one sharding to another.

A shortest path over shardings (A*), where each edge is one move that a mesh can make:

    slice           free; each device keeps its part; appends an axis innermost on a dimension
    mask            free; replicated → partial: zeros except at coordinate 0 (never for products)
    all_gather      an innermost axis leaves a dimension
    all_to_all      an innermost run of axes leaves one dimension for the innermost place of another
    reduce_scatter  a partial axis goes innermost onto a dimension
    all_reduce      partial axes are summed
    permute         any placement with the same split counts: reorder, swap, `A:x` → `A:y`

Cost is the bytes that one device sends; among equals, fewer moves. Gathers, scatters and slices are searched
one axis at a time and joined afterwards at equal cost. The lower bounds never overestimate, so the path found
is shortest. Sources: the moves of arXiv 1811.02084 section 4 and arXiv 2211.05102 section 3.1.
Next file to read: `choosing`.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from mtfcore.sharding import Axes

Placement = tuple[Axes, ...]
MeshItems = tuple[tuple[str, int], ...]


class State(NamedTuple):
    """Where one tensor lies: its axes dimension by dimension, and its partial axes (in mesh order)."""

    axes: Placement
    partial: Axes


class Move(NamedTuple):
    """One edge: `dims` are positions of the dimensions it touches, `state` is where the tensor lies after."""

    kind: str
    axes: Axes
    dims: tuple[int, ...]
    state: State
    cost: float


class Path(NamedTuple):
    """A shortest path: its moves in order and the bytes that one device sends."""

    cost: float
    moves: tuple[Move, ...]


@lru_cache(maxsize=200_000)
def shortest(start: State, goal: State, sizes: tuple[int, ...], mesh_items: MeshItems, item_bytes: int) -> Path:
    """The cheapest moves from `start` to `goal` for a tensor of these global sizes."""
    if start == goal:
        return Path(0.0, ())
    mesh = dict(mesh_items)
    return _free_slices(start, goal) or _search(start, goal, sizes, mesh, item_bytes)


def _free_slices(start: State, goal: State) -> Path | None:
    """Most reshards only cut finer; that is free, so nothing can be cheaper."""
    if start.partial != goal.partial or any(b[: len(a)] != a for a, b in zip(start.axes, goal.axes, strict=True)):
        return None
    moves, state = [], start
    for dim, (a, b) in enumerate(zip(start.axes, goal.axes, strict=True)):
        if len(b) > len(a):
            state = _put(state, (dim, b))
            moves.append(Move("slice", b[len(a) :], (dim,), state, 0.0))
    return Path(0.0, tuple(moves))


def _search(start: State, goal: State, sizes: tuple[int, ...], mesh: dict[str, int], item_bytes: int) -> Path:
    """A*. Costs are kept in bytes times the mesh's size, which makes every (g-1)/g a whole number and sums exact."""
    items, scale = tuple(mesh.items()), math.prod(mesh.values())
    goal_bytes = local_bytes(goal, sizes, mesh, item_bytes) * scale * (1 - 1e-12)  # a bound may not round upward
    best: dict[State, tuple[float, int]] = {start: (0.0, 0)}
    came: dict[State, tuple[State, Move]] = {}
    bounds: dict[State, float] = {}
    heap = [(0.0, 0, 0, 0.0, start)]
    tie = itertools.count(1)
    while heap:
        _, count, _, spent, state = heapq.heappop(heap)
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


@lru_cache(maxsize=50_000)
def neighbours(state: State, sizes: tuple[int, ...], items: MeshItems, keep_partial: Axes) -> tuple[Move, ...]:
    """The moves from a state, each with its cost for `mesh size` bytes held: a whole number."""
    mesh = dict(items)
    return tuple(moves(state, sizes, mesh, math.prod(mesh.values()), keep_partial))


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
        joins = last and move.kind == last.kind and move.kind in ("slice", "all_gather", "reduce_scatter")
        if joins and move.dims == last.dims:
            axes = move.axes + last.axes if move.kind == "all_gather" else last.axes + move.axes
            out[-1] = Move(move.kind, axes, move.dims, move.state, last.cost + move.cost)
        else:
            out.append(move)
    return tuple(out)


def _put(state: State, *changes: tuple[int, Axes], partial: Axes | None = None) -> State:
    axes = list(state.axes)
    for dim, on in changes:
        axes[dim] = on
    return State(tuple(axes), state.partial if partial is None else partial)


def local_shape(state: State, sizes: tuple[int, ...], mesh: dict[str, int]) -> list[int]:
    """Sizes of one device's part."""
    return [size // math.prod(mesh[axis] for axis in on) for size, on in zip(sizes, state.axes, strict=True)]


def local_bytes(state: State, sizes: tuple[int, ...], mesh: dict[str, int], item_bytes: int) -> int:
    """Bytes of one device's part."""
    return math.prod(local_shape(state, sizes, mesh)) * item_bytes


def moves(
    state: State, sizes: tuple[int, ...], mesh: dict[str, int], held: int, keep_partial: Axes = ()
) -> Iterator[Move]:
    """Every move from a state; `held` is its local bytes, `keep_partial` the axes that must end as partial."""
    shape = local_shape(state, sizes, mesh)
    used = {axis for on in state.axes for axis in on} | set(state.partial)
    yield from _slices(state, shape, mesh, used)
    for axis in keep_partial:
        if axis not in used:
            partial = tuple(a for a in mesh if a in state.partial or a == axis)
            yield Move("mask", (axis,), (), State(state.axes, partial), 0.0)
    yield from _gathers(state, mesh, held)
    yield from _exchanges(state, shape, mesh, held)
    yield from _sums(state, shape, mesh, held, keep_partial)
    yield from _permutes(state, mesh, held)


def _slices(state: State, shape: list[int], mesh: dict[str, int], used: set[str]) -> Iterator[Move]:
    for axis, size in mesh.items():
        for dim, length in enumerate(shape):
            if axis not in used and length % size == 0:
                yield Move("slice", (axis,), (dim,), _put(state, (dim, state.axes[dim] + (axis,))), 0.0)


def _gathers(state: State, mesh: dict[str, int], held: int) -> Iterator[Move]:
    for dim, on in enumerate(state.axes):
        if on:
            yield Move("all_gather", on[-1:], (dim,), _put(state, (dim, on[:-1])), held * (mesh[on[-1]] - 1))


def _exchanges(state: State, shape: list[int], mesh: dict[str, int], held: int) -> Iterator[Move]:
    for dim, on in enumerate(state.axes):
        for cut in range(len(on)):
            run = on[cut:]
            group = math.prod(mesh[axis] for axis in run)
            for other, length in enumerate(shape):
                if other != dim and length % group == 0:
                    after = _put(state, (dim, on[:cut]), (other, state.axes[other] + run))
                    yield Move("all_to_all", run, (dim, other), after, held * (group - 1) / group)


def _sums(state: State, shape: list[int], mesh: dict[str, int], held: int, keep: Axes) -> Iterator[Move]:
    due = [axis for axis in state.partial if axis not in keep]
    for axis in due:
        rest, size = tuple(a for a in state.partial if a != axis), mesh[axis]
        for dim in reversed(range(len(shape))):  # later dimensions first: the hidden one, as the second paper wants
            if shape[dim] % size == 0:
                after = _put(state, (dim, state.axes[dim] + (axis,)), partial=rest)
                yield Move("reduce_scatter", (axis,), (dim,), after, held * (size - 1) / size)
    for count in range(1, len(due) + 1):
        for run in itertools.combinations(due, count):
            group = math.prod(mesh[axis] for axis in run)
            after = State(state.axes, tuple(a for a in state.partial if a not in run))
            yield Move("all_reduce", run, (), after, 2 * held * (group - 1) / group)


def _permutes(state: State, mesh: dict[str, int], held: int) -> Iterator[Move]:
    if not any(state.axes):
        return
    counts = tuple(math.prod(mesh[axis] for axis in on) for on in state.axes)
    for axes in _same_counts(tuple(mesh.items()), len(state.axes))[counts]:
        if axes != state.axes and not any(a in state.partial for on in axes for a in on):
            yield Move("permute", permuted_axes(state.axes, axes), (), State(axes, state.partial), float(held))


def permuted_axes(before: Placement, after: Placement) -> Axes:
    """The axes along which a permute changes who holds what, in the order of the two placements."""
    changed = [on for pair in zip(before, after, strict=True) if pair[0] != pair[1] for on in pair]
    return tuple(dict.fromkeys(axis for on in changed for axis in on))


@cache
def _same_counts(mesh_items: MeshItems, n_dims: int) -> dict[tuple[int, ...], list[Placement]]:
    mesh, found = dict(mesh_items), {}
    for axes in placements(tuple(mesh), n_dims):
        found.setdefault(tuple(math.prod(mesh[a] for a in on) for on in axes), []).append(axes)
    return found


@cache
def placements(names: Axes, n_dims: int) -> tuple[Placement, ...]:
    """Every way to put some of the axes, in order, onto the dimensions."""
    found: set[Placement] = {((),) * n_dims}
    for axis in names:
        found |= {
            state[:dim] + (on[:place] + (axis,) + on[place:],) + state[dim + 1 :]
            for state in found
            for dim, on in enumerate(state)
            for place in range(len(on) + 1)
        }
    return tuple(sorted(found))


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
