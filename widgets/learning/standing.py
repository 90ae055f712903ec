"""Where one student stands in one lesson, and how far a prediction was from its result. Plain facts, no page.

    >>> apart(8, 4), how_far({"answer": 8, "actual": 4})
    (2.0, '2 times the result')
    >>> standings(checks={"01 copies": {"passed": True, "tries": 3, "help": 1}}, predictions={})[1].passed
    1

Both readers of progress build on it: the student's own view (`progress_view.py`) and the teacher's (`classroom.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .outline import Asked, Lesson, course

Entry = Mapping[str, Any]
Entries = Mapping[str, Entry]
NONE: Entry = {}


@dataclass(frozen=True)
class Standing:
    """One student in one lesson; entries as the progress file has them, only those that the lesson asks for."""

    lesson: Lesson
    checks: Entries
    predictions: Entries

    def _sum(self, field: str) -> int:
        return sum(int(entry.get(field, 0)) for entry in self.checks.values())

    @property
    def passed(self) -> int:
        """Checks passed."""
        return self._sum("passed")

    @property
    def tries(self) -> int:
        """Answers that were judged, up to the first of each check that passes."""
        return self._sum("tries")

    @property
    def helps(self) -> int:
        """Steps of help taken, at most three a check."""
        return self._sum("help")

    @property
    def guessed(self) -> int:
        """Predictions made, before or after the result was shown."""
        return sum("answer" in entry for entry in self.predictions.values())

    @property
    def guessed_before(self) -> int:
        """Predictions made before the result was shown: those that count."""
        return sum("answer" in entry and bool(entry.get("before")) for entry in self.predictions.values())

    @property
    def started(self) -> bool:
        """Whether anything was answered: opening a lesson, or running it unanswered, is no start."""
        return bool(self.tries or self.helps or self.passed or self.guessed)

    @property
    def finished(self) -> bool:
        """Whether all its checks pass."""
        return self.passed == len(self.lesson.checks)

    @property
    def open_checks(self) -> list[str]:
        """Checks not passed yet, in the lesson's order."""
        return [name for name in self.lesson.checks if not self.checks.get(name, NONE).get("passed")]


def standings(checks: Entries, predictions: Entries) -> list[Standing]:
    """One student in each lesson of the course."""
    return [
        Standing(
            lesson,
            {name: checks[name] for name in lesson.checks if name in checks},
            {asked.name: predictions[asked.name] for asked in lesson.predictions if asked.name in predictions},
        )
        for lesson in course()
    ]


def next_up(rows: list[Standing]) -> Standing | None:
    """The lesson to go on with: the first that is begun and open, else the first not begun, else none."""
    waiting = [row for row in rows if not row.finished]
    return next((row for row in waiting if row.started), waiting[0] if waiting else None)


def apart(answer: Any, actual: Any) -> float | None:
    """The prediction as so many times the result; None where there is no such number."""
    if any(isinstance(value, str | None) for value in (answer, actual)) or not answer or not actual:
        return None
    ratio = float(answer) / float(actual)
    return ratio if ratio > 0 else None


def how_far(entry: Entry) -> str:
    """How prediction and result compare, in words; empty while one of them is missing."""
    answer, actual = entry.get("answer"), entry.get("actual")
    if answer is None or actual is None:
        return ""
    if answer == actual:
        return "exact"
    ratio = apart(answer, actual)
    return "not the same" if ratio is None else f"{ratio:.3g} times the result"


def when(entry: Entry) -> str:
    """Whether the prediction was made before or after its result was shown."""
    if "answer" not in entry:
        return "not made"
    return "before" if entry.get("before") else "after the result"


def shown(value: Any, asked: Asked) -> str:
    """An answer or a result with its unit; a dash where there is none."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    number = f"{value:,}" if abs(value) < 1e15 else f"{float(value):.3g}"
    return f"{number} {asked.unit}".strip()
