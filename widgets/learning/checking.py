"""Try a student's answer on random, visible cases and say what differs; help comes in three steps.

    check("01 local_rows", local_rows)              # in a notebook: a report with buttons Hint, Bigger hint, Solution
    report = check("01 local_rows", local_rows, seed="Ada")
    report.passed, report.message, report.help()    # the same without a page

A check never raises for a wrong answer: it reports. The cases are drawn from the student's own seed (a name, or a
random id kept in the progress file), so two neighbours see different sizes and meshes and one student sees the same
ones again. Read next: `exercises.py`, and `lessons/checks/` for the checks themselves.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from random import Random
from typing import Any

import ipywidgets
from IPython.display import display

from widgets.numbers import count
from widgets.static import above_form, show_live

from .exercises import AnswerFailed, Case, Exercise, NotYet, WrongAnswer, asked, find
from .kinds import clipped
from .progress import Progress

STEPS = ("Hint", "Bigger hint", "Solution")
_COLOURS = {
    "passed": "--jp-success-color1, #2e7d32",
    "not yet": "--jp-info-color1, #1565c0",
    "try again": "--jp-warn-color1, #b45309",
}


@dataclass
class Report:
    """What a check found: the cases it tried up to the first that differs, and one message."""

    exercise: Exercise
    state: str  # "passed", "not yet" or "try again"
    message: str
    cases: tuple[Case, ...]
    progress: Progress = field(repr=False)

    @property
    def passed(self) -> bool:
        return self.state == "passed"

    def help(self) -> str:
        """The next step of help: a hint, a bigger hint, then the solution."""
        return self.help_step(min(self.progress.entry("checks", self.exercise.name).get("help", 0) + 1, len(STEPS)))

    def help_step(self, step: int) -> str:
        """Help step 1, 2 or 3; the furthest step taken is kept in the progress file."""
        taken = self.progress.entry("checks", self.exercise.name).get("help", 0)
        self.progress.update("checks", self.exercise.name, help=max(taken, step))
        text = self.exercise.help(step)
        between = "\n" if "\n" in text else " "  # code of several lines can be copied as it stands
        return f"{STEPS[step - 1]}:{between}{text}"

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        lines = [f"{self.state.upper()} – {self.exercise.name}: {self.message}"]
        lines += [f"  {'ok' if case.good else 'differs'}  {case}" for case in self.cases]
        return "\n".join(lines + self._notes())

    def _notes(self) -> list[str]:
        """Where the cases' numbers come from, and what the progress file has to say."""
        priced = any(re.search(r"\d (bytes|FLOPs)", str(case)) for case in self.cases)
        return ["Bytes and FLOPs here are modelled."] * priced + [self.progress.note] * bool(self.progress.note)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{'✓' if case.good else '✗'} {escape(str(case))}</li>" for case in self.cases)
        note = "".join(f"<p>{escape(line)}</p>" for line in self._notes())
        border = f"border-left:4px solid var({_COLOURS[self.state]});padding-left:0.8em"
        name = escape(self.exercise.name)
        head = f"<p><b>{self.state.capitalize()}</b> – {escape(self.message)}</p>"
        summary = f"<summary>{count(len(self.cases), 'case')} tried</summary>"
        tried = f"<details{'' if self.passed else ' open'}>{summary}<ul>{items}</ul></details>" if items else ""
        return f'<div style="{border}" data-check="{name}" data-state="{self.state}">{head}{tried}{note}</div>'

    def widget(self) -> ipywidgets.Box:
        """Three buttons, each of use once the one before was pressed, and the place where their text appears."""
        text = ipywidgets.HTML()
        buttons: list[ipywidgets.Button] = []
        buttons += [self._help_button(step, text, buttons) for step in range(1, len(STEPS) + 1)]
        self._unlock(buttons)
        return ipywidgets.VBox([ipywidgets.HBox(buttons, layout={"flex_flow": "row wrap"}), text])

    def _unlock(self, buttons: list[ipywidgets.Button]) -> None:
        """Help is asked for step by step: the one after the furthest that was taken, and all before it."""
        taken = self.progress.entry("checks", self.exercise.name).get("help", 0)
        for step, button in enumerate(buttons, 1):
            button.disabled = step > taken + 1
            after = f", after the {STEPS[step - 2].lower()}" if button.disabled else ""
            button.tooltip = f"{STEPS[step - 1]} for {self.exercise.name}{after}"

    def _help_button(self, step: int, text: ipywidgets.HTML, row: list[ipywidgets.Button]) -> ipywidgets.Button:
        button = ipywidgets.Button(description=STEPS[step - 1])

        def say(shown: str) -> None:
            text.value = f'<pre data-help="{step}" style="white-space:pre-wrap">{escape(shown)}</pre>'

        def press(_button: ipywidgets.Button) -> None:
            say(f"{STEPS[step - 1]}: …")  # the first solution takes seconds: it loads what reads the sources
            try:
                say(self.help_step(step))
                self._unlock(row)
            except Exception as problem:  # a callback has no other place to say it
                say(f"Help failed: {type(problem).__name__}: {problem}")

        button.on_click(press)
        return button

    def _ipython_display_(self) -> None:
        """The report as plain HTML with its text form; it stays readable without a kernel. The buttons below."""
        page = self._repr_html_() if self.passed else above_form(self._repr_html_(), "again for help")
        display({"text/html": page, "text/plain": repr(self)}, raw=True)
        if not self.passed:
            show_live(self.widget(), "")


