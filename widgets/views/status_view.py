"""The line under the picture and the folded details, as one anywidget and one message.

`shown` holds the sentence, its kind (ok, refused, broken), offers to press, and the details' texts. The table can be
long, so it is only made and sent while the details are open (`unfolded`). Next file to read: `saving.js`.
"""

from __future__ import annotations

import pathlib

import anywidget
import traitlets as t

from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent


class StatusView(anywidget.AnyWidget):
    """`shown` goes to the page; `unfolded` and `asked` (an offer, a pasted state, a wish for a file) come back."""

    _esm = script("make.js", "saving.js", "status_view.js")
    _css = HERE / "frame.css"
    shown = t.Dict({"sentence": "", "kind": "ok", "offers": [], "code": "", "state": "", "error": "", "table": ""}).tag(
        sync=True
    )
    unfolded = t.Bool(False).tag(sync=True)
    asked = t.Dict({}).tag(sync=True)
    saved = t.Dict({}).tag(sync=True)
