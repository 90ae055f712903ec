"""What an exercise is, without any widget: a task, three steps of help, and a generator of visible cases.

A check is a plain function of the student's answer and a random source. It yields one `Case` for each thing it tried,
so a report can show every comparison and not only a verdict::

    @exercise("01 local_rows", task="Rows of one device.", hint="…", bigger_hint="…", solution=lambda: "…")
    def local_rows(answer, rng):
        rows = rng.choice([2, 4, 8])
        yield equal(f"{rows} devices", 64 // rows, answer(64, rows), unit="rows")

If `answer` is annotated, as in `answer: Callable[..., int]`, results of another kind are turned away before the check
sees them (`kinds`). A student's function gets copies of lists, dicts and arrays, which it may change as it likes.
Read next: `checking.py`, which runs an exercise and shows its report.
"""

from __future__ import annotations

import copy
import functools
import math
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from mtfcore.functions import Function

from .kinds import WrongKind, clipped, decimal, shown, taken, words

Check = Callable[[Any, Random], Iterator["Case"]]


class NotYet(Exception):
    """The answer is still the stub: nothing to judge. The message says what to do."""


class AnswerFailed(Exception):
    """The student's own function raised; `__cause__` holds what."""


class WrongAnswer(Exception):
    """The answer is of another kind than the exercise asks for; `case` says which."""

    def __init__(self, case: Case) -> None:
        super().__init__(str(case))
        self.case = case


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
        said = f"expected {clipped(self.expected, 160)}, yours gives {clipped(self.given, 200)}"
        return f"{clipped(self.what, 240)}: {said}.{place}"


@dataclass(frozen=True)
class Exercise:
    """A named task with its check and its three steps of help; `solution` is read only when asked for."""

    name: str
    task: str
    run: Check = field(repr=False)
    hint: str = field(repr=False)
    bigger_hint: str = field(repr=False)
    solution: Callable[[], str] = field(repr=False)
    gives: str = ""  # the kind of the answer in words, where the annotation's own say too little

    @property
    def kind(self) -> Any:
        """What the check's `answer` is annotated with: a kind, or a `Callable` that returns one."""
        return typing.get_type_hints(self.run).get("answer", Any)

    @property
    def expects(self) -> str:
        """The kind of the answer, or of what it returns, in words."""
        return self.gives or words(_returned(self.kind) or self.kind)

    def help(self, step: int) -> str:
        """The text of help step 1 (hint), 2 (bigger hint) or 3 (solution)."""
        return self.solution() if step >= 3 else (self.hint, self.bigger_hint)[step - 1]


BOOK: dict[str, Exercise] = {}


def exercise(
    name: str, *, task: str, hint: str, bigger_hint: str, solution: Callable[[], str], gives: str = ""
) -> Callable[[Check], Check]:
    """Enter a check function in the book under a name that lessons use."""

    def enter(run: Check) -> Check:
        BOOK[name] = Exercise(name, task, run, hint, bigger_hint, solution, gives)
        return run

    return enter


def find(name: str) -> Exercise:
    """The exercise of that name, or an error that lists what there is."""
    if not isinstance(name, str) or name not in BOOK:
        known = ", ".join(repr(n) for n in sorted(BOOK)) or "none; run the lesson's setup cell first"
        raise ValueError(f"No exercise is called {name!r:.100}. Known here: {known}.")
    return BOOK[name]


def equal(what: str, expected: Any, given: Any, unit: str = "", where: str = "") -> Case:
    """Exact equality; tuples, names and whole numbers."""
    good = _same(expected, given)
    return Case(what, good, _with_unit(expected, unit), _with_unit(given, unit), "" if good else where)


def at_most(what: str, budget: float | Fraction, spent: float | Fraction, unit: str) -> Case:
    """A budget that must be met, in the unit named."""
    return Case(what, spent <= budget, f"at most {_with_unit(budget, unit)}", _with_unit(spent, unit))


def holds(what: str, good: bool, expected: str, given: str) -> Case:
    """A condition in words, for what is neither a value nor a budget."""
    return Case(what, bool(good), expected, given)


def asked(answer: Any, kind: Any = Any, gives: str = "") -> Any:
    """The answer, ready to be tried: a stub raises `NotYet`, another kind `WrongAnswer`, at once or when called."""
    if answer is None or answer is ... or _has_dots(answer):
        raise NotYet("Replace the dots")
    returns = _returned(kind)
    if returns is not None and not callable(answer):
        raise WrongAnswer(Case("the answer", False, "a function", shown(answer)))
    if isinstance(answer, Function) and returns is None:
        return answer
    if callable(answer) and (returns is not None or kind is Any):
        return _guarded(answer, returns or Any, gives)
    return _of_kind("the answer", answer, kind, gives)


def _returned(kind: Any) -> Any:
    """What a `Callable[..., kind]` returns; None for any other annotation."""
    return typing.get_args(kind)[1] if typing.get_origin(kind) is Callable else None


def _guarded(function: Callable[..., Any], kind: Any, gives: str) -> Callable[..., Any]:
    answered = False  # whether an earlier case got an answer: from then on None is one too

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        what = _called(function, args)
        try:
            result = function(*map(_copied, args), **kwargs)
        except (Exception, SystemExit) as problem:  # an exit() would end the kernel
            raise AnswerFailed from problem
        nonlocal answered
        if result is None and not answered:  # the stub, or a `return` that was forgotten
            raise NotYet("The function returns nothing yet: replace the dots and end with a return")
        if result is None and kind is Any:  # of any other kind `_of_kind` knows whether None is one of it
            raise WrongAnswer(Case(what, False, gives or words(kind), shown(result)))
        if result is ... or _has_dots(result):
            raise NotYet("Replace the dots")
        answered = True
        return _of_kind(what, result, kind, gives)

    return call


def _has_dots(answer: Any) -> bool:
    parts = answer.values() if type(answer) is dict else answer if type(answer) in (tuple, list) else ()
    return any(part is ... for part in parts)


def _of_kind(what: str, given: Any, kind: Any, gives: str) -> Any:
    """The answer as plain Python."""
    try:
        return taken(given, kind)
    except WrongKind as found:
        raise WrongAnswer(Case(what, False, gives or words(kind), str(found))) from None


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return clipped(f"{name}({', '.join(map(shown, args))})", 160)


def _copied(argument: Any) -> Any:
    """A copy of what a function could change, so that no answer changes what it is compared with."""
    return copy.deepcopy(argument) if type(argument) in (list, dict, set, np.ndarray) else argument


def _same(expected: Any, given: Any) -> bool:
    """Equal, but True is not the number 1: a constant `True` passes nothing that asks for a number."""
    if isinstance(expected, bool) or isinstance(given, bool):
        return expected is given
    expected, given = _plain(expected), _plain(given)
    if isinstance(expected, float) and isinstance(given, int | float):  # in another order the same sum rounds otherwise
        return math.isclose(expected, given, rel_tol=1e-9)
    return bool(expected == given)


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
    whole = f"{value:,}" if isinstance(value, int) else ""
    text = (whole or decimal(value)) if number else repr(value) if isinstance(value, str) else str(value)
    text = clipped(text, 160)
    return f"{text} {unit.removesuffix('s') if number and value == 1 else unit}".strip()
