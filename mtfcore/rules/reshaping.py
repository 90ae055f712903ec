"""Reshape: axes carried through splits and merges of dimensions, without communication where that is possible.

A reshape (row-major, as in numpy) is cut into groups with equal products, such as (heads, kv) → (hk). Splitting
hands axes outward in order; merging joins the outer dimension's axes, then the inner's. An inner dimension may
keep its axes only if each outer one is cut to single rows. An axis that would straddle a boundary cannot be
carried: the tensor is resharded first, by the cheapest way. Partial sums pass through. Source: the reshape cases
of Mesh-TensorFlow (arXiv 1811.02084, section 6.1). Next file to read: `operations`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from mtfcore.dims import Dim, volume
from mtfcore.errors import LayoutError, sure
from mtfcore.rules.moves import MeshItems, Placement, State, placements
from mtfcore.rules.resharding import must_send, within
from mtfcore.sharding import Axes, Sharding


class Group(NamedTuple):
    """Neighbouring dimensions that turn into neighbouring dimensions of the same product."""

    before: tuple[Dim, ...]
    after: tuple[Dim, ...]


def groups(before: tuple[Dim, ...], after: tuple[Dim, ...]) -> tuple[Group, ...]:
    """Cut a reshape at every common boundary; refuses different numbers of elements."""
    total, wanted = volume(before), volume(after)
    if total != wanted:
        raise LayoutError(
            f"reshape '{_text(before)}' ({total} elements) to '{_text(after)}' ({wanted} elements): "
            "the numbers of elements differ; give sizes with the same product"
        )
    found, left, right = [], list(before), list(after)
    while left or right:
        ins, outs = ([left.pop(0)] if left else []), ([right.pop(0)] if right else [])
        while volume(ins) != volume(outs):
            if volume(ins) < volume(outs):
                ins.append(left.pop(0))
            else:
                outs.append(right.pop(0))
        found.append(Group(tuple(ins), tuple(outs)))
    return tuple(found)


def _text(dims: tuple[Dim, ...]) -> str:
    return " ".join(map(str, dims))


def carry(s: Sharding, cut: tuple[Group, ...], mesh: dict[str, int]) -> Sharding | None:
    """Where the result lies when nothing moves; None where an axis cannot be carried."""
    dims: list[Dim] = []
    axes: list[Axes] = []
    for group in cut:
        joined = _joined(s, group, mesh)
        handed = None if joined is None else _handed(joined, group, mesh)
        if handed is None:
            return None
        dims += group.after
        axes += handed
    return Sharding.of(tuple(dims), tuple(axes), s.partial)


def _joined(s: Sharding, group: Group, mesh: dict[str, int]) -> list[str] | None:
    """The axes of a group, outer dimensions first; None where an inner one is cut under an outer that is not rows."""
    joined: list[str] = []
    single_rows = True
    for dim in group.before:
        on = s.on[dim.name]
        if on and not single_rows:
            return None
        joined += on
        single_rows = single_rows and dim.size == math.prod(mesh[axis] for axis in on)
    return joined


def _handed(joined: list[str], group: Group, mesh: dict[str, int]) -> list[Axes] | None:
    """Hand the axes outward in order; None where one would straddle two dimensions."""
    left, handed = list(joined), []
    for dim in group.after:
        taken, parts = list[str](), 1
        while left and sure(dim.size) % (parts * mesh[left[0]]) == 0:
            parts *= mesh[left[0]]
            taken.append(left.pop(0))
        if left and parts != dim.size:
            return None
        handed.append(tuple(taken))
    return None if left else handed


@lru_cache(maxsize=50_000)
def choose_reshape(
    s: Sharding, cut: tuple[Group, ...], want: Sharding | None, mesh_items: MeshItems, item_bytes: int
) -> tuple[Sharding, Sharding]:
    """(where the operand must lie, where the result then lies), by least bytes over placements of the axes in use."""
    mesh = dict(mesh_items)
    as_it_is = carry(s, cut, mesh)
    if as_it_is is not None and want in (None, as_it_is):
        return s, as_it_is
    ranked = sorted(_candidates(s, cut, want, mesh, item_bytes), key=lambda found: found[:3])
    best: tuple[tuple[float, int, int, Placement], Sharding, Sharding] | None = None
    for bound, _, number, start, result in ranked:
        if best and bound > best[0][0]:
            break
        cost = _cost(s, start, result, want, mesh_items, item_bytes, best[0][0] if best else math.inf)
        if cost and (best is None or (*cost, number) < best[0]):
            best = ((*cost, number), start, result)
    _, start, result = sure(best)  # making everything whole always works
    return start, result


def _candidates(
    s: Sharding, cut: tuple[Group, ...], want: Sharding | None, mesh: dict[str, int], item_bytes: int
) -> Iterator[tuple[float, int, Placement, Sharding, Sharding]]:
    """(lower bound of bytes, local bytes, placement, operand, result) of each placement whose axes can be carried."""
    names = tuple(a for a in mesh if a in s.used() or a in s.partial or (want and a in want.used()))
    keep = set(want.partial) if want else set()
    shape = s.shape
    sums = [c for n in range(len(s.partial) + 1) for c in itertools.combinations(s.partial, n)]
    for axes in placements(names, len(s.dims)):
        if any(size % math.prod(mesh[a] for a in on) for size, on in zip(shape, axes, strict=True)):
            continue
        for partial in sums:
            if any(a in on for on in axes for a in partial) or (want and not set(partial) >= keep & set(s.partial)):
                continue
            start = Sharding.of(s.dims, axes, partial)
            result = carry(start, cut, mesh)
            if result is not None:
                bound = _bound(s, start, mesh, item_bytes) + (_bound(result, want, mesh, item_bytes) if want else 0)
                yield bound, _bytes(result, mesh, item_bytes), axes, start, result


def _bytes(s: Sharding, mesh: dict[str, int], item_bytes: int) -> int:
    parts = math.prod(mesh[axis] for axis in s.used())
    return math.prod(s.shape) // parts * item_bytes


def _bound(a: Sharding, b: Sharding, mesh: dict[str, int], item_bytes: int) -> float:
    return must_send(State(a.axes, a.partial), State(b.axes, b.partial), _bytes(b, mesh, item_bytes), mesh)


def _cost(
    s: Sharding, start: Sharding, result: Sharding, want: Sharding | None, items: MeshItems, item_bytes: int,
    limit: float,
) -> tuple[float, int, int] | None:  # fmt: skip
    """(bytes, local bytes of the result, moves) of going there and on to what is wanted; None beyond the limit."""
    cost, count = 0.0, 0
    for a, b in ((s, start), (result, want)):
        if b is not None:
            states = State(a.axes, a.partial), State(b.axes, b.partial)
            path = within((limit - cost) * (1 + 1e-9), *states, a.shape, items, item_bytes)
            if path is None:
                return None
            cost, count = cost + path.cost, count + len(path.moves)
    return cost, _bytes(result, dict(items), item_bytes), count
