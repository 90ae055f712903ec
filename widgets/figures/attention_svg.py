"""Charts of the attention explorer as SVG: memory by heads and by batch, how far each goes, what is sent, time.

    >>> memory_svg(facts)[:4]
    '<svg'

By heads is pink and dashed, by batch blue and solid, everywhere here. Copies are a share of a bar, with their words.
A bar and a line can be picked, which chooses that way. Next file to read: `attention_html`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any

from widgets.figures.bars_svg import Bar, Part, bars_svg
from widgets.figures.labels import Labels
from widgets.figures.log_axes import LogAxes, around
from widgets.figures.svg import tag, text
from widgets.numbers import count, quantity
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


def memory_svg(facts: Facts) -> str:
    """A device's memory both ways, and the line where it ends."""
    capacity = facts["capacity"]
    known = [sum(parts_of(way).values()) for way in facts["ways"].values() if not way["reason"]]
    top = min(max([*known, capacity]), 2 * capacity) * 1.02
    bars = []
    for by, way in facts["ways"].items():
        bars += [_whole(facts, by, way), _cache(by, way)]
    limit = (capacity, f"a device has {quantity(capacity, 'iB')} (published)")
    return bars_svg("Memory of a device (modelled)", bars, top, limit, rows=4, name="memory")


def _whole(facts: Facts, by: str, way: Facts) -> Bar:
    chosen = facts["by"] == by
    if way["reason"]:
        return Bar(f"by {by}", reason="cannot be here", hint=way["reason"], chosen=chosen)
    parts = parts_of(way)
    pieces = tuple(
        Part(n_bytes, PARTS[part], f"{WORDS[part]}: {quantity(n_bytes, 'iB')}, modelled")
        for part, n_bytes in parts.items()
    )
    total = sum(parts.values())
    says = f"{quantity(total, 'iB')}{'' if way['fits'] else ' too much'}"
    hint = f"by {by}: " + ", ".join(f"{WORDS[part]} {quantity(n, 'iB')}" for part, n in parts.items() if n)
    return Bar(f"by {by}", pieces, says, pick=f"by:{by}", chosen=chosen, hint=f"{hint} (modelled)")


def _cache(by: str, way: Facts) -> Bar:
    """The cache alone, and how many devices hold the same."""
    if way["reason"]:
        return Bar("its cache", reason="-")
    copies = way["cache"] - way["once"]
    pieces = (Part(way["once"], PARTS["once"], f"once: {quantity(way['once'], 'iB')}, modelled"),
              Part(copies, PARTS["copies"], f"copies: {quantity(copies, 'iB')}, modelled"))  # fmt: skip
    held = f", each on {way['copies']}" if way["copies"] > 1 else ", no copies"
    return Bar("its cache", pieces, f"{quantity(way['cache'], 'iB')}{held}")


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
        inside += _line(axes, by, points, f"by {by}", labels, facts["by"] == by)
    if not lines:
        inside.append(text("the weights alone do not fit", 70, HEIGHT / 2, WIDTH - 90, 11, font_style="italic"))
    for batch, name, tokens in facts["published"]:
        inside.append(_ring(axes, batch, tokens, f"Table 1, {name}: {tokens:,} tokens, published"))
    inside.append(_here(axes, facts["batch"], facts["context"], labels))
    return axes.svg(*inside, label="longest context over the batch; the table of the details has the numbers",
                    data_chart="context")  # fmt: skip


def _room(facts: Facts) -> str:
    return "30 % of memory" if facts["room"] == "table" else "what weights leave"


def _line(
    axes: LogAxes, name: str, points: Points, words: str, labels: Labels, chosen: bool, pick: str = "by"
) -> Iterator[str]:  # fmt: skip
    shape = axes.path(points)
    style = {"fill": "none", "stroke": COLOURS[name], "stroke_dasharray": DASHES[name]}
    wide = tag("path", d=shape, fill="none", stroke="transparent", stroke_width=12, cls="mw-mark")
    drawn = tag("path", d=shape, stroke_width=3.0 if chosen else 2.0, **style)
    x, y = axes.x(points[-1][0]), axes.y(points[-1][1])
    place = labels.place(words, x - 8, y - 4) or (x - 60, y - 8)
    yield tag("g", tag("title", html.escape(words)), wide, drawn,
              tag("text", words, x=place[0], y=place[1], font_size=11, font_weight="bold" if chosen else None),
              data_pick=f"{pick}:{name}", data_line=name, tabindex=0, role="button",
              aria_label=f"choose {words}", aria_pressed=str(chosen).lower())  # fmt: skip


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
    axes = LogAxes((128, 32768), around(values or [1.0, 10.0]), "kept tokens of each sequence", "ms a step",
                   width=WIDTH, height=HEIGHT)  # fmt: skip
    inside, labels = [*axes.ground(times["title"])], Labels(WIDTH, HEIGHT)
    for by, points in lines.items():
        inside += _line(axes, by, points, f"by {by}", labels, facts["by"] == by)
    for context, ms in times["published"]:
        inside.append(_ring(axes, context, ms, f"Figure 8, by batch, {context:,} tokens: {ms} ms, published"))
    if not lines:
        inside.append(text(times["waits"], 70, HEIGHT / 2, WIDTH - 90, 11, font_style="italic"))
    return axes.svg(*inside, label="time of a decode step over the context; numbers in the details",
                    data_chart="time")  # fmt: skip


# ---- what is sent


def steps_svg(facts: Facts) -> str:
    """Every collective of one layer's attention by what it moves, and the cache, which stays."""
    steps = facts["steps"]
    top = max([step["bytes"] for step in steps], default=1.0)
    bars = [_step(step, top) for step in steps]
    kept = facts["ways"][facts["by"]]["cache"] / facts["layers"]
    bars.append(Bar("the cache", says=f"stays: {quantity(kept, 'iB')} a layer, read only", chosen=True))
    title = f"Sent by a device in one layer's attention, by {facts['by']} (modelled)"
    note = "x also serves the feedforward layer; all-to-alls move new q, k, v alone"
    if facts["by"] == "heads":
        note = "x also serves the feedforward layer"
    return bars_svg(title, bars, top * 2.1, rows=STEP_ROWS, name="steps", note=note)


def _step(step: Facts, top: float) -> Bar:
    words = step["label"].replace("_", "-").replace(" over ", " ", 1)
    hint = (
        f"{step['moves']}: {step['label']}, {step['before']} → {step['after']}, {step['bytes']:,.0f} bytes (modelled)"
    )
    colour = "#B0B0B0" if step["moves"] == "x" else LINKS
    return Bar(
        step["moves"], (Part(step["bytes"], colour, hint),), f"{quantity(step['bytes'], 'iB')} {words}", hint=hint
    )


def devices(n: int) -> str:
    """`64 devices`."""
    return count(n, "device")
