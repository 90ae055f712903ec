"""The wires that a group of devices has: a grid of positions, its axes rings or lines, and how far a piece goes.

    >>> grid = Grid((8,), ("two_way",))
    >>> grid.reach(0, 3, half=0), grid.reach(0, 3, half=1)
    ((4, 3), (3, 4))

Every algorithm of this package rests on `reach` alone: how many hops up and how many hops down a piece needs so that
all of an axis has it. Positions count row by row, the last axis fastest, as in `Mesh`.
Next file to read: `spreading`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

WAYS = {
    "ring": "one-way ring: each device sends only to the next, and the last to the first",
    "two_way": "two-way ring: each device sends to the next and to the one before, around",
    "line": "line: both ways, but no link joins the ends",
}
UP, DOWN = 1, -1


class Link(NamedTuple):
    """One direction of one wire: from a device to its neighbour along an axis, up or down.

    In a ring of two the link up and the link down are different wires: a line of two has only one.
    """

    source: int
    target: int
    axis: int
    direction: int


@dataclass(frozen=True)
class Grid:
    """Positions of a group along its axes, and a way for each axis."""

    sizes: tuple[int, ...]
    ways: tuple[str, ...]
    at_once: bool = True  # several axes carry shares of the data at the same time; otherwise one after another

    @cached_property
    def group(self) -> int:
        return math.prod(self.sizes)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        return tuple(math.prod(self.sizes[axis + 1 :]) for axis in range(len(self.sizes)))

    @cached_property
    def orders(self) -> list[tuple[tuple[int, ...], int]]:
        """For each part of a block: the axes in the order in which it takes them, and which half it is.

        On several axes at once a block is cut into as many shares as there are axes, and each share starts on another
        axis: so all axes work at the same time. On a two-way ring of even size the device opposite is as far up as
        down: each half of the block takes its own way, so a block is cut into two halves.
        """
        axes = [axis for axis, size in enumerate(self.sizes) if size > 1]
        turns = [tuple(axes[k:] + axes[:k]) for k in range(len(axes))] if self.at_once else [tuple(axes)]
        halves = any(self.ways[axis] == "two_way" and self.sizes[axis] % 2 == 0 for axis in axes)
        return list(itertools.product(turns or [()], range(2 if halves else 1)))

    @property
    def turned(self) -> Grid:
        """The same wires with the arrows of one-way rings turned round."""
        ways = tuple("turned" if way == "ring" else way for way in self.ways)
        return dataclasses.replace(self, ways=ways)

    def coordinate(self, position: int, axis: int) -> int:
        return position // self.strides[axis] % self.sizes[axis]

    def along(self, position: int, axis: int, coordinate: int) -> int:
        """The position that differs from this one only along an axis; coordinates go round."""
        size, stride = self.sizes[axis], self.strides[axis]
        return position + (coordinate % size - self.coordinate(position, axis)) * stride

    def line(self, position: int, axis: int) -> list[int]:
        """All positions that differ from this one only along an axis."""
        return [self.along(position, axis, coordinate) for coordinate in range(self.sizes[axis])]

    @cached_property
    def wires(self) -> dict[tuple[int, int, int], Link]:
        """(position, axis, direction) → the link there, where the axis's way has one."""
        found = {}
        for axis, position, direction in itertools.product(range(len(self.sizes)), range(self.group), (UP, DOWN)):
            there = self.coordinate(position, axis) + direction
            inside = 0 <= there < self.sizes[axis]
            if {"line": inside, "ring": direction == UP, "turned": direction == DOWN, "two_way": True}[self.ways[axis]]:
                target = self.along(position, axis, there)
                found[position, axis, direction] = Link(position, target, axis, direction)
        return found

    def walk(self, position: int, axis: int, direction: int, hops: int) -> Iterator[Link]:
        """The links of a walk from a position."""
        for _ in range(hops):
            link = self.wires[position, axis, direction]
            yield link
            position = link.target

    def reach(self, axis: int, position: int, half: int = 0) -> tuple[int, int]:
        """How many hops up, and how many down, a piece at a position makes so that the whole axis has it."""
        size, way = self.sizes[axis], self.ways[axis]
        if way in ("ring", "turned"):
            return (size - 1, 0) if way == "ring" else (0, size - 1)
        if way == "line":
            coordinate = self.coordinate(position, axis)
            return size - 1 - coordinate, coordinate
        longer, shorter = size // 2, (size - 1) // 2
        return (shorter, longer) if half else (longer, shorter)

    def steps(self, axis: int) -> int:
        """Hops to the farthest device along an axis."""
        return self.sizes[axis] // 2 if self.ways[axis] == "two_way" else self.sizes[axis] - 1
