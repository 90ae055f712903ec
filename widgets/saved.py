"""A picture as a file that stands alone on a slide: question, call, picture and sentence in one SVG.

    poster('<svg width="300" height="200">…</svg>', "How much?", "sharing(size=64)", "1 MiB [modelled]")
    file_name("sharing", "from widgets import sharing\\nsharing(size=64)")      # 'sharing_size-64'

The page makes the PNG out of this very SVG, so both look the same. Since a file has no theme behind it, the page also
writes the theme's colours in the place of every `var(--jp-…, …)`. What only a page can draw (a canvas, a plotly chart)
leaves an empty `<image data-live="n">`, which the page fills. Next file to read: `views/saving.js`, the page's half.
"""

from __future__ import annotations

import ast
import html
import re
import textwrap
from collections.abc import Iterator, Sequence

from widgets.figures.svg import tag
from widgets.static import Table
from widgets.theme import GROUND, INK

LEAST, MARGIN, GAP = 560.0, 16.0, 8.0
# of a line: its size, and what a character takes in the widest of the usual fonts, on average
TITLE, CALL, SAID = (17, 10.8), (11, 6.7), (13, 7.3)
MOST_ROWS, LONGEST_CELL, LONGEST_NAME = 24, 40, 100
_SVG = re.compile(r"<svg\b[^>]*>|</svg>")
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)

Sizes = Sequence[Sequence[float]]


def poster(picture: str, question: str, call: str, sentence: str) -> str:
    """The whole file around one `<svg>`, or around nothing."""
    room = max(size_of(picture)[0], LEAST) if picture else LEAST
    above: list[str | float] = [*text_block(question, room, *TITLE, font_weight="bold"), GAP]
    above += [*text_block(call, room, *CALL, font_family="monospace"), GAP, picture, GAP]
    inside: list[str] = []
    y = MARGIN
    for part in (*above, *text_block(sentence, room, *SAID)):
        if isinstance(part, float):
            y += part
        elif part:
            inside.append(tag("g", sized(part), transform=f"translate({MARGIN:.0f} {y:.1f})"))
            y += size_of(part)[1]
    size = {"width": room + 2 * MARGIN, "height": round(y + MARGIN)}
    return tag("svg", tag("rect", **size, fill=GROUND), *inside, **size, fill=INK, color=INK, font_family="sans-serif",
               viewBox=f"0 0 {size['width']:.0f} {size['height']}", xmlns="http://www.w3.org/2000/svg")  # fmt: skip


def file_name(explorer: str, code: str) -> str:
    """A file's name that says what was asked, without what a disk may refuse; no ending."""
    call = ast.parse(code).body[-1] if code else None
    keywords = call.value.keywords if isinstance(call, ast.Expr) and isinstance(call.value, ast.Call) else ()
    words = (explorer or "picture", *(f"{key.arg}-{ast.unparse(key.value)}" for key in keywords))
    plain = (re.sub(r"(?:[^\w.+]|\.(?!\w)|(?<!\w)\.)+", "-", word).strip("-") for word in words)
    return "_".join(word for word in plain if word)[:LONGEST_NAME].rstrip("_-.")


def size_of(svg: str) -> tuple[float, float]:
    """Width and height of an `<svg>` in pixels: what is written as numbers, or the viewBox's."""
    head = svg[: svg.index(">")]
    width, height = (re.search(rf'\s{side}="([\d.]+)(?:px)?"', head) for side in ("width", "height"))
    if width and height:
        return float(width[1]), float(height[1])
    box = re.search(r'viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"', head)
    return (float(box[1]), float(box[2])) if box else (300.0, 150.0)


def sized(svg: str) -> str:
    """The same with its width and height written down, as one within another needs them."""
    width, height = size_of(svg)
    bare = re.sub(r'^(<svg\b[^>]*?)\s(?:width|height)="[^"]*"', r"\1", svg)
    bare = re.sub(r'^(<svg\b[^>]*?)\s(?:width|height)="[^"]*"', r"\1", bare)
    return bare.replace("<svg", f'<svg width="{width:g}" height="{height:g}"', 1)


def still_drawings(page: str) -> str:
    """The outermost `<svg>` elements of a still picture under each other, with its style; nothing if it has none."""
    found, depth, begun = [], 0, 0
    for each in _SVG.finditer(page):
        if each[0].startswith("</"):
            depth -= 1
            found += [page[begun : each.end()]] if depth == 0 else []
        elif not each[0].endswith("/>"):
            begun = begun if depth else each.start()
            depth += 1
    return stacked(found, "".join(_STYLE.findall(page))) if found else ""


def live_drawings(sizes: Sizes) -> str:
    """Empty images of these (width, height) under each other, for the page to fill with what it drew itself."""
    boxes = [{"width": float(width), "height": float(height)} for width, height in sizes]
    return stacked([tag("svg", tag("image", **box, data_live=n), **box) for n, box in enumerate(boxes)])


def stacked(parts: Sequence[str], style: str = "") -> str:
    """Drawings under each other as one `<svg>`; nothing for none."""
    y, width, placed = 0.0, 0.0, []
    for part in parts:
        wide, high = size_of(part)
        placed.append(tag("g", sized(part), transform=f"translate(0 {y:.1f})"))
        y, width = y + high + GAP, max(width, wide)
    inside = [tag("style", html.escape(style, quote=False))] if style else []
    return tag("svg", *inside, *placed, width=width, height=y, xmlns="http://www.w3.org/2000/svg") if parts else ""


def table_svg(rows: Table) -> str:
    """A table as a drawing, where an explorer has no other picture to save."""
    shown = [[textwrap.shorten(str(cell), LONGEST_CELL, placeholder="…") for cell in row] for row in rows[:MOST_ROWS]]
    if not shown:
        return ""
    widths = [max(len(cell) for cell in column) * SAID[1] + 14 for column in zip(*shown)]
    lines = [*_rows(shown, widths)]
    if left := len(rows) - len(shown):
        lines.append(tag("text", f"… and {left:,} more rows", y=19.0 * len(shown) + 15, font_size=12))
    return tag("svg", *lines, width=sum(widths), height=19.0 * len(lines) + 6, fill=INK)


def _rows(rows: Sequence[Sequence[str]], widths: Sequence[float]) -> Iterator[str]:
    for n, row in enumerate(rows):
        for place, cell in enumerate(row):
            how = {"font_weight": "bold"} if n == 0 else {}
            yield tag("text", html.escape(cell), x=sum(widths[:place]), y=19.0 * n + 15, font_size=12, **how)


def text_block(words: str, room: float, size: float, each: float, **style: object) -> list[str]:
    """Words broken into lines of this many pixels, as one `<svg>`; an empty list for no words."""
    most = max(int(room / each), 20)
    lines = [part for line in words.split("\n") for part in textwrap.wrap(line, most)]
    drawn = (tag("text", html.escape(line), y=size * (1.35 * n + 1), font_size=size, **style)
             for n, line in enumerate(lines))  # fmt: skip
    return [tag("svg", *drawn, width=room, height=size * (1.35 * len(lines) + 0.2))] if lines else []
