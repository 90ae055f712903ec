"""The traffic of a running program as HTML and SVG: bars by axis, a list of steps, and the matrix of pairs.

    >>> bars_html(live_facts(program, tally))[:25]
    '<div class="mw-live-head">'

Each bar fills towards what is planned. In the matrix a row sends to a column; its colour is the axis along which the
two differ, the stronger the more bytes. One path for each colour and strength, so 64 devices cost few elements.
Next file to read: `../views/live_view`.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import mtfcore as mtf
from widgets.figures.live_traffic import Facts, differ_on
from widgets.figures.program_html import swatch
from widgets.figures.svg import rectangles, tag, text
from widgets.numbers import quantity, tagged_html
from widgets.theme import axis_colours

SIDE, EDGE = 236.0, 26.0  # of the matrix, and of its numbered margin
LEVELS = (0.25, 0.4, 0.6, 0.8, 1.0)  # opacity
MIXED = "#808080"  # for pairs that differ on several axes
_HEADS = ("Sent by one device, by axis:", "By step:")


def bars_html(facts: Facts) -> str:
    """Traffic by axis and by step."""
    colours = axis_colours(axis for axis, _ in facts["mesh"])
    most = max((row["planned"] for row in facts["axes"]), default=0) or 1
    axes = "".join(_axis(row, size, colours, most) for row, (_, size) in zip(facts["axes"], facts["mesh"], strict=True))
    steps = "".join(_step(n, row, colours) for n, row in enumerate(facts["steps"]))
    steps = steps or '<div class="mw-nothing">No collective: nothing is sent.</div>'
    head, by_step = (tagged_html(f"{words} [counted] of planned [modelled]") for words in _HEADS)
    return (
        f'<div class="mw-live-head">{head}</div><div class="mw-live-axes">{axes}</div>'
        f'<div class="mw-live-head">{by_step}</div>'
        f'<div class="mw-live-steps" tabindex="0" role="group" aria-label="traffic by step">{steps}</div>'
    )


def _axis(row: Facts, size: int, colours: dict[str, str], most: float) -> str:
    colour = colours[row["axis"]]
    return (
        f'<div class="mw-live-row" data-live-axis="{escape(row["axis"])}" data-bytes="{row["sent"]}">'
        f"<span>{swatch(colour)}{escape(row['axis'])}:{size}</span>"
        f"{_bar(row, colour, most)}<span>{_of(row)}</span></div>"
    )


def _step(place: int, row: Facts, colours: dict[str, str]) -> str:
    state = "done" if row["events"] == row["expected"] else "now" if row["events"] else "waits"
    marks = "".join(swatch(colours[axis]) for axis in row["axes"])
    times = f" ×{row['times']}" if row["times"] > 1 else ""
    colour = stripes([colours[axis] for axis in row["axes"]])
    counted = {"sent": row["events"], "planned": row["expected"]}
    return (
        f'<div class="mw-live-row mw-{state}" data-live-step="{place}" data-events="{row["events"]}" '
        f'data-bytes="{row["sent"]}"><span>{marks}{escape(row["label"])}{times}</span>'
        f"{_bar(counted, colour, row['expected'])}"
        f"<span>{_of(row)}<br>{row['events']:,} of {row['expected']:,} events</span></div>"
    )


def _bar(row: Facts, colour: str, most: float) -> str:
    room, full = (100 * row[key] / (most or 1) for key in ("planned", "sent"))
    return (
        f'<span class="mw-live-bar"><b style="width:{room:.1f}%"></b>'
        f'<i style="width:{full:.1f}%;background:{colour}"></i></span>'
    )


def stripes(colours: list[str]) -> str:
    """The colours of a step's axes, one below the other."""
    share = 100 / len(colours)
    stops = (f"{colour} {share * n:.0f}% {share * (n + 1):.0f}%" for n, colour in enumerate(colours))
    return f"linear-gradient({', '.join(stops)})" if len(colours) > 1 else colours[0]


def _of(row: Facts) -> str:
    return f"{quantity(row['sent'], 'iB')} of {quantity(row['planned'], 'iB')}"


# ---- the matrix


def matrix_svg(facts: Facts) -> str:
    """Bytes from each device (row) to each device (column)."""
    n = facts["n_devices"]
    pitch = (SIDE - EDGE) / n
    cells = [_path(facts, pitch, *key, pairs) for key, pairs in sorted(grouped(facts).items())]
    frame = tag("rect", cls="mw-frame", x=EDGE, y=EDGE, width=SIDE - EDGE, height=SIDE - EDGE)
    label = f"bytes from each of {n} devices to each, rows send to columns"
    return tag(
        "svg", frame, *cells, *_numbers(n, pitch), tag("g", cls="mw-marks"), viewBox=f"0 0 {SIDE:.0f} {SIDE:.0f}",
        cls="mw-matrix", xmlns="http://www.w3.org/2000/svg", role="img", aria_label=label, data_devices=n,
        data_pairs=len(facts["pairs"]), data_edge=EDGE, width=SIDE, height=SIDE,
    )  # fmt: skip


def grouped(facts: Facts) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """(axis, strength) → the pairs of that colour."""
    mesh = mtf.Mesh([(axis, size) for axis, size in facts["mesh"]])
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for (one, other), sent in facts["pairs"].items():
        strength = min(int(len(LEVELS) * sent / (facts["peak"] or 1)), len(LEVELS) - 1)
        if sent:
            found.setdefault((differ_on(mesh, one, other), strength), []).append((one, other))
    return found


def _path(facts: Facts, pitch: float, axis: str, strength: int, pairs: list[tuple[int, int]]) -> str:
    gap = 1.0 if pitch > 6 else 0.0
    crisp = {} if gap else {"shape_rendering": "crispEdges"}  # or lines show between cells that touch
    boxes = (
        (EDGE + other * pitch + gap / 2, EDGE + one * pitch + gap / 2, pitch - gap, pitch - gap) for one, other in pairs
    )
    colour = axis_colours(name for name, _ in facts["mesh"]).get(axis, MIXED)
    return tag("path", d=rectangles(boxes), fill=colour, opacity=LEVELS[strength], data_axis=axis or "several", **crisp)


def _numbers(n: int, pitch: float) -> Iterator[str]:
    every = next(step for step in (1, 2, 4, 8, 16, 32, 64, 128) if pitch * step >= 20 or step == 128)
    for device in range(0, n, every):
        middle = EDGE + (device + 0.5) * pitch
        yield text(str(device), middle, EDGE - 5, size=10, text_anchor="middle")
        yield text(str(device), EDGE - 5, middle + 3.5, size=10, text_anchor="end")
    yield text("from ↓  to →", 0, 9, size=9)
