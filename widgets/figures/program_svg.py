"""A program's steps as one SVG file, for slides: the same facts as the live list, in fixed lines.

    >>> program_svg(compared(...)).startswith("<svg")
    True

Next file to read: `program_html`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtfcore.steps import listed
from widgets.figures.program import Facts
from widgets.figures.svg import tag, text
from widgets.numbers import quantity
from widgets.theme import BAND, FAINT, GROUND, axis_colours

WIDTH, LINE, HEAD, FOOT = 860.0, 40.0, 34.0, 26.0


def program_svg(facts: Facts) -> str:
    """One line of two rows a step: what it does, where values lie, its numbers; a stripe and a bar a collective."""
    colours = axis_colours(axis for axis, _ in facts["mesh"])
    most = max((row["sent"] for row in facts["steps"]), default=0) or 1
    height = HEAD + LINE * len(facts["steps"]) + FOOT
    mesh = " ".join(f"{axis}:{size}" for axis, size in facts["mesh"])
    lines = [tag("g", *_line(n, row, colours, most), data_step=n) for n, row in enumerate(facts["steps"])]
    return tag(
        "svg", tag("rect", width=WIDTH, height=height, fill=GROUND), text(f"{facts['name']} on {mesh}", 8, 20, size=14),
        *lines, text(_total(facts), 8, height - 9), xmlns="http://www.w3.org/2000/svg", font_family="sans-serif",
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}", width=WIDTH, height=height,
    )  # fmt: skip


def _line(number: int, row: Facts, colours: dict[str, str], most: float) -> Iterator[str]:
    top = HEAD + LINE * number
    if row["collective"]:
        yield tag("rect", x=0, y=top, width=WIDTH, height=LINE, fill=BAND)
        share = LINE / len(row["axes"])
        for place, axis in enumerate(row["axes"]):
            yield tag("rect", x=0, y=top + place * share, width=7, height=share, fill=colours[axis])
    left = 14.0
    for axis, sent in row["by_axis"].items():
        yield tag("rect", x=left, y=top + 26, width=190 * sent / most, height=7, fill=colours[axis])
        left += 190 * sent / most
    yield text(f"{number + 1}  {row['label']}", 14, top + 17, 205, font_weight="bold" if row["collective"] else None)
    yield text(_places(row), 225, top + 17, 450, font_family="monospace")
    shapes = f"{listed([each['shape'] for each in row['before']])} → {row['after']['shape']}"
    yield text(shapes, 225, top + 32, 450, 10, font_family="monospace", fill=FAINT)
    yield text(_numbers(row), WIDTH - 8, top + 17, 175, text_anchor="end")


def _places(row: Facts) -> str:
    before = listed([f"{each['name']} {each['lies']}" for each in row["before"]])
    return f"{before} → {row['after']['name']} {row['after']['lies']}"


def _numbers(row: Facts) -> str:
    sends = f"sends {quantity(row['sent'], 'iB')}" if row["collective"] else ""
    does = quantity(row["flops"], "FLOP") if row["flops"] else ""
    return f"{sends or does or 'holds ' + quantity(row['held'], 'iB')} modelled"


def _total(facts: Facts) -> str:
    every = facts["totals"]
    parts = ", ".join(f"{axis} {quantity(sent, 'iB')}" for axis, sent in every["by_axis"].items())
    computes, sends = quantity(every["flops"], "FLOP"), quantity(every["sent"], "iB")
    return f"One device in all: {computes}, sends {sends} ({parts}), modelled"
