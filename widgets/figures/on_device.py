"""A measured point as facts, as words, as a row of a table, and as a mark on a chart's own axes.

    >>> facts = point_facts(record)
    >>> point_words(facts)
    '1.2 ms [measured], median of 5, spread 3 %, on 1 × NVIDIA H200'

A point whose settings are no longer those above is grey, and says for which it is. Of one device's share only what
that device did was measured; the links stand beside it, modelled. Next file to read: `svg`.
"""

from __future__ import annotations

import html
from typing import Any

from tpu_runs.records import Record
from widgets.figures.svg import tag, text
from widgets.numbers import count, origin, quantity, tagged_html

Facts = dict[str, Any]
COLOUR, OLD = "#CC79A7", "#A8A8A8"
HALO = "paint-order:stroke;stroke:var(--jp-layout-color0,#fff);stroke-width:3px"  # read over lines of a chart


def point_facts(record: Record, old: str = "") -> Facts:
    """What a chart and a sentence need of a record; `old` names the settings where they are others."""
    share = record.share or {}
    return {
        "seconds": record.median, "low": min(record.seconds), "high": max(record.seconds), "n": len(record.seconds),
        "spread": record.spread or 0.0, "device": record.where.get("device_kind", ""),
        "devices": record.where.get("devices", 1), "share": bool(record.share), "left_out": share.get("left_out", 0),
        "link_seconds": share.get("modelled_link_seconds"), "counts": dict(record.counts), "words": record.words(),
        "params": dict(record.params), "old": old,
    }  # fmt: skip


def point_words(facts: Facts) -> str:
    """In one line: the time, how often, where, what of it."""
    where = f"{facts['devices']} × {facts['device']}"
    share = ""
    if facts["share"]:
        links = facts["link_seconds"]
        beside = f", links beside it {origin(quantity(links, 's'), 'modelled')}" if links is not None else ""
        share = f"; one device's share, {count(facts['left_out'], 'collective')} left out{beside}"
    old = f"; for {facts['old']}" if facts["old"] else ""
    median = f"median of {facts['n']}, spread {100 * facts['spread']:.0f} %"
    return f"{origin(quantity(facts['seconds'], 's'), 'measured')}, {median}, on {where}{share}{old}"


def device_html(facts: Facts | None, what: str, modelled: str = "") -> str:
    """A strip below a picture that has no axis for seconds: what was measured, beside what is modelled."""
    said = tagged_html(point_words(facts)) if facts else "not measured yet: press Run on device"
    state = "none" if facts is None else "old" if facts["old"] else "fresh"
    style = "margin-top:6px;min-height:3em" + (";opacity:.55" if state == "old" else "")
    beside = f"{tagged_html(modelled)}; " if modelled else ""
    title = f' title="{html.escape(facts["words"])}"' if facts else ""
    seconds = f' data-seconds="{facts["seconds"]:.8g}"' if facts else ""
    about = f'class="mw-device" data-device="{state}"{seconds}{title} style="{style}"'
    return f"<div {about}><b>{html.escape(what)}</b>: {beside}{said}</div>"


def device_row(facts: Facts | None, what: str, width: int = 2) -> list[tuple[str, ...]]:
    """A row for the text table, of as many cells as it has; none where nothing was measured."""
    return [(what, f"{point_words(facts)} ({facts['words']})", *[""] * (width - 2))] if facts else []


def device_mark(facts: Facts, x: float, y: float, **data: object) -> str:
    """A star on a chart's own axes, grey where it is old, its provenance on hover."""
    colour = OLD if facts["old"] else COLOUR
    spikes = "".join(
        f"M{x:.1f} {y:.1f}l{dx} {dy}"
        for dx, dy in ((0, -8), (0, 8), (-8, 0), (8, 0), (-5, -5), (5, 5), (-5, 5), (5, -5))
    )
    inside = [
        tag("title", html.escape(f"{'for ' + facts['old'] + ': ' if facts['old'] else ''}{facts['words']}")),
        tag("circle", cx=x, cy=y, r=9.0, fill="transparent"),
        tag("path", d=spikes, stroke="currentColor", stroke_width=3.4, fill="none"),
        tag("path", d=spikes, stroke=colour, stroke_width=2, fill="none"),
    ]
    state, share = "old" if facts["old"] else "fresh", ", a share" if facts["share"] else ""
    inside.append(text(f"measured{share}", x + 10, y + 14, 0, 10, style=HALO))
    return tag("g", *inside, data_device=state, data_seconds=f"{facts['seconds']:.8g}", **data)
