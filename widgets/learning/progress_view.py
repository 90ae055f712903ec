"""A student's own view: what is done in each lesson, predictions against results, what is next, and the export.

    from widgets import progress
    progress()                     # in any lesson; closes each of them
    progress.export("Ada")         # what the button does: meshwork-progress-Ada.json beside the notebook

The page is static HTML, so a saved notebook still shows it when nothing is alive behind it; only the export needs a
kernel. Next file to read: `export.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

import ipywidgets
from IPython.display import display

from mtfcore.errors import expect
from mtfcore.numbers import count
from widgets.numbers import tagged_html
from widgets.static import above_form, show_live

from .export import LONGEST_NAME, Exported, exported, write
from .outline import Asked
from .progress import Progress
from .standing import NONE, Entry, Standing, how_far, next_up, shown, standings, when
from .style import STYLE

CAPTION = 'Each lesson <span aria-hidden="true">(✓ passed, ○ tried, · not tried)</span>'
HEAD = ("Lesson", "Checks passed", "Tries", "Helps", "Predictions made")


class View:
    """One look at the progress file; what is shown does not change afterwards."""

    def __init__(self, progress: Progress) -> None:
        self.rows, self._progress = standings(progress.entries("checks"), progress.entries("predictions")), progress

    @property
    def next(self) -> str:
        """One sentence about what to do now."""
        row = next_up(self.rows)
        if row is None:
            return "All checks of all lessons pass."
        check = row.open_checks[0]
        number = row.lesson.checks.index(check) + 1
        entry = row.checks.get(check, NONE)
        tries, helps = entry.get("tries", 0), entry.get("help", 0)
        so_far = [count(tries, "try", "tries")] * bool(tries) + [f"help {helps} of 3 taken"] * bool(helps)
        tail = f" ({', '.join(so_far)} so far)" if so_far else ""
        return f"lesson {row.lesson.number}, {row.lesson.title}: exercise {number} ({check[3:]}){tail}."

    def __repr__(self) -> str:
        rows = [HEAD, *(cells(row) for row in self.rows)]
        wide = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, wide)).rstrip() for row in rows]
        return "\n".join([f"Next: {self.next}", "", *lines] + [self._progress.note] * bool(self._progress.note))

    def _repr_html_(self) -> str:
        note = f"<p>{escape(self._progress.note)}</p>" if self._progress.note else ""
        return (
            f'<section class="mw mw-learning" aria-label="Your progress"><style>{STYLE}</style>'
            f'<div class="mw-question">Where you stand</div><p><b>Next:</b> {escape(self.next)}</p>{note}'
            f'<div class="mw-wide" tabindex="0" role="group" aria-label="Lessons, can be scrolled">'
            f"{lessons_html(self.rows)}</div>{predictions_html(self.rows)}</section>"
        )

    def widget(self) -> ipywidgets.Box:
        """The form of the export: a field, a button, and a line that says what happened."""
        field = ipywidgets.Text(
            description="Name", placeholder="what your teacher knows you by", tooltip="Name",
            continuous_update=False,  # letter by letter, a slow kernel would still have half of it at the button
        )  # fmt: skip
        button = ipywidgets.Button(description="Export for your teacher", layout={"width": "auto"})
        said = ipywidgets.HTML()

        def press(_event: object) -> None:
            said.value = f'<span role="status">{self._try_export(field.value)}</span>'

        button.on_click(press)
        row = ipywidgets.HBox([field, button], layout={"flex_flow": "row wrap"})
        return ipywidgets.VBox([row, said])

    def _try_export(self, name: str) -> str:
        """Callbacks have no place to show an exception, so the line below the button says it."""
        if not name.strip():
            return "Type a name first: it is all that the file says about you besides your answers."
        try:
            return export(self._progress, name)._repr_html_()
        except OSError as problem:
            return f"The file could not be written here: {escape(problem.strerror or str(problem))}."

    def _ipython_display_(self) -> None:
        page = above_form(self._repr_html_(), "to see it as it is now, and to export it")
        display({"text/html": page, "text/plain": repr(self)}, raw=True)
        show_live(self.widget(), "")


def cells(row: Standing) -> tuple[str, ...]:
    """A lesson's row, as text; a lesson that is not started shows only what it asks for."""
    lesson = row.lesson
    first = f"{lesson.number} · {lesson.title}"
    passed, made = f"{row.passed} of {len(lesson.checks)}", f"{row.guessed} of {len(lesson.predictions)}"
    return (first, passed, str(row.tries), str(row.helps), made) if row.started else (first, passed, "–", "–", made)


