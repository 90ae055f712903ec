"""A prediction, recorded before the result is computed and shown beside it afterwards.

    predict("01 local rows", "How many rows does one device hold?", unit="rows")   # a small form; records the answer
    predict.show("01 local rows", 16)                                              # prediction | result

Without a page the same works by value: `predict.record("01 local rows", 16)`. An answer given after the result was
shown is kept too, and marked as such. A guess that is written down teaches even when it is wrong.
Read next: `checking.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

import ipywidgets
from IPython.display import HTML, DisplayHandle, display

from widgets.numbers import ORIGINS
from widgets.static import above_form, show_live

from .progress import Progress

Answer = str | int | float
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")


class Prediction:
    """One question with its recorded answer, if there is one. Shows a form in a notebook."""

    def __init__(self, name: str, question: str, choices: Sequence[str] | None, unit: str, progress: Progress) -> None:
        self.name, self.question, self.unit = name, question, unit
        self.choices = tuple(choices) if choices else ()
        self._progress = progress
        self._shown: list[tuple[_Static, DisplayHandle]] = []
        self._status = ipywidgets.HTML()
        self._field = self._make_field()
        self._progress.update("predictions", name, question=question, unit=unit)
        self._say_what_is_recorded()

    @property
    def answer(self) -> Answer | None:
        """What was predicted, or None."""
        return self._entry().get("answer")

    @answer.setter
    def answer(self, given: Answer) -> None:
        answer = _read_answer(given, self.choices)
        before = "actual" not in self._entry()
        self._progress.update("predictions", self.name, answer=answer, before=before)
        self._say_what_is_recorded()
        for shown, handle in self._shown:
            handle.update(shown)

    def show(self, actual: Answer, origin: str = "modelled") -> Shown:
        """The prediction beside the result; `origin` says where the result's number comes from."""
        if origin not in ORIGINS:
            raise ValueError(f"{origin!r} is no origin of a number; use one of {', '.join(ORIGINS)}.")
        actual = actual if isinstance(actual, str) else _plain_number(actual)
        self._progress.update("predictions", self.name, actual=actual)
        return Shown(self, actual, origin)

    def _entry(self) -> dict[str, Any]:
        return self._progress.entry("predictions", self.name)

    def _make_field(self) -> ipywidgets.ValueWidget:
        if self.choices:
            return ipywidgets.RadioButtons(options=self.choices, value=None, layout={"width": "auto"})
        wanted = f"a number of {self.unit}" if self.unit else "a number"
        field = ipywidgets.Text(placeholder=wanted, tooltip=self.question, continuous_update=False)
        field.observe(self._record, "value")  # Enter records as the button does
        return field

    def _say_what_is_recorded(self) -> None:
        entry = self._entry()
        if "answer" not in entry:
            text = "Not answered yet. Guess before you run the next cell."
        else:
            late = "" if entry["before"] else ", after the result was shown"
            text = f"Recorded: {_with_unit(entry['answer'], self.unit)}{late}."
        self._say(text)

    def _say(self, text: str) -> None:
        note = f" {self._progress.note}" if self._progress.note else ""
        self._status.value = f'<span data-prediction="{escape(self.name)}" role="status">{escape(text + note)}</span>'

    def _record(self, _event: Any = None) -> None:
        """Callbacks have no place to show an exception, so a wrong entry answers in the status line."""
        if self._field.value in (None, ""):
            self._say("Type or choose an answer first.")
            return
        try:
            self.answer = self._field.value
        except ValueError as problem:
            self._say(str(problem))

    def widget(self) -> ipywidgets.Box:
        """The form: field, button, and one line that says what is recorded."""
        button = ipywidgets.Button(description="Record my prediction", layout={"width": "auto"})
        button.on_click(self._record)
        row = ipywidgets.HBox([self._field, button], layout={"flex_flow": "row wrap", "align_items": "center"})
        return ipywidgets.VBox([row, self._status])

    def _ipython_display_(self) -> None:
        """The question as plain HTML, which a notebook without a kernel still shows; the form below it."""
        display(HTML(above_form(f"<p><b>Predict.</b> {escape(self.question)}</p>", "to answer")))
        show_live(self.widget(), "")

    def __repr__(self) -> str:
        answer = "not answered" if self.answer is None else _with_unit(self.answer, self.unit)
        return f"Predict: {self.question} [{answer}]"


