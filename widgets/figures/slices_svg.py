"""Draws one tensor (or the mesh) as an SVG panel of fixed size, from facts.

    >>> drawing = panel(facts(sharding, mesh, "bf16", "x"), "a1")
    >>> drawing["svg"], drawing["grid"]

Each mesh axis has a colour and a pattern; the further along the axis, the stronger. A device in the mesh and the
slice it holds look alike, except that the slice lacks the axes over which it is copied. Bands of one axis and level
are one path, so 512 devices cost few elements; pieces with `data-devices` are there up to 128. The same text serves
live view, still picture and saved file. Next file to read: `../views/slices_view`.
"""

from __future__ import annotations

import html
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from widgets.figures.grid import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Grid, make_grid
from widgets.figures.slices import Facts, holders, why
from widgets.figures.svg import lines, rectangles, tag, text
from widgets.numbers import count, quantity
from widgets.theme import PATTERNS, axis_colours

STYLE = (pathlib.Path(__file__).parent.parent / "views" / "slices_view.css").read_text(encoding="utf-8")
MOST_PIECES = 128
LEVELS = 8
HEAD = 34.0  # the lines above a tensor's picture, into which the upright name must not reach


def panel(tensor: Facts, uid: str, is_mesh: bool = False) -> dict[str, Any]:
    """SVG text and grid of one panel; `uid` must differ between panels of a page (patterns have page-wide names)."""
    grid = make_grid(tensor["dims"], square=is_mesh)
    colours = axis_colours(axis for axis, _ in tensor["mesh"])
    body = [
        _head(tensor, is_mesh), _outline(grid), *_bands(tensor, grid, colours, uid), _cuts(grid),
        *_pieces(tensor, grid), *_labels(tensor, grid, colours), _foot(tensor, grid, is_mesh),
        tag("g", " ", cls="mw-marks"),
    ]  # fmt: skip
    facts = {"data_bytes": tensor.get("bytes"), "data_copies": tensor.get("copies")}
    size = {"viewBox": f"0 0 {WIDTH:.0f} {HEIGHT:.0f}", "width": WIDTH, "height": HEIGHT}
    label = f"mesh of {count(len(tensor['holds']), 'device')}" if is_mesh else why(tensor)
    local = ",".join(map(str, tensor.get("local", ())))
    svg = tag(
        "svg", *body, xmlns="http://www.w3.org/2000/svg", cls="mw-panel", role="img", aria_label=label,
        data_tensor=tensor["name"], data_local=local, data_pieces=len(set(tensor["holds"])), **facts, **size,
    )  # fmt: skip
    return {"svg": svg, "grid": grid.json()}


def one_svg(panels: Sequence[str], across: int = 4) -> str:
    """Panels side by side as one file."""
    corners = [(n % across * WIDTH, n // across * HEIGHT) for n in range(len(panels))]
    placed = [tag("g", svg, transform=f"translate({x:.0f} {y:.0f})") for (x, y), svg in zip(corners, panels)]
    width, height = min(len(panels), across) * WIDTH, -(-len(panels) // across) * HEIGHT
    size = {"viewBox": f"0 0 {width:.0f} {height:.0f}", "width": width, "height": height}
    style = tag("style", html.escape(STYLE, quote=False))
    return tag("svg", style, *placed, xmlns="http://www.w3.org/2000/svg", **size)


def _head(tensor: Facts, is_mesh: bool) -> str:
    name = tag("text", html.escape(tensor["name"]), x=6, y=15, font_size=13, cls="mw-name")
    after = 13 + 9 * len(tensor["name"])
    if is_mesh:
        sizes = " ".join(f"{axis}:{size}" for axis, size in tensor["mesh"])
        return name + text(sizes, after, 15, WIDTH - after, cls="mw-mono")
    shape = f"{tensor['dtype']}[{', '.join(map(str, tensor['local']))}]"
    holds = f"{shape} · {quantity(tensor['bytes'], 'iB')} modelled"
    size = min(10.5, max(8.5, (WIDTH - 8) / (0.55 * len(holds)) // 0.1 / 10))  # the last word says where the number is from
    return name + text(tensor["placed"], after, 15, WIDTH - after, cls="mw-mono") + text(holds, 6, 29, WIDTH - 8, size)


def _outline(grid: Grid) -> str:
    width, height = grid.xs[-1], grid.ys[-1]
    return tag("path", d=rectangles((x, y, width, height) for x, y in grid.boxes), cls="mw-box")


def _bands(tensor: Facts, grid: Grid, colours: dict[str, str], uid: str) -> Iterator[str]:
    """For each axis and level, everything at that place along that axis, as one path."""
    sizes = dict(map(tuple, tensor["mesh"]))
    cells: dict[tuple[str, int], list[tuple[float, float, float, float]]] = {}
    for axis, position, where in _runs(tensor["dims"], grid, sizes):
        cells.setdefault((axis, position), []).append(where)
    for (axis, position), boxes in cells.items():
        strength = position / (sizes[axis] - 1)
        kind = PATTERNS[list(sizes).index(axis) % len(PATTERNS)]
        yield from _filled(rectangles(boxes), kind, colours[axis], strength, f"{uid}-{axis}")


def _runs(dims: Any, grid: Grid, sizes: dict[str, int]) -> Iterator[tuple[str, int, tuple[float, float, float, float]]]:
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


def _cuts(grid: Grid) -> str:
    """The cuts between pieces; hairlines where they are many."""
    if min(grid.xs[1], grid.ys[1]) < 1.5:
        return ""
    d = "".join(
        lines([x + e for e in grid.xs[1:-1]], [y + e for e in grid.ys[1:-1]], x, y, x + grid.xs[-1], y + grid.ys[-1])
        for x, y in grid.boxes
    )
    fine = min(grid.xs[1], grid.ys[1]) < 5
    return tag("path", d=d, cls="mw-cut", stroke_width=0.4 if fine else 1.0) if d else ""


def _pieces(tensor: Facts, grid: Grid) -> Iterator[str]:
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


def _letter_size(placed: Sequence[tuple[int, list[int], tuple[float, float, float, float]]]) -> int:
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


def _labels(tensor: Facts, grid: Grid, colours: dict[str, str]) -> Iterator[str]:
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


def _foot(tensor: Facts, grid: Grid, is_mesh: bool) -> str:
    """What a reader must know to read the boxes, and who holds copies."""
    dims = tensor["dims"]
    says = [count(len(tensor["holds"]), "device")] if is_mesh else []
    if len(dims) > 2:
        says.append(f"boxes: blocks of {' '.join(dim['name'] for dim in dims[:-2])}")
    elif grid.n_boxes > 1:
        says.append("folded into strips")
    if grid.n_boxes > len(grid.boxes):
        says.append(f"{len(grid.boxes)} of {grid.n_boxes} shown")
    if not is_mesh and tensor["copies"] > 1:
        says.append(f"{tensor['copies']} copies each")
    return text("; ".join(says), 6, HEIGHT - 7, WIDTH - 8, 10.5)


__all__ = ["STYLE", "one_svg", "panel"]
