"""The page's half of a view, out of several files: what more than one view does stands in a file of its own.

    class StepsView(anywidget.AnyWidget):
        _esm = script("make.js", "patch.js", "steps_view.js")

A view's script is sent as one text, so parts are put one before the other. Next file to read: `make.js`.
"""

from __future__ import annotations

import pathlib

HERE = pathlib.Path(__file__).parent


def script(*names: str) -> str:
    """The texts of these files of this folder, in order."""
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in names)
