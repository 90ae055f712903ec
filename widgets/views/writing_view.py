"""A conversation as it is written, and what it costs, live: one message a change.

    view = WritingView()
    view.show('<div class="mw-writing-parts">…')

The picture is made in Python (`figures/generate_html`), so the still one is the same. What carries `data-end` keeps its
end in sight while it grows. Text from outside must be escaped by the one who draws. Next file to read:
`../figures/generate_html`.
"""

from __future__ import annotations

import pathlib

import anywidget
import traitlets as t

from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent
STYLE = (HERE / "writing_view.css").read_text(encoding="utf-8")


class WritingView(anywidget.AnyWidget):
    """`html` goes to the page."""

    _esm = script("patch.js", "writing_view.js")
    _css = HERE / "writing_view.css"
    html = t.Unicode().tag(sync=True)
    label = t.Unicode("the conversation, its phases, what was sent, the cache, and times").tag(sync=True)

    def show(self, html: str) -> None:
        """Draw this."""
        self.html = html
