"""`replay`: carry out the hops of a schedule on numpy arrays, strictly.

    >>> plan = schedules.schedule("reduce_scatter", (4,), "ring")
    >>> schedules.replay(plan, [np.arange(8) * 10 ** device for device in range(4)])[1]
    array([2222, 3333])

A device sends only what it holds when the step begins, nobody stores a piece twice, no addend is left over, and on
one directed link goes at most one message a step: anything else is a `ReplayError`. An addend that was sent is gone,
and so is a piece that was only passed on.
What the arrays mean, all cut along their first dimension (uneven and empty blocks are allowed):

    all_gather       in: a block                        out: all blocks
    reduce_scatter   in: an addend of the whole array   out: the device's block of the sum
    all_reduce       in: an addend of the whole array   out: the whole sum
    all_to_all       in: a block for each device        out: a block from each device
    permute          in: the device's array             out: the one sent to it, zeros where none is
    halo_exchange    the same

Next file to read: `placing`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mtfcore.errors import LayoutError, expect
from mtfcore.schedules.hops import ROUTED, Hop, Piece, Schedule

Held = dict[Piece, np.ndarray]  # what one device holds, each piece flat
State = list[Held]  # by position in the group
MADE = "a schedule, as mtf.schedules.schedule makes it"


class ReplayError(RuntimeError):
    """A hop that cannot be: a device sends what it does not hold, or two messages meet on a link."""


def replay(
    schedule: Schedule,
    arrays: Sequence[Any],
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.add,
) -> list[np.ndarray]:
    """What each device has at the end, by position in the group. `combine` is how addends are joined (np.add).

    `schedule`: the collective; `arrays`: what each device has before, by position.

    Raises `LayoutError` for other numbers or shapes of arrays.
    """
    state = start(schedule, arrays)
    for hops in schedule.by_step:
        advance(schedule, state, hops, combine)
    return [_joined(schedule, position, held, arrays[position]) for position, held in enumerate(state)]


def start(schedule: Schedule, arrays: Sequence[Any]) -> State:
    """The pieces that each device holds before the first step: flat views of the arrays, never copies.

    `schedule`: the collective; `arrays`: what each device has, by position.

    Raises `LayoutError` for other numbers of arrays.
    """
    expect(schedule, Schedule, MADE)
    if len(expect(arrays, (Sequence, np.ndarray), "a list of arrays, one for each device")) != schedule.group:
        raise LayoutError(f"{len(arrays)} arrays for a group of {schedule.group} devices: give one for each")
    return [_cut(schedule, position, array) for position, array in enumerate(arrays)]


def advance(schedule: Schedule, state: State, hops: Sequence[Hop], combine: Callable = np.add) -> None:
    """One step, in place: first everything is sent as it stands, then everything arrives.

    `schedule`: the collective; `state`: what `start` gave; `hops`: those of one step; `combine`: how addends are
    joined.
    """
    expect(schedule, Schedule, MADE)
    place = {device: position for position, device in enumerate(schedule.devices)}
    if len({hop.link for hop in hops}) < len(hops):
        raise ReplayError(f"step {hops[0].time}: two messages on one link")
    routed = schedule.kind in ROUTED
    sent = [_sent(state[place[hop.source]], hop, routed or hop.combine == "add") for hop in hops]
    for hop, values in zip(hops, sent, strict=True):
        held = state[place[hop.target]]
        if hop.combine == "add":
            if lacking := [piece for piece in values if piece not in held]:
                raise ReplayError(f"{hop}: device {hop.target} has no addend of {lacking[0]} any more")
            values = {piece: combine(held[piece], value) for piece, value in values.items()}
        elif twice := held.keys() & values.keys():
            raise ReplayError(f"{hop}: device {hop.target} has {min(twice)} already")
        held.update(values)


def _sent(held: Held, hop: Hop, gone: bool) -> Held:
    try:
        return {piece: held.pop(piece) if gone else held[piece] for piece in hop.pieces}
    except KeyError as missing:
        raise ReplayError(f"{hop}: device {hop.source} does not hold {missing.args[0]}") from None


# ---- what a device's array is cut into, and what its pieces make -------------------------------------------------


def _split(array: np.ndarray, count: int) -> list[np.ndarray]:
    """Views of `count` parts along the first dimension, as even as can be, the larger ones first."""
    if count == 1:
        return [array]
    each, larger = divmod(len(array), count)
    stops = [number * each + min(number, larger) for number in range(count + 1)]
    return [array[a:b] for a, b in itertools.pairwise(stops)]


def _cut(schedule: Schedule, position: int, array: Any) -> Held:
    """The pieces of one device's array."""
    kind, array = schedule.kind, np.atleast_1d(array)
    blocks: dict[tuple[int, int | None], np.ndarray]
    if kind == "all_gather":
        blocks = {(position, None): array}
    elif kind in ("permute", "halo_exchange"):
        blocks = {(position, target): array for source, target in schedule.pairs if source == position}
    else:
        cut = _split(array, schedule.group)
        blocks = {(position, n) if kind == "all_to_all" else (n, None): block for n, block in enumerate(cut)}
    return {
        Piece(block, part, target): value
        for (block, target), whole in blocks.items()
        for part, value in enumerate(_split(whole.reshape(-1), schedule.parts))
    }


def _joined(schedule: Schedule, position: int, held: Held, own: Any) -> np.ndarray:
    """What a device has in the end, from its pieces in order; like its own array in all dimensions but the first."""
    if schedule.kind == "reduce_scatter" and len(held) > schedule.parts:
        raise ReplayError(f"device {schedule.devices[position]} still has an addend that it should have sent")
    own, parts = np.atleast_1d(own), range(schedule.parts)
    names = [Piece(block, part, target) for block, target in _wanted(schedule, position) for part in parts]
    if missing := [name for name in names if name not in held]:
        raise ReplayError(f"device {schedule.devices[position]} ends without {missing[0]}")
    return np.concatenate([held[name] for name in names]).reshape(-1, *own.shape[1:]) if names else np.zeros_like(own)


def _wanted(schedule: Schedule, position: int) -> list[tuple[int, int | None]]:
    """The blocks, (block, target), that a device's array is made of in the end."""
    if schedule.kind in ("permute", "halo_exchange"):
        return [pair for pair in schedule.pairs if pair[1] == position]
    if schedule.kind == "reduce_scatter":
        return [(position, None)]
    target = position if schedule.kind == "all_to_all" else None
    return [(block, target) for block in range(schedule.group)]
