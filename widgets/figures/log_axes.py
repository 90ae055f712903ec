"""Axes by powers of ten as SVG: the grounds on which rooflines and frontiers are drawn.

    >>> axes = LogAxes((1, 1e4), (1e9, 1e15), "FLOPs a byte of HBM", "FLOP/s")
    >>> axes.x(1), axes.x(1e4)
    (58.0, 408.0)

Text takes the page's colour. Ranges are given, so a picture stands still while a slider moves what lies on it. Next
file to read: `labels`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mtfcore.numbers import quantity
from widgets.figures.svg import tag, text

GREY = "#808080"
Range = tuple[float, float]


@dataclass(frozen=True)
class LogAxes:
    """A chart's ground: values to places, ticks, titles, and the clip for what lies on it."""

    x_range: Range
    y_range: Range
    x_title: str
    y_title: str
    x_unit: str = ""
    y_unit: str = ""
    width: float = 420.0
    height: float = 300.0
    left: float = 58.0
    right: float = 12.0
    top: float = 26.0
    bottom: float = 38.0

    def x(self, value: float) -> float:
        """The place of a value from left to right; beyond the range it stays at the rim."""
        return self.left + _share(value, self.x_range) * (self.width - self.right - self.left)

    def y(self, value: float) -> float:
        """The place of a value from the bottom up; beyond the range it stays at the rim."""
        return self.height - self.bottom - _share(value, self.y_range) * (self.height - self.bottom - self.top)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """A line through values, as the data of one path."""
        return "M" + "L".join([f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points])

    def ground(self, title: str) -> tuple[str, ...]:
        """Title, grid, ticks and the axes' own titles."""
        return _ground(self, title)

    def draw_ground(self, title: str) -> Iterator[str]:
        """The parts of the ground, drawn anew."""
        low, high = self.height - self.bottom, self.top
        yield text(title, 4, 14, self.width - 4, 12, font_weight="bold")
        for value in ticks(self.x_range):
            yield tag("path", d=f"M{self.x(value):.1f} {low}V{high}", stroke=GREY, stroke_opacity=0.25)
            words = quantity(value, self.x_unit)
            at = min(self.x(value), self.width - 3.2 * len(words))  # the last one stays whole
            yield text(words, at, low + 13, 0, 11, text_anchor="middle")
        for value in ticks(self.y_range):
            yield tag("path", d=f"M{self.left} {self.y(value):.1f}H{self.width - self.right}", stroke=GREY,
                      stroke_opacity=0.25)  # fmt: skip
            yield text(quantity(value, self.y_unit), self.left - 5, self.y(value) + 3.5, 0, 11, text_anchor="end")
        yield text(self.x_title, (self.left + self.width) / 2, self.height - 8, 0, 11, text_anchor="middle")
        turn = f"rotate(-90 10 {(low + high) / 2:.0f})"
        yield text(self.y_title, 10, (low + high) / 2, 0, 11, text_anchor="middle", transform=turn)

    def svg(self, *inside: str, label: str, **attributes: object) -> str:
        """The whole chart."""
        return tag(
            "svg", *inside, cls="mw-chart", viewBox=f"0 0 {self.width:.0f} {self.height:.0f}", width=self.width,
            height=self.height, role="img", aria_label=label, fill="currentColor", font_family="sans-serif",
            xmlns="http://www.w3.org/2000/svg", **attributes,
        )  # fmt: skip


def _share(value: float, ends: Range) -> float:
    if not value > 0:
        return 0.0
    low, high = _logs(ends)
    return min(max((math.log10(value) - low) / (high - low), 0.0), 1.0)


@functools.lru_cache(maxsize=64)
def _ground(axes: LogAxes, title: str) -> tuple[str, ...]:
    """A ground stays while a slider moves what lies on it, so it is drawn once."""
    return tuple(axes.draw_ground(title))


@functools.lru_cache(maxsize=256)
def _logs(ends: Range) -> tuple[float, float]:
    return math.log10(ends[0]), math.log10(ends[1])


def ticks(ends: Range) -> list[float]:
    """Powers of ten within a range, with 2 and 5 between them where there are few, every second one where many."""
    low, high = math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1]))
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    every = 1 if high - low <= 8 else 2
    found = [step * 10.0**power for power in range(low, high + 1, every) for step in steps]
    return [value for value in found if ends[0] * 0.999 <= value <= ends[1] * 1.001]


def around(values: Sequence[float], room: float = 1.15) -> Range:
    """A range that holds all values and ends at 1, 2 or 5 times a power of ten."""
    known = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    return _snap(min(known) / room, down=True), _snap(max(known) * room, down=False)


def _snap(value: float, down: bool) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    steps = [step * power for step in (1, 2, 5, 10)]
    if down:
        return max(step for step in steps if step <= value * 1.000001)
    return min(step for step in steps if step >= value * 0.999999)
