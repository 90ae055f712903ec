"""The words on a panel of slices: who holds each piece, the dimensions, where the cuts are.

    >>> pieces(facts(sharding, mesh), grid)        # each piece with its devices' numbers, as far as there is room

Next file to read: `slices_svg`, which puts a panel together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from widgets.figures.grid import BOTTOM, LEFT, RIGHT, TOP, Grid
from widgets.figures.slices import Facts, holders
from widgets.figures.slices_bands import Box
from widgets.figures.svg import tag, text

HEAD = 34.0  # the lines above a tensor's picture, into which the upright name must not reach
MOST_PIECES = 128  # up to which each piece is an element of its own


def pieces(tensor: Facts, grid: Grid) -> Iterator[str]:
    """A label in each piece that has room for one, and a marked rectangle where pieces are few."""
    by_piece = holders(tensor)
    placed = [(piece, devices, where) for piece, devices in by_piece.items() if (where := grid.place(piece))]
    size = _letter_size(placed)
    for piece, devices, (x, y, width, height) in placed:
        label = "".join(
            tag("text", line, x=x + width / 2, y=y + height / 2 + dy, cls="mw-label", font_size=size)
            for line, dy in _fit(devices, width, height, size)
        )
        if len(by_piece) <= MOST_PIECES:
            numbers = ",".join(map(str, devices))
            mark = tag("rect", x=x, y=y, width=width, height=height, fill="none", pointer_events="all")
            yield tag("g", mark, label, data_piece=piece, data_devices=numbers)
        elif label:
            yield label


def _letter_size(placed: Sequence[tuple[int, list[int], Box]]) -> int:
    """The largest letters in which every piece can name all its devices; else the usual ones, with short forms."""
    for size in (10, 9, 8):
        if all(_rows(devices, width, height, size) for _, devices, (_, _, width, height) in placed):
            return size
    return 9


def _room(width: float, height: float, size: int) -> tuple[int, int]:
    return int((width - 2) / (0.64 * size)), int((height - 1) / (size + 1))


def _rows(devices: Sequence[int], width: float, height: float, size: int) -> list[str]:
    """The devices' numbers, broken into lines; nothing if they do not fit."""
    room, most = _room(width, height, size)
    if room < 1 or len(devices) > room * most:
        return []
    rows: list[str] = []
    for word in map(str, devices):
        if rows and len(rows[-1]) + 1 + len(word) <= room:
            rows[-1] += f" {word}"
        else:
            rows.append(word)
    return rows if len(rows) <= most and max(map(len, rows)) <= room else []


def _fit(devices: Sequence[int], width: float, height: float, size: int) -> list[tuple[str, float]]:
    """(line, offset): all numbers, else the first and last and how many, else how many, else nothing."""
    rows = _rows(devices, width, height, size)
    if not rows and len(devices) > 1:
        room, most = _room(width, height, size)
        short = [f"{devices[0]} … {devices[-1]} ({len(devices)})", f"{devices[0]}…{devices[-1]}", f"×{len(devices)}"]
        rows = [words for words in short if len(words) <= room and most > 0][:1]
    return [(row, 0.35 * size + (size + 1) * (n - (len(rows) - 1) / 2)) for n, row in enumerate(rows)]


def labels(tensor: Facts, grid: Grid, colours: dict[str, str]) -> Iterator[str]:
    """Names of the dimensions with a swatch for each axis, and where the cuts are."""
    dims = tensor["dims"]
    if dims:
        yield from _dim_label(dims[-1], colours, LEFT, 46.0, RIGHT - LEFT)
    if len(dims) > 1:
        long = 11 * len(dims[-2]["axes"]) + 6.2 * len(_dim_words(dims[-2]))
        low = min(TOP + max(grid.boxes[-1][1] + grid.ys[-1] - TOP, long), BOTTOM + 8)
        inner = "".join(_dim_label(dims[-2], colours, 0.0, 0.0, low - HEAD))
        yield tag("g", inner, transform=f"translate(11 {low:.0f}) rotate(-90)")
    if grid.n_boxes == 1 and "local" in tensor:
        yield from _ticks(tensor, grid)
    for number, (x, y) in enumerate(grid.boxes if len(dims) > 2 else ()):
        yield text(_caption(tensor, number), x, y - 2, grid.xs[-1] + 4, 9)


def _dim_label(dim: Any, colours: dict[str, str], x: float, y: float, room: float) -> list[str]:
    found = []
    for axis in dim["axes"]:
        found.append(tag("rect", x=x, y=y - 8, width=8, height=8, fill=colours[axis], cls="mw-swatch"))
        x, room = x + 11, room - 11
    words = _dim_words(dim)
    if 0.55 * 10.5 * len(words) > room:  # the swatches, and the line above, say the axes too
        words = f"{dim['name']}:{dim['size']}"
    return [*found, text(words, x, y, room, 10.5)]


def _dim_words(dim: Any) -> str:
    over = f" over {' '.join(dim['axes'])}" if dim["axes"] and dim["axes"] != [dim["name"]] else ""
    return f"{dim['name']}:{dim['size']}{over}"


def _ticks(tensor: Facts, grid: Grid) -> Iterator[str]:
    x, y = grid.boxes[0]
    dims, local = tensor["dims"], tensor["local"]
    if len(dims) > 1 and grid.rows > 1 and grid.ys[1] >= 10:
        for row in range(grid.rows):
            yield text(str(row * local[-2]), x - 3, y + grid.ys[row] + 8, 0, 8.5, text_anchor="end")
    if grid.columns > 1 and grid.xs[1] >= 6 * len(str(dims[-1]["size"])):
        for column in range(grid.columns):
            yield text(str(column * local[-1]), x + grid.xs[column] + 1, y - 2, 0, 8.5)


def _caption(tensor: Facts, number: int) -> str:
    """The ranges of the leading dimensions that a box stands for."""
    words = []
    for place in range(len(tensor["dims"]) - 3, -1, -1):
        dim = tensor["dims"][place]
        number, block = divmod(number, dim["parts"])
        local = dim["size"] // dim["parts"]
        last = f"–{(block + 1) * local - 1}" if local > 1 else ""
        words.append(f"{dim['name']} {block * local}{last}")
    return ", ".join(reversed(words))
