"""Values of a run, live: what a chosen device holds before and after the chosen step.

    view = HeldView()
    view.show(held_html(facts), devices=["device 0 (rows 0, cols 0)", ...], device=0, about="values of this run: …")
    view.device                  # goes both ways: the menu, or a click on another device of the group

Next file to read: `../explorers/program`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import anywidget
import traitlets as t

from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent


class HeldView(anywidget.AnyWidget):
    """`shown` goes to the page in one message; `device` goes both ways."""

    _esm = script("make.js", "held_view.js")
    _css = HERE / "held_view.css"
    shown = t.Dict({"html": "", "devices": [], "about": ""}).tag(sync=True)
    device = t.Int(0).tag(sync=True)

    def show(self, html: str, devices: Sequence[str], device: int, about: str) -> None:
        """Show these values and say what they belong to; without devices, only the words."""
        with self.hold_sync():
            self.shown = {"html": html, "devices": list(devices), "about": about}
            self.device = device
