"""The iteration space drawn in three dimensions: a cube cut into blocks, one block pulled out, its faces coloured.

    >>> space_svg(spaces(64, 1024)["spaces"][2], most=1.0)[:4]
    '<svg'

An isometric drawing of our own: no 3D engine is needed, and it prints. Only faces that can be seen are drawn: the
cube's outside, those behind the block that is pulled out, and that block's three. A face has the colour of the edge
along which its matrix travels: A along j, B along i, C along k. Next file to read: `../explorers/iteration_space`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from widgets.figures.iteration_space import ALONG, Facts, cut_words
from widgets.figures.svg import number, tag, text
from widgets.numbers import quantity
from widgets.theme import GROUND, INK, LETTERS

WIDTH, HEIGHT, SIDE = 330.0, 396.0, 118.0
CENTRE = (WIDTH / 2, 142.0)
MOST_SPACES = 3
COLOURS = {"i": LETTERS["x"], "j": LETTERS["y"], "k": LETTERS["z"]}
Point = tuple[float, float, float]

# A block's three visible faces: the matrix, and its corners as (i, j, k) in units of the block.
FACES = {
    "C": ((0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)),  # on top: spans i and j
    "B": ((1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1)),  # to the right: spans j and k
    "A": ((0, 1, 0), (1, 1, 0), (1, 1, 1), (0, 1, 1)),  # to the left: spans i and k
}
ACROSS = {"C": 2, "B": 0, "A": 1}  # the edge that a face lies across, by place
# of a block that is not pulled out: the theme's own greys
GREYS = {
    "C": "var(--jp-layout-color1,#fff)",
    "B": "var(--jp-layout-color2,#eee)",
    "A": "var(--jp-layout-color3,#bdbdbd)",
}


def space_svg(space: Facts, most: float) -> str:
    """One cutting: the cube, its name, and bars of what a processor touches (`most` fills the width)."""
    title = f"{space['kind']}: {cut_words(space)}"
    inside = [
        text(title, WIDTH / 2, 18, 0, 14, text_anchor="middle", font_weight="bold"),
        *_cube(space["cut"]), *_edges(), *_bars(space, most),
    ]  # fmt: skip
    return tag(
        "svg", *inside, cls="mw-space", viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}", width=WIDTH, height=HEIGHT, role="img",
        aria_label=f"{title}, {space['over_u']:.3f} u FLOPs a value", fill="currentColor", font_family="sans-serif",
        data_kind=space["kind"], data_ratio=f"{space['over_u']:.6f}", xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def place(point: Point) -> tuple[float, float]:
    """Where a point of the unit cube lies on paper: i runs down to the right, j down to the left, k up."""
    i, j, k = point
    turn = math.cos(math.pi / 6)
    return CENTRE[0] + SIDE * turn * (i - j), CENTRE[1] + SIDE * ((i + j - 1) / 2 - k + 0.5)


def _cube(cut: Sequence[int]) -> Iterator[str]:
    """The cube's outside, the hole where the front block was, and that block, pulled out."""
    front = tuple(n - 1 for n in cut)
    thin = min(0.7, 0.2 * SIDE / max(cut))
    for matrix, edge in ACROSS.items():
        outside = [at for at in _layer(cut, edge) if at != front]
        yield _faces(matrix, outside, cut, thin)
        if cut[edge] > 1:  # the neighbour behind, seen through the hole
            yield _faces(matrix, [tuple(n - (m == edge) for m, n in enumerate(front))], cut, 0.7)
    moved = _pulled(cut)
    block = (
        tag("path", d=_path(corners, front, cut, moved), fill=COLOURS[ALONG[matrix]], data_face=matrix)
        for matrix, corners in FACES.items()
    )
    yield tag("g", *block, cls="mw-one", stroke="currentColor", stroke_linejoin="round")


