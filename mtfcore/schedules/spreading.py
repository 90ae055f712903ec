"""Pieces on their way: spread to all devices along every axis, or carried to the one device they are for.

An axis is done in one phase. A piece that must go `far` hops along it is in the messages of the phase's steps
1 … far, and pieces that are at the same place at the same step share a message: so at most one message is on a
directed link in a step. All messages leave as early as they can and never wait within a phase.

    >>> spread(Grid((4,), ("ring",)))[1, Link(0, 1, 0, 1)]
    [Piece(block=0, part=0, target=None)]

Next file to read: `making`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

from mtfcore.schedules.grid import DOWN, UP, Grid, Link
from mtfcore.schedules.hops import Piece

Messages = dict[tuple[int, Link], list[Piece]]  # (step, link) → what goes over it
Held = dict[int, list[Piece]]  # position → the pieces there


def spread(grid: Grid) -> Messages:
    """Every device's block reaches all the others, axis by axis: after an axis, its devices hold the same blocks."""
    messages: Messages = defaultdict(list)
    for part, (order, half) in enumerate(grid.orders):
        held, start = {position: [Piece(position, part)] for position in range(grid.group)}, 0
        for axis in order:
            for position, pieces in held.items():
                for direction, far in zip((UP, DOWN), grid.reach(axis, position, half), strict=True):
                    for time, link in enumerate(grid.links(position, axis, direction, far), start + 1):
                        messages[time, link] += pieces
            start += grid.steps(axis)
            held = {place: [piece for other in grid.line(place, axis) for piece in held[other]] for place in held}
    return messages


def route(grid: Grid, pairs: Iterable[tuple[int, int]]) -> Messages:
    """One block for each pair (from, to) is carried hop by hop, along one axis and then the next."""
    pairs, messages = sorted(pairs), defaultdict(list)
    for part, (order, half) in enumerate(grid.orders):
        held: Held = {position: [] for position in range(grid.group)}
        for source, target in pairs:
            held[source].append(Piece(source, part, target))
        start = 0
        for axis in order:
            held, longest = _carry(grid, axis, half, held, start, messages)
            start += longest
    return messages


def _carry(grid: Grid, axis: int, half: int, held: Held, start: int, messages: Messages) -> tuple[Held, int]:
    """One phase of `route`: each piece goes to its coordinate along an axis. Returns who holds what then, and when."""
    after, longest = {position: [] for position in held}, 0
    for position, pieces in held.items():
        here, (up, _) = grid.coordinate(position, axis), grid.reach(axis, position, half)
        travel: dict[int, list[tuple[int, Piece]]] = {UP: [], DOWN: []}
        for piece in pieces:
            there = grid.coordinate(piece.target, axis)
            after[grid.along(position, axis, there)].append(piece)
            far = (there - here) % grid.sizes[axis]
            if far:
                travel[UP if far <= up else DOWN].append((far if far <= up else grid.sizes[axis] - far, piece))
        for direction, going in travel.items():
            going.sort()
            fars, sorted_pieces = [far for far, _ in going], [piece for _, piece in going]
            longest = max([longest, *fars[-1:]])
            for hop, link in enumerate(grid.links(position, axis, direction, fars[-1] if fars else 0), 1):
                messages[start + hop, link] += sorted_pieces[bisect_left(fars, hop) :]
    return after, longest


def backwards(messages: Messages, steps: int) -> Messages:
    """The same walk from its end to its start: what spread a block to all then brings all addends to one."""
    return {
        (steps + 1 - time, Link(link.target, link.source, link.axis, -link.direction)): pieces
        for (time, link), pieces in messages.items()
    }
