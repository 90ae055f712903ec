"""The hops that a permute really needs: every block carried along one axis of the grid after the other.

    >>> wires = [Wire(4, "two_way"), Wire(4, "two_way")]
    >>> loads(wires, starts=[(0, 1)], ends=[(3, 3)])             # one block, one hop around and two along
    [Load(blocks=1, hops=1), Load(blocks=1, hops=2)]

A block takes the shorter way round; half of those that have as far both ways go each way. What counts is the busiest
link, in one direction: its blocks pass one after another. The cores of one chip share its links, so links are told
apart without the coordinates along `shares` axes. Next file to read: `permute_routes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtfcore.costs.links.collectives import Load


@dataclass(frozen=True)
class Wire:
    """One axis of the grid: its size, and how its members are joined: "two_way" or "ring", "line", or "direct"."""

    size: int
    way: str
    shares: bool = False  # its members send over the same links of all other axes: the cores of a chip


def loads(
    wires: Sequence[Wire], starts: Sequence[Sequence[int]] | np.ndarray, ends: Sequence[Sequence[int]] | np.ndarray
) -> list[Load]:
    """For each axis, the blocks over its busiest link and the most hops that one goes; positions are on the grid."""
    here, there = (np.array(at, dtype=np.int64).reshape(len(at), len(wires)) for at in (starts, ends))
    found, here = [], here.copy()
    for axis in range(len(wires)):
        found.append(_load(wires, axis, here, there[:, axis]))
        here[:, axis] = there[:, axis]
    return found


def _load(wires: Sequence[Wire], axis: int, here: np.ndarray, goal: np.ndarray) -> Load:
    wire, start = wires[axis], here[:, axis]
    up, down = _hops(wire, start, goal)
    if wire.way == "direct":
        return Load(int(np.any(up)), int(np.any(up)))
    line = _lines(wires, axis, here)
    most = max(_busiest(wire.size, line, start, up, 1), _busiest(wire.size, line, start, down, -1))
    return Load(most, int(max(up.max(initial=0), down.max(initial=0))))


def _hops(wire: Wire, start: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many hops up and how many down each block goes along an axis."""
    if wire.way in ("line", "direct"):
        return np.maximum(goal - start, 0) + (wire.way == "direct") * (goal < start), np.maximum(start - goal, 0)
    far = (goal - start) % wire.size
    rises = (2 * far < wire.size) | ((2 * far == wire.size) & (start % 2 == 0)) | (wire.way == "ring")
    return np.where(rises, far, 0), np.where(rises, 0, (wire.size - far) % wire.size)


def _lines(wires: Sequence[Wire], axis: int, here: np.ndarray) -> np.ndarray:
    """Which line of links along the axis each block is on: numbers from 0."""
    number = np.zeros(len(here), dtype=np.int64)
    for other, wire in enumerate(wires):
        if other != axis and not wire.shares:
            number = number * wire.size + here[:, other]
    return number


def _busiest(size: int, line: np.ndarray, start: np.ndarray, hops: np.ndarray, direction: int) -> int:
    """The most blocks over one link in a direction; the link of a position is the one that leaves it."""
    if not hops.any():
        return 0
    carried = np.zeros((int(line.max()) + 1) * size, dtype=np.int64)
    for hop in range(int(hops.max())):
        going = hops > hop
        np.add.at(carried, line[going] * size + (start[going] + direction * hop) % size, 1)
    return int(carried.max())
