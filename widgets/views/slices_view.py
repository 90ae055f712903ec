"""The mesh and its tensors' slices, live: point at a device (or walk with the arrow keys) and see what it holds.

    view = SlicesView()
    view.show(mesh_facts(mesh), [facts(sharding, mesh, "bf16", "x")])
    view.device = 3                      # also set by a click; -1 is none
    view.values = {"device": 3, "tensors": [{"name": "x", "text": "f32[16, 512]", "rows": [["0.1", "0.2"]]}]}

The drawing is made in Python (`figures/slices_svg`) and only shown and marked here, so the still picture in the file
is the same drawing. Ranges are read from the facts. Next file to read: `plot_view`.
"""

from __future__ import annotations

import itertools
import pathlib
import secrets
from collections.abc import Sequence
from typing import Any

import anywidget
import traitlets as t

from widgets.figures.slices import Facts, mesh_facts
from widgets.figures.slices_svg import one_svg, panel
from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent
_numbers = itertools.count()


class SlicesView(anywidget.AnyWidget):
    """`drawing` goes to the page in one message; `device` goes both ways."""

    _esm = script("make.js", "patch.js", "slices_view.js")
    _css = HERE / "slices_view.css"
    drawing = t.Dict({"panels": [], "number": 0}).tag(sync=True)
    device = t.Int(-1).tag(sync=True)
    values = t.Dict({}).tag(sync=True)

    def __init__(self) -> None:
        super().__init__()
        self._uid = new_uid()  # the same at each drawing, so the page finds what has stayed

    def show(self, mesh: Facts, tensors: Sequence[Facts]) -> None:
        """Draw a mesh and tensors on it."""
        if self.device >= len(mesh["holds"]):
            self.device = -1
        panels = drawn(mesh, tensors, self.drawing["panels"], self._uid)
        self.drawing = {"panels": panels, "number": next(_numbers)}


def new_uid() -> str:
    """A beginning for names of patterns; not a count: notebooks of other kernels stand in the same page."""
    return f"mw{secrets.token_hex(4)}"


def drawn(mesh: Facts, tensors: Sequence[Facts], before: Any = (), uid: str = "") -> list[dict[str, Any]]:
    """The panels: mesh first; each with its SVG, its grid, and what the page needs of the facts.

    A panel that stands there already, with the same facts, is taken from `before` as it is: nobody draws it again.
    """
    uid = uid or new_uid()
    kept = itertools.chain(before, itertools.repeat({"facts": None}))
    return [
        old if old["facts"] == facts else {**panel(facts, f"{uid}t{n}", is_mesh=n == 0), "facts": facts}
        for n, (facts, old) in enumerate(zip([mesh, *tensors], kept))
    ]


def still_panels(mesh: Facts, tensors: Sequence[Facts]) -> str:
    """The same drawing as plain HTML."""
    slots = "".join(f'<div class="mw-slot">{each["svg"]}</div>' for each in drawn(mesh, tensors))
    return f'<div class="mw-panels">{slots}</div>'


def saved_svg(mesh: Facts, tensors: Sequence[Facts]) -> str:
    """The same drawing as one SVG file."""
    return one_svg([each["svg"] for each in drawn(mesh, tensors)])


__all__ = ["SlicesView", "drawn", "mesh_facts", "saved_svg", "still_panels"]
