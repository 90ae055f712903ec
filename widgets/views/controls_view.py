"""One anywidget for a whole row of controls, so that a dragged slider is one message each way.

    view = ControlsView()
    view.show([IntBox("rows", 4), Choice("dtype", "bf16", options=(("bf16", "bf16"), ("f32", "f32")))])
    view.on_edit(lambda values, released: print(values))     # {'rows': 8}, False while dragging

The page keeps what it has sent until the kernel acknowledges it, so a slow kernel neither loses an edit of another
control nor pulls a slider back under the hand. Next file to read: `status_view`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import anywidget
import traitlets as t

from widgets.controls import Control
from widgets.views.messages import following
from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent


class ControlsView(anywidget.AnyWidget):
    """`row` goes to the page; `edits` come from it: values by name, a number to acknowledge, and whether released."""

    _esm = script("make.js", "controls_view.js")
    _css = HERE / "frame.css"
    question = t.Unicode().tag(sync=True)
    row = t.Dict({"items": [], "seen": 0}).tag(sync=True)
    edits = t.Dict({"number": 0, "released": True, "values": {}}).tag(sync=True, echo_update=False)  # the row answers
    progress = t.Dict({"busy": False, "done": 0, "total": 1, "text": ""}).tag(sync=True)

    def show(self, controls: Sequence[Control]) -> None:
        """Draw these controls, and acknowledge all edits so far."""
        self.row = {"items": [control.spec() for control in controls], "seen": self.edits.get("number", 0)}

    def on_edit(self, handle: Callable[[dict[str, Any], bool], None]) -> None:
        """Call `handle(values, released)` for each message of edits."""
        self.observe(lambda change: handle(change.new.get("values", {}), bool(change.new.get("released"))), "edits")

    def press(self, values: dict[str, Any], released: bool = True) -> None:
        """What the page does when a hand moves something; for tests without a page."""
        self.edits = following(self.edits, released=released, values=values)
