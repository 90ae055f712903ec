"""The feedforward explorer's two charts: bytes against tokens for every layout, and what moves at this batch.

    >>> feedforward_html(layer_facts(Layer(18432, 73728), (4, 4, 4)))[:23]
    '<div class="mw-charts">'

Lines come from planned programs, the small circles on them from the closed forms, hollow diamonds from Figure 3 of
arXiv 2211.05102. A line is dotted where a layout has fewer sequences than it cuts the batch into. Lines have dashes
and names as well as colours; those of mesh axes are left to mesh axes. A layout is picked on its line or its bar. Next
file to read: `feedforward_words`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

import numpy as np

from widgets.figures.bars_svg import Bar, Part, bars_svg, legend
from widgets.figures.feedforward import Facts, Layer, closed_form
from widgets.figures.log_axes import GREY, LogAxes, around
from widgets.figures.on_device import HALO
from widgets.figures.svg import tag, text
from widgets.numbers import origin, quantity, tagged_html
from widgets.theme import GROUND, INK

TOKENS = (32.0, 3.3e7)
WIDTH, HEIGHT = 500.0, 330.0
LINES = {
    "ws1d": ("#8C8C8C", "7 4"), "ws2d": ("#CC79A7", None), "wg_x": ("#B8860B", "9 3 2 3"), "wg_xy": ("#8E5BD0", "2 3"),
    "wg_xyz": ("#2A9D9D", None),
}  # fmt: skip
PARTS = {"x": ("x, width E", "#CC79A7"), "hidden": ("hidden, width F", "#E8C4D8"), "weights": ("weights", "#0B4F79")}
CUT = 6.0  # times the best, beyond which a bar is cut


def feedforward_html(facts: Facts, chart: str = "") -> str:
    """The lines, or another chart instead, and beside them the bars with their legend."""
    marks, drawn = legend([PARTS[part] for part in PARTS]), chart or lines_svg(facts)
    return (
        f'<div class="mw-charts"><div class="mw-slot" style="flex:1.3 1 430px">{drawn}</div>'
        f'<div class="mw-slot" style="flex:1 1 340px">{bars(facts)}{marks}{formula_html(facts)}</div></div>'
    )


FORMULAS = {
    "ws1d": {"x": "2 · BL · E"},
    "ws2d": {"x": "2 · BL · E/X", "hidden": "2 · BL · F/YZ"},
    "wg_x": {"weights": "2 · E · F · X/n", "x": "2 · BL · E/X"},
    "wg_xy": {"weights": "2 · E · F · XY/n", "x": "2 · BL · E/XY"},
    "wg_xyz": {"weights": "2 · E · F"},
}  # numbers that one device moves, as section 3.2 counts them


def formula_html(facts: Facts) -> str:
    """The chosen layout's closed form, part by part, beside the bytes of its planned steps."""
    row = next(row for row in facts["rows"] if row["layout"] == facts["chosen"])
    lines = [_formula(facts, row, part, words) for part, words in FORMULAS[row["layout"]].items()]
    lines += ["<tr><td>&nbsp;</td></tr>"] * (2 - len(lines))
    head = f"<b>{row['layout']}</b>: numbers, times bytes"
    count = "" if facts["counted"] == "paper" else " and (K−1)/K"
    style, inside = "margin-top:6px;overflow-x:auto", f"<div>{head}{count}</div><table>{''.join(lines)}</table>"
    return f'<div class="mw-formula" style="{style}">{inside}</div>'


def _formula(facts: Facts, row: Facts, part: str, words: str) -> str:
    if facts["gated"]:  # a third matrix, and what it makes
        words = {"weights": words.replace("2", "3", 1), "hidden": words.replace("2", "3", 1)}.get(part, words)
    n_bytes = tagged_html(origin(quantity(row["parts"][part], "iB"), "modelled"))
    what = {"x": "x", "hidden": "hidden", "weights": "weights"}[part]
    pad = 'style="padding:0 12px 0 0;text-align:left"'
    cells = f'<td {pad}>{words}</td><td data-moved="{part}">{n_bytes}</td>'
    return f'<tr><th scope="row" {pad}>{what}</th>{cells}</tr>'


def saved_feedforward(facts: Facts, chart: str = "") -> str:
    """Both as one SVG file."""
    placed = [chart or lines_svg(facts), tag("g", bars(facts), transform=f"translate({WIDTH:.0f} 0)")]
    size = {"width": WIDTH + 420, "height": HEIGHT}
    return tag("svg", tag("rect", **size, fill=GROUND), *placed, **size, color=INK,
               xmlns="http://www.w3.org/2000/svg")  # fmt: skip


# ---- bytes against tokens


