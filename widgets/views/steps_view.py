"""A program's steps, live: a list to walk with the arrow keys, the mouse or two buttons, and totals beside it.

    view = StepsView()
    view.show(compared(facts, other, search=False), step=3)
    view.step                    # goes both ways

The rows are made in Python (`figures/program_html`), so the still picture in the file is the same picture. `source`
is sent only while its fold is open. Next file to read: `held_view`.
"""

from __future__ import annotations

import pathlib

import anywidget
import traitlets as t

from widgets.figures.program import Facts
from widgets.figures.program_html import steps_html, totals_html
from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent
STYLE = (HERE / "steps_view.css").read_text(encoding="utf-8")


class StepsView(anywidget.AnyWidget):
    """`drawing` goes to the page in one message; `step` and `unfolded` come back."""

    _esm = script("make.js", "patch.js", "steps_view.js")
    _css = HERE / "steps_view.css"
    drawing = t.Dict({"steps": "", "totals": "", "count": 0}).tag(sync=True)
    step = t.Int(0).tag(sync=True)
    ran = t.Bool(False).tag(sync=True)
    unfolded = t.Bool(False).tag(sync=True)
    source = t.Unicode().tag(sync=True)

    def show(self, facts: Facts, step: int) -> None:
        """Draw these steps and choose one; nothing is sent for what has not changed."""
        with self.hold_sync():
            self.drawing = {"steps": steps_html(facts), "totals": totals_html(facts), "count": len(facts["steps"])}
            self.step = step


def still_steps(facts: Facts) -> str:
    """The same picture as plain HTML."""
    return (
        f'<style>{STYLE}</style><div class="mw-program"><div class="mw-steps">{steps_html(facts)}</div>'
        f'<div class="mw-totals">{totals_html(facts)}</div></div>'
    )
