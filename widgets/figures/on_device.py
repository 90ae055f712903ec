"""A measured point as facts, as words, as a row of a table, and as a mark on a chart's own axes.

    >>> facts = point_facts(record)
    >>> point_words(facts)
    '1.2 ms [measured] on 1 × NVIDIA H200, median of 5, spread 3 %, 2026-11-30 11:14 UTC'

A point whose settings are no longer those above is grey, and says for which it is. Of one device's share only what
that device did was measured; the links stand beside it, modelled. A mark can be reached with Tab, and reads its stamp.
Next file to read: `svg`.
"""

from __future__ import annotations

import html
import re
from typing import Any

from tpu_runs.records import Record
from widgets.figures.labels import Labels
from widgets.figures.svg import tag, text
from widgets.numbers import count, origin, quantity, tagged_html
from widgets.theme import GROUND, INK

Facts = dict[str, Any]
COLOUR, OLD, SPIKE = "#CC79A7", "#A8A8A8", 8.0
ASK = "not measured yet: press Run on device"
STRIP = "margin-top:6px"
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
        "when": f"{record.when[:16].replace('T', ' ')} UTC", "made": made_with(record),
    }  # fmt: skip


def made_with(record: Record) -> str:
    """With which JAX, and which of our commits."""
    named = [f"{name} {record.versions[name]}" for name in ("jax", "libtpu") if record.versions.get(name)]
    return ", ".join([*named, *([f"commit {record.commit}"] if record.commit else [])])


def point_words(facts: Facts) -> str:
    """In one line: the time, where, how often, when, what of it, and for which settings if not for these."""
    old = f"; for {facts['old']}" if facts["old"] else ""
    return f"{origin(quantity(facts['seconds'], 's'), 'measured')} on {stamp_words(facts)}{old}"


def stamp_words(facts: Facts) -> str:
    """Where, how often and when a time was taken."""
    median = f"median of {facts['n']}, spread {100 * facts['spread']:.0f} %"
    return f"{facts['devices']} × {facts['device']}, {median}, {facts['when']}{share_words(facts)}"


def share_words(facts: Facts) -> str:
    """What one device's share is without; nothing where all devices ran."""
    if not facts["share"]:
        return ""
    links = facts["link_seconds"]
    beside = f", which take {origin(quantity(links, 's'), 'modelled')}" if links is not None else ""
    return f"; one device's share, without {count(facts['left_out'], 'collective')}{beside}"


def device_html(facts: Facts | None, what: str, modelled: str = "") -> str:
    """Two lines below a picture: what was measured beside what is modelled; where, how often and when."""
    state = "none" if facts is None else "old" if facts["old"] else "fresh"
    if facts is None:
        return f'<div class="mw-device" data-device="{state}" style="{STRIP}"><b>{html.escape(what)}</b>: {ASK}</div>'
    settings = f" ({html.escape(facts['old'])})" if facts["old"] else ""
    number = tagged_html(origin(quantity(facts["seconds"], "s"), "measured"))
    beside = f", {tagged_html(modelled)}" if modelled and not facts["old"] else ""
    about = f'data-seconds="{facts["seconds"]:.8g}" title="{html.escape(facts["words"])}"'
    grey = f"{STRIP};color:var(--jp-ui-font-color2,#666)" if facts["old"] else STRIP
    return (
        f'<div class="mw-device" data-device="{state}" {about} style="{grey}"><b>{html.escape(what)}</b>{settings}: '
        f'<span style="white-space:nowrap">{number}</span>{beside}<br>'
        f"<small>{tagged_html(stamp_words(facts))}</small></div>"
    )


def device_row(facts: Facts | None, what: str, width: int = 2) -> list[tuple[str, ...]]:
    """A row for the text table, of as many cells as it has; none where nothing was measured."""
    if not facts:
        return []
    made = f"; {facts['made']}" if facts["made"] else ""
    return [(what, f"{point_words(facts)}{made}", *[""] * (width - 2))]


def device_mark(facts: Facts, x: float, y: float, labels: Labels | None = None, **data: object) -> str:
    """A star on a chart's own axes, grey where it is old; its words where `labels` has room for them."""
    colour, words = OLD if facts["old"] else COLOUR, mark_words(facts)
    place = labels.place(words, x, y, SPIKE + 2) if labels else None
    spikes = star(x, y)
    inside = [
        tag("title", html.escape(f"{point_words(facts)}; {facts['made']}")),
        tag("circle", cx=x, cy=y, r=SPIKE + 3, fill="transparent", cls="mw-mark"),
        tag("path", d=spikes, stroke="currentColor", stroke_width=3.4, fill="none"),
        tag("path", d=spikes, stroke=colour, stroke_width=2, fill="none"),
    ]
    if place:
        inside.append(text(words, *place, 0, 10, style=HALO))
    state = "old" if facts["old"] else "fresh"
    return tag("g", *inside, data_device=state, data_seconds=f"{facts['seconds']:.8g}", tabindex=0, role="img",
               aria_label=point_words(facts), **data)  # fmt: skip


def mark_words(facts: Facts) -> str:
    """What stands beside a mark."""
    which = "of other settings" if facts["old"] else "a share" if facts["share"] else ""
    return f"measured{', ' if which else ''}{which}"


def star(x: float, y: float, spike: float = SPIKE) -> str:
    """Eight spikes around a place, as the data of a path."""
    slant = spike * 0.63
    ends = [(0, -spike), (0, spike), (-spike, 0), (spike, 0)]
    ends += [(a, b) for a in (-slant, slant) for b in (-slant, slant)]
    return "".join(f"M{x:.1f} {y:.1f}l{a:.1f} {b:.1f}" for a, b in ends)


def stamped(svg: str, facts: Facts | None, what: str) -> str:
    """A saved picture with what was measured in a line below it."""
    size = re.match(r'<svg[^>]*? width="([\d.]+)"[^>]*? height="([\d.]+)"', svg)
    if not facts or not size:
        return svg
    width, height = map(float, size.groups())
    words, state = f"{what}: {point_words(facts)}", "old" if facts["old"] else "fresh"
    line = text(words, 6, height + 14, width - 12, 11, fill=INK, font_family="sans-serif")
    ground = tag("rect", width=width, height=height + 22, fill=GROUND)
    return tag("svg", ground, svg, line, width=width, height=height + 22, data_device=state,
               xmlns="http://www.w3.org/2000/svg")  # fmt: skip
