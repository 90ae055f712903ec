"""What a class has done, as facts: students, hardest checks, predictions, who has not begun. No page, no file.

    found = ClassFacts(students=(…), left_out=(("photo.json", "not a progress file"),))
    found.checks[0]                    # Hardness(check='02 sent', tried=25, passed=21, tries=3.4, helps=1.1, …)

Next files to read: `class_text.py` and `class_html.py`, which show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .outline import Asked, Lesson, course
from .standing import NONE, Entry, Standing, apart

HONEST = (
    "Students hand these files in, and anybody can edit them with a text editor: read them as what students tell you, "
    "not as proof. Nothing in them was run."
)
NEAR = 2.0  # a factor that still counts as near
SPREAD = ("exact", "near", "far", "not the same", "not made")


@dataclass(frozen=True)
class Student:
    """One student's file, checked; `rows` are the lessons in order."""

    name: str
    file: str
    exported: str  # 2026-11-30T14:00:00Z
    meshwork: str
    rows: tuple[Standing, ...]
    unasked: tuple[str, ...] = ()  # checks and predictions in the file that this course does not ask for

    @property
    def started(self) -> bool:
        """Whether any lesson was begun."""
        return any(row.started for row in self.rows)


@dataclass(frozen=True)
class Hardness:
    """How a class fared with one check; means are over those who tried it or took help."""

    check: str
    tried: int
    passed: int
    tries: float
    helps: float
    solutions: int  # how many saw the solution


@dataclass(frozen=True)
class ClassFacts:
    """What a folder holds: students by name, files left out with the reason, and names without a file."""

    students: tuple[Student, ...]
    left_out: tuple[tuple[str, str], ...]
    missing: tuple[str, ...] = ()
    note: str = ""

    @cached_property
    def checks(self) -> list[Hardness]:
        """All checks that anybody tried, the hardest first: most tries and helps a student."""
        found = [hard for lesson in course() for check in lesson.checks if (hard := self._hardness(lesson, check))]
        return sorted(found, key=lambda hard: -(hard.tries + hard.helps))

    def _hardness(self, lesson: Lesson, check: str) -> Hardness | None:
        entries = [entry for entry in self._entries(lesson, "checks", check) if entry["tries"] or entry["help"]]
        if not entries:
            return None
        n = len(entries)
        tries, helps = (sum(entry[field] for entry in entries) for field in ("tries", "help"))
        passed, solutions = sum(entry["passed"] for entry in entries), sum(entry["help"] == 3 for entry in entries)
        return Hardness(check, n, passed, tries / n, helps / n, solutions)

    def guesses(self, lesson: Lesson, asked: Asked) -> list[Entry]:
        """What all students have for one prediction; those who never met it have nothing."""
        return self._entries(lesson, "predictions", asked.name)

    def _entries(self, lesson: Lesson, kind: str, name: str) -> list[Entry]:
        place = course().index(lesson)
        found = (getattr(student.rows[place], kind).get(name, NONE) for student in self.students)
        return [entry for entry in found if entry]

    def not_started(self, lesson: Lesson) -> list[str]:
        """Names of those who have not begun a lesson."""
        place = course().index(lesson)
        return [student.name for student in self.students if not student.rows[place].started]


def spread(entry: Entry) -> str:
    """One of `SPREAD`: how far a prediction was from its result."""
    answer, actual = entry.get("answer"), entry.get("actual")
    if answer is None or actual is None:
        return "not made"
    if answer == actual:
        return "exact"
    ratio = apart(answer, actual)
    if ratio is None:
        return "not the same"
    return "near" if 1 / NEAR <= ratio <= NEAR else "far"
