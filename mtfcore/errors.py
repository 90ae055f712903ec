"""What Meshwork refuses, and how it says so.

Everything refused before a run is a `LayoutError`. Its text names each part, says what is legal and
offers the nearest fix; where several things are wrong it lists them all at once:

    >>> mtf.Sharding("batch:10 io:512", "batch:rows io:rows").local_shape(mtf.Mesh("rows:4"))
    LayoutError: mesh axis 'rows' is used twice in one tensor: on batch and on io; ...

Next file to read: `notation`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, TypeGuard, TypeVar

T = TypeVar("T")
_LONG_WORD = re.compile(r"(\w{80})\w{40,}(\w{40})")  # a word that would bury the sentence it stands in
LONGEST = 2_000  # characters of a message: more is not read, and fills a notebook


class LayoutError(ValueError):
    """A name, size, placement or program that cannot be; nothing has run yet."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(_LONG_WORD.sub(r"\1…\2", message)))


def shortened(message: str) -> str:
    """A message of at most `LONGEST` characters: the middle of a longer one is left out."""
    return message if len(message) <= LONGEST else f"{message[: LONGEST - 500]} … {message[-400:]}"


class NotationError(LayoutError):
    """A text that does not parse; the message carries the text with a caret under the fault."""


class DeviceError(RuntimeError):
    """The devices at hand do not allow what was asked; the message says what to do."""


class LayoutWarning(UserWarning):
    """A rule that has no effect; an error instead wherever `strict=True` is given."""


def sure(value: T | None) -> T:
    """What a caller has made sure is there, such as the body of a repeat: if it lacks, the fault is ours."""
    if value is None:
        raise AssertionError("a value that was made sure of is missing")
    return value


def expect(value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """The value, where it is one of that kind: `expect(step, Step, "a step of a program")`."""
    if not isinstance(value, kind):
        raise LayoutError(f"expected {what}, got {type(value).__name__} {value!r:.200}")
    return value


def in_order(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether it lists things one after another: no text, no set (its order is chance), no array of 0 dimensions."""
    unordered = isinstance(value, (str, bytes, set, frozenset)) or getattr(value, "shape", None) == ()
    return isinstance(value, Iterable) and not unordered


def refuse_flags(about: str, **flags: object) -> None:
    """Refuse what is neither True nor False, all at once."""
    odd = {name: flag for name, flag in flags.items() if not isinstance(flag, bool)}
    refuse([f"{name} is {flag!r:.100}; expected True or False" for name, flag in odd.items()], about)


def nearest(name: object, legal: Iterable[str]) -> str:
    """A phrase that offers the closest legal name, and lists them all."""
    name, legal = str(name), list(legal)
    close = difflib.get_close_matches(name, legal, n=1, cutoff=0.6)
    close = close or [other for other in legal if other.casefold() == name.casefold()]
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}legal here: {', '.join(map(repr, legal)) or 'none'}"


def refuse(faults: list[str], about: str = "") -> None:
    """Raise one `LayoutError` that lists all the faults, if there are any."""
    if not faults:
        return
    faults = list(dict.fromkeys(faults))
    if len(faults) == 1:
        raise LayoutError(f"{about}: {faults[0]}" if about else faults[0])
    head = f"{about}: {len(faults)} faults" if about else f"{len(faults)} faults"
    lines = [f"\n  {number}. " + fault.replace("\n", "\n   ") for number, fault in enumerate(faults, 1)]
    raise LayoutError(head + "".join(lines))
