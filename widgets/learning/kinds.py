"""Of what kind an answer must be, before anything compares it: the annotation of a check's `answer` says it.

    >>> taken(np.int64(3), int), taken([2, 3], tuple[int, int]), words(tuple[int, int])
    (3, (2, 3), 'two whole numbers')

An answer of another kind is turned away with one sentence. One of the right kind is handed on as plain Python: numbers
as `int` and `float`, texts as `str`, pairs as tuples. So an object that calls itself equal to everything, a NaN, or a
list of a million zeros never reaches a comparison. What an answer reads from the frames of the check that calls it is
beyond this: a check is there to help, and is no lock. Read next: `exercises.py`.
"""

from __future__ import annotations

import math
import re
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

MOST = 10_000  # elements of a list or characters of a text: more than any exercise asks for, soon looked through
SHOWN = 80  # characters
_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "True or False", type(None): "None",
          np.ndarray: "an array", dict: "a dict"}  # fmt: skip
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
_REPR = reprlib.Repr()
_REPR.maxother = _REPR.maxstring = _REPR.maxlong = SHOWN


class WrongKind(Exception):
    """The answer is of another kind than the one that was asked for."""


def shown(value: Any) -> str:
    """A value in one short line, whatever it is; a text as it was written, a long list by its beginning."""
    if isinstance(value, list | tuple) and len(value) > MOST:
        return f"{len(value):,} elements, the first {shown(value[0])}"
    if type(value) is float:
        return decimal(value)
    if isinstance(value, types.FunctionType):
        return f"the function {value.__name__}"
    try:
        text = _REPR.repr(value)
    except Exception as problem:  # numbers of thousands of digits, and objects that refuse to be shown
        text = f"something that cannot be shown ({type(problem).__name__})"
    return clipped(re.sub(r"np\.\w+\(([^()]*)\)", r"\1", text), SHOWN)


def decimal(value: float) -> str:
    """A number that is not whole, with as many digits as one compares by eye."""
    return f"{value:,.3f}" if 1000 <= abs(value) < 1e15 else f"{value:.6g}"


def clipped(text: str, most: int) -> str:
    """The text in one line, or its beginning and end with dots between."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 20]} … {text[-17:]}"


def words(kind: Any) -> str:
    """How a page names a kind."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(words, parts))
    if origin is tuple:
        return _several(parts)
    if origin in (list, Sequence, set):
        return f"a {'set' if origin is set else 'list'} of {_plural(words(parts[0]))}"
    if origin in (dict, Mapping):
        return "a dict"
    if kind is Any:
        return "an answer"
    return _WORDS.get(kind) or f"a {kind.__name__}"


def _several(parts: Sequence[Any]) -> str:
    if len(set(parts)) == 1:
        return f"{_NUMBERS[len(parts)]} {_plural(words(parts[0]))}"
    return f"({', '.join(map(words, parts))})"


def _plural(one: str) -> str:
    """`a whole number` → `whole numbers`; what has no article stands as it is."""
    return f"{re.sub('^an? ', '', one)}s" if re.match("an? ", one) else one


def taken(value: Any, kind: Any) -> Any:
    """The value as plain Python, if it is of that kind; `WrongKind` with what it is instead."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(value, parts)
    if origin is tuple:
        return _tuple(value, parts)
    if origin in (list, Sequence, set):
        return _list(value, parts[0], as_set=origin is set)
    if origin in (dict, Mapping):
        return {taken(key, parts[0]): taken(each, parts[1]) for key, each in _exact(value, dict).items()}
    return _SIMPLE.get(kind, lambda given: _exact(given, kind))(value)


def _first_that_fits(value: Any, kinds: Sequence[Any]) -> Any:
    for kind in kinds:
        try:
            return taken(value, kind)
        except WrongKind:
            continue
    raise WrongKind(shown(value))


def _tuple(value: Any, kinds: Sequence[Any]) -> tuple[Any, ...]:
    value = value.tolist() if _is(value, np.ndarray) and value.shape == (len(kinds),) else value
    if not _is(value, tuple, list) or len(value) != len(kinds):
        raise WrongKind(shown(value))
    return _each(value, kinds)


def _each(value: Sequence[Any], kinds: Sequence[Any]) -> tuple[Any, ...]:
    try:
        return tuple(taken(each, kind) for each, kind in zip(value, kinds, strict=True))
    except WrongKind as found:  # the part alone does not say where it stands
        raise WrongKind(f"{shown(value)} with {found} in it") from None


def _list(value: Any, kind: Any, as_set: bool) -> Any:
    value = value.tolist() if _is(value, np.ndarray) and value.ndim == 1 else value
    if not _is(value, *((set, frozenset) if as_set else ()), list, tuple) or len(value) > MOST:
        raise WrongKind(shown(value))
    found = _each(list(value), [kind] * len(value))
    if as_set and len(set(found)) < len(found):
        raise WrongKind(f"{shown(value)}, some of it twice")
    return set(found) if as_set else list(found)


def _number(value: Any) -> int | float:
    alone = _is(value, np.generic) or (_is(value, np.ndarray) and value.ndim == 0)
    value = value.item() if alone else value
    if _is(value, int) and not _is(value, bool):
        return _whole(int.__int__(value))
    if not _is(value, float, Fraction) or not math.isfinite(value):
        raise WrongKind(shown(value))
    value = float(value)
    return int(value) if value.is_integer() else value


def _whole(value: int) -> int:
    if abs(value) >= 10**30:
        raise WrongKind("a number of more than 30 digits")
    return value


def _integer(value: Any) -> int:
    number = _number(value)
    if not isinstance(number, int):
        raise WrongKind(shown(value))
    return number


def _text(value: Any) -> str:
    text = str.__str__(_exact(value, str))
    if len(text) > MOST:
        raise WrongKind(f"a text of {len(text):,} characters")
    return text


def _bool(value: Any) -> bool:
    return bool(_exact(value.item() if _is(value, np.bool_) else value, bool))


def _array(value: Any) -> np.ndarray:
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        value = np.asarray(value)
    return _exact(value, np.ndarray)


def _exact(value: Any, kind: type) -> Any:
    if not _is(value, kind):
        raise WrongKind(shown(value))
    return value


def _is(value: Any, *kinds: type) -> bool:
    """`isinstance` that no `__class__` talks into."""
    return issubclass(type(value), kinds)


_SIMPLE: dict[Any, Callable[[Any], Any]] = {
    int: _integer, float: _number, str: _text, bool: _bool, np.ndarray: _array, Any: lambda value: value,
}  # fmt: skip
