"""Where a block lies that each device reads or writes at a place of its own: a start counted from its coordinates.

    Spot("E", ("z", "y"), (1, 0), block=288, start=0, size=288)
        of E, the block of the device one place back along z and at the same place along y: block (z − 1 mod g)·g_y + y

Two local steps use spots: `part` takes such a block out of what a device holds, `put` writes one into it (the first
`put` of a value has zeros elsewhere). Next file to read: `rewriting`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mtfcore.mesh import Mesh
from mtfcore.sharding import Axes


@dataclass(frozen=True)
class Spot:
    """Of one dimension, `size` rows from `start` on in the block of a device that is `backs` places back."""

    dim: str
    axes: Axes  # outermost first: blocks are numbered in this order
    backs: tuple[int, ...]
    block: int  # rows of a block on one device
    start: int
    size: int

    def first(self, index: Callable[[str], Any], mesh: Mesh) -> Any:
        """The first row; `index` gives a device's coordinate on an axis, a number or a traced value."""
        number: Any = None  # without axes every device takes the same rows
        for axis, back in zip(self.axes, self.backs, strict=True):
            size = mesh[axis]
            at = index(axis) if back == 0 else (index(axis) + (size - back)) % size
            number = at if number is None else number * size + at
        return self.start if number is None else number * self.block + self.start

    def text(self, mesh: Mesh) -> str:
        """The same as Python source."""
        found = ""
        for axis, back in zip(self.axes, self.backs, strict=True):
            size = mesh[axis]
            at = f'lax.axis_index("{axis}")'
            at = at if back == 0 else f"({at} + {size - back}) % {size}"
            found = f"({found} * {size} + {at})" if found else at
        start = f" + {self.start}" if self.start else ""
        return f"{found} * {self.block}{start}" if found else str(self.start)
