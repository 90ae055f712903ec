"""Bars from left to right as SVG: parts on one line, a label before and words behind each, a limit across all.

    >>> bar = Bar("weights", [Part(8e9, "#0B4F79", "weights")], "7.45 GiB")
    >>> bars_svg("Memory (modelled)", [bar], top=32e9, limit=(32e9, "HBM"))[:4]
    '<svg'

A bar too long for its chart is cut at the rim, and its words still say how long it is. What can be picked carries
`pick`, and an arrow where it is the one picked; a star before a label is the best, one on a bar's line a measured time.
Colour never stands alone: each part has its words.
Next file to read: `plans`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from widgets.figures.log_axes import GREY
from widgets.figures.on_device import SPIKE, device_mark
from widgets.figures.svg import tag, text

WIDTH, LEFT, RIGHT, HEAD, ROW = 420.0, 92.0, 84.0, 26.0, 24.0
NUMBER = 50.0  # about as long as a number with its unit is


@dataclass(frozen=True)
class Part:
    """One piece of a bar, and what it is."""

    value: float
    colour: str
    words: str = ""
    inside: str = ""  # written on it where there is room


@dataclass(frozen=True)
class Bar:
    """One line: a label, parts from `start` on, words behind; or a reason where there is nothing to draw."""

    label: str
    parts: tuple[Part, ...] = ()
    says: str = ""
    start: float = 0.0
    pick: str = ""
    chosen: bool = False
    best: bool = False
    reason: str = ""
    hint: str = ""
    measured: dict[str, Any] | None = None  # a device's time, as a star on the same axis


def bars_svg(
    title: str, bars: Sequence[Bar], top: float, limit: tuple[float, str] | None = None, rows: int = 0, name: str = "",
    note: str = "",
) -> str:  # fmt: skip
    """The chart; as high as `rows` bars, however many there are."""
    height = HEAD + ROW * max(rows, len(bars)) + 20
    inside = [text(title, 4, 14, WIDTH - 4, 12, font_weight="bold")]
    for n, bar in enumerate(bars):
        inside.append(_bar(bar, HEAD + ROW * n, top or 1.0))
    if limit is not None:
        inside += _limit(*limit, top or 1.0, HEAD + ROW * len(bars))
    if note:
        inside.append(text(note, 4, height - 6, WIDTH - 8, 11))
    return tag(
        "svg", *inside, cls="mw-chart", viewBox=f"0 0 {WIDTH:.0f} {height:.0f}", width=WIDTH, height=height,
        role="group", aria_label=title, fill="currentColor", font_family="sans-serif", data_chart=name or None,
        xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def _place(value: float, top: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * min(max(value / top, 0.0), 1.0)


def _bar(bar: Bar, y: float, top: float) -> str:
    weight = "bold" if bar.chosen else None
    label = ("★ " if bar.best else "▸ " if bar.chosen and bar.pick else "") + bar.label
    inside = [tag("rect", x=0, y=y, width=WIDTH, height=ROW - 2, fill="transparent", cls="mw-mark")] if bar.pick else []
    inside.append(text(label, LEFT - 6, y + 15, LEFT - 8, 11.5, text_anchor="end", font_weight=weight))
    if bar.reason:
        inside.append(text(bar.reason, LEFT, y + 15, WIDTH - LEFT - 4, 11, font_style="italic"))
    else:
        (end, drawn), says = _parts(bar, y, top), bar.says
        inside += drawn
        if bar.measured:
            at = _place(bar.measured["seconds"], top)
            inside.append(device_mark(bar.measured, at, y + ROW / 2 - 1))
            if end - SPIKE < at < end + SPIKE + NUMBER:  # words do not lie on the star
                end, says = at + SPIKE, f"bar {bar.says}"
        inside.append(text(says, end + 5, y + 15, 0, 11.5, font_weight=weight))
    hint = tag("title", html.escape(bar.hint)) if bar.hint else ""
    total = sum(part.value for part in bar.parts)
    if bar.pick:
        return tag("g", hint, *inside, data_pick=bar.pick, data_value=f"{total:.6g}", tabindex=0, role="button",
                   aria_label=bar.hint or f"{bar.label} {bar.says}", aria_pressed=str(bar.chosen).lower())  # fmt: skip
    return tag("g", hint, *inside, data_bar=bar.label, data_value=f"{total:.6g}")


def _parts(bar: Bar, y: float, top: float) -> tuple[float, list[str]]:
    at, drawn, end = bar.start, [], _place(bar.start, top)
    for part in bar.parts:
        left, end = _place(at, top), _place(at + part.value, top)
        box = tag("rect", tag("title", html.escape(part.words)) if part.words else "", x=left, y=y + 3,
                  width=max(end - left, 0.4), height=ROW - 8, fill=part.colour, stroke=GREY, stroke_width=0.7,
                  data_part=part.words.partition(":")[0] or None, data_value=f"{part.value:.6g}")  # fmt: skip
        drawn.append(box)
        if part.inside and end - left > 6.5 * len(part.inside):
            drawn.append(tag("text", part.inside, x=(left + end) / 2, y=y + 15, font_size=10, fill="#111",
                             text_anchor="middle", cls="mw-on-bar", pointer_events="none"))  # fmt: skip
        at += part.value
    if at > top * 1.0001:
        drawn.append(tag("path", d=f"M{end - 5:.1f} {y + 3}l5 {(ROW - 8) / 2}l-5 {(ROW - 8) / 2}", fill="none",
                         stroke="#111", stroke_width=1.5))  # fmt: skip
    return end, drawn


def _limit(value: float, words: str, top: float, bottom: float) -> Iterator[str]:
    x = _place(value, top)
    yield tag("path", d=f"M{x:.1f} {HEAD - 4}V{bottom}", stroke="#D55E00", stroke_width=2, stroke_dasharray="6 4")
    yield text(words, x, bottom + 13, 0, 11, text_anchor="end" if x > WIDTH / 2 else "start")


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """Colours and their words, as a line of HTML."""
    marks = "".join(
        f'<span><i style="background:{colour}"></i>{html.escape(words)}</span>' for words, colour in entries
    )
    return f'<div class="mw-legend-line">{marks}</div>'
