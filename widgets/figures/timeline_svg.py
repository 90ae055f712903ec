"""A compiled timeline as SVG: a panel for each schedule, a row for computing and one for each mesh axis's links.

    >>> bars_svg(facts["panels"])[:4]
    '<svg'

Places from left to right are shares of the width, so that the same drawing may be stretched to zoom. Where a device
waits for links the compute row is hatched and a light band runs through the rows below: what lies in it nothing hides.
A bar that is busy for a part of its length is filled as high as that part. Next file to read: `timeline_words`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence

from mtfcore.compiling.timeline import COMPUTE
from widgets.figures.log_axes import GREY
from widgets.figures.svg import tag, text
from widgets.figures.timeline import FULL, UPPER, Facts, span
from widgets.figures.timeline_words import FROM, bar_text, bar_words, heading
from widgets.numbers import quantity
from widgets.theme import COMPUTE as COMPUTE_COLOUR
from widgets.theme import GROUND, INK, LINKS, axis_colours

HEAD, ROW, GAP, AXIS, LABELS = 24.0, 28.0, 3.0, 24.0, 74.0
WIDTH = 960.0  # of the saved file
LEAST = 0.012  # of the width: a bar that is written on; a page that zooms writes on shorter ones, too
LEAST_ZOOMED = 0.0008
# stripes that mark waiting; also the only mark in print without colours
HATCH = tag(
    "pattern", tag("rect", width=6, height=6, fill=LINKS), tag("path", d="M0 0V6", stroke="#111", stroke_width=2.2),
    id="mwWait", width=6, height=6, patternUnits="userSpaceOnUse", patternTransform="rotate(45)",
)  # fmt: skip


def panel_height(rows: Sequence[str]) -> float:
    """One panel with its heading."""
    return HEAD + (ROW + GAP) * len(rows)


def height(panels: Sequence[Facts]) -> float:
    """The whole picture."""
    return sum(panel_height(one["rows"]) for one in panels) + AXIS


def tops(panels: Sequence[Facts]) -> list[float]:
    """Where each panel begins."""
    return [sum(panel_height(one["rows"]) for one in panels[:n]) for n in range(len(panels))]


def bars_svg(panels: Sequence[Facts], titles: bool = False, width: str = "100%") -> str:
    """The bars of all panels on one time axis; `titles` for pages that cannot answer a pointer."""
    total, first, inside = span(panels), 0, [tag("defs", HATCH), *_axis(panels)]
    for one, top in zip(panels, tops(panels), strict=True):
        inside += _ground(one, top)
        inside += _bands(one, top, total)
        for n, bar in enumerate(one["bars"], first):
            inside.append(_bar(one, bar, n, top, total, titles))
        first += len(one["bars"])
    return tag(
        "svg", *inside, cls="mw-time", width=width, height=height(panels), role="group", fill="currentColor",
        font_family="sans-serif", aria_label="compute and links over time; arrow keys walk the bars",
        data_span=f"{total:.6g}", xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def labels_svg(panels: Sequence[Facts]) -> str:
    """Headings and the names of the rows, which do not move when the bars do; headings run on over the bars."""
    inside = []
    for one, top in zip(panels, tops(panels), strict=True):
        inside.append(_head(one, top))
        for row, y in _places(one, top).items():
            inside.append(text(row, LABELS - 16, y + ROW / 2 + 4, LABELS - 14, 12, text_anchor="end"))
            if row != COMPUTE and _one_way(one, row):
                for n, way in enumerate("→←"):
                    inside.append(text(way, LABELS - 3, y + ROW * (0.25 + 0.5 * n) + 4, 0, 10, text_anchor="end"))
    return tag("svg", *inside, cls="mw-time-rows", width=LABELS, height=height(panels), fill="currentColor",
               overflow="visible", font_family="sans-serif", xmlns="http://www.w3.org/2000/svg")  # fmt: skip


def saved_timeline(panels: Sequence[Facts]) -> str:
    """Rows and bars as one file."""
    size = {"width": WIDTH, "height": height(panels)}
    bars = tag("svg", bars_svg(panels, True), x=LABELS, width=WIDTH - LABELS - 8, height=size["height"])
    return tag("svg", tag("rect", **size, fill=GROUND), bars, labels_svg(panels), **size, color=INK,
               xmlns="http://www.w3.org/2000/svg")  # fmt: skip


# ---- parts


def _places(one: Facts, top: float) -> Mapping[str, float]:
    return {row: top + HEAD + (ROW + GAP) * n for n, row in enumerate(one["rows"])}


def _one_way(one: Facts, row: str) -> bool:
    return any(part != FULL for bar in one["bars"] for at, part in bar["places"] if at == row)


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.4f}%"


def _head(one: Facts, top: float) -> str:
    """The line above a panel; a narrow page leaves out what its sentence says again."""
    before, origin, after = html.escape(heading(one)).partition(f" {FROM}")
    return tag("text", before, tag("tspan", origin, cls="mw-wide"), after, x=4, y=top + 16, font_size=12,
               font_weight="bold")  # fmt: skip


def _axis(panels: Sequence[Facts]) -> Iterator[str]:
    total, low = span(panels), height(panels) - AXIS
    inside = []
    for value in ticks(total):
        x = _percent(value / total)
        inside.append(tag("line", x1=x, x2=x, y1=0.0, y2=low + 4, stroke=GREY, stroke_opacity=0.3))
        anchor = "start" if value == 0 else "end" if value > 0.97 * total else "middle"
        inside.append(tag("text", quantity(value, "s"), x=x, y=low + 17, font_size=11, text_anchor=anchor))
    if any(one["bars"] for one in panels):
        yield tag("g", *inside, cls="mw-ticks", data_foot=low + 4)


def ticks(total: float, most: int = 6) -> list[float]:
    """Round values from 0 on, at most so many."""
    step = next(
        step * 10.0**power for power in range(-12, 6) for step in (1, 2, 5) if total <= most * step * 10.0**power
    )
    return [n * step for n in range(int(total / step + 1e-9) + 1)]


def _ground(one: Facts, top: float) -> Iterator[str]:
    for row, y in _places(one, top).items():
        yield tag("rect", x=0, y=y, width="100%", height=ROW, fill=GREY, fill_opacity=0.1, data_row=row)


def _bands(one: Facts, top: float, total: float) -> Iterator[str]:
    """Light bands through all rows while a device waits."""
    low = top + panel_height(one["rows"]) - GAP
    for bar in one["bars"]:
        if bar["kind"] == "wait" and bar["share"] > 0.99:
            y = top + HEAD + ROW
            yield tag("rect", x=_percent(bar["start"] / total), y=y, height=low - y, fill=LINKS, fill_opacity=0.4,
                      width=_percent((bar["end"] - bar["start"]) / total))  # fmt: skip


def _bar(one: Facts, bar: Facts, number: int, top: float, total: float, titles: bool) -> str:
    x, wide = bar["start"] / total, (min(bar["end"], total) - bar["start"]) / total
    colours, ys = axis_colours(one["rows"][1:]), _places(one, top)
    inside = [tag("title", html.escape(bar_text(one, bar)))] if titles else []
    for row, part in bar["places"]:
        if row not in ys:
            continue
        y, tall = (ys[row], ROW) if part == FULL else (ys[row] + (0 if part == UPPER else ROW / 2), ROW / 2)
        fill = "url(#mwWait)" if bar["kind"] == "wait" else colours.get(row, COMPUTE_COLOUR)
        filled = tall * bar["share"]
        y = y if bar["kind"] == "wait" else y + tall - filled  # waits hang from above, all else stands below
        inside.append(tag("rect", x=_percent(x), y=y + 1, width=_percent(wide), height=max(filled - 2, 1.0), fill=fill,
                          stroke=GREY, stroke_width=0.6, cls="mw-mark"))  # fmt: skip
    if (words := bar_words(bar)) and wide > (LEAST if titles else LEAST_ZOOMED):
        inside.append(_written(words, x, wide, ys[COMPUTE]))
    return tag(
        "g", *inside, cls="mw-bar", data_bar=number, data_kind=bar["kind"], data_name=bar["name"],
        data_panel=one["kind"],
        data_row=bar["places"][0][0] if bar["places"] else None, data_start=f"{bar['start']:.6g}",
        data_seconds=f"{bar['busy']:.6g}", data_exposed=f"{bar['exposed']:.6g}",
        data_zoom="layer" if bar["kind"] == "loop" else None,
    )  # fmt: skip


def _written(words: str, x: float, wide: float, y: float) -> str:
    """Words on a bar, cut at its end."""
    inner = tag("text", html.escape(words), x=4, y=ROW / 2 + 4, font_size=11, fill="#111", cls="mw-on-bar")
    return tag("svg", inner, x=_percent(x), y=y, width=_percent(wide), height=ROW, pointer_events="none")
