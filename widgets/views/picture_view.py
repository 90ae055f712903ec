"""A picture made in Python as HTML or SVG, live: one message a change.

    view = PictureView(label="the iteration space")
    view.show("<svg …>")

For pictures that nothing in the page has to react to; it follows the theme where the picture uses `currentColor`.
Text from outside must be escaped by the one who draws. Next file to read: `../explorers/iteration_space`.
"""

from __future__ import annotations

import pathlib

import anywidget
import traitlets as t

from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent
STYLE = (HERE / "picture_view.css").read_text(encoding="utf-8")


class PictureView(anywidget.AnyWidget):
    """`html` goes to the page."""

    _esm = script("make.js", "patch.js", "picture_view.js")
    _css = HERE / "picture_view.css"
    html = t.Unicode().tag(sync=True)
    label = t.Unicode("picture").tag(sync=True)

    def show(self, html: str) -> None:
        """Draw this."""
        self.html = html