class Check:
    """`check(name, answer)` with the progress file it writes to."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._given_progress = progress

    @property
    def progress(self) -> Progress:
        """The progress file, looked up at the first check, when the notebook's folder is known."""
        self._given_progress = self._given_progress or Progress()
        return self._given_progress

    def __call__(self, name: str, answer: Any, seed: str | int | None = None) -> Report:
        """Try `answer` (a value or a function) on the cases of exercise `name`; `seed` defaults to the student's."""
        exercise, progress = find(name), self.progress
        state, message, cases = judge(exercise, answer, progress.student if seed is None else seed)
        before = progress.entry("checks", name)
        done = before.get("passed", False)
        passed = done or state == "passed"
        tries = before.get("tries", 0) + (state != "not yet" and not done)  # up to the first that passes
        progress.update("checks", name, passed=passed, tries=tries)
        return Report(exercise, state, message, cases, progress)


check = Check()


def judge(exercise: Exercise, answer: Any, seed: str | int) -> tuple[str, str, tuple[Case, ...]]:
    """State, message and tried cases of an answer. Pure: no file, no widget."""
    tried: list[Case] = []
    try:
        for case in _cases(exercise, answer, seed):
            tried.append(case)
            if not case.good:
                return "try again", str(case), tuple(tried)
    except NotYet as missing:
        return "not yet", f"{exercise.task} {missing}, then run the cell again.", tuple(tried)
    except WrongAnswer as other:
        return "try again", str(other.case), (*tried, other.case)
    except AnswerFailed as failed:
        return "try again", f"Your function stopped with {_where(failed.__cause__)}.", tuple(tried)
    except Exception as problem:  # of the right kind, but of no use: a text that names no axis, say
        failure = Case("the answer", False, exercise.expects, f"an error: {_said(problem)}")
        return "try again", str(failure), (*tried, failure)
    return "passed", f"{count(len(tried), 'case')} agree{'s' if len(tried) == 1 else ''}.", tuple(tried)


def _cases(exercise: Exercise, answer: Any, seed: str | int) -> Iterator[Case]:
    ready = asked(answer, exercise.kind, exercise.gives)
    yield from exercise.run(ready, Random(f"{seed}/{exercise.name}"))


def _where(problem: BaseException | None) -> str:
    """`ZeroDivisionError: … (line 3 of your function)`, the last line that lies in the student's own code."""
    assert problem is not None, "AnswerFailed is always raised from the student's exception"
    frames = traceback.extract_tb(problem.__traceback__)
    own = frames[1].filename if len(frames) > 1 else ""
    line = max((f.lineno or 0 for f in frames[1:] if f.filename == own), default=0)
    place = f" (line {line} of its cell)" if line else ""
    return f"{type(problem).__name__}: {_said(problem)}{place}"


def _said(problem: BaseException) -> str:
    """An error's text in one line, also where it cannot be made."""
    try:
        return clipped(str(problem), 240)
    except Exception:
        return "no text"