def lines_svg(facts: Facts) -> str:
    """One line a layout, the crossings, and where we are."""
    axes = axes_of(facts)
    drawn = [part for row in facts["rows"] if row["line"] for part in _line(axes, facts, row)]
    here = (part for row in facts["rows"] if not row["reason"] for part in _here(axes, facts, row))
    inside = [
        *axes.ground(_title(facts)), _now(axes, facts), *_crossings(axes, facts), *drawn, *_checks(axes, facts), *here,
        *_published(axes, facts), *_names(axes, facts),
    ]  # fmt: skip
    label = "bytes that one device moves against tokens; the numbers stand in the table of the details"
    return axes.svg(*inside, label=label, data_chart="lines", data_best=facts["best"], data_chosen=facts["chosen"])


def _title(facts: Facts) -> str:
    ratio = quantity(facts["d_ff"] / facts["d_model"])
    how = "modelled" if facts["counted"] == "sent" else "modelled, as the paper counts"
    return f"F/E = {ratio}: what one device moves for a layer ({how})"


def axes_of(facts: Facts) -> LogAxes:
    """A ground that stays while the batch moves."""
    values = [max(at(row["line"], tokens), 1.0) for row in facts["rows"] if row["line"] for tokens in TOKENS]
    low, high = around([*values, *(p["n_bytes"] for p in facts["published"])], 1.0)
    return LogAxes(
        TOKENS, (low, max(high, 1000 * low)), "tokens in the batch", "bytes sent by a device", y_unit="B", width=WIDTH,
        height=HEIGHT, left=64.0, right=58.0,
    )  # fmt: skip


def at(line: tuple[float, float], tokens: float) -> float:
    """Bytes of a line there."""
    return line[0] + line[1] * tokens


def samples(count: int) -> list[float]:
    """Tokens at even distances on the axis."""
    low, high = TOKENS
    return [low * (high / low) ** (n / (count - 1)) for n in range(count)]


def _line(axes: LogAxes, facts: Facts, row: Facts) -> Iterator[str]:
    """Solid where the batch can be cut so far, dotted below; it answers to the mouse over a wider path."""
    colour, dash = LINES[row["layout"]]
    begin = min(max(row["from"], TOKENS[0]), TOKENS[1])
    wide = 3.4 if row["layout"] == facts["chosen"] else 1.8
    points = [(tokens, at(row["line"], tokens)) for tokens in samples(57)]
    first = (begin, at(row["line"], begin))
    before, after = [p for p in points if p[0] < begin], [p for p in points if p[0] > begin]
    how = {"fill": "none", "stroke": colour, "pointer_events": "none"}
    parts = []
    if before:
        parts.append(tag("path", d=axes.path([*before, first]), stroke_width=1.2, stroke_dasharray="1 4", **how))
    if after:
        parts.append(tag("path", d=axes.path([first, *after]), stroke_width=wide, stroke_dasharray=dash, **how))
    reach = tag("path", d=axes.path(points), fill="none", stroke="transparent", stroke_width=11, cls="mw-reach")
    says = f"{row['layout']}: {row['reason'] or quantity(row['n_bytes'], 'iB') + ' a device, modelled'}"
    pick = None if row["reason"] else f"layout:{row['layout']}"
    yield tag("g", tag("title", html.escape(says)), reach, *parts, data_line=row["layout"], data_pick=pick)


def _here(axes: LogAxes, facts: Facts, row: Facts) -> Iterator[str]:
    """A dot for each layout at this batch."""
    colour, chosen = LINES[row["layout"]][0], row["layout"] == facts["chosen"]
    yield tag(
        "circle", cx=axes.x(facts["tokens"]), cy=axes.y(row["n_bytes"]), r=6.0 if chosen else 3.5, fill=colour,
        stroke="currentColor" if chosen else GREY, stroke_width=2 if chosen else 0.8, pointer_events="none",
        data_at=row["layout"], data_bytes=f"{row['n_bytes']:.8g}",
    )  # fmt: skip


def _now(axes: LogAxes, facts: Facts) -> str:
    x, low = axes.x(facts["tokens"]), axes.height - axes.bottom
    return tag(
        "path", d=f"M{x:.1f} {low}V{axes.top}", stroke="currentColor", stroke_width=1.2, data_tokens=facts["tokens"]
    )


def _crossings(axes: LogAxes, facts: Facts) -> Iterator[str]:
    """Where the winner changes: an upright line, and its tokens at the top in turns of two heights."""
    seen = [each for each in facts["crossings"] if TOKENS[0] < each["tokens"] < TOKENS[1]]
    for n, each in enumerate(seen):
        x = axes.x(each["tokens"])
        yield tag("path", d=f"M{x:.1f} {axes.height - axes.bottom}V{axes.top}", stroke=GREY, stroke_dasharray="3 3",
                  data_crossing=each["layout"], data_from=f"{each['tokens']:.6g}")  # fmt: skip
        words = f"{each['layout']} from {crossing_words(facts, each['tokens'])}"
        yield text(words, x - 4, axes.top + 11 + 13 * n, 0, 10.5, text_anchor="end", style=HALO)


