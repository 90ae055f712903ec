"""Charts of the attention explorer as SVG: memory by heads and by batch, how far each goes, what is sent, time.

    >>> memory_svg(facts)[:4]
    '<svg'

By heads is pink and dashed, by batch blue and solid, everywhere here. Copies are a share of a bar, with their words.
A bar and a line can be picked, which chooses that way. Next file to read: `attention_html`.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Sequence
from typing import Any

from widgets.figures.bars_svg import Bar, Part, bars_svg
from widgets.figures.labels import Labels
from widgets.figures.log_axes import LogAxes, around
from widgets.figures.on_device import device_mark
from widgets.figures.svg import tag, text
from widgets.numbers import quantity
from widgets.theme import LINKS

Facts = dict[str, Any]
COLOURS = {"heads": "#CC79A7", "batch": "#0072B2"}
DASHES = {"heads": "6 4", "batch": None}
PARTS = {"weights": "#0B4F79", "once": "#56B4E9", "copies": "#D55E00", "activations": "#CC79A7", "reserve": "#BBBBBB"}
WORDS = {"once": "its share of the cache", "copies": "what others hold too", "weights": "weights",
         "activations": "activations", "reserve": "kept free"}  # fmt: skip
STEP_ROWS = 12
WIDTH, HEIGHT = 420.0, 300.0
Points = Sequence[tuple[float, float]]


def parts_of(way: Facts) -> dict[str, float]:
    """What stands in a device's memory, in the order of the bars."""
    return {
        "weights": way["terms"]["weights"], "activations": way["terms"]["activations"], "once": way["once"],
        "copies": way["cache"] - way["once"], "reserve": way["reserve"],
    }  # fmt: skip


def cache_svg(facts: Facts) -> str:
    """The cache of a device both ways: its share, and what others hold too."""
    ways = {by: way for by, way in facts["ways"].items() if not way["reason"]}
    top = max(way["cache"] for way in ways.values()) * 1.35
    bars = [_cache(facts, by, way) for by, way in facts["ways"].items()]
    return bars_svg("Cache of a device (modelled)", bars, top, rows=2, name="cache")


def _cache(facts: Facts, by: str, way: Facts) -> Bar:
    chosen = facts["by"] == by
    if way["reason"]:
        return Bar(f"by {by}", reason="cannot be here", hint=way["reason"], chosen=chosen)
    copies = way["cache"] - way["once"]
    pieces = (Part(way["once"], PARTS["once"], f"{WORDS['once']}: {quantity(way['once'], 'iB')}, modelled"),
              Part(copies, PARTS["copies"], f"{WORDS['copies']}: {quantity(copies, 'iB')}, modelled"))  # fmt: skip
    held = f"{way['copies']} copies" if way["copies"] > 1 else "no copies"
    says = f"{quantity(way['cache'], 'iB')}, {held}"
    return Bar(f"by {by}", pieces, says, pick=f"by:{by}", chosen=chosen, hint=f"by {by}: {says} (modelled)")


def memory_svg(facts: Facts) -> str:
    """A device's memory both ways, and the line where it ends."""
    capacity = facts["capacity"]
    known = [sum(parts_of(way).values()) for way in facts["ways"].values() if not way["reason"]]
    top = min(max([*known, capacity]), 2 * capacity) * 1.25
    bars = [_memory(facts, by, way) for by, way in facts["ways"].items()]
    limit = (capacity, f"a device has {quantity(capacity, 'iB')} (published)")
    return bars_svg("Memory of a device (modelled)", bars, top, limit, rows=2, name="memory")


def _memory(facts: Facts, by: str, way: Facts) -> Bar:
    if way["reason"]:
        return Bar(f"by {by}", reason="cannot be here", hint=way["reason"], chosen=facts["by"] == by)
    parts = parts_of(way)
    pieces = tuple(Part(n_bytes, PARTS[part], f"{WORDS[part]}: {quantity(n_bytes, 'iB')}, modelled")
                   for part, n_bytes in parts.items())  # fmt: skip
    total = sum(parts.values())
    left = Part(max(facts["capacity"] - total, 0.0), "none", "left")  # so that words stand behind the limit's line
    says = f"{quantity(total, 'iB')}{'' if way['fits'] else ', full'}"
    hint = ", ".join(f"{WORDS[part]} {quantity(n_bytes, 'iB')}" for part, n_bytes in parts.items() if n_bytes)
    return Bar(f"by {by}", (*pieces, left), says, chosen=facts["by"] == by, hint=f"by {by}: {hint} (modelled)")


# ---- how far it goes


def context_svg(facts: Facts) -> str:
    """The longest context over the batch, both ways; what lies below a line fits."""
    curves = {by: [(b, n) for b, n in way.get("curve", ()) if n] for by, way in facts["ways"].items()}
    lines = {by: points for by, points in curves.items() if points}
    y_range = around([n for points in lines.values() for _, n in points] + [facts["context"], *(
        value for *_, value in facts["published"])])  # fmt: skip
    axes = LogAxes((1, 4096), y_range, "sequences in the batch", "longest context, tokens", width=WIDTH, height=HEIGHT)
    inside = [*axes.ground(f"Longest context that fits in {_room(facts)} (modelled)")]
    labels = Labels(WIDTH, HEIGHT)
    for by, points in lines.items():
        inside.append(_line(axes, by, points, labels, facts["by"] == by, math.inf))
    if not lines:
        inside.append(text("the weights alone do not fit", 70, HEIGHT / 2, WIDTH - 90, 11, font_style="italic"))
    if any(after[1] > before[1] for points in lines.values() for before, after in itertools.pairwise(points)):
        inside.append(text("a batch is cut by whole axes only", 64, HEIGHT - 46, 0, 11, font_style="italic"))
    for batch, name, tokens in facts["published"]:
        inside.append(_ring(axes, batch, tokens, f"Table 1, {name}: {tokens:,} tokens, published"))
    inside.append(_here(axes, facts["batch"], facts["context"], labels))
    return axes.svg(*inside, label="longest context over the batch; the table of the details has the numbers",
                    data_chart="context")  # fmt: skip


