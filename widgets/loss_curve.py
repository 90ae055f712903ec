"""The loss of a training run, drawn while it trains.

    curve = LossCurve(level=3.14, level_name="frequencies of bytes only")
    for event in curve.follow(trainer.run(100)):        # hands every event on; draws at most ten times a second
        ...
    curve.losses                                          # all of them, also if the run was stopped

It is one output that is replaced in place: it moves while the cell runs, needs no widget, and stays in the file when
nothing is alive behind it. Losses are real values of the run; the horizontal axis counts steps, never seconds, since
time on simulated devices is no speed of hardware. Lesson 06 uses it. Next file to read: `static`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from widgets.figures.chart_svg import chart_svg
from widgets.numbers import count
from widgets.static import StillPage

PAUSE_SECONDS = 0.1  # between two drawings; a page does not throttle what the kernel sends


class LossCurve:
    """Losses so far, with a level to compare with, and the picture of them."""

    def __init__(self, level: float | None = None, level_name: str = "", unit: str = "nats a token") -> None:
        self.level, self.level_name, self.unit = level, level_name, unit
        self.losses: list[float] = []
        self._page, self._drawn = StillPage(), -math.inf

    def follow(self, events: Iterable[Any]) -> Iterator[Any]:
        """The same events, each drawn; whatever ends the loop, the last picture shows all of them."""
        try:
            for event in events:
                self.losses.append(event.loss)
                if time.monotonic() - self._drawn > PAUSE_SECONDS:
                    self.draw()
                yield event
        finally:
            self.draw()

    def draw(self) -> None:
        """Put the picture into the running cell's output, or replace it there."""
        self._drawn = time.monotonic()
        (self._page.refresh if self._page.shown else self._page.show)(self.html())

    def html(self) -> str:
        """The picture and one sentence."""
        style = "<style>.mw-curve svg{max-width:640px;width:100%;height:auto}</style>"
        return f'<div class="mw-curve">{style}{chart_svg(self.figure())}<p>{escape(self.sentence())}</p></div>'

    def sentence(self) -> str:
        """Where the run stands, in words."""
        if not self.losses:
            return "No step is finished yet."
        first, last = self.losses[0], self.losses[-1]
        return f"After {count(len(self.losses), 'step')}: {last:.2f} {self.unit} (measured), at first {first:.2f}."

    def figure(self) -> dict[str, Any]:
        """As plotly takes it, with ranges and ticks."""
        finite = [loss for loss in (*self.losses, self.level) if loss is not None and math.isfinite(loss)]
        steps, most, least = max(len(self.losses), 10), max(finite, default=1.0), min(0.0, *finite, 0.0)
        most = most if most > 1e-9 else 1.0  # an axis needs a length, also where every loss is zero
        data = [_line(range(1, len(self.losses) + 1), self.losses, "loss")]
        if self.level is not None:
            data.append({**_line((0, steps), (self.level,) * 2, self.level_name), "line": {"dash": "dash"}})
        y_ticks, x_ticks = _ticks(most), _ticks(steps)
        layout = {
            "title": "Loss of each step's batch, before its update",
            "xaxis": {"title": "steps", "range": [0, steps], **_named(x_ticks)},
            "yaxis": {"title": self.unit, "range": [least, max(most * 1.05, y_ticks[-1])], **_named(y_ticks)},
        }
        return {"data": data, "layout": layout}


def _line(x: Iterable[float], y: Sequence[float], name: str) -> dict[str, Any]:
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(b)]  # a loss that overflowed has no place
    return {"type": "scatter", "mode": "lines", "x": [a for a, _ in points], "y": [b for _, b in points], "name": name}


def _ticks(most: float) -> list[float]:
    """Four to nine round numbers from 0 up to `most`."""
    power = 10.0 ** math.floor(math.log10(max(most, 1e-9)))
    step = next(power * part for part in (0.2, 0.5, 1.0, 2.0) if most / (power * part) < 9)
    return [n * step for n in range(int(most / step + 1e-9) + 1)]


def _named(ticks: Sequence[float]) -> dict[str, list[Any]]:
    return {"tickvals": list(ticks), "ticktext": [f"{tick:g}" for tick in ticks]}
