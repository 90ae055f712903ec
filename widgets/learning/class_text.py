"""A class as plain text and as CSV: tables alone, without pictures.

    print(text(classroom("exports")))
    csv_text(classroom("exports"))             # '"student","exported",…

A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@`; such a cell gets an apostrophe in front, which
spreadsheets take as "this is text" (OWASP, CSV injection). Next file to read: `class_html.py`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from mtfcore.numbers import count

from .class_facts import HONEST, NEAR, SPREAD, ClassFacts, Student, spread
from .outline import course
from .standing import Standing

Rows = list[tuple[str, ...]]
FORMULA = tuple("=+-@\t\r\n＝＋－＠")
HARDEST = 10
SUMS = ("Tries", "Helps", "Predicted before", "Exported")


def text(found: ClassFacts) -> str:
    """All tables for a terminal."""
    parts = [HONEST, found.note] if found.note else [HONEST]
    if found.students:
        parts += [f"{count(len(found.students), 'student')}: checks passed in each lesson", _lines(lesson_rows(found))]
        parts += [_lines(summary_rows(found)), "Hardest checks (means a student)", _lines(hardest_rows(found))]
        parts += ["Predictions", _lines(prediction_rows(found))]
        idle = [student.name for student in found.students if not student.started]
        parts.append(f"Nothing begun: {', '.join(idle) or 'nobody'}.")
    if found.missing:
        parts.append(f"No file from: {', '.join(found.missing)}.")
    if found.left_out:
        parts += ["Left out", _lines([("File", "Why"), *found.left_out])]
    return "\n\n".join(parts)


def _lines(rows: Sequence[Sequence[str]]) -> str:
    wide = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, wide)).rstrip() for row in rows)


def cell(row: Standing) -> str:
    """A lesson of a student in a few signs: `3/4`, a dash where it is not begun."""
    return f"{row.passed}/{len(row.lesson.checks)}" if row.started else "–"


def lesson_rows(found: ClassFacts) -> Rows:
    """Student × lesson."""
    head = ("Student", *(lesson.number for lesson in course()), *SUMS)
    return [head, *((student.name, *map(cell, student.rows), *sums(student)) for student in found.students)]


def sums(student: Student) -> tuple[str, ...]:
    """Under `SUMS`: tries, helps, predictions made before the result was shown; the day of the file (UTC)."""
    fields = ("tries", "helps", "guessed_before")
    return (*(str(sum(getattr(row, field) for row in student.rows)) for field in fields), student.exported[:10])


def summary_rows(found: ClassFacts) -> Rows:
    """Each lesson: who has begun, who has passed all."""
    rows: Rows = [("Lesson", "Begun", "All passed", "Not begun")]
    for place, lesson in enumerate(course()):
        here = [student.rows[place] for student in found.students]
        begun = sum(row.started for row in here)
        done = sum(row.finished for row in here)
        rows.append((f"{lesson.number} {lesson.title}", str(begun), str(done), str(len(here) - begun)))
    return rows


def hardest_rows(found: ClassFacts) -> Rows:
    """The checks with the most tries and helps a student."""
    head: tuple[str, ...] = ("Check", "Tried by", "Passed by", "Tries", "Helps", "Saw the solution")
    return [head] + [
        (hard.check, str(hard.tried), str(hard.passed), f"{hard.tries:.1f}", f"{hard.helps:.1f}", str(hard.solutions))
        for hard in found.checks[:HARDEST]
    ]


def prediction_rows(found: ClassFacts) -> Rows:
    """Each prediction: how many were exact, within a factor of two, further off; how many came after the result."""
    head: tuple[str, ...] = (
        "Prediction",
        "Exact",
        f"Within ×{NEAR:g}",
        "Further",
        "Not the same",
        "Not made",
        "After the result",
    )
    rows: Rows = [head]
    for lesson in course():
        for asked in lesson.predictions:
            entries = found.guesses(lesson, asked)
            if entries:
                kinds = [spread(entry) for entry in entries]
                late = sum(entry.get("before") is False for entry in entries)
                rows.append((asked.name, *(str(kinds.count(kind)) for kind in SPREAD), str(late)))
    return rows


def csv_text(found: ClassFacts) -> str:
    """A row a student, then those without a file, then the files left out."""
    lessons = [
        f"{lesson.number} {kind}"
        for lesson in course()
        for kind in ("passed", "of", "tries", "helps", "guessed", "before")
    ]
    head = ["student", "exported", "meshwork", "file", "left out because", *lessons]
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(head)
    for row in _csv_rows(found):
        writer.writerow([_harmless(value) for value in row] + [""] * (len(head) - len(row)))
    return out.getvalue()


def _csv_rows(found: ClassFacts) -> Iterator[Sequence[str | int]]:
    for student in found.students:
        numbers = [
            number for row in student.rows
            for number in (row.passed, len(row.lesson.checks), row.tries, row.helps, row.guessed, row.guessed_before)
        ]  # fmt: skip
        yield [student.name, student.exported, student.meshwork, student.file, "", *numbers]
    yield from ([name, "", "", "", "no file of this name"] for name in found.missing)
    yield from (["", "", "", file, reason] for file, reason in found.left_out)


def _harmless(value: str | int) -> str | int:
    return f"'{value}" if isinstance(value, str) and value.lstrip(" '\"").startswith(FORMULA) else value
