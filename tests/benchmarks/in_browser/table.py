"""docs/speed.md from what was measured: each figure beside its limit, and what the figures are worth.

Next file to read: __main__.py.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .limits import CPU_SECONDS, FIRST_PICTURE_SECONDS, MEDIAN_MS, SHARE95_MS, Found, misses

Row = Mapping[str, Any]
HEAD = """# How fast it is

Made by `make speed`; do not edit. Every figure is measured in a real browser, on {machine}.
Date: {date}. {versions}.
{verdict}
"""
SLIDERS = f"""
## From a hand to the picture

Limits: median at most {MEDIAN_MS:.0f} ms, 95 % at most {SHARE95_MS:.0f} ms. A move begins at its event's own time stamp
and ends at the second animation frame after the page holds the picture that stays, with its sentence: that frame has
been painted. Real mouse and keys, a fifth of a second or more between two moves; both settings that were seen before
and new ones. `released` is the time from the end of a drag of the first slider, with an event every 16 ms, to the
picture that stays. `handler` is the kernel's part.
"""
LESSONS = f"""
## Lessons

Limits: at most {CPU_SECONDS:.0f} s of CPU, first picture within {FIRST_PICTURE_SECONDS:.0f} s of opening the lesson.
The solved notebooks, Run All: a student's when all exercises are done. CPU is the kernel's and of every process that it
started. The first picture is that of the first explorer, with the setup cell and the cells that it needs, timed from
opening the lesson. Size: the file with its outputs.
"""
START = f"""
## From `make lab` to the first picture

Limit: the first picture within {FIRST_PICTURE_SECONDS:.0f} s of opening the lesson. Lesson 00, medians of {{n}} starts,
with everything installed.
"""
WORDS = {
    "server": "server answers", "notebook": "then the notebook is shown", "kernel": "then its kernel is ready",
    "setup_cell": "then the setup cell has run", "first_picture": "from opening the lesson to the first picture",
    "all": "from `make lab` to the first picture",
}  # fmt: skip


def page(found: Found, machine: str, date: str, versions: str, wrong: Sequence[str]) -> str:
    """The whole page."""
    verdict = "\nEvery limit is met." if not wrong else "\nMissed:\n\n" + "\n".join(f"- {each}" for each in wrong)
    parts = {"start": start, "sliders": sliders, "lessons": lessons}
    told = [parts[part](rows) for part, rows in found.items()]
    return HEAD.format(machine=machine, date=date, versions=versions, verdict=verdict) + "".join(told)


def sliders(rows: Sequence[Row]) -> str:
    """The explorers' table."""
    head = ("explorer", "moves", "median", "95 %", "slowest control", "released", "handler, 95 %", "")
    told = (
        (row["name"], row["n"], _ms(row["median"]), _ms(row["share95"]), f"`{row['slowest']}`", _ms(row["released"]),
         f"{_ms(row['handler'])}, {_ms(row['handler95'])}", _passes("sliders", row)) for row in rows
    )  # fmt: skip
    return SLIDERS + table(head, told)


def lessons(rows: Sequence[Row]) -> str:
    """The lessons' table."""
    told = (
        (row["name"].replace("_", " "), _s(row["cpu"]), _s(row["wall"]),
         _s(row["first_picture"]) if row["first_picture"] else "no explorer", f"{row['n_bytes'] / 1e3:,.0f} kB",
         _passes("lessons", row)) for row in rows
    )  # fmt: skip
    return LESSONS + table(("lesson", "CPU", "wall", "first picture", "size", ""), told)


def start(rows: Sequence[Row]) -> str:
    """The start, part by part."""
    middle = {name: statistics.median(row[name] for row in rows) for name in WORDS}
    told = ((WORDS[name], _s(value), _passes("start", {name: value}) if name == "first_picture" else "")
            for name, value in middle.items())  # fmt: skip
    return START.format(n=len(rows)) + table(("part", "seconds", ""), told)


def table(head: Sequence[str], rows: Iterator[Sequence[object]]) -> str:
    """Markdown, numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n" + "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in lines)


def _passes(part: str, row: Row) -> str:
    return "**misses**" if misses(part, row) else "passes"


def _ms(value: float) -> str:
    return f"{value:.0f} ms"


def _s(value: float) -> str:
    return f"{value:.1f} s"
