"""A compiled timeline as plain data for the picture: panels on one time axis, each with rows, bars and what hides them.

    >>> one = panel("plain", line)                       # line: mtfcore.compiling.timeline.Timeline
    >>> one["rows"], one["bars"][0]["step"]
    (['compute', 'x', 'y', 'z'], '17.17')

A mesh axis is one row; what goes one way only takes the upper (→) or the lower (←) half of it. Origin of all seconds:
modelled from compiled schedule. Next file to read: `timeline_svg`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtfcore.compiling.timeline import ARROWS, COMPUTE, Bar, Timeline

Facts = dict[str, Any]
FULL, UPPER, LOWER = "", "→", "←"  # which part of its row a bar takes


def panel(kind: str, line: Timeline, say: Callable[[str], str] = str) -> Facts:
    """Everything that the picture, the sentence and the table need of one timeline; `say` words a step of the plan."""
    rows = list(dict.fromkeys(_row(lane) for lane in line.lanes))
    order = sorted(range(len(line.bars)), key=lambda n: (line.bars[n].start_seconds, n))
    return {
        "kind": kind, "which": line.which, "program": line.program, "topology": line.topology, "rows": rows,
        "seconds": line.seconds, "turns": line.turns, "compute": line.took.compute_seconds,
        "links": line.took.link_seconds, "exposed": line.took.exposed_link_seconds, "whole": line.whole.seconds,
        "whole_compute": line.whole.compute_seconds, "whole_links": line.whole.link_seconds,
        "whole_exposed": line.whole.exposed_link_seconds, "bars": [_bar(line, line.bars[n], say) for n in order],
    }  # fmt: skip


def empty(kind: str, rows: Sequence[str], says: str) -> Facts:
    """A panel of which there is nothing yet, or nothing at all; it keeps its place."""
    return {"kind": kind, "rows": list(rows), "bars": [], "says": says, "seconds": 0.0}


def _row(lane: str) -> str:
    return lane.rstrip("".join(ARROWS.values())).rstrip()


def _bar(line: Timeline, bar: Bar, say: Callable[[str], str]) -> Facts:
    hides = [other.name for other in line.hidden_by(bar)[:2]]
    return {
        "kind": bar.kind, "name": bar.name, "step": bar.step, "words": say(line.words(bar)),
        "places": places(bar.lanes), "start": bar.start_seconds, "end": bar.end_seconds, "busy": bar.seconds,
        "exposed": bar.exposed_seconds, "cycles": bar.cycles, "parts": bar.parts, "share": bar.share,
        "hidden_by": hides,
    }  # fmt: skip


def places(lanes: Sequence[str]) -> list[tuple[str, str]]:
    """(row, part of it) of each lane; both directions of an axis are its whole row."""
    found: dict[str, str] = {}
    for lane in lanes:
        row, way = _row(lane), lane.removeprefix(_row(lane)).strip()
        found[row] = FULL if row in found else way
    return list(found.items())


def span(panels: Sequence[Facts]) -> float:
    """The length of the common time axis."""
    return max((one["seconds"] for one in panels), default=0.0) or 1.0


def bars_of(panels: Sequence[Facts]) -> list[tuple[Facts, Facts]]:
    """(panel, bar) of all panels, as the picture numbers them."""
    return [(one, bar) for one in panels for bar in one["bars"]]


def find(panels: Sequence[Facts], kind: str) -> Facts | None:
    """The panel of a schedule, where it has bars."""
    return next((one for one in panels if one["kind"] == kind and one["bars"]), None)


def longest(one: Facts, most: int = 1) -> list[Facts]:
    """What computes longest."""
    own = [bar for bar in one["bars"] if bar["kind"] == COMPUTE]
    return sorted(own, key=lambda bar: -bar["busy"])[:most]


def waits_on(one: Facts) -> Mapping[str, float]:
    """The mesh axes whose links are waited for, and how long."""
    found: dict[str, float] = {}
    for bar in one["bars"]:
        for row, _ in bar["places"]:
            if row != COMPUTE and bar["exposed"]:
                found[row] = found.get(row, 0.0) + bar["exposed"]
    return found
