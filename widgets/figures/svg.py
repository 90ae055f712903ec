"""A few lines that write SVG text, so that drawing code reads like the drawing.

    >>> tag("rect", x=1, width=2.5, cls="mw-box", data_piece=3)
    '<rect x="1" width="2.5" class="mw-box" data-piece="3"/>'

Next file to read: `grid`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

_NAMES = {"cls": "class"}  # attribute names as SVG writes them; a picture has thousands of few names
_SPECIAL = re.compile(r"[&<>\"']").search


def escaped(words: str) -> str:
    """Words as they may stand in SVG; most hold nothing to escape, and looking is cheaper than replacing."""
    return html.escape(words) if _SPECIAL(words) else words


def _named(key: str) -> str:
    return _NAMES.setdefault(key, key.replace("_", "-"))


def number(value: float) -> str:
    """A coordinate with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def tag(name: str, *inside: str, **attributes: object) -> str:
    """One element; `cls` is class, `data_x` is data-x, floats are shortened, None leaves the attribute out."""
    words = [name]
    for key, value in attributes.items():
        if value is None:
            continue
        shown = number(value) if isinstance(value, float) else escaped(str(value))
        words.append(f'{_NAMES.get(key) or _named(key)}="{shown}"')
    body = "".join(inside)
    return f"<{' '.join(words)}>{body}</{name}>" if body else f"<{' '.join(words)}/>"


def text(words: str, x: float, y: float, room: float = 0, size: float = 11, **attributes: object) -> str:
    """Words at a place, cut to `room` pixels (0: no limit); the whole words stay as the element's title."""
    most = int(room / (size * 0.55)) if room else len(words)
    cut = words if len(words) <= most else words[: max(most - 1, 0)] + "…"
    title = tag("title", escaped(words)) if cut != words else ""
    return tag("text", escaped(cut), title, x=float(x), y=float(y), font_size=size, **attributes)


def rectangles(boxes: Iterable[tuple[float, float, float, float]]) -> str:
    """Many (x, y, width, height) as the data of one path: one element however many there are."""
    return "".join(f"M{number(x)} {number(y)}h{number(w)}v{number(h)}h{number(-w)}z" for x, y, w, h in boxes)


def lines(xs: Sequence[float], ys: Sequence[float], x0: float, y0: float, x1: float, y1: float) -> str:
    """A grid as the data of one path: vertical lines at `xs`, horizontal ones at `ys`, within a box."""
    down = "".join(f"M{number(x)} {number(y0)}V{number(y1)}" for x in xs)
    return down + "".join(f"M{number(x0)} {number(y)}H{number(x1)}" for y in ys)
