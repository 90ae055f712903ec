"""No exercise can be passed without doing it: what a lazy student hands in fails, soon and in one or two lines.

A constant of any kind; an argument or a sum of all arguments given back; one answer of the check's own report, or all
that a neighbour was asked for, said again; an answer that raises, that changes what it was given, or that calls itself
equal to everything. In four exercises the answer is itself a text, a set or a table that a student writes down; these
ask everybody for the same, so only other values are tried there. What reads the frames of the check that calls it is
beyond a check, whose purpose is help.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.lessons.students import handing, heard, solved
from widgets.learning.checking import judge
from widgets.learning.exercises import BOOK

LONGEST = 400  # characters of a message: two lines of a notebook
WRITTEN_DOWN = [name for name in BOOK if not callable(solved(name))]
CALLED = [name for name in BOOK if callable(solved(name))]


class Agreeable:
    """Equal to all, of every length, and true."""

    __hash__ = None
    __eq__ = __le__ = __ge__ = __contains__ = lambda self, other: True
    __ne__ = __lt__ = __gt__ = lambda self, other: False


class AgreeableText(str):
    __slots__ = ()
    __hash__ = str.__hash__
    __eq__ = __contains__ = lambda self, other: True


class AgreeableNumber(float):
    __slots__ = ()
    __hash__ = float.__hash__
    __eq__ = __le__ = __ge__ = lambda self, other: True


class Unshowable:
    def __repr__(self):
        raise RuntimeError("not shown")


CONSTANTS = [
    None, 0, 1, -1, 2.0, 1j, True, False, "", "x", "yes", "none", b"x", (), [], {}, set(), (0, 1), [0, 1], {"x": 1},
    {1}, math.nan, math.inf, -math.inf, 10**5000, (math.nan, math.nan), "x" * 100_000, [0] * 1_000_000,
    [[0] * 1000] * 1000, np.zeros(()), np.ones(3), np.ones((4, 4)), np.float32("nan"), Agreeable(),
    AgreeableText("x"), AgreeableNumber(1),
    (Agreeable(), Agreeable()), [AgreeableText("x")], Unshowable(), object(), int, range(3), iter([1]),
]  # fmt: skip


def _numbers(values):
    """All numbers among some arguments, also those within lists and dicts."""
    for value in values:
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield value
        elif isinstance(value, list | tuple | dict):
            yield from _numbers(value.values() if isinstance(value, dict) else value)


def _spoil(value):
    """Change an argument in place, as far as it can be."""
    if isinstance(value, list | dict | set):
        value.clear()
    elif isinstance(value, np.ndarray):
        value[...] = 0
    return value


def _raise(error):
    raise error


LAZY = {
    **{f"argument {n}": lambda *given, n=n: given[min(n, len(given) - 1)] for n in range(8)},
    "all arguments": lambda *given: given,
    "sum": lambda *given: sum(_numbers(given)),
    "product": lambda *given: math.prod(_numbers(given)),
    "largest": lambda *given: max(_numbers(given), default=0),
    "smallest": lambda *given: min(_numbers(given), default=0),
    "first key": lambda *given: next(iter(given[0])),
    "spoiled": lambda *given: _spoil(given[0]),
    "error": lambda *given: _raise(ValueError("first line\nsecond line\n" + "x" * 10_000)),
    "no error": lambda *given: _raise(StopIteration),
    "end": lambda *given: _raise(SystemExit),
    "endless": lambda *given: LAZY["endless"](*given),
    "unshowable": lambda *given: _raise(ValueError(Unshowable())),
}


def fails(name, given, seed="Ada"):
    """The answer fails, with one or two lines of text."""
    state, message, _ = judge(BOOK[name], given, seed)
    assert state != "passed", message
    assert len(message) <= LONGEST and "\n" not in message and "Traceback" not in message, message
    assert state == "not yet" or "expected" in message or "stopped with" in message, message


@pytest.mark.parametrize("name", BOOK)
def test_no_constant_passes(name):
    for number, constant in enumerate(CONSTANTS):
        fails(name, constant)
        if name in CALLED:
            fails(name, handing(name, lambda *_, constant=constant: constant), seed=number)


@pytest.mark.parametrize("name", BOOK)
def test_no_use_of_the_arguments_alone_passes(name):
    for lazy in LAZY.values():
        fails(name, handing(name, lazy) if name in CALLED else lazy)


@pytest.mark.parametrize("name", CALLED)
def test_what_a_report_says_passes_nowhere_as_a_constant(name):
    """However few answers there are, no single one is right in all cases of any student."""
    for seed in ("Ada", 0, 1):
        said = heard(name, seed)
        assert said, "the check never asked the student's function"
        for constant in said[:8]:
            fails(name, handing(name, lambda *_, constant=constant: constant), seed)


@pytest.mark.parametrize("name", CALLED)
def test_what_a_neighbour_answered_does_not_pass(name):
    """Not in the order in which the neighbour was asked."""
    for seed in range(3):
        again = iter(heard(name, "Grace"))
        fails(name, handing(name, lambda *_, again=again: next(again, 0)), seed)


@pytest.mark.parametrize("name", CALLED)
def test_the_right_kind_and_shape_alone_do_not_pass(name):
    for value in (0, 1, 7):
        hollow = [_hollow(said, value) for said in heard(name, "Ada")]
        again = iter(hollow)
        fails(name, handing(name, lambda *_, again=again, hollow=hollow: next(again, hollow[0])))


def _hollow(said, value):
    """The same lists, pairs and arrays, with one number everywhere and texts emptied."""
    if isinstance(said, list | tuple):
        return type(said)(_hollow(each, value) for each in said)
    if isinstance(said, np.ndarray):
        return np.full_like(said, value)
    return value if isinstance(said, int | float) else ""
