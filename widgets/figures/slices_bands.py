"""The colours and patterns of a panel of slices: for each mesh axis, the pieces at the same place along it.

    >>> bands(facts(sharding, mesh), grid, colours, "a1")      # a few <path>s, however many devices there are

The further along an axis, the stronger its colour or the denser its pattern. Next file to read: `slices_labels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from widgets.figures.grid import Grid
from widgets.figures.slices import Facts
from widgets.figures.svg import rectangles, tag
from widgets.theme import PATTERNS

Box = tuple[float, float, float, float]  # x, y, width, height
LEVELS = 8


def bands(tensor: Facts, grid: Grid, colours: dict[str, str], uid: str) -> Iterator[str]:
    """For each axis and level, everything at that place along that axis, as one path."""
    sizes = dict(map(tuple, tensor["mesh"]))
    cells: dict[tuple[str, int], list[Box]] = {}
    for axis, position, where in _runs(tensor["dims"], grid, sizes):
        cells.setdefault((axis, position), []).append(where)
    for (axis, position), boxes in cells.items():
        strength = position / (sizes[axis] - 1)
        kind = PATTERNS[list(sizes).index(axis) % len(PATTERNS)]
        yield from _filled(rectangles(boxes), kind, colours[axis], strength, f"{uid}-{axis}")


def _runs(dims: Any, grid: Grid, sizes: dict[str, int]) -> Iterator[tuple[str, int, Box]]:
    """(axis, position along it, rectangle): stretches of neighbouring pieces with the same position."""
    wide, tall = grid.xs[-1], grid.ys[-1]
    per_box = grid.columns if len(dims) == 1 else 0
    for place, dim in enumerate(dims):
        for axis, block, length in _stretches(dim, sizes):
            position = axis[1]
            if place == len(dims) - 1:
                for start, stop, box in _strips(block, length, per_box, grid):
                    x, y = box
                    yield axis[0], position, (x + grid.xs[start], y, grid.xs[stop] - grid.xs[start], tall)
            elif place == len(dims) - 2:
                for x, y in grid.boxes:
                    yield axis[0], position, (x, y + grid.ys[block], wide, grid.ys[block + length] - grid.ys[block])
            else:
                inner = _inner(dims, place)
                for number, (x, y) in enumerate(grid.boxes):
                    if block <= number // inner % dim["parts"] < block + length:
                        yield axis[0], position, (x, y, wide, tall)


def _stretches(dim: Any, sizes: dict[str, int]) -> Iterator[tuple[tuple[str, int], int, int]]:
    """((axis, position), first block, blocks) along one dimension; the outermost axis changes slowest."""
    length = dim["parts"]
    for axis in dim["axes"]:
        n = sizes[axis]
        if n == 1:
            continue
        length //= n
        for start in range(0, dim["parts"], length):
            yield (axis, start // length % n), start, length


def _strips(block: int, length: int, per_box: int, grid: Grid) -> Iterator[tuple[int, int, tuple[float, float]]]:
    """Where columns block … block+length lie: in every box, or in the strips of a folded dimension."""
    if not per_box:
        yield from ((block, block + length, box) for box in grid.boxes)
        return
    for number, box in enumerate(grid.boxes):
        start, stop = max(block - number * per_box, 0), min(block + length - number * per_box, per_box)
        if start < stop:
            yield start, stop, box


def _inner(dims: Any, place: int) -> int:
    inner = 1
    for dim in dims[place + 1 : -2]:
        inner *= dim["parts"]
    return inner


def _filled(d: str, kind: str, colour: str, strength: float, uid: str) -> list[str]:
    if kind == "tint":
        return [tag("path", d=d, fill=colour, fill_opacity=0.1 + 0.5 * strength)]
    level = round(strength * (LEVELS - 1))
    name, weight = f"{uid}-{level}", 0.6 + 2.6 * level / (LEVELS - 1)
    strokes = {
        "hatch": tag("path", d="M-2 10L10 -2M-2 2L2 -2M6 10L10 6", stroke=colour, stroke_width=weight),
        "dots": tag("circle", cx=4, cy=4, r=0.5 + weight * 0.8, fill=colour),
        "cross": tag("path", d="M0 4H8M4 0V8", stroke=colour, stroke_width=weight),
    }[kind]
    pattern = tag("pattern", strokes, id=name, width=8, height=8, patternUnits="userSpaceOnUse")
    return [pattern, tag("path", d=d, fill=f"url(#{name})")]
