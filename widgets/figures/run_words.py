"""The run explorer in words: what one launch takes by whom, what ran where, and the same as a table.

    >>> sentence(facts)
    'One launch of decode on v4:4x4x4: 30 ms [modelled]; its compiled schedule gives 28.5 ms [modelled], …'

Next file to read: `../explorers/run`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from widgets.figures.run_html import COLUMNS, percent
from widgets.numbers import count, origin, quantity

Facts = dict[str, Any]
SAID = {
    "compiled": "its compiled schedule gives {}", "measured": "{} on {where}", "published": "{} in {where}",
}  # fmt: skip


def sentence(facts: Facts) -> str:
    """Seconds of every origin, and what an answer or a refusal has shown."""
    cells = facts["cells"]["seconds"]
    times = [f"{facts['title']} on {facts['topology']} takes {_time(cells['modelled'])}"]
    for column, words in SAID.items():
        if cells[column] and column not in facts["old"]:
            times.append(words.format(_time(cells[column]), where=facts["heads"].get(column, "")))
    return " ".join([f"{'; '.join(times)}.", *_more(facts)])


def _time(cell: Facts) -> str:
    error = f" ({percent(cell)})" if cell["error"] is not None else ""
    return f"{origin(cell['text'], cell['origin'])}{error}"


def _more(facts: Facts) -> Iterator[str]:
    if facts["refusal"]:
        yield f"{facts['refusal'][:1].upper()}{facts['refusal'][1:]} [compiled]."
    elif not facts["fits"]:
        memory = facts["cells"]["memory"]["modelled"]
        yield f"It holds {origin(memory['text'], 'modelled')} where {quantity(facts['capacity'], 'iB')} are: too full."
    if facts["differences"] and "compiled" not in facts["old"]:
        others = f"; and {count(len(facts['differences']) - 1, 'other')}" if len(facts["differences"]) > 1 else ""
        yield f"Not as planned: {facts['differences'][0]}{others}."
    if facts["share"]:
        yield f"{facts['share']}."
    if facts["simulated"]:
        yield facts["simulated"]


def off(error: float) -> str:
    """How far an answer is from the right one."""
    return f"{origin(f'{error:.0e}' if error else '0', 'measured')} off"


def simulated_words(devices: int, error: float | None, against: str, seconds: float, as_planned: bool | None) -> str:
    """What a simulated run has shown; its time is nobody's, and a class's owner counts nothing."""
    checked = f"not checked: {against}"
    if error is not None:
        checked = f"that of one device, {off(error)} at most"
    counted = {
        None: "",
        True: " bytes and FLOPs [counted] as planned;",
        False: " bytes or FLOPs [counted] NOT as planned;",
    }
    here = f"{quantity(seconds, 's')} a run of this computer [measured], which is no hardware's speed"
    return f"On {count(devices, 'simulated device')} the answer is {checked};{counted[as_planned]} {here}."


def table(facts: Facts) -> list[tuple[str, ...]]:
    """The same side by side, each number with its origin and its error."""
    rows: list[tuple[str, ...]] = [("of one device", *COLUMNS)]
    for row, label in facts["rows"].items():
        rows.append((label, *(_said(facts, facts["cells"][row][column], column) for column in COLUMNS)))
    rows += [("differs from the plan", "", why, "", "") for why in facts["differences"]]
    rows += [(one["when"], one["what"], one["gave"], one["words"], "") for one in facts["history"][:20]]
    return rows


def _said(facts: Facts, cell: Facts | None, column: str) -> str:
    if cell is None:
        return "–"
    old = f", for {facts['old'][column]}" if column in facts["old"] else ""
    error = f", {percent(cell)}" if cell["error"] is not None and not old else ""
    return f"{origin(cell['text'], cell['origin'])}{error}{old}"
