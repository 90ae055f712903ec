"""What the course asks for, as data: lessons, their checks and predictions, in order.

    >>> course()[1].stem, course()[1].checks[0]
    ('01_named_dimensions', '01 copies')

`outline.json` is made from the lessons' sources by `make lessons`, so nothing here imports a lesson: a teacher's
computer reads a class with this alone. Next file to read: `standing.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("outline.json")


@dataclass(frozen=True)
class Asked:
    """A prediction that a lesson asks for; `origin` is where its result's number comes from."""

    name: str  # "01 rows"
    question: str
    unit: str
    choices: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class Lesson:
    """One lesson: its file's name without ending, its title, and what it asks for."""

    stem: str  # "01_named_dimensions"
    title: str
    checks: tuple[str, ...]  # "01 copies"
    predictions: tuple[Asked, ...]

    @property
    def number(self) -> str:
        """Its two digits: `01`."""
        return self.stem[:2]


@cache
def course() -> tuple[Lesson, ...]:
    """All lessons, in order."""
    return tuple(
        Lesson(row["stem"], row["title"], tuple(row["checks"]), tuple(_asked(each) for each in row["predictions"]))
        for row in json.loads(FILE.read_text(encoding="utf-8"))
    )


def _asked(row: dict) -> Asked:
    return Asked(row["name"], row["question"], row["unit"], tuple(row["choices"]), row["origin"])