def lessons_html(rows: Iterable[Standing]) -> str:
    """The table of lessons; each title leads to its notebook."""
    head = "".join(f'<th scope="col">{text}</th>' for text in HEAD)
    body = "".join(_lesson_html(row) for row in rows)
    return f"<table><caption>{CAPTION}</caption><tr>{head}</tr>{body}</table>"


def _lesson_html(row: Standing) -> str:
    title, passed, *others = map(escape, cells(row))
    state = "done" if row.finished else "begun" if row.started else "waits"
    marks = "".join(f'<i title="{escape(name)}">{_mark(row.checks.get(name, NONE))}</i>' for name in row.lesson.checks)
    checks = f'{passed} <span class="mw-marks" aria-hidden="true">{marks}</span>'
    return (
        f'<tr data-lesson="{row.lesson.number}" data-state="{state}"><th scope="row">'
        f'<a href="{row.lesson.stem}.ipynb">{title}</a></th><td>{checks}</td>'
        + "".join(f'<td class="mw-n">{text}</td>' for text in others) + "</tr>"
    )  # fmt: skip


def _mark(entry: Entry) -> str:
    return "✓" if entry.get("passed") else "○" if entry.get("tries") else "·"


def predictions_html(rows: Iterable[Standing]) -> str:
    """Predictions against results, folded, one block a lesson that has any."""
    return "".join(_block(row) for row in rows if any(NONE != _seen(entry) for entry in row.predictions.values()))


def _seen(entry: Entry) -> Entry:
    return {key: entry[key] for key in ("answer", "actual") if key in entry}


def _block(row: Standing) -> str:
    exact = sum(how_far(entry) == "exact" for entry in row.predictions.values())
    head = "".join(
        f'<th scope="col">{text}</th>' for text in ("Question", "Predicted", "Result", "How far off", "Made")
    )
    body = "".join(_line(asked, row.predictions.get(asked.name, NONE)) for asked in row.lesson.predictions)
    said = f"Lesson {row.lesson.number}: {count(row.guessed, 'prediction')}, {exact} exact"
    return (
        f'<details class="mw-details"><summary>{said}</summary><div class="mw-wide" tabindex="0" role="group" '
        f'aria-label="Predictions of lesson {row.lesson.number}, can be scrolled">'
        f"<table><tr>{head}</tr>{body}</table></div></details>"
    )


def _line(asked: Asked, entry: Entry) -> str:
    result = tagged_html(f"{shown(entry['actual'], asked)} [{asked.origin}]") if "actual" in entry else "not seen yet"
    texts: Iterator[str] = map(escape, (asked.question, shown(entry.get("answer"), asked)))
    off, made = escape(how_far(entry)) or "–", escape(when(entry))
    return "<tr>" + "".join(f"<td>{text}</td>" for text in (*texts, result, off, made)) + "</tr>"


def export(progress: Progress, name: str) -> Exported:
    """Write the file beside the progress file, which lies beside the notebook."""
    expect(name, str, "your name as a text, such as progress.export('Ada')")
    return write(exported(progress, name[: 10 * LONGEST_NAME]), progress.path.parent)


class Look:
    """`progress()` and `progress.export(name)`, on the progress file of the notebook's folder."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._given_progress = progress

    @property
    def _progress(self) -> Progress:
        """Looked up at the first call, when the notebook's folder is known."""
        self._given_progress = self._given_progress or Progress()
        return self._given_progress

    def __call__(self) -> View:
        """The view, as things stand now."""
        return View(self._progress)

    def export(self, name: str = "") -> Exported:
        """Write `meshwork-progress-<name>.json` beside the notebook; `OSError` where it cannot be written."""
        return export(self._progress, name)


progress = Look()
