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
from collections.abc import Sequence
from typing import Any

from widgets.figures.grid import HEIGHT, WIDTH, Grid, make_grid
from widgets.figures.slices import Facts, why
from widgets.figures.slices_bands import bands
from widgets.figures.slices_labels import labels, pieces
from widgets.figures.svg import lines, rectangles, tag, text
from widgets.numbers import count, quantity
from widgets.theme import axis_colours

STYLE = (pathlib.Path(__file__).parent.parent / "views" / "slices_view.css").read_text(encoding="utf-8")


def panel(tensor: Facts, uid: str, is_mesh: bool = False) -> dict[str, Any]:
    """SVG text and grid of one panel; `uid` must differ between panels of a page (patterns have page-wide names)."""
    grid = make_grid(tensor["dims"], square=is_mesh)
    colours = axis_colours(axis for axis, _ in tensor["mesh"])
    body = [
        _head(tensor, is_mesh), _outline(grid), *bands(tensor, grid, colours, uid), _cuts(grid),
        *pieces(tensor, grid), *labels(tensor, grid, colours), _foot(tensor, grid, is_mesh),
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
    # small enough for the last word too, which says where the number is from
    size = min(10.5, max(8.5, (WIDTH - 8) / (0.55 * len(holds)) // 0.1 / 10))
    return name + text(tensor["placed"], after, 15, WIDTH - after, cls="mw-mono") + text(holds, 6, 29, WIDTH - 8, size)


def _outline(grid: Grid) -> str:
    width, height = grid.xs[-1], grid.ys[-1]
    return tag("path", d=rectangles((x, y, width, height) for x, y in grid.boxes), cls="mw-box")


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