def _layer(cut: Sequence[int], edge: int) -> Iterator[tuple[int, ...]]:
    """The blocks whose face across an edge lies outside."""
    ranges = [range(n - 1, n) if m == edge else range(n) for m, n in enumerate(cut)]
    return itertools.product(*ranges)


def _faces(matrix: str, blocks: Sequence[Sequence[int]], cut: Sequence[int], thin: float) -> str:
    """One face of many blocks, all in one plane: one path."""
    path = "".join(_path(FACES[matrix], at, cut, (0, 0, 0)) for at in blocks)
    return tag("path", d=path, style=f"fill:{GREYS[matrix]}", stroke="currentColor", stroke_width=thin) if path else ""


def _path(corners: Sequence[Point], at: Sequence[int], cut: Sequence[int], moved: Sequence[float]) -> str:
    places = (place(_corner(each, at, cut, moved)) for each in corners)
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in places) + "Z"


def _corner(of_block: Point, at: Sequence[int], cut: Sequence[int], moved: Sequence[float]) -> Point:
    """A corner of a block as a point of the unit cube."""
    i, j, k = ((a + c) / n + m for a, c, n, m in zip(at, of_block, cut, moved, strict=True))
    return i, j, k


def _pulled(cut: Sequence[int]) -> Point:
    """How far the front block is pulled: along i and j where they are cut (straight down where both are)."""
    i, j, _ = (n > 1 for n in cut)
    far = 0.24 if i and j else 0.34
    return far * i, far * j, 0.0


def _edges() -> Iterator[str]:
    """The names of the edges, in the letters of the sum."""
    for edge, point in (("i", (0.5, 1.12, 0)), ("j", (-0.1, 0.5, 1)), ("k", (-0.06, 1.06, 0.5))):
        x, y = place(point)
        yield text(edge, x, y + 6, 0, 14, text_anchor="middle", font_style="italic")


def _bars(space: Facts, most: float) -> Iterator[str]:
    """What a processor touches of each matrix, as lengths, and the ratio."""
    top, room = 296.0, WIDTH - 150.0
    for n, (matrix, values) in enumerate(space["faces"].items()):
        y = top + 20 * n
        yield tag("rect", x=48.0, y=y, width=max(room * values / most, 1.5), height=13, fill=COLOURS[ALONG[matrix]])
        yield text(matrix, 38, y + 11, 0, 12, text_anchor="end", font_weight="bold")
        yield text(quantity(values), 54 + room * values / most, y + 11, 0, 11)
    words = f"{space['over_u']:.3f} u FLOPs a value touched (modelled)"
    yield text(words, WIDTH / 2, top + 76, 0, 12, text_anchor="middle", font_weight="bold")
    sent = f"collectives send {quantity(space['sent'])} values (modelled)"
    yield text(sent, WIDTH / 2, top + 93, 0, 11, text_anchor="middle")


def spaces_html(facts: Facts) -> str:
    """All cuttings in a row that wraps; a place stays empty where two are the same, so that heights stay."""
    most = max(max(each["faces"].values()) for each in facts["spaces"])
    slots = "".join(f'<div class="mw-slot">{space_svg(each, most)}</div>' for each in facts["spaces"])
    empty = f'<div class="mw-slot" style="aspect-ratio:{WIDTH:.0f}/{HEIGHT:.0f}"></div>'
    return f'<div class="mw-spaces">{slots}{empty * (MOST_SPACES - len(facts["spaces"]))}</div>'


def saved_svg(facts: Facts) -> str:
    """The same as one file."""
    most = max(max(each["faces"].values()) for each in facts["spaces"])
    size = {"width": WIDTH * len(facts["spaces"]), "height": HEIGHT}
    inside = (
        tag("g", space_svg(each, most), transform=f"translate({n * WIDTH} 0)") for n, each in enumerate(facts["spaces"])
    )
    return tag("svg", tag("rect", **size, fill=GROUND), *inside, **size, color=INK, xmlns="http://www.w3.org/2000/svg")
