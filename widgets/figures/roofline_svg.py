"""The roofline of one phase as SVG: roof, steps as numbered marks, the layer over its links, and a strip of time.

    >>> roofline_svg(facts, "decode")[:4]
    '<svg'

Marks that would lie on each other are one mark with all their numbers. A mark's area grows with the step's share of
the time. Colours are those of compute, memory and links everywhere; each also has its word. Next file to read:
`roofline_words`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence

from widgets.figures.labels import Labels
from widgets.figures.log_axes import GREY, LogAxes
from widgets.figures.on_device import SPIKE, device_mark
from widgets.figures.roofline import WORDS, Facts, ridge
from widgets.figures.svg import tag, text
from widgets.numbers import quantity
from widgets.theme import COMPUTE, GROUND, INK, LINKS, MEMORY

COLOURS = {"compute": COMPUTE, "hbm": MEMORY, "link": LINKS, "hops": "#FBF6B5", "launch": "#B0B0B0"}
WIDTH, PLOT, STRIP, LINES = 420.0, 300.0, 40.0, 6
HEIGHT = PLOT + STRIP + 16 * LINES + 26
DIAMOND = 7  # pixels from its middle to a corner
NEAR = 9  # pixels within which marks are one


def roofline_svg(facts: Facts, phase: str) -> str:
    """One phase's chart."""
    side, roof = facts[phase], facts["roof"]
    axes, labels = _axes(roof), Labels(WIDTH, PLOT)
    inside = [
        *axes.ground(f"{phase.capitalize()}: {side['about']} (modelled)"), *_roof(axes, roof),
        *_layer(axes, side), *_marks(axes, side, facts["chosen"], roof["peak"], labels),
        *_strip(axes, side, facts["chosen"]), *_largest(axes, side), *_device(axes, side, labels),
    ]  # fmt: skip
    label = f"roofline of a layer, {phase}; its numbers stand in the table of the details"
    drawn = tag("g", *inside)
    return tag(
        "svg", drawn, cls="mw-chart", viewBox=f"0 0 {axes.width:.0f} {HEIGHT:.0f}", width=axes.width, height=HEIGHT,
        role="img", aria_label=label, fill="currentColor", font_family="sans-serif", data_phase=phase,
        xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def _axes(roof: Mapping[str, float]) -> LogAxes:
    """The same for every batch, so that only the marks move."""
    top = 10 ** math.ceil(math.log10(roof["peak"]))
    return LogAxes(
        (0.1, 1e5), (top / 1e5, top), "FLOPs for each byte of HBM (◆ for each byte sent)", "FLOP/s of a device", "",
        "", width=WIDTH, height=PLOT, right=22.0,
    )  # fmt: skip


def _roof(axes: LogAxes, roof: Mapping[str, float]) -> Iterator[str]:
    low, high = axes.x_range
    knee, floor = ridge(roof), axes.y_range[0]
    start = max(low, floor / roof["hbm"])
    fed = [(start, start * roof["hbm"]), (knee, roof["peak"])]
    yield tag("path", d=axes.path(fed), fill="none", stroke=MEMORY, stroke_width=2.5)
    yield tag("path", d=axes.path([(knee, roof["peak"]), (high, roof["peak"])]), fill="none", stroke=COMPUTE,
              stroke_width=2.5)  # fmt: skip
    peak = f"peak {quantity(roof['peak'], 'FLOP/s')} (published)"
    line = axes.y(roof["peak"])
    above = line - 14 if line - 14 > axes.top + 8 else line - 5  # of the marks on the roof, if there is room
    yield text(peak, axes.x(high) - 2, above, 0, 10, text_anchor="end")
    yield text(f"ridge {quantity(knee)}", axes.x(knee) - 20, above, 0, 10, text_anchor="middle")
    rise = axes.y(floor) - axes.y(10 * floor)
    angle = -math.degrees(math.atan2(rise, axes.x(10 * low) - axes.x(low)))
    x, y = axes.x(start * 3), axes.y(start * 3 * roof["hbm"]) - 6
    yield text(f"HBM {quantity(roof['hbm'], 'B/s')}", x, y, 0, 10, transform=f"rotate({angle:.1f} {x:.1f} {y:.1f})")
    if roof.get("link"):
        first = max(low, floor / roof["link"])
        wire = axes.path([(first, first * roof["link"]), (roof["peak"] / roof["link"], roof["peak"])])
        yield tag("path", d=wire, fill="none", stroke=GREY, stroke_width=4)
        yield tag("path", d=wire, fill="none", stroke=LINKS, stroke_width=2.5)
        x, y = axes.x(first * 3), axes.y(first * 3 * roof["link"]) - 6
        yield text(f"links {quantity(roof['link'], 'B/s')}", x, y, 0, 10,
                   transform=f"rotate({angle:.1f} {x:.1f} {y:.1f})")  # fmt: skip


def _layer(axes: LogAxes, side: Facts) -> Iterator[str]:
    """All FLOPs of a layer for each byte that a device sends, as high as it computes over all of its time."""
    layer = side["layer"]
    if not layer["link_bytes"]:
        return
    x, y = axes.x(layer["link_intensity"]), axes.y(layer["rate"])
    says = (
        f"the whole layer: {quantity(layer['link_intensity'])} FLOPs for each byte sent, "
        f"{quantity(layer['rate'], 'FLOP/s')} over all of its time, modelled"
    )
    shape = f"M{x:.1f} {y - DIAMOND:.1f}l{DIAMOND} {DIAMOND}l-{DIAMOND} {DIAMOND}l-{DIAMOND} -{DIAMOND}z"
    mark = tag("path", d=shape, fill=LINKS, stroke=GREY, stroke_width=1.5, cls="mw-mark")
    yield tag("g", tag("title", says), mark, data_layer=f"{layer['link_intensity']:.6g}",
              data_rate=f"{layer['rate']:.6g}")  # fmt: skip


def groups(axes: LogAxes, steps: Sequence[Facts]) -> list[list[Facts]]:
    """Local steps, those that would lie on each other together."""
    found: list[tuple[float, float, list[Facts]]] = []
    for step in sorted((step for step in steps if step["is_local"]), key=lambda step: -step["seconds"]):
        x, y = axes.x(step["intensity"]), axes.y(step["rate"])
        near = next((group for a, b, group in found if math.hypot(a - x, b - y) < NEAR), None)
        near.append(step) if near is not None else found.append((x, y, [step]))
    return [group for *_, group in found]


def _marks(axes: LogAxes, side: Facts, chosen: str, peak: float, labels: Labels) -> Iterator[str]:
    """Every group, and its numbers where there is room."""
    found, top = groups(axes, side["steps"]), axes.y(peak)
    labels.block((0, 0, axes.width, top + 2))  # the roof's own words
    if side["layer"]["link_bytes"]:
        labels.avoid(axes.x(side["layer"]["link_intensity"]), axes.y(side["layer"]["rate"]), DIAMOND)
    if side.get("device"):
        labels.avoid(*_point(axes, side["device"]), SPIKE)
    for group in found:
        labels.avoid(*_at(axes, group), _radius(group, side))
    for group in found:
        numbers = runs(sorted(step["number"] for step in group))
        place = labels.place(numbers, *_at(axes, group), _radius(group, side) + 2)
        yield _mark(axes, group, side, chosen)
        if place:
            yield tag("text", numbers, x=place[0], y=place[1], font_size=10, pointer_events="none")


def _at(axes: LogAxes, group: Sequence[Facts]) -> tuple[float, float]:
    return axes.x(group[0]["intensity"]), axes.y(group[0]["rate"])


def _radius(group: Sequence[Facts], side: Facts) -> float:
    """The mark's area grows with the share of the time."""
    return 4 + 9 * math.sqrt(sum(step["seconds"] for step in group) / (side["layer"]["seconds"] or 1.0))


def _mark(axes: LogAxes, group: Sequence[Facts], side: Facts, chosen: str) -> str:
    first = group[0]
    (x, y), radius = _at(axes, group), _radius(group, side)
    is_chosen = chosen in {f"{side['phase']}:{step['number']}" for step in group}
    numbers = sorted(step["number"] for step in group)
    circle = tag(
        "circle", cx=x, cy=y, r=radius, fill=COLOURS[first["bound"]], stroke="currentColor" if is_chosen else GREY,
        stroke_width=3 if is_chosen else 1.2, cls="mw-mark",
    )  # fmt: skip
    says = "\n".join(_says(step) for step in sorted(group, key=lambda step: step["number"]))
    return tag(
        "g", tag("title", html.escape(says)), circle, data_pick=f"{side['phase']}:{first['number']}",
        data_steps=",".join(map(str, numbers)), data_bound=first["bound"],
        data_intensity=f"{first['intensity']:.6g}", data_rate=f"{first['rate']:.6g}", tabindex=0, role="button",
        aria_label=says,
    )  # fmt: skip


def runs(numbers: Sequence[int]) -> str:
    """1, 2, 3, 5 → `1–3, 5`."""
    found: list[list[int]] = []
    for number in numbers:
        found[-1].append(number) if found and number == found[-1][-1] + 1 else found.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in found)


