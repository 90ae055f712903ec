"""Pieces on their way: spread to all devices along every axis, or carried to the one device that they are for.

An axis is done in one phase, axis after axis; what is at the same place at the same step shares a message, so at most
one message is on a directed link in a step.

    >>> spread(Grid((4,), ("ring",)))[1, Link(0, 1, 0, 1)]
    [Piece(block=0, part=0, target=None)]

Next file to read: `making`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter
from typing import cast

from mtfcore.errors import sure
from mtfcore.schedules.grid import DOWN, UP, Grid, Link
from mtfcore.schedules.hops import Piece

Messages = dict[tuple[int, Link], list[Piece]]  # (step, link) → what goes over it
Held = dict[int, list[Piece]]  # position → the pieces there
Queues = dict[tuple[int, int], list[tuple[int, Piece]]]  # (position, direction) → pieces, with the hops still to go


def spread(grid: Grid) -> Messages:
    """Every device's block reaches all the others, axis by axis: after an axis, its devices hold the same blocks.

    Innermost first, so that the outermost axis carries most; run backwards, it is the first that a sum is cut over.
    """
    messages: Messages = defaultdict(list)
    for part, (order, half) in enumerate(grid.orders):
        held, start = {position: [Piece(position, part)] for position in range(grid.group)}, 0
        for axis in reversed(order):
            for position, pieces in held.items():
                for direction, far in zip((UP, DOWN), grid.reach(axis, position, half), strict=True):
                    for time, link in enumerate(grid.walk(position, axis, direction, far), start + 1):
                        messages[time, link] += pieces
            start += grid.steps(axis)
            held = {place: [piece for other in grid.line(place, axis) for piece in held[other]] for place in held}
    return messages


def backwards(messages: Messages) -> Messages:
    """The same walk from its end to its start: what spread a block to all then brings all addends to one."""
    steps = max((time for time, _ in messages), default=0)
    return {
        (steps + 1 - time, Link(link.target, link.source, link.axis, -link.direction)): pieces
        for (time, link), pieces in messages.items()
    }


def route(grid: Grid, pairs: Iterable[tuple[int, int]]) -> Messages:
    """One block for each pair (from, to) is carried hop by hop, along one axis and then the next."""
    pairs, messages = sorted(pairs), cast(Messages, defaultdict(list))
    for part, (order, half) in enumerate(grid.orders):
        held: Held = {position: [] for position in range(grid.group)}
        for source, target in pairs:
            held[source].append(Piece(source, part, target))
        time = 0
        for axis in order:
            queues, held = _queues(grid, axis, half, held)
            time = _carry(grid, axis, queues, time, messages)
    return messages


def _queues(grid: Grid, axis: int, half: int, held: Held) -> tuple[Queues, Held]:
    """Which pieces wait for which link along an axis, and where all will be in the end."""
    size = grid.sizes[axis]
    after: Held = {position: [] for position in held}
    queues: Queues = {(position, direction): [] for position in held for direction in (UP, DOWN)}
    for position, pieces in held.items():
        here, (up, _) = grid.coordinate(position, axis), grid.reach(axis, position, half)
        for piece in pieces:
            far = (grid.coordinate(sure(piece.target), axis) - here) % size
            after[grid.along(position, axis, here + far)].append(piece)
            if far:
                queues[position, UP if far <= up else DOWN].append((far if far <= up else size - far, piece))
    return queues, after


def _carry(grid: Grid, axis: int, queues: Queues, time: int, messages: Messages) -> int:
    """Empty the queues: in each step every link takes what waits for it, the farthest first. Returns the last step.

    On a line of g devices the links in the middle carry most, up to ⌊g²/4⌋ blocks, but what they carry comes from the
    ends. If everything left at once, the largest messages would be at the ends first and in the middle later, and
    their sum nearly twice as much. With at most g/4 blocks in a message the middle is busy all the time.
    """
    most = max(1, grid.group // 4) if grid.ways[axis] == "line" else None
    queues = {place: queue for place, queue in queues.items() if queue}
    while queues:
        time += 1
        arrived: Queues = defaultdict(list)
        for (position, direction), queue in queues.items():
            queue.sort(key=itemgetter(0), reverse=True)
            going, arrived_here = queue[:most], queue[most:] if most else []
            link = grid.wires[position, axis, direction]
            messages[time, link] += [piece for _, piece in going]
            arrived[position, direction] += arrived_here
            arrived[link.target, direction] += [(far - 1, piece) for far, piece in going if far > 1]
        queues = {place: queue for place, queue in arrived.items() if queue}
    return time
