"""What an exercise is, without any widget: a task, three steps of help, and a generator of visible cases.

A check is a plain function of the student's answer and a random source. It yields one `Case` for each thing it tried,
so a report can show every comparison and not only a verdict::

    @exercise("01 local_rows", task="Rows of one device.", hint="…", bigger_hint="…", solution=lambda: "…")
    def local_rows(answer, rng):
        rows = rng.choice([2, 4, 8])
        yield equal(f"{rows} devices", 64 // rows, answer(64, rows), unit="rows")

Read next: `checking.py`, which runs an exercise and shows its report.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

Check = Callable[[Any, Random], Iterator["Case"]]


class NotYet(Exception):
    """The answer is still the stub: nothing to judge. The message says what to do."""


class AnswerFailed(Exception):
    """The student's own function raised; `__cause__` holds what."""


@dataclass(frozen=True)
class Case:
    """One comparison of a check. `where` names the first device and slice that differ, if there is one."""

    what: str
    good: bool
    expected: str
    given: str
    where: str = ""

    def __str__(self) -> str:
        if self.good:
            return f"{self.what}: {self.expected}"
        place = f" First difference: {self.where}." if self.where else ""
        return f"{self.what}: expected {self.expected}, yours gives {self.given}.{place}"


@dataclass(frozen=True)
class Exercise:
    """A named task with its check and its three steps of help; `solution` is read only when asked for."""

    name: str
    task: str
    run: Check = field(repr=False)
    hint: str = field(repr=False)
    bigger_hint: str = field(repr=False)
    solution: Callable[[], str] = field(repr=False)

    def help(self, step: int) -> str:
        """The text of help step 1 (hint), 2 (bigger hint) or 3 (solution)."""
        return self.solution() if step >= 3 else (self.hint, self.bigger_hint)[step - 1]


BOOK: dict[str, Exercise] = {}


def exercise(
    name: str, *, task: str, hint: str, bigger_hint: str, solution: Callable[[], str]
) -> Callable[[Check], Check]:
    """Enter a check function in the book under a name that lessons use."""

    def enter(run: Check) -> Check:
        BOOK[name] = Exercise(name, task, run, hint, bigger_hint, solution)
        return run

    return enter


def find(name: str) -> Exercise:
    """The exercise of that name, or an error that lists what there is."""
    if name not in BOOK:
        known = ", ".join(repr(n) for n in sorted(BOOK)) or "none; run the lesson's setup cell first"
        raise ValueError(f"No exercise is called {name!r}. Known here: {known}.")
    return BOOK[name]


def equal(what: str, expected: Any, given: Any, unit: str = "", where: str = "") -> Case:
    """Exact equality; tuples, names and whole numbers."""
    good = _same(expected, given)
    return Case(what, good, _with_unit(expected, unit), _with_unit(given, unit), "" if good else where)


def at_most(what: str, budget: float, spent: float, unit: str) -> Case:
    """A budget that must be met, in the unit named."""
    return Case(what, spent <= budget, f"at most {_with_unit(budget, unit)}", _with_unit(spent, unit))


def holds(what: str, good: bool, expected: str, given: str) -> Case:
    """A condition in words, for what is neither a value nor a budget."""
    return Case(what, bool(good), expected, given)


def asked(answer: Any) -> Any:
    """The answer, ready to be tried: a stub raises `NotYet` at once or when it is called and returns nothing."""
    if answer is None or answer is ...:
        raise NotYet("Replace the dots")
    return _guarded(answer) if inspect.isfunction(answer) else answer


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except Exception as problem:
            raise AnswerFailed from problem
        if result is ...:
            raise NotYet("Replace the dots")
        if result is None:  # the stub, or a `return` that was forgotten
            raise NotYet("The function returns nothing yet: replace the dots and end with a return")
        return result

    return call


def _same(expected: Any, given: Any) -> bool:
    """Equal, but True is not the number 1: a constant `True` passes nothing that asks for a number."""
    if isinstance(expected, bool) or isinstance(given, bool):
        return expected is given
    return bool(_plain(expected) == _plain(given))


def _plain(value: Any) -> Any:
    """Lists as tuples and numpy numbers as Python's, so that 16 equals np.int64(16) and (2, 3) equals [2, 3]."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(_plain(v) for v in value)
    if isinstance(value, slice):
        return (value.start, value.stop)
    return value.item() if isinstance(value, np.generic) else value


def _with_unit(value: Any, unit: str) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    text = f"{value:,}" if number else repr(value) if isinstance(value, str) else str(value)
    return f"{text} {unit.removesuffix('s') if number and value == 1 else unit}".strip()
