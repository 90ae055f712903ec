"""Grids of values as HTML: before on the left, after on the right, one card a device.

Blue shades are positive, grey ones negative, and the numbers stand in them, so nothing is said by colour alone.
Next file to read: `../views/held_view`.
"""

from __future__ import annotations

import math
from html import escape

from widgets.figures.program import Facts
from widgets.theme import MEMORY

NEGATIVE = "#8C8C8C"
STRENGTH = 0.6  # the strongest shade; text stays readable on it, white and black alike


def held_html(facts: Facts) -> str:
    """All cards of a step."""
    kind = "mw-side" if facts["collective"] else "mw-alone"
    cards = "".join(_card(each, each["device"] == facts["device"]) for each in facts["devices"])
    note = f'<div class="mw-held-note">{escape(facts["note"])}</div>' if facts["note"] else ""
    return f'{note}<div class="mw-cards {kind}">{cards}</div>'


def _card(device: Facts, chosen: bool) -> str:
    before = "".join(_grid(each, "before") for each in device["before"])
    after, mark = _grid(device["after"], "after"), " mw-chosen" if chosen else ""
    return (
        f'<div class="mw-card{mark}" data-card="{device["device"]}">'
        f'<div class="mw-card-head">{escape(device["title"])}</div>'
        f'<div class="mw-flow"><div class="mw-before">{before}</div>'
        f'<span class="mw-to" aria-hidden="true">→</span>{after}</div></div>'
    )


def _grid(tensor: Facts, when: str) -> str:
    rows = "".join(f"<tr>{''.join(_cell(word, tensor['largest']) for word in row)}</tr>" for row in tensor["rows"])
    addend = f'<div class="mw-addend">{escape(tensor["sum"])}</div>' if tensor["sum"] else ""
    return (
        f'<div class="mw-grid" data-when="{when}" data-name="{escape(tensor["name"])}">'
        f'<div class="mw-part" title="{escape(tensor["text"])}"><em>{escape(tensor["name"])}</em> {when}: '
        f"{escape(tensor['part'])}</div>{addend}<table>{rows}</table></div>"
    )


def _cell(word: str, largest: float) -> str:
    value = float(word)
    if not math.isfinite(value) or not largest or not value:
        return f"<td>{word}</td>"
    strength = round(STRENGTH * (0.1 + 0.9 * abs(value) / largest) * 255)
    return f'<td style="background:{MEMORY if value > 0 else NEGATIVE}{strength:02x}">{word}</td>'