def _room(facts: Facts) -> str:
    return "30 % of memory" if facts["room"] == "table" else "what weights leave"


def _line(axes: LogAxes, by: str, points: Points, labels: Labels, chosen: bool, most: float) -> str:
    """A way's line, with a dot for each point; thin where it does not fit (beyond `most`). It can be picked."""
    inside, beyond = [p for p in points if p[0] <= most], [p for p in points if p[0] > most]
    drawn = [tag("path", d=axes.path(points), fill="none", stroke="transparent", stroke_width=12, cls="mw-mark")]
    for some, width in ((inside, 3.0 if chosen else 2.0), ([*inside[-1:], *beyond], 0.8)):
        if len(some) > 1:
            drawn.append(tag("path", d=axes.path(some), fill="none", stroke=COLOURS[by], stroke_width=width,
                             stroke_dasharray=DASHES[by]))  # fmt: skip
    drawn += [
        tag("circle", cx=axes.x(x), cy=axes.y(y), r=3.0 if x <= most else 1.6, fill=COLOURS[by]) for x, y in points
    ]
    x, y = axes.x(points[-1][0]), axes.y(points[-1][1])
    left, foot = labels.place(f"by {by}", x - 8, y - 6) or (x - 60, y - 8)
    words = tag("text", f"by {by}", x=left, y=foot, font_size=11, font_weight="bold" if chosen else None)
    return tag("g", tag("title", f"by {by}"), *drawn, words, data_pick=f"by:{by}", data_line=by, tabindex=0,
               role="button", aria_label=f"choose attention by {by}", aria_pressed=str(chosen).lower())  # fmt: skip


def _ring(axes: LogAxes, x: float, y: float, words: str) -> str:
    """A published figure."""
    circle = tag("circle", tag("title", html.escape(words)), cx=axes.x(x), cy=axes.y(y), r=5, fill="none",
                 stroke="currentColor", stroke_width=2)  # fmt: skip
    return tag("g", circle, data_published=f"{y:.6g}", data_at=f"{x:.6g}")


def _here(axes: LogAxes, x: float, y: float, labels: Labels) -> str:
    """The settings on show."""
    px, py = axes.x(x), axes.y(y)
    place = labels.place("here", px, py, 8)
    mark = tag("path", d=f"M{px - 6:.1f} {py:.1f}h12M{px:.1f} {py - 6:.1f}v12", stroke="currentColor", stroke_width=2.5)
    words = tag("text", "here", x=place[0], y=place[1], font_size=11) if place else ""
    return tag("g", mark, words, data_here=f"{x:g} {y:g}")


# ---- time


def time_svg(facts: Facts) -> str:
    """Time of a decode step over the context, both ways; empty axes until it is known."""
    times = facts["times"]
    lines = {by: points for by, points in times["lines"].items() if points}
    values = [ms for points in lines.values() for _, ms in points] + [ms for _, ms in times["published"]]
    device = facts.get("device")
    values += [1e3 * device["seconds"]] if device else []
    axes = LogAxes((128, 32768), around(values or [1.0, 10.0]), "kept tokens of each sequence", "ms a step",
                   width=WIDTH, height=HEIGHT)  # fmt: skip
    inside, labels = [*axes.ground(times["title"])], Labels(WIDTH, HEIGHT)
    for by, points in lines.items():
        most = facts["ways"][by].get("longest", 0) if not times["few"] else math.inf
        inside.append(_line(axes, by, points, labels, facts["by"] == by, most))
    for context, ms in times["published"]:
        inside.append(_ring(axes, context, ms, f"Figure 8, by batch, {context:,} tokens: {ms} ms, published"))
    if device:
        at = axes.x(device["params"]["context"]), axes.y(1e3 * device["seconds"])
        inside.append(device_mark(device, *at, labels))
    if not lines:
        inside.append(text(times["waits"], 70, HEIGHT / 2, WIDTH - 90, 11, font_style="italic"))
    return axes.svg(*inside, label="time of a decode step over the context; numbers in the details",
                    data_chart="time")  # fmt: skip


# ---- what is sent


def steps_svg(facts: Facts) -> str:
    """Every collective of one layer's attention by what it moves, and the cache, which stays."""
    steps = facts["steps"]
    top = max([step["bytes"] for step in steps], default=1.0)
    bars = [_step(step) for step in steps]
    kept = facts["ways"][facts["by"]]["cache"] / facts["layers"]
    bars.append(Bar("the cache", says=f"stays: {quantity(kept, 'iB')} a layer, read only", chosen=True))
    title = f"Sent by a device in one layer's attention, by {facts['by']} (modelled)"
    note = "x serves the feedforward too"
    if facts["by"] == "batch":
        note = f"all-to-alls move new q, k, v alone; {note}"
    return bars_svg(title, bars, top * 2.1, rows=STEP_ROWS, name="steps", note=note)


def _step(step: Facts) -> Bar:
    words = step["label"].replace("_", "-").replace(" over ", " ", 1)
    hint = (
        f"{step['moves']}: {step['label']}, {step['before']} → {step['after']}, {step['bytes']:,.0f} bytes (modelled)"
    )
    colour = "#B0B0B0" if step["moves"] == "x" else LINKS
    return Bar(
        step["moves"], (Part(step["bytes"], colour, hint),), f"{quantity(step['bytes'], 'iB')} {words}", hint=hint
    )
