"""The hops of a collective, live: play, pause, step and scrub; messages travel along the links.

    view = TrafficView()
    view.show(traffic_facts("all_gather", (("x", 8),), "ring", 1 << 20), hop=3)
    view.hop                     # goes both ways: slider, arrow keys, buttons, or the kernel

The page gets all steps at once and draws each of them itself, so scrubbing waits for nobody. The drawing it starts
with, the still picture and the saved file are made in Python (`figures/traffic_svg`). Playing stops off screen, and
where the reader's system asks for less motion messages do not travel. Next file to read: `../explorers/traffic`.
"""

from __future__ import annotations

import pathlib
from typing import Any

import anywidget
import traitlets as t

from widgets.figures.traffic import Facts
from widgets.figures.traffic_places import places
from widgets.figures.traffic_svg import REST, THICK, THIN, traffic_svg
from widgets.views.scripts import script

HERE = pathlib.Path(__file__).parent
STYLE = (HERE / "traffic_view.css").read_text(encoding="utf-8")
_SENT = ("steps", "moves", "held", "counts")


class TrafficView(anywidget.AnyWidget):
    """`drawing` and `scale` go to the page; `hop` goes both ways."""

    _esm = script("make.js", "traffic_view.js")
    _css = HERE / "traffic_view.css"
    drawing = t.Dict({"svg": "", "steps": 0, "moves": [], "held": [], "counts": [], "links": []}).tag(sync=True)
    scale = t.Dict({"piece_bytes": 0, "busiest": 1}).tag(sync=True)
    hop = t.Int(0).tag(sync=True)
    _moves: object = None

    def show(self, facts: Facts, hop: int) -> None:
        """Draw these steps and go to one; what has not changed is not sent again."""
        with self.hold_sync():
            if facts["moves"] is not self._moves:  # the same steps are the same object, whatever the bytes
                self._moves, self.drawing = facts["moves"], drawn(facts)
            self.scale = {"piece_bytes": facts["piece_bytes"], "busiest": facts["busiest"]}
            self.hop = hop


def drawn(facts: Facts) -> dict[str, Any]:
    """What the page needs: the picture before the first step, and every step."""
    picture = places(facts)
    cells = picture["cells"]
    look = {"rest": REST, "thin": THIN, "thick": THICK[cells], "cells": cells, "links": picture["links"]}
    return {"svg": traffic_svg(facts, picture, 0), **look, **{name: facts[name] for name in _SENT}}


def still_hops(facts: Facts, hop: int) -> str:
    """The same picture as plain HTML."""
    return f'<style>{STYLE}</style><div class="mw-hop-stage">{_still(facts, hop)}</div>'


def _still(facts: Facts, hop: int) -> str:
    """Of many devices in few elements: a page sanitizes each of them, every time the picture is renewed."""
    picture = places(facts)
    return traffic_svg(facts, picture, hop, together=not picture["cells"])


def saved_hops(facts: Facts, hop: int) -> str:
    """The same picture as one SVG file."""
    return traffic_svg(facts, places(facts), hop)
