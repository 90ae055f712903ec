"""A plotly figure as one SVG, made in Python: a live chart that one message moves, and the still one in the file.

    >>> chart_svg({"data": [{"type": "bar", "x": [0], "y": [3]}], "layout": {"yaxis": {"range": [0, 4]}}})[:4]
    '<svg'

It reads what our own charts use: stacked bars, lines with marks, linear axes whose ranges and ticks are given, lines
across, and words at a place. Anything else of plotly's is left out, so a chart that wants a still
picture says its ranges and ticks. Next file to read: `../views/plot_view`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from widgets.figures.log_axes import GREY
from widgets.figures.svg import escaped, tag, text
from widgets.theme import AXES

Facts = Mapping[str, Any]
LEFT, RIGHT, TOP, LEGEND, LINE = 62.0, 12.0, 30.0, 16.0, 12.0


def chart_svg(figure: Facts, width: float = 480.0, height: float = 260.0) -> str:
    """The whole chart; text takes the page's colour."""
    layout, data = figure.get("layout", {}), list(figure["data"])
    x_axis, y_axis = layout.get("xaxis", {}), layout.get("yaxis", {})
    bottom = height - _foot(x_axis)
    x = _scale(x_axis, LEFT, width - RIGHT)
    y = _scale(y_axis, bottom, TOP + LEGEND)
    box = tag("rect", x=LEFT, y=TOP + LEGEND, width=width - RIGHT - LEFT, height=bottom - TOP - LEGEND)
    name = f"mwc{zlib.crc32(str(figure).encode())}"  # of the page, where other charts stand too
    inside = [*_marks(data, layout, x, y), *_across(layout, x, y, width)]
    parts = [
        tag("defs", tag("clipPath", box, id=name)),
        text(_title(layout), LEFT, 14, width - LEFT, 12, font_weight="bold"),
        *_legend(data, width), *_ticks(x_axis, y_axis, x, y, width, bottom),
        tag("g", *inside, clip_path=f"url(#{name})"), *_words(layout, x, y),
    ]  # fmt: skip
    return tag(
        "svg", *parts, cls="mw-chart", viewBox=f"0 0 {width:.0f} {height:.0f}", width=width, height=height, role="img",
        aria_label=_title(layout), fill="currentColor", font_family="sans-serif", xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


Scale = Callable[[float], float]


def _scale(axis: Facts, low: float, high: float) -> Scale:
    """From a value to a place."""
    first, last = axis.get("range", (0, 1))
    return lambda value: low + (high - low) * (value - first) / (last - first)


def _title(layout: Facts) -> str:
    title = layout.get("title", "")
    return _plain(title if isinstance(title, str) else title.get("text", ""))[0]


def _foot(axis: Facts) -> float:
    lines = max((label.count("<br>") + 1 for label in axis.get("ticktext", ("",))), default=1)
    return 8 + LINE * (lines + bool(_title(axis)))


def _legend(data: Sequence[Facts], width: float) -> Iterator[str]:
    named = [trace for trace in data if trace.get("name")]
    for n, trace in enumerate(named):
        left = LEFT + n * (width - LEFT) / max(len(named), 1)
        yield tag("rect", x=left, y=TOP - 7, width=8, height=8, fill=_colour(trace, n), stroke=GREY)
        yield text(trace["name"], left + 12, TOP + 1, (width - LEFT) / len(named) - 14, 10)


def _ticks(x_axis: Facts, y_axis: Facts, x: Scale, y: Scale, width: float, bottom: float) -> Iterator[str]:
    for value, label in zip(y_axis.get("tickvals", ()), y_axis.get("ticktext", ()), strict=False):
        yield tag("path", d=f"M{LEFT} {y(value):.1f}H{width - RIGHT}", stroke=GREY, stroke_opacity=0.3)
        yield text(_plain(label)[0], LEFT - 5, y(value) + 3.5, 0, 10, text_anchor="end")
    for value, label in zip(x_axis.get("tickvals", ()), x_axis.get("ticktext", ()), strict=False):
        for n, line in enumerate(_plain(label)):
            yield text(line, x(value), bottom + 4 + LINE * (n + 0.7), 0, 10, text_anchor="middle")
    yield text(_title(x_axis), (LEFT + width) / 2, bottom + _foot(x_axis) - 4, 0, 10, text_anchor="middle")


def _plain(label: str) -> list[str]:
    """A label's lines without plotly's markup."""
    return label.replace("<b>", "").replace("</b>", "").split("<br>")


def _marks(data: Sequence[Facts], layout: Facts, x: Scale, y: Scale) -> Iterator[str]:
    stacked: dict[float, float] = {}
    for n, trace in enumerate(data):
        if trace.get("type") == "bar":
            yield from _bars(trace, n, stacked if layout.get("barmode") == "stack" else {}, x, y)
        else:
            yield from _line(trace, n, x, y)


def _bars(trace: Facts, n: int, stacked: dict[float, float], x: Scale, y: Scale) -> Iterator[str]:
    half = abs(x(0.35) - x(0))
    for at, value, says in zip(trace["x"], trace["y"], _says(trace), strict=True):
        if value:
            low = stacked.get(at, 0.0)
            stacked[at] = low + value
            top, foot = max(y(low + value), -1e4), min(y(low), 1e4)
            yield tag(
                "rect", says, x=x(at) - half, y=top, width=2 * half, height=foot - top, fill=_colour(trace, n),
                stroke=GREY, data_value=repr(value), data_trace=n,
            )  # fmt: skip


def _says(trace: Facts) -> Iterator[str]:
    """What is said of each mark under the pointer; plotly calls it hovertext."""
    words = trace.get("hovertext") or [""] * len(trace["x"])
    return (tag("title", escaped(each)) if each else "" for each in words)


def _line(trace: Facts, n: int, x: Scale, y: Scale) -> Iterator[str]:
    points = [(x(a), y(b)) for a, b in zip(trace["x"], trace["y"], strict=True)]
    if "lines" in trace.get("mode", "lines") and len(points) > 1:
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        dash = "5 4" if trace.get("line", {}).get("dash") else None
        yield tag("path", d=path, fill="none", stroke=_colour(trace, n), stroke_width=2, stroke_dasharray=dash)
    if "markers" in trace.get("mode", "lines"):
        symbols = trace.get("marker", {}).get("symbol", "circle")
        symbols = [symbols] * len(points) if isinstance(symbols, str) else symbols
        for (a, b), symbol, says in zip(points, symbols, _says(trace), strict=True):
            hollow = {"fill": "none", "stroke": _colour(trace, n), "stroke_width": 2, "pointer_events": "all"}
            how = hollow if "open" in symbol else {"fill": _colour(trace, n)}
            yield _star(a, b, says, how) if "star" in symbol else tag("circle", says, cx=a, cy=b, r=3.5, **how)


def _star(x: float, y: float, says: str, how: Facts) -> str:
    """Five spikes, with an edge that is seen on a bar of any colour."""
    turns = [(8.5 if n % 2 == 0 else 3.6, math.pi * n / 5) for n in range(10)]
    path = "L".join(f"{x + r * math.sin(turn):.1f} {y - r * math.cos(turn):.1f}" for r, turn in turns)
    return tag("path", says, d=f"M{path}z", **{"stroke": "#111", **how}, data_star=f"{x:.1f} {y:.1f}")


def _colour(trace: Facts, n: int) -> str:
    found = trace.get("marker", {}).get("color") or trace.get("line", {}).get("color")
    return found if isinstance(found, str) else AXES[n % len(AXES)]


def _across(layout: Facts, x: Scale, y: Scale, width: float) -> Iterator[str]:
    """Lines from side to side (`yref` a value) or from top to bottom."""
    for shape in layout.get("shapes", ()):
        upright = shape["x0"] == shape["x1"] and shape.get("xref", "x") == "x"
        path = f"M{x(shape['x0']):.1f} 0V2000" if upright else f"M{LEFT} {y(shape['y0']):.1f}H{width - RIGHT}"
        yield tag("path", d=path, stroke=shape.get("line", {}).get("color", GREY), stroke_dasharray="6 4", fill="none")


def _words(layout: Facts, x: Scale, y: Scale) -> Iterator[str]:
    anchors = {"left": "start", "right": "end"}
    for each in layout.get("annotations", ()):
        words, anchor = " ".join(_plain(each["text"])), anchors.get(each.get("xanchor", ""), "middle")
        at_x, at_y = x(each["x"]), y(each["y"]) + {"top": 11, "bottom": -3}.get(each.get("yanchor", ""), 4)
        at_y -= each.get("yshift", 0.0)
        turned = f"rotate({each['textangle']} {at_x:.1f} {at_y:.1f})" if each.get("textangle") else None
        if ground := each.get("bgcolor"):
            half = 3.1 * len(words)
            yield tag("rect", x=at_x - half, y=at_y - 10, width=2 * half, height=13, fill=ground)
        colour = each.get("font", {}).get("color")
        anchor = "start" if turned else anchor
        yield text(words, at_x + 4 * bool(turned), at_y, 0, 10, text_anchor=anchor, transform=turned, fill=colour)
