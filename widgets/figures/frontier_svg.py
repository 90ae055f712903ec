"""The frontier of one phase as SVG: every plan a dot, the best of each series a line of marks, published ones hollow.

    >>> frontier_svg(facts, "decode")[:4]
    '<svg'

A model has a colour, what its weights are stored as a shape, a chip a dash; the ends of each line say how many chips
and sequences, as Figure 1 of arXiv 2211.05102 does. Marks can be picked. Next file to read: `frontier_words`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator

from widgets.figures.frontier import AT, Facts
from widgets.figures.labels import Labels
from widgets.figures.log_axes import GREY, LogAxes, around
from widgets.figures.svg import tag, text
from widgets.numbers import quantity
from widgets.theme import AXES, GROUND, INK

DASHES = (None, "7 4", "2 3", "9 3 2 3", "5 5")
SHAPES = {"bf16": "circle", "int8": "square", "f32": "triangle"}
TITLES = {
    "decode": ("Decode (modelled)", "seconds for a token", "chip-seconds for a token"),
    "prefill": ("Prefill (modelled)", "seconds for the whole prompt", "chip-seconds for a token of it"),
}


def frontier_svg(facts: Facts, phase: str) -> str:
    """One phase's chart."""
    axes = _axes(facts, phase)
    lines = [part for line in facts["lines"][phase] for part in _line(axes, facts, phase, line)]
    inside = [
        *axes.ground(_title(facts, phase)), _dots(axes, facts, phase), *lines, *_published(axes, facts, phase),
        *_ends(axes, facts, phase), *_chosen(axes, facts, phase),
    ]  # fmt: skip
    label = f"{phase}: latency against cost; its numbers stand in the table of the details"
    return axes.svg(*inside, label=label, data_phase=phase)


def _title(facts: Facts, phase: str) -> str:
    title, lengths = TITLES[phase][0], f"{facts['input_tokens']:,} tokens in, {facts['output_tokens']:,} out"
    return f"{title}: {lengths}"


def _axes(facts: Facts, phase: str) -> LogAxes:
    x, y = AT[phase]
    own = [p for p in facts["published"] if p["phase"] == phase]
    fitting = _in(facts, phase)
    xs = [point[x] for point in fitting] + [p["seconds"] for p in own]
    ys = [point[y] for point in fitting] + [p["chip_seconds"] for p in own]
    _, x_title, y_title = TITLES[phase]
    return LogAxes(around(xs), around(ys), x_title, y_title, "s", "s", height=330.0, right=16.0)


def _in(facts: Facts, phase: str) -> list[Facts]:
    """The points that fit in a phase."""
    return [point for point in facts["points"] if point["fits_in"][phase]]


def colour(facts: Facts, model: str) -> str:
    """The colour of a model; a changed one has that of its name."""
    names = [name.split()[0] for name in facts["models"]]
    return AXES[names.index(model.split()[0]) % len(AXES)] if model.split()[0] in names else GREY


def shape(kind: str, x: float, y: float, r: float, **how: object) -> str:
    """A mark around a place."""
    if kind == "circle":
        return tag("circle", cx=x, cy=y, r=r, **how)
    paths = {
        "square": f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z",
        "triangle": f"M{x:.1f} {y - 1.2 * r:.1f}l{1.1 * r:.1f} {2 * r:.1f}h{-2.2 * r:.1f}z",
        "diamond": f"M{x:.1f} {y - 1.3 * r:.1f}l{1.3 * r:.1f} {1.3 * r:.1f}l{-1.3 * r:.1f} {1.3 * r:.1f}"
                   f"l{-1.3 * r:.1f} {-1.3 * r:.1f}z",
    }  # fmt: skip
    return tag("path", d=paths[kind], **how)


def _dots(axes: LogAxes, facts: Facts, phase: str) -> str:
    """All plans that fit, small: one path."""
    x, y = AT[phase]
    fitting = _in(facts, phase)
    data = "".join(f"M{axes.x(p[x]):.1f} {axes.y(p[y]):.1f}h0" for p in fitting)
    return tag("path", d=data or "M0 0", stroke=GREY, stroke_opacity=0.45, stroke_width=3, stroke_linecap="round",
               data_dots=len(fitting))  # fmt: skip


def _line(axes: LogAxes, facts: Facts, phase: str, line: Facts) -> Iterator[str]:
    x, y = AT[phase]
    points = [facts["points"][n] for n in line["at"]]
    if not points:
        return
    own, dash = colour(facts, points[0]["model"]), DASHES[facts["chips"].index(points[0]["chip"]) % len(DASHES)]
    if len(points) > 1:
        yield tag("path", d=axes.path([(p[x], p[y]) for p in points]), fill="none", stroke=own, stroke_width=1.8,
                  stroke_dasharray=dash, data_line=line["name"])  # fmt: skip
    for n, point in zip(line["at"], points):
        at = axes.x(point[x]), axes.y(point[y])
        mark = shape(SHAPES[point["weights"]], *at, 4.2, fill=own, stroke=GREY, stroke_width=0.8, cls="mw-mark")
        says = _says(point, phase)
        yield tag("g", tag("title", html.escape(says)), mark, data_pick=f"point:{n}", tabindex=0,
                  role="button", aria_label=says, data_key=point["key"], data_x=f"{point[x]:.6g}",
                  data_y=f"{point[y]:.6g}")  # fmt: skip