def _says(step: Facts) -> str:
    words = f"{step['number']} {step['name']}: {quantity(step['seconds'], 's')}, waits for {WORDS[step['bound']]}"
    if step["is_local"] and math.isfinite(step["intensity"]):
        words += f", {quantity(step['intensity'])} FLOPs a byte, {quantity(step['rate'], 'FLOP/s')}"
    if step["link_bytes"]:
        words += f", {quantity(step['link_bytes'], 'iB')} sent"
    return f"{words}, modelled"


def _strip(axes: LogAxes, side: Facts, chosen: str) -> Iterator[str]:
    """All steps in order, as long as they take."""
    total, left, top = side["layer"]["seconds"], axes.left, PLOT + 4
    width = axes.width - axes.left - axes.right
    yield text("time", 10, top + 14, 0, 10.5)
    for step in side["steps"]:
        room = width * step["seconds"] / total if total else 0.0
        name = f"{side['phase']}:{step['number']}"
        box = tag(
            "rect", x=left, y=top, width=max(room, 0.2), height=20, fill=COLOURS[step["bound"]], cls="mw-mark",
            stroke="currentColor" if name == chosen else GREY, stroke_width=3 if name == chosen else 0.7,
        )  # fmt: skip
        words = tag("text", str(step["number"]), x=left + room / 2, y=top + 14, font_size=10, fill="#111",
                    text_anchor="middle", cls="mw-on-bar") if room > 14 else ""  # fmt: skip
        yield tag("g", tag("title", html.escape(_says(step))), box, words, data_pick=name,
                  data_seconds=f"{step['seconds']:.6g}", data_bound=step["bound"], role="button",
                  aria_label=_says(step), tabindex=0)  # fmt: skip
        left += room
    yield text(f"{quantity(total, 's')} a layer", axes.width - axes.right, top + 33, 0, 10.5, text_anchor="end")
    for n, bound in enumerate(COLOURS):
        place = axes.left + (0, 66, 108, 152, 196)[n]
        yield tag("rect", x=place, y=top + 25, width=8, height=8, fill=COLOURS[bound], stroke=GREY)
        yield text("compute" if bound == "compute" else WORDS[bound], place + 12, top + 33, 0, 10)


