"""Modelled, compiled, measured and published side by side: bars of seconds, what ran before, a table with errors.

    >>> run_html(facts)[:18]
    '<style>.mw-runs{po'

Facts are those of `explorers/run_columns` and what the explorer adds: `old` names the columns whose numbers are of
other settings, `history` the records. A number is greyed where it is old, and its cell says on hover where it comes
from. Everything from outside is escaped. Next file to read: `run_words`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from widgets.figures.bars_svg import Bar, Part, bars_svg, legend
from widgets.figures.svg import tag, text
from widgets.numbers import quantity, tagged_html
from widgets.theme import COMPUTE, GROUND, INK, LINKS, MEMORY

Facts = dict[str, Any]
COLUMNS = ("modelled", "compiled", "measured", "published")
OLD, ONE = "#A8A8A8", {"compiled": "#5B8DB8", "measured": "#0072B2", "published": "#8C8C8C"}
PARTS = {"compute": ("computing", COMPUTE), "hbm": ("memory", MEMORY), "link": ("collectives", LINKS)}
WAITS = {"launch": "starting collectives", "link": "links", "hops": "hops", "hbm": "HBM", "compute": "computing"}
MISSING = {
    "compiled": "press Compile", "measured": "press Run on device", "published": "no row of the papers is this",
}  # fmt: skip
SHORT = 12  # letters that have room behind a bar
STYLE = """.mw-runs{position:relative;padding-bottom:4.8em}.mw-runs .mw-list{height:128px}
.mw-runs .mw-list td{white-space:normal;vertical-align:top}
.mw-runs .mw-from{display:none;position:absolute;left:0;right:0;bottom:0;height:4.6em;overflow:auto;padding:2px 6px;
white-space:normal;background:var(--jp-layout-color2,#f2f2f2);border-left:4px solid var(--jp-border-color1,#bbb)}
.mw-runs tr:hover .mw-from,.mw-runs tr:focus-within .mw-from,.mw-runs .mw-nobody{display:block}
.mw-runs tr:hover .mw-from{z-index:2}
.mw-side{overflow-x:auto;margin-top:6px}.mw-side table{border-collapse:collapse}
.mw-side th,.mw-side td{padding:1px 0 1px 12px;text-align:right;white-space:nowrap;vertical-align:top;
border-bottom:1px solid var(--jp-border-color2,#ccc)}
.mw-side th[scope=row]{text-align:left;font-weight:400;padding-left:0;position:sticky;left:0;
background:var(--jp-layout-color0,#fff)}
.mw-side .mw-by{display:inline-block;font-size:.85em;min-width:5em}.mw-side .mw-old{opacity:.55}
.mw-side th .mw-by{display:block;min-height:1.45em;font-weight:400}.mw-side .mw-origin{font-size:.75em}
.mw-about{min-height:3em}
@media (max-width:700px){.mw-side{font-size:11px}.mw-side td,.mw-side th{padding-left:5px}
.mw-side th[scope=row]{white-space:normal;min-width:78px}.mw-side td .mw-origin{display:block;border:0;text-align:right}
.mw-side .mw-by{display:block;min-width:0;min-height:1.5em}
.mw-side th .mw-by{white-space:normal;min-height:4.5em;max-width:74px;margin-left:auto}
.mw-about{min-height:4.5em}}"""


def run_html(facts: Facts) -> str:
    """Above the sentence: bars on the left, history on the right."""
    marks = legend([*(PARTS[part] for part in PARTS), ("computing and memory, compiled", ONE["compiled"])])
    left = f"{bars(facts)}{marks}"
    return (
        f'<style>{STYLE}</style><div class="mw-charts"><div class="mw-slot" style="flex:1.2 1 400px">{left}</div>'
        f'<div class="mw-slot" style="flex:1 1 340px">{history(facts)}</div></div>'
    )


# ---- seconds


def bars(facts: Facts) -> str:
    """One bar a column; what nobody knows yet says how to get it."""
    cells = facts["cells"]["seconds"]
    known = [cell["value"] for column, cell in cells.items() if cell and column not in facts["old"]]
    drawn = [_modelled(facts), *(_bar(facts, column) for column in COLUMNS[1:])]
    note = f"waits most for {WAITS[facts['bottleneck']]} (modelled)"
    top = 1.25 * max(known, default=1.0)  # so that a number and its error have room behind the longest bar
    return bars_svg(f"Seconds of one launch on {facts['topology']}", drawn, top, rows=4,
                    name="seconds", note=note)  # fmt: skip


def _modelled(facts: Facts) -> Bar:
    cell = facts["cells"]["seconds"]["modelled"]
    parts = tuple(Part(value, PARTS[part][1], f"{PARTS[part][0]}: {quantity(value, 's')}, modelled")
                  for part, value in facts["parts"].items() if value)  # fmt: skip
    return Bar("modelled", parts, _says(cell), hint=cell["words"])


def _bar(facts: Facts, column: str) -> Bar:
    cell, old = facts["cells"]["seconds"][column], facts["old"].get(column, "")
    if cell is None:
        return Bar(column, reason=facts["missing"].get(column) or MISSING[column])
    words = f"{column}: {cell['text']}"
    work, links = (facts["cells"][row][column] for row in ("local", "links"))
    parts: tuple[Part, ...]
    if old or not (work and links):
        parts = (Part(cell["value"], OLD if old else ONE[column], words),)
    else:
        pairs = (("computing, HBM", work, ONE["compiled"]), ("collectives that nothing hides", links, LINKS))
        parts = tuple(Part(part["value"], colour, f"{name}: {part['text']}, modelled") for name, part, colour in pairs)
    said = f", for {old}" if len(old) < SHORT else ", other settings"  # the table's head names them
    return Bar(column, parts, f"{_says(cell)}{said if old else ''}", hint=cell["words"])


def _says(cell: Facts) -> str:
    return f"{cell['text']}{f' ({percent(cell)})' if cell['error'] is not None else ''}"


def percent(cell: Facts) -> str:
    """An error in per cent, with its sign; what rounds to nothing is said to agree."""
    error = 100 * cell["error"]
    return f"{error:+.1f} %" if abs(error) >= 0.05 else "±0 %"


# ---- the table


def side_by_side(facts: Facts) -> str:
    """Below the sentence: rows by columns, an error beside each number that has one."""
    head = "".join(f'<th scope="col">{tagged_html(f"[{column}]")}{_of(facts, column)}</th>' for column in COLUMNS)
    rows = "".join(_row(facts, row, label) for row, label in facts["rows"].items())
    about = f"Of one device; errors of times against what is {facts['truth']}, of bytes and FLOPs against the plan."
    table = f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<style>{STYLE}</style><div class="mw-side">{table}</div><div class="mw-about">{about}</div>'


def _of(facts: Facts, column: str) -> str:
    said = facts["old"].get(column, "")
    said = f"for {said}" if said else facts["heads"].get(column, "")
    return f'<span class="mw-by">{html.escape(said)}&nbsp;</span>'


def _row(facts: Facts, row: str, label: str) -> str:
    cells = "".join(_cell(facts, row, column) for column in COLUMNS)
    return f'<tr data-row="{html.escape(row)}"><th scope="row">{html.escape(label)}</th>{cells}</tr>'


def _cell(facts: Facts, row: str, column: str) -> str:
    cell, name = facts["cells"][row][column], f'data-cell="{html.escape(row)}.{column}"'
    if cell is None:
        return f'<td {name}>–<span class="mw-by"></span></td>'
    word = "" if cell["origin"] == column else tagged_html(f" [{cell['origin']}]")
    error = "" if cell["error"] is None or column in facts["old"] else percent(cell)
    old = ' class="mw-old"' if column in facts["old"] else ""
    data = f'data-value="{cell["value"]:.8g}" title="{html.escape(cell["words"])}"'
    return f'<td {name} {data}{old}>{word} {html.escape(cell["text"])}<span class="mw-by">{error}</span></td>'


# ---- what ran before


def history(facts: Facts) -> str:
    """One line a run, the newest first; pointing at it shows its provenance, picking it loads its settings."""
    rows = "".join(_ran(one) for one in facts["history"]) or '<tr><td colspan="3">Nothing has run yet.</td></tr>'
    head = "".join(f'<th scope="col">{word}</th>' for word in ("what, when (UTC)", "gave", ""))
    nobody = "Point at a run to read where its numbers come from."
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return (
        f'<div class="mw-runs"><b>What ran and was compiled here</b><div class="mw-list" data-scrolls tabindex="0">'
        f'{table}</div><div class="mw-from mw-nobody">{nobody}</div></div>'
    )


def _ran(one: Facts) -> str:
    words, key = html.escape(one["words"]), html.escape(one["id"])
    button = f'<button class="mw-button" data-pick="record:{key}" aria-label="show: {words}">show</button>'
    place = f'{button if one["loads"] else ""}<div class="mw-from">{words}</div>'
    cells = (html.escape(f"{one['what']}, {one['when']}"), tagged_html(one["gave"]), place)
    inside = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr data-record="{key}" data-status="{html.escape(one["status"])}">{inside}</tr>'


# ---- as one file


def run_svg(facts: Facts, width: float = 620.0) -> str:
    """Bars and table as one SVG."""
    height = 170.0 + 17 * len(facts["rows"])
    inside = [tag("rect", width=width, height=height, fill=GROUND), bars(facts), *_lines(facts, width)]
    return tag("svg", *inside, viewBox=f"0 0 {width:.0f} {height:.0f}", width=width, height=height, color=INK,
               font_family="sans-serif", xmlns="http://www.w3.org/2000/svg")  # fmt: skip


def _lines(facts: Facts, width: float) -> Iterator[str]:
    places = [150 + n * (width - 150) / len(COLUMNS) for n in range(len(COLUMNS))]
    for x, column in zip(places, COLUMNS, strict=True):
        yield text(column, x, 158, 0, 11, font_weight="bold")
    for n, (row, label) in enumerate(facts["rows"].items(), 1):
        yield text(label, 4, 158 + 17 * n, 144, 11)
        for x, column in zip(places, COLUMNS, strict=True):
            cell = facts["cells"][row][column]
            yield text(_says(cell) if cell else "–", x, 158 + 17 * n, (width - 150) / len(COLUMNS) - 6, 11)