def _ends(axes: LogAxes, facts: Facts, phase: str) -> Iterator[str]:
    """Chips and batch at both ends of each line, where there is room beside the marks."""
    (x, y), labels = AT[phase], Labels(axes.width, axes.height - axes.bottom, 9.5)
    points = facts["points"]
    labels.block((0.0, 0.0, axes.left, axes.height))  # the values of the axis
    for line in facts["lines"][phase]:
        for n in line["at"]:
            labels.avoid(axes.x(points[n][x]), axes.y(points[n][y]), 4)
    for n in dict.fromkeys(n for line in facts["lines"][phase] for n in (*line["at"][:1], *line["at"][-1:])):
        words = f"C:{points[n]['chips']} B:{points[n]['batch']}"
        if at := labels.place(words, axes.x(points[n][x]), axes.y(points[n][y])):
            yield tag("text", words, x=at[0], y=at[1], font_size=9.5)


def _says(point: Facts, phase: str) -> str:
    x, y = AT[phase]
    cost = quantity(point[y], "s").replace(" ", " chip-")
    return (
        f"{point['series']}, {point['chips']} chips ({point['topology']}), batch {point['batch']}, "
        f"{point['layouts'][phase]}: {quantity(point[x], 's')}, {cost} a token, "
        f"MFU {100 * point['mfu'][phase]:.0f} %, modelled"
    )


def _published(axes: LogAxes, facts: Facts, phase: str) -> Iterator[str]:
    for n, point in enumerate(facts["published"]):
        if point["phase"] != phase:
            continue
        at = axes.x(point["seconds"]), axes.y(point["chip_seconds"])
        cost = quantity(point["chip_seconds"], "s").replace(" ", " chip-")
        says = f"{point['where']}: {quantity(point['seconds'], 's')}, {cost} a token, published"
        mark = shape("diamond", *at, 5.0, fill="none", stroke=colour(facts, point["model"]), stroke_width=2,
                     cls="mw-mark", pointer_events="all")  # fmt: skip
        yield tag("g", tag("title", html.escape(says)), mark, data_pick=f"published:{n}", tabindex=0, role="button",
                  aria_label=says, data_published=point["where"], data_x=f"{point['seconds']:.6g}",
                  data_y=f"{point['chip_seconds']:.6g}")  # fmt: skip


def _chosen(axes: LogAxes, facts: Facts, phase: str) -> Iterator[str]:
    """A ring around the chosen plan, in both charts."""
    x, y = AT[phase]
    for point in _in(facts, phase):
        if point["key"] == facts["chosen"]:
            yield tag("circle", cx=axes.x(point[x]), cy=axes.y(point[y]), r=10, fill="none", stroke="currentColor",
                      stroke_width=2, pointer_events="none", data_chosen=point["key"])  # fmt: skip


def legend_html(facts: Facts) -> str:
    """Colours of models, shapes of types, dashes of chips."""
    marks = [_sign(shape("circle", 8, 7, 4.5, fill=colour(facts, name), stroke=GREY), name) for name in facts["models"]]
    types = dict.fromkeys(point["weights"] for point in facts["points"])
    marks += [_sign(shape(SHAPES[name], 8, 7, 4, fill="none", stroke="currentColor"), f"{name} weights")
              for name in types]  # fmt: skip
    if len(facts["chips"]) > 1:
        marks += [_sign(tag("path", d="M0 7H22", stroke="currentColor", stroke_dasharray=DASHES[n % len(DASHES)]), name,
                        24) for n, name in enumerate(facts["chips"])]  # fmt: skip
    if facts["published"]:
        hollow = {"fill": "none", "stroke": "currentColor", "stroke_width": 1.6}
        marks.append(_sign(shape("diamond", 8, 7, 5, **hollow), "published"))
    if facts["uncalibrated"]:
        marks.append(f"<span>{html.escape(', '.join(facts['uncalibrated']))}: no fitted constants, so bounds</span>")
    return f'<div class="mw-legend-line">{"".join(marks)}</div>'


def _sign(mark: str, words: str, width: int = 16) -> str:
    drawn = tag("svg", mark, width=width, height=14, style="width:auto;display:inline-block;vertical-align:-2px")
    return f"<span>{drawn} {html.escape(words)}</span>"


def saved_frontier(facts: Facts) -> str:
    """Both charts as one file."""
    charts = [tag("g", frontier_svg(facts, phase), transform=f"translate({420 * n} 0)")
              for n, phase in enumerate(TITLES)]  # fmt: skip
    names = text("  ·  ".join(facts["series"]), 60, 346, 0, 10)
    size = {"width": 840, "height": 356}
    return tag("svg", tag("rect", **size, fill=GROUND), *charts, names, **size, color=INK,
               xmlns="http://www.w3.org/2000/svg")  # fmt: skip
