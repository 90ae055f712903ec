"""What an answer must be before it is compared: plain Python of the kind that was asked for, or one sentence."""

import doctest
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest

from widgets.learning import kinds
from widgets.learning.exercises import NotYet, WrongAnswer, asked
from widgets.learning.kinds import WrongKind, clipped, shown, taken, words


def test_the_example_of_the_module_is_true():
    assert doctest.testmod(kinds, extraglobs={"np": np}).failed == 0


@pytest.mark.parametrize(
    ("given", "kind", "plain"),
    [
        (np.int64(3), int, 3), (3.0, int, 3), (np.float32(0.5), float, 0.5), (Fraction(1, 4), float, 0.25),
        (np.array(2.0), float, 2), ([1, 2.0], tuple[int, int], (1, 2)), (np.array([1, 2]), tuple[int, int], (1, 2)),
        (("a", 1), tuple[str, int], ("a", 1)), ((1, (2, 3)), tuple[int, tuple[int, int]], (1, (2, 3))),
        ((1, 2), Sequence[int], [1, 2]), ({"a"}, set[str], {"a"}), (["a"], set[str], {"a"}), (None, int | None, None),
        ("same", tuple[int, int] | str, "same"), ({"a": "b"}, Mapping[str, str], {"a": "b"}),
        (np.bool_(True), bool, True),
    ],
)  # fmt: skip
def test_what_is_of_the_kind_becomes_plain(given, kind, plain):
    found = taken(given, kind)
    assert found == plain and type(found) is type(plain)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (True, int), (1.5, int), (math.nan, float), (math.inf, float), (10**40, int), ("1", int), (1j, float),
        ((1, 2, 3), tuple[int, int]), (1, tuple[int, int]), ((1, "a"), tuple[int, int]), (["a", "a"], set[str]),
        ("ab", Sequence[str]), ([0] * 20_000, list[int]), ("x" * 20_000, str), (1, bool), (np.ones((2, 2)), list[int]),
    ],
)  # fmt: skip
def test_what_is_not_is_turned_away_in_a_line(given, kind):
    with pytest.raises(WrongKind) as found:
        taken(given, kind)
    assert 0 < len(str(found.value)) < 200 and "\n" not in str(found.value)


def test_an_object_that_plays_another_class_is_not_believed():
    class Number:
        __class__ = float

    with pytest.raises(WrongKind):
        taken(Number(), float)


def test_kinds_in_words():
    assert words(tuple[int, int]) == "two whole numbers" and words(tuple[str, int]) == "(a text, a whole number)"
    assert words(list[tuple[int, int]]) == "a list of two whole numbers" and words(set[str]) == "a set of texts"
    assert words(tuple[int, int] | str) == "two whole numbers or a text" and words(np.ndarray) == "an array"


def test_values_in_a_short_line():
    assert shown("a\nb") == "'a\\nb'" and shown(1 / 3) == "0.333333" and shown(12345.6789) == "12,345.679"
    assert shown([0] * 20_000).startswith("20,000 elements") and len(shown("x" * 500)) <= kinds.SHOWN
    assert shown(test_kinds_in_words) == "the function test_kinds_in_words" and clipped("a\n b", 9) == "a b"
    assert shown(np.float64(2.5)) == "2.5" and "0x" not in shown(taken)


def test_a_function_gets_copies_and_answers_in_plain_python():
    given = [1, 2]
    call = asked(lambda values: values.clear() or np.int64(3), Callable[..., int])
    assert call(given) == 3 and type(call(given)) is int and given == [1, 2]


def test_an_answer_of_another_kind_is_a_case_that_says_so():
    def half(n):
        return "two"

    with pytest.raises(WrongAnswer, match=r"half\(4\): expected a whole number, yours gives 'two'"):
        asked(half, Callable[..., int])(4)
    with pytest.raises(WrongAnswer, match="the answer: expected a function, yours gives 7"):
        asked(7, Callable[..., int])
    with pytest.raises(WrongAnswer, match="the answer: expected a pair, yours gives 7"):
        asked(7, tuple[int, int], "a pair")


def test_none_is_an_answer_once_there_was_one():
    half = asked(lambda n: n // 2 if n else None, Callable[..., int])
    assert half(4) == 2
    with pytest.raises(WrongAnswer, match="expected a whole number, yours gives None"):
        half(0)
    maybe = asked(lambda n: n or None, Callable[..., int | None])
    assert [maybe(1), maybe(0)] == [1, None]


@pytest.mark.parametrize("stub", [None, ..., (..., ...), {"a": ...}, [1, ...]])
def test_dots_anywhere_are_not_yet(stub):
    with pytest.raises(NotYet):
        asked(stub, int)
    with pytest.raises(NotYet):
        asked(lambda: stub, Callable[..., int])()