def _device(axes: LogAxes, side: Facts, labels: Labels) -> Iterator[str]:
    """The whole phase as it was measured, at its planned FLOPs a byte."""
    if point := side.get("device"):
        yield device_mark(point, *_point(axes, point), labels, data_rate=f"{point['rate']:.6g}")


def _point(axes: LogAxes, point: Facts) -> tuple[float, float]:
    return axes.x(point["intensity"]), axes.y(point["rate"])


def _largest(axes: LogAxes, side: Facts) -> Iterator[str]:
    """The steps that take longest, in words; as many lines whatever there is."""
    total = side["layer"]["seconds"] or 1.0
    longest = sorted(side["steps"], key=lambda step: -step["seconds"])[:LINES]
    for n, step in enumerate(longest):
        y = PLOT + STRIP + 24 + 16.0 * n
        share = f"{100 * step['seconds'] / total:.0f} %"
        yield text(share, axes.left - 6, y, 0, 11, text_anchor="end")
        yield tag("rect", x=axes.left, y=y - 8, width=8, height=8, fill=COLOURS[step["bound"]], stroke=GREY)
        words = f"{step['number']}  {step['name']}"
        yield text(words, axes.left + 13, y, 250, 11)
        yield text(quantity(step["seconds"], "s"), axes.width - axes.right, y, 0, 11, text_anchor="end")


def saved_rooflines(facts: Facts) -> str:
    """Both phases as one file."""
    charts = [tag("g", roofline_svg(facts, phase), transform=f"translate({n * WIDTH:.0f} 0)")
              for n, phase in enumerate(("prefill", "decode"))]  # fmt: skip
    size = {"width": 2 * WIDTH, "height": HEIGHT}
    return tag("svg", tag("rect", **size, fill=GROUND), *charts, **size, color=INK,
               xmlns="http://www.w3.org/2000/svg")  # fmt: skip