def crossing_words(facts: Facts, tokens: float) -> str:
    """A number of tokens, and what it is of E or F where that is a whole number of times."""
    for name, size, most in (("E", facts["d_model"], 1), ("F", facts["d_ff"], 64), ("E", facts["d_model"], 64)):
        times = tokens / size
        if abs(times - round(times)) < 1e-9 and 1 <= round(times) <= most:
            return f"{tokens:,.0f} = {round(times) if times > 1.5 else ''}{name}"
    return f"{tokens:,.0f}"


def _checks(axes: LogAxes, facts: Facts) -> Iterator[str]:
    """The closed form of each layout at a few numbers of tokens."""
    layer = Layer(facts["d_model"], facts["d_ff"], facts["batch"], facts["length"], facts["gated"], facts["weights"],
                  facts["counted"])  # fmt: skip
    for row in facts["rows"]:
        if row["line"]:
            tokens = np.array(samples(13)[1:-1])
            spots = zip(tokens.tolist(), closed_form(row["layout"], layer, tuple(facts["mesh"]), tokens).tolist())
            data = "".join(f"M{axes.x(t) - 2:.1f} {axes.y(b):.1f}a2 2 0 1 0 4 0a2 2 0 1 0 -4 0" for t, b in spots)
            colour = LINES[row["layout"]][0]
            yield tag("path", d=data, fill="none", stroke=colour, pointer_events="none", data_closed=row["layout"])


def _published(axes: LogAxes, facts: Facts) -> Iterator[str]:
    for point in facts["published"]:
        x, y, r = axes.x(point["tokens"]), axes.y(point["n_bytes"]), 4.5
        says = f"{point['where']}, {point['layout']}, {point['tokens']:,} tokens: {quantity(point['n_bytes'], 'B')}"
        shape = f"M{x - r:.1f} {y:.1f}l{r} {-r}l{r} {r}l{-r} {r}z"
        yield tag("path", tag("title", f"{html.escape(says)}, published"), d=shape, fill="none", stroke="currentColor",
                  stroke_width=1.2, data_published=point["layout"])  # fmt: skip


def _names(axes: LogAxes, facts: Facts) -> Iterator[str]:
    """Each layout's name at the right end of its line; where ends meet, one below the other."""
    drawn = sorted((row for row in facts["rows"] if row["line"]), key=lambda row: -at(row["line"], TOKENS[1]))
    feet = spread([axes.y(at(row["line"], TOKENS[1])) + 4 for row in drawn], 13.0)
    for row, foot in zip(drawn, feet, strict=True):
        weight = "bold" if row["layout"] == facts["chosen"] else None
        yield text(row["layout"], axes.width - axes.right + 5, foot, 0, 11.5, font_weight=weight)


def spread(feet: Sequence[float], room: float) -> list[float]:
    """The same places from the top down, none nearer to the one before than `room`."""
    found: list[float] = []
    for foot in feet:
        found.append(max(foot, found[-1] + room) if found else foot)
    return found


# ---- what moves at this batch


def bars(facts: Facts) -> str:
    """Every layout's bytes at this batch, by what they are; what cannot be says why."""
    known = [row["n_bytes"] for row in facts["rows"] if not row["reason"]]
    top = min(max(known, default=1.0), CUT * (min(known, default=1.0) or 1.0)) or 1.0
    drawn = [_bar(facts, row) for row in facts["rows"]]
    batch = (
        f"{facts['tokens']:,} tokens" if facts["length"] == 1 else f"{facts['batch']:,} × {facts['length']:,} tokens"
    )
    note = (
        "pick one to look at it; pick it again for the best" if facts["asked"] != "best" else "pick one to look at it"
    )
    return bars_svg(f"At {batch}, by what moves (modelled)", drawn, top, rows=5, name="layouts", note=note)


def _bar(facts: Facts, row: Facts) -> Bar:
    layout, chosen = row["layout"], row["layout"] == facts["chosen"]
    if row["reason"]:
        return Bar(layout, reason=row["reason"], hint=f"{layout}: {row['reason']}")
    parts = tuple(
        Part(row["parts"][part], colour, f"{words}: {quantity(row['parts'][part], 'iB')}, modelled")
        for part, (words, colour) in PARTS.items() if row["parts"][part]
    )  # fmt: skip
    words = quantity(row["n_bytes"], "iB")
    hint = f"{layout}: {words} a device, modelled"
    return Bar(layout, parts, words, pick=f"layout:{layout}", chosen=chosen, best=layout == facts["best"], hint=hint)
