"""A timeline, live: point at a bar, or walk with the arrow keys, and read it; zoom into the time axis.

    view = TimelineView()
    view.on_zoom(lambda which: print(which))         # a loop was opened: "layer"
    view.show(panels)

Bars are drawn in Python (`figures/timeline_svg`), so the still picture in the file is the same drawing; what each says
comes along, so that reading takes no message. Next file to read: `timeline_view.js`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence

import anywidget
import traitlets as t

from widgets.figures.timeline import Facts, bars_of
from widgets.figures.timeline_svg import bars_svg, labels_svg
from widgets.figures.timeline_words import bar_text
from widgets.numbers import tagged_html
from widgets.views.messages import following
from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent
STYLE = (HERE / "timeline_view.css").read_text(encoding="utf-8")
HINT = (
    "Point at a bar to read it, or walk with the arrow keys; + and − zoom, 0 fits. Hatched: waiting for links; "
    "→ and ←: one way round the axis."
)


class TimelineView(anywidget.AnyWidget):
    """`drawing` goes to the page in one message; `opened` comes from it: a number that grows, and what was opened."""

    _esm = script("make.js", "timeline_view.js")
    _css = HERE / "timeline_view.css"
    drawing = t.Dict({"bars": "", "labels": "", "says": [], "hint": "", "subject": ""}).tag(sync=True)
    opened = t.Dict({"number": 0, "value": ""}).tag(sync=True)

    def show(self, panels: Sequence[Facts], subject: str = "") -> None:
        """Draw these; nothing is sent where nothing has changed. Another subject is shown whole, without zoom."""
        says = [tagged_html(bar_text(one, bar)) for one, bar in bars_of(panels)]
        drawn = {"bars": bars_svg(panels), "labels": labels_svg(panels)}
        self.drawing = {**drawn, "says": says, "hint": HINT, "subject": subject}

    def on_zoom(self, handle: Callable[[str], None]) -> None:
        """Call `handle("layer")` when a reader opens a loop."""
        self.observe(lambda change: handle(str(change.new.get("value", ""))), "opened")

    def open_loop(self, value: str) -> None:
        """What the page does when a hand opens a loop; for tests without a page."""
        self.opened = following(self.opened, value=value)


def still_timeline(panels: Sequence[Facts]) -> str:
    """The same picture as plain HTML; a pointer reads the bars' titles."""
    return (
        f'<style>{STYLE}</style><div class="mw-timeline"><div class="mw-time-side">{labels_svg(panels)}</div>'
        f'<div class="mw-time-scroll"><div class="mw-time-wide">{bars_svg(panels, True)}</div></div></div>'
    )
