"""How a tensor of any rank becomes boxes on paper: each box a grid of pieces, all boxes alike.

Up to two dimensions make one box. With more, the box shows the last two and there is one box for each block of the
leading ones. A single dimension in very many pieces is folded into strips, as text is into lines. In every case the
piece of number p lies in box p // (rows·columns), and pieces run row by row. Next file to read: `slices_bands`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 208.0, 206.0
LEFT, TOP, RIGHT, BOTTOM = 44.0, 60.0, 204.0, 186.0
GAP, CAPTION = 6.0, 11.0
MOST_BOXES, LONGEST_STRIP = 12, 32


@dataclass(frozen=True)
class Grid:
    """Corners of the boxes, and the edges of pieces inside each."""

    boxes: tuple[tuple[float, float], ...]
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    n_boxes: int
    rows: int
    columns: int

    def place(self, piece: int) -> tuple[float, float, float, float] | None:
        """(x, y, width, height) of a piece; None if its box is left out for want of room."""
        box, rest = divmod(piece, self.rows * self.columns)
        if box >= len(self.boxes):
            return None
        row, column = divmod(rest, self.columns)
        x, y = self.boxes[box]
        width, height = self.xs[column + 1] - self.xs[column], self.ys[row + 1] - self.ys[row]
        return x + self.xs[column], y + self.ys[row], width, height

    def json(self) -> dict[str, Any]:
        """For the page, which finds pieces under the pointer by it."""
        short = {"xs": [round(x, 2) for x in self.xs], "ys": [round(y, 2) for y in self.ys]}
        return {"boxes": [[round(x, 2), round(y, 2)] for x, y in self.boxes], **short}


def make_grid(dims: Sequence[dict[str, Any]], square: bool = False) -> Grid:
    """The boxes of a tensor (or, with square pieces, of a mesh)."""
    parts = [dim["parts"] for dim in dims]
    leading, rows, columns = math.prod(parts[:-2]), (parts[-2] if len(parts) > 1 else 1), (parts[-1] if parts else 1)
    if len(parts) == 1 and (strip := _strip(columns)) < columns:
        return _folded(columns // strip, strip)
    shown, caption = min(leading, MOST_BOXES), CAPTION if leading > 1 else 0.0
    sizes = {across: _room(across, shown, caption) for across in range(1, shown + 1)}
    boxes = {across: _box(dims, rows, columns, *room, square) for across, room in sizes.items()}
    across = max(boxes, key=lambda n: boxes[n][0] * boxes[n][1])  # the arrangement with the largest boxes
    (width, height), down = boxes[across], caption + GAP + boxes[across][1]
    corners = tuple((LEFT + n % across * (width + GAP), TOP + caption + n // across * down) for n in range(shown))
    return Grid(corners, _edges(width, columns), _edges(height, rows), leading, rows, columns)


def _room(across: int, shown: int, caption: float) -> tuple[float, float]:
    down = -(-shown // across)
    return (RIGHT - LEFT - GAP * (across - 1)) / across, (BOTTOM - TOP - GAP * (down - 1)) / down - caption


def _strip(parts: int) -> int:
    """Pieces in one strip: all of them, or a divisor that makes strips of a readable length."""
    if parts <= LONGEST_STRIP:
        return parts
    best = max(n for n in range(1, LONGEST_STRIP + 1) if parts % n == 0)
    return best if best >= 8 else parts


def _folded(strips: int, length: int) -> Grid:
    pitch = min((BOTTOM - TOP) / strips, 24.0)
    height = pitch * 0.82
    corners = tuple((LEFT, TOP + n * pitch) for n in range(strips))
    return Grid(corners, _edges(RIGHT - LEFT, length), (0.0, height), strips, 1, length)


def _box(dims: Any, rows: int, columns: int, room_x: float, room_y: float, square: bool) -> tuple[float, float]:
    """Box size: true squares for a mesh; for a tensor the shape's proportion, softened so that all can be read."""
    if len(dims) < 2:
        return room_x, min(room_y, 44.0)
    if square:
        cell = min(room_x / columns, room_y / rows, 34.0)
        return cell * columns, cell * rows
    tall = min(max((dims[-2]["size"] / dims[-1]["size"]) ** 0.2, 0.65), 1.6)
    width = min(room_x, room_y / tall)
    return width, min(room_y, width * tall)


def _edges(length: float, parts: int) -> tuple[float, ...]:
    return tuple(length * n / parts for n in range(parts + 1))
