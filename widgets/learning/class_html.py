"""A class as HTML: student × lesson, who has not begun, hardest checks, predictions against results, files left out.

    html(classroom("exports"))      # for a notebook's output; static, no script
    page(classroom("exports"))      # one file for a browser

All that comes from a file passes `escape`. Next file to read: `class_charts.py`, the pictures of the predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from mtfcore.numbers import count
from widgets import pages

from .class_charts import charts
from .class_facts import HONEST, ClassFacts, Student
from .class_text import SUMS, cell, hardest_rows, prediction_rows, sums
from .outline import Lesson, course
from .standing import Standing
from .style import STYLE


def page(found: ClassFacts) -> str:
    """A file of its own."""
    return pages.page("A class", html(found))


def html(found: ClassFacts) -> str:
    """All of it, the widest table first."""
    return (
        f'<section class="mw mw-learning" aria-label="A class"><style>{STYLE}</style>'
        f'<div class="mw-question">A class of {len(found.students)}</div>{"".join(_parts(found))}</section>'
    )


def _parts(found: ClassFacts) -> Iterator[str]:
    yield f"<p>{escape(HONEST)}</p>"
    if found.note:
        yield f"<p>{escape(found.note)}</p>"
    if found.left_out:
        yield _left_out(found)
    if found.missing:
        yield f"<p><b>No file from:</b> {escape(', '.join(found.missing))}.</p>"
    if not found.students:
        yield "<p>No progress file was found here: students make one with the button below <code>progress()</code>.</p>"
        return
    idle = [student.name for student in found.students if not student.started]
    yield f"<p><b>Nothing begun:</b> {escape(', '.join(idle)) or 'nobody'}.</p>"
    yield scrolled("Checks passed, by student and lesson", _students(found))
    yield scrolled("Lessons", _lessons(found))
    yield scrolled("Hardest checks: most tries and helps, means a student", table(hardest_rows(found), first=1))
    yield scrolled("Predictions against results, by how many students", table(prediction_rows(found), first=1))
    yield from (_pictures(found, lesson) for lesson in course())


def scrolled(title: str, inside: str) -> str:
    """A table that scrolls in its own box, also by the keyboard."""
    head = f'<div class="mw-head">{escape(title)}</div>'
    return f'{head}<div class="mw-wide" tabindex="0" role="group" aria-label="{escape(title)}">{inside}</div>'


def table(rows: Sequence[Sequence[str]], first: int = 0) -> str:
    """Rows as a table; columns from `first` on hold numbers."""
    head = "".join(f'<th scope="col"{_right(n, first)}>{escape(text)}</th>' for n, text in enumerate(rows[0]))
    body = "".join(
        "<tr>" + "".join(f"<td{_right(n, first)}>{escape(text)}</td>" for n, text in enumerate(row)) + "</tr>"
        for row in rows[1:]
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _right(column: int, first: int) -> str:
    return ' class="mw-n"' if column >= first > 0 else ""


def _students(found: ClassFacts) -> str:
    heads = "".join(f'<th scope="col" title="{escape(les.title)}">{les.number}</th>' for les in course())
    body = "".join(_student(student) for student in found.students)
    last = "".join(f'<th scope="col">{text}</th>' for text in SUMS)
    head = f'<tr><th scope="col">Student</th>{heads}{last}</tr>'
    return f'<table class="mw-class"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _student(student: Student) -> str:
    cells = "".join(f"<td{_shade(row)}>{cell(row)}</td>" for row in student.rows)
    last = "".join(f'<td class="mw-n">{escape(text)}</td>' for text in sums(student))
    return f'<tr><th scope="row">{escape(student.name)}</th>{cells}{last}</tr>'


def _shade(row: Standing) -> str:
    """A colour for what is begun and for what is done; the number says the same."""
    return ' data-state="done"' if row.finished else ' data-state="begun"' if row.started else ""


def _lessons(found: ClassFacts) -> str:
    head = "".join(f'<th scope="col">{text}</th>' for text in ("Lesson", "Begun", "All passed", "Not begun"))
    return f"<table><tr>{head}</tr>{''.join(_lesson(found, lesson) for lesson in course())}</table>"


def _lesson(found: ClassFacts, lesson: Lesson) -> str:
    place, waiting = course().index(lesson), found.not_started(lesson)
    done = sum(student.rows[place].finished for student in found.students)
    names = f"<details><summary>{len(waiting)}</summary>{escape(', '.join(waiting))}</details>" if waiting else "0"
    return (
        f'<tr><th scope="row">{lesson.number} · {escape(lesson.title)}</th>'
        f'<td class="mw-n">{len(found.students) - len(waiting)}</td><td class="mw-n">{done}</td><td>{names}</td></tr>'
    )


def _pictures(found: ClassFacts, lesson: Lesson) -> str:
    drawn = list(charts(found, lesson))
    if not drawn:
        return ""
    head = f"<summary>Lesson {lesson.number}: {count(len(drawn), 'prediction')} drawn</summary>"
    return f'<details class="mw-details">{head}<div class="mw-charts">{"".join(drawn)}</div></details>'


def _left_out(found: ClassFacts) -> str:
    inside = table([("File", "Why"), *found.left_out])
    return scrolled(f"Left out: {count(len(found.left_out), 'file')}", inside)
