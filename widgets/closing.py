"""Closing widgets with all that belongs to them, so that none of it stays in a notebook's saved state.

    close_all(self.charts, self.below)

A widget's layout, and its style where it has one, are models of their own. Next file to read: `frame`.
"""

from __future__ import annotations

import ipywidgets


def close_all(*parts: ipywidgets.Widget) -> None:
    """Close each with its style and its layout."""
    for part in parts:
        for own in (getattr(part, "style", None), getattr(part, "layout", None), part):
            if own is not None:
                own.close()