class Shown:
    """A prediction beside its result. A later answer updates it where it stands."""

    def __init__(self, prediction: Prediction, actual: Answer, origin: str) -> None:
        self._prediction, self.actual, self.origin = prediction, actual, origin

    @property
    def verdict(self) -> str:
        """One sentence about how prediction and result compare."""
        guess = self._prediction.answer
        if guess is None:
            return "You made no prediction; try one before the next result."
        if guess == self.actual:
            return "Exactly right."
        if isinstance(guess, str) or isinstance(self.actual, str) or guess == 0 or self.actual == 0:
            return "Not the same. What did you count differently?"
        ratio = guess / self.actual
        return f"Your prediction is {ratio:.3g} times the result. What did you count differently?"

    def _cells(self) -> list[tuple[str, str]]:
        unit, guess = self._prediction.unit, self._prediction.answer
        return [
            ("You predicted", "–" if guess is None else _with_unit(guess, unit)),
            (f"Result ({self.origin})", _with_unit(self.actual, unit)),
        ]

    def __repr__(self) -> str:
        return "  |  ".join(f"{head}: {text}" for head, text in self._cells()) + f"\n{self.verdict}"

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="text-align:left">{escape(h)}</th>' for h, _ in self._cells())
        body = "".join(f'<td style="text-align:left">{escape(t)}</td>' for _, t in self._cells())
        table = f"<table><tr>{head}</tr><tr>{body}</tr></table>"
        return f'<div data-shown="{escape(self._prediction.name)}">{table}<p>{escape(self.verdict)}</p></div>'

    def _ipython_display_(self) -> None:
        handle = DisplayHandle()
        handle.display(_Static(self))
        self._prediction._shown.append((_Static(self), handle))


class _Static:
    """The reprs of a `Shown` alone, so that displaying it does not ask for another display."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def __repr__(self) -> str:
        return repr(self._shown)

    def _repr_html_(self) -> str:
        return self._shown._repr_html_()


class Predict:
    """`predict(...)` asks, `predict.show(...)` answers; both by name, kept in one progress file."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._given_progress = progress
        self._asked: dict[str, Prediction] = {}

    @property
    def _progress(self) -> Progress:
        """Looked up at the first question, when the notebook's folder is known."""
        self._given_progress = self._given_progress or Progress()
        return self._given_progress

    def __call__(self, name: str, question: str, choices: Sequence[str] | None = None, *, unit: str = "") -> Prediction:
        """Ask for a prediction; give `choices` for a choice, or a `unit` for a number."""
        self._asked[name] = Prediction(name, question, choices, unit, self._progress)
        return self._asked[name]

    def record(self, name: str, answer: Answer) -> None:
        """Answer by value instead of by the form."""
        self._find(name).answer = answer

    def show(self, name: str, actual: Answer, origin: str = "modelled") -> Shown:
        """The recorded prediction beside the result just computed."""
        return self._find(name).show(actual, origin)

    def _find(self, name: str) -> Prediction:
        if name not in self._asked:
            known = ", ".join(repr(n) for n in self._asked) or "none yet"
            raise ValueError(f"No prediction is called {name!r} in this kernel; asked so far: {known}.")
        return self._asked[name]


predict = Predict()


def _read_answer(given: Answer, choices: tuple[str, ...]) -> Answer:
    """A choice, or a number written as people write it: `1,024`, `1_024`, `2.5e6`."""
    if choices:
        if given not in choices:
            raise ValueError(f"{given!r} is not one of the choices: {', '.join(choices)}.")
        return given
    return _plain_number(given)


def _plain_number(given: Any) -> int | float:
    if isinstance(given, bool):
        raise ValueError("A number is wanted, not true or false.")
    text = str(given).strip()
    if "," in text and not _THOUSANDS.fullmatch(text):
        raise ValueError(f"{given!r} is not a number; a comma parts thousands, as in 1,024; decimals take a point.")
    try:
        number = float(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise ValueError(f"{given!r} is not a number; write digits only, the unit is known.") from None
    if number != number or abs(number) == float("inf"):
        raise ValueError(f"{given!r} is not a finite number.")
    return int(number) if number.is_integer() else number


def _with_unit(value: Answer, unit: str) -> str:
    return f"{value if isinstance(value, str) else format(value, ',')} {unit}".strip()
