"""The moves that one tensor can make on a mesh, each with the bytes that one device sends for it.

    slice           free; each device keeps its part; appends an axis innermost on a dimension
    mask            free; replicated → partial: zeros except at coordinate 0 (never for products)
    all_gather      an innermost axis leaves a dimension
    all_to_all      an innermost run of axes leaves one dimension for the innermost place of another
    reduce_scatter  a partial axis goes innermost onto a dimension
    all_reduce      partial axes are summed
    permute         any placement with the same split counts: reorder, swap, `A:x` → `A:y`

Only innermost axes can be gathered, since only they leave contiguous blocks. Sources: arXiv 1811.02084, section 6;
arXiv 2211.05102, section 3.1. Next file to read: `resharding`.
"""

from __future__ import annotations

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


def put(state: State, *changes: tuple[int, Axes], partial: Axes | None = None) -> State:
    """The state with other axes on some dimensions."""
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
                yield Move("slice", (axis,), (dim,), put(state, (dim, state.axes[dim] + (axis,))), 0.0)


def _gathers(state: State, mesh: dict[str, int], held: int) -> Iterator[Move]:
    for dim, on in enumerate(state.axes):
        if on:
            yield Move("all_gather", on[-1:], (dim,), put(state, (dim, on[:-1])), held * (mesh[on[-1]] - 1))


def _exchanges(state: State, shape: list[int], mesh: dict[str, int], held: int) -> Iterator[Move]:
    for dim, on in enumerate(state.axes):
        for cut in range(len(on)):
            run = on[cut:]
            group = math.prod(mesh[axis] for axis in run)
            for other, length in enumerate(shape):
                if other != dim and length % group == 0:
                    after = put(state, (dim, on[:cut]), (other, state.axes[other] + run))
                    yield Move("all_to_all", run, (dim, other), after, held * (group - 1) / group)


def _sums(state: State, shape: list[int], mesh: dict[str, int], held: int, keep: Axes) -> Iterator[Move]:
    due = [axis for axis in state.partial if axis not in keep]
    for axis in due:
        rest, size = tuple(a for a in state.partial if a != axis), mesh[axis]
        for dim in reversed(range(len(shape))):  # later dimensions first: the hidden one, as the second paper wants
            if shape[dim] % size == 0:
                after = put(state, (dim, state.axes[dim] + (axis,)), partial=rest)
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
    mesh, found = dict(mesh_items), dict[tuple[int, ...], list[Placement]]()
    for axes in placements(tuple(mesh), n_dims):
        found.setdefault(tuple(math.prod(mesh[a] for a in on) for on in axes), []).append(axes)
    return found


@cache
def placements(names: Axes, n_dims: int) -> tuple[Placement, ...]:
    """Every way to put some of the axes, in order, onto the dimensions."""
    found: set[Placement] = {((),) * n_dims}
    for axis in names:
        found |= {
            (*state[:dim], (*on[:place], axis, *on[place:]), *state[dim + 1 :])
            for state in found
            for dim, on in enumerate(state)
            for place in range(len(on) + 1)
        }
    return tuple(sorted(found))


@lru_cache(maxsize=50_000)
def neighbours(state: State, sizes: tuple[int, ...], items: MeshItems, keep_partial: Axes) -> tuple[Move, ...]:
    """The moves from a state, each with its cost for `mesh size` bytes held: a whole number."""
    mesh = dict(items)
    return tuple(moves(state, sizes, mesh, math.prod(mesh.values()), keep_partial))
