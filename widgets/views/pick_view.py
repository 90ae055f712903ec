"""A picture made in Python in which things can be picked: points of a chart, rows of a list.

    view = PickView(label="plans")
    view.on_pick(lambda value: print(value))
    view.show('<svg …><g data-pick="v4:4x4x4" tabindex="0" role="button">…</g></svg>')

What carries `data-pick` answers to a click, and to Enter or Space when it has the focus, which a redraw leaves where
it was. One message a change. Text from outside must be escaped by the one who draws. Next file to read:
`../figures/log_axes`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import anywidget
import traitlets as t

from widgets.views.messages import following
from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent
STYLE = (HERE / "pick_view.css").read_text(encoding="utf-8")


def still_picks(html: str) -> str:
    """The same picture as plain HTML, in which nothing can be picked."""
    return f'<style>{STYLE}</style><div class="mw-picks">{html}</div>'


class PickView(anywidget.AnyWidget):
    """`html` goes to the page; `picked` comes from it: a number that grows, and what the part's `data-pick` says."""

    _esm = script("patch.js", "pick_view.js")
    _css = HERE / "pick_view.css"
    html = t.Unicode().tag(sync=True)
    label = t.Unicode("picture").tag(sync=True)
    picked = t.Dict({"number": 0, "value": ""}).tag(sync=True)

    def show(self, html: str) -> None:
        """Draw this."""
        self.html = html

    def on_pick(self, handle: Callable[[str], None]) -> None:
        """Call `handle(value)` whenever a reader picks something."""
        self.observe(lambda change: handle(str(change.new.get("value", ""))), "picked")

    def pick(self, value: str) -> None:
        """What the page does when a hand picks something; for tests without a page."""
        self.picked = following(self.picked, value=value)
