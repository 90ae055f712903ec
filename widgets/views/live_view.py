"""Traffic of a running program, live: bars by axis and by step, and the matrix of pairs.

    view = LiveView()
    view.show(facts, "32 of 96 events; …")      # at most 20 times a second: the run's own pace is the queue's task
    view.pair                                   # [3, 5] when a reader points at a cell or walks there; [] is none

Bars and matrix are made in Python (`figures/live_traffic_html`), so the still picture is the same one.
Next file to read: `../explorers/live_traffic`.
"""

from __future__ import annotations

import pathlib

import anywidget
import traitlets as t

from widgets.figures.live_traffic import Facts
from widgets.figures.live_traffic_html import bars_html, matrix_svg
from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent
STYLE = (HERE / "live_view.css").read_text(encoding="utf-8")


class LiveView(anywidget.AnyWidget):
    """`drawing` goes to the page in one message; `pair` comes back, and `pointed` says what it sent."""

    _esm = script("make.js", "live_view.js")
    _css = HERE / "live_view.css"
    drawing = t.Dict({"bars": "", "matrix": "", "devices": 0, "about": "", "events": 0}).tag(sync=True)
    pair: t.List[int] = t.List(t.Int()).tag(sync=True)
    pointed = t.Unicode().tag(sync=True)

    def show(self, facts: Facts, about: str, pointed: str = "") -> None:
        """Draw what has been sent so far."""
        with self.hold_sync():
            self.drawing = {
                "bars": bars_html(facts), "matrix": matrix_svg(facts), "devices": facts["n_devices"], "about": about,
                "events": facts["events"],
            }  # fmt: skip
            self.pointed = pointed


def still_live(facts: Facts) -> str:
    """The same picture as plain HTML."""
    return (
        f'<style>{STYLE}</style><div class="mw-live-parts"><div class="mw-live-bars">{bars_html(facts)}</div>'
        f'<div class="mw-live-matrix">{matrix_svg(facts)}</div></div>'
    )
