"""A collective that has run, beside its schedule: what each device held before and after, and whether both agree.

    >>> ran = run_facts("all_gather", "x:4", "ring", True, before, after)
    >>> ran["same"], ran["rows"][3]["after"]
    (True, '0, 1, 10, 11, 20, 21, 30, 31')

Values are whole numbers that tell devices apart: device 3 starts with 30, 31, … Next file to read:
`../explorers/traffic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore import schedules
from mtfcore.one_collective import call_text
from widgets.figures.traffic import NAMES, Facts, planned
from widgets.figures.words import device_words
from widgets.numbers import count

MOST_VALUES = 16


def arrays_for(kind: str, n_devices: int) -> list[np.ndarray]:
    """One array for each device: two numbers, or one for each block of the group."""
    apart = 10 if n_devices <= 10 else 100
    length = n_devices if kind in ("reduce_scatter", "all_reduce", "all_to_all") else 2
    return [np.arange(length, dtype=np.float32) + apart * device for device in range(n_devices)]


def run_facts(
    kind: str, mesh: str, way: str, at_once: bool, before: Sequence[Any], after: Sequence[np.ndarray]
) -> Facts:
    """Each device's values, and those that the schedule's hops leave there."""
    grid = mtf.Mesh(mesh)
    ends = schedules.replay(planned(kind, grid.axes, way, at_once), before)
    rows = [
        {
            "device": device_words(grid.coordinates(device), device),
            "before": values(before[device]),
            "after": values(after[device]),
            "schedule": values(ends[device]),
            "same": bool(np.array_equal(after[device], ends[device])),
        }
        for device in range(grid.size)
    ]
    same = all(row["same"] for row in rows)
    return {"rows": rows, "same": same, "kind": kind, "mesh": mesh, "way": way, "call": call_text(kind, grid)}


def values(array: Any) -> str:
    """A few numbers as text."""
    shown = ", ".join(f"{value:g}" for value in np.ravel(array)[:MOST_VALUES])
    return shown + (", …" if np.size(array) > MOST_VALUES else "")


def verdict(ran: Facts, on: str) -> str:
    """One sentence: whether the run and the schedule agree, and where not."""
    n = len(ran["rows"])
    if ran["same"]:
        return (
            f"The real {NAMES[ran['kind']]} ran on {count(n, f'{on} device')}: each of them holds exactly what the "
            f"schedule's last hop leaves there."
        )
    first = next(row for row in ran["rows"] if not row["same"])
    wrong = sum(not row["same"] for row in ran["rows"])
    return f"{wrong} of {count(n, f'{on} device')} differ from the schedule; the first is {first['device']}."


def run_html(ran: Facts, on: str) -> str:
    """The verdict, the JAX call, and one row a device."""
    names = ("device", "before", "after, this run", "schedule's end", "")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(_row(n, row) for n, row in enumerate(ran["rows"]))
    return (
        f'<div class="mw mw-ran" data-same="{str(ran["same"]).lower()}"><b>{escape(verdict(ran, on))}</b> '
        f"Small arrays, so that they can be read; who gets what does not depend on their size. "
        f"<code>{escape(ran['call'])}</code>"
        f'<div class="mw-ran-body" tabindex="0" role="group" aria-label="values before and after"><table>'
        f"<tr>{head}</tr>{rows}</table></div></div>"
    )


def _row(number: int, row: Facts) -> str:
    mark = "same" if row["same"] else "differs"
    cells = "".join(f'<td data-when="{when}">{escape(row[when])}</td>' for when in ("before", "after", "schedule"))
    return f'<tr data-ran="{number}" data-mark="{mark}"><td>{escape(row["device"])}</td>{cells}<td>{mark}</td></tr>'
