"""The text form of dimensions, meshes, layouts and shardings, read and written.

    B L E:xyz          dimension E lies on mesh axes x, y, z (outermost first)
    batch:64 io:512    sizes
    d_ff:(rows cols)   one dimension on several axes with longer names
    B E partialsum:yz  each device holds an addend of the sum over y and z

Items are separated by blanks, `;` or `,` outside parentheses, so Mesh-TensorFlow's own strings
(`rows:4;cols:2`) read as they are. The short form BLE_xyz "(partialsum-yz)" is the one printed in
"Efficiently Scaling Transformer Inference" (arXiv 2211.05102, section 3.1).

Next file to read: `mesh`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from mtfcore.errors import NotationError

PARTIAL = "partialsum"
NAME_RULE = "letters, digits and _ only, not starting with a digit"
_NAME = re.compile(r"[^\W\d]\w*\Z")
_SEPARATORS = re.compile(r"[\s;,]+")
_ITEM = re.compile(r"[^\s;,()]*(?:\([^()]*\))?")
_SLIP = re.compile(r"([^\W\d]\w*)(?:=|->|→|/|@)(\w+)\Z")  # batch=64, batch->rows
_MOST_DIGITS = 18  # of a size; more is a slip of the keyboard
_TOO_MUCH = 10**_MOST_DIGITS
_SHOWN = 100  # characters of a long text that a message shows
_PAPER_DIM = re.compile(r"([A-Z])(?:_(?:\{([a-z]+)\}|([a-z]+)))?")
_PAPER_PARTIAL = re.compile(r"\s*\(\s*partialsum\s*[-:]\s*([a-z]+)\s*\)\s*\Z")


@dataclass(frozen=True)
class Item:
    """One item of a text: a name with either a size, or axes, or neither; `start` is its place in the text."""

    name: str
    size: int | None = None
    axes: tuple[str, ...] | None = None
    start: int = 0


class _Fault(Exception):
    """One fault and its place, inside this module: `parse` gathers them all before it raises."""

    def __init__(self, at: int, message: str) -> None:
        self.at, self.message = at, message


def _error(text: str, faults: list[_Fault]) -> NotationError:
    """One error for all faults; it shows the text with a caret under each character at fault."""
    first = max(0, faults[0].at - _SHOWN // 2) if len(text) > _SHOWN else 0
    part = text[first : first + _SHOWN]
    shown = "".join(c if c.isprintable() else " " for c in part)
    under = {fault.at - first for fault in faults}
    carets = "".join("^" if place in under else " " for place in range(len(part) + 1)).rstrip()
    before, after = "…" * (first > 0), "…" * (first + _SHOWN < len(text))
    picture = f"\n  {before}{shown}{after}\n  {' ' * len(before)}{carets}"
    if len(faults) == 1:
        return NotationError(faults[0].message + picture)
    listed = [f"\n  {number}. {fault.message}" for number, fault in enumerate(faults[:9], 1)]
    more = f"\n  and {len(faults) - 9} more" if len(faults) > 9 else ""
    return NotationError(f"{len(faults)} faults in one text{''.join(listed)}{more}{picture}")


def _quote(word: str) -> str:
    """A word as a message shows it, shortened in the middle."""
    return repr(word if len(word) <= 40 else f"{word[:20]}…{word[-15:]}")


def is_name(word: object) -> bool:
    """Whether a word can name a dimension or an axis: letters, digits and _, not starting with a digit."""
    return isinstance(word, str) and bool(_NAME.match(word))


def as_whole(value: object) -> int | None:
    """Any whole number (numpy's too) as an int; None for all else, truth values included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(cast(Any, value))
    except TypeError:  # arrays have the method, too, and use it only where they hold just one whole number
        return None


def as_size(value: object) -> int | None:
    """A size given as any whole number; None for what cannot be a size."""
    number = as_whole(value)
    return None if number is None or number < 1 else number


def read_whole(word: str) -> int | None:
    """A whole number in digits, as somebody writes a size; None for anything else, and for more digits than sizes have.

    >>> read_whole("64"), read_whole("6.4"), read_whole("9" * 30)
    (64, None, None)
    """
    word = word.strip()
    return int(word) if word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS else None


def too_long(size: int) -> str:
    """What to say of a size of more digits than a text may give; empty where it is none."""
    digits = int(math.log10(size)) + 1 if size >= _TOO_MUCH else 0
    return f"a size of {digits} digits; the most is {_MOST_DIGITS}" if digits else ""


def looks_like_run(word: str) -> bool:
    """Whether a word stands for several one-letter axes: two to four different letters out of w x y z."""
    letters = word.casefold()
    return 2 <= len(word) <= 4 and set(letters) <= set("wxyz") and len(set(letters)) == len(letters)


def parse(text: str) -> tuple[Item, ...]:
    """Read a text into its items, in order. Raises one `NotationError` for all faults, a caret under each."""
    if not isinstance(text, str):
        raise NotationError(f"expected a text such as 'batch:64 io:512', got {type(text).__name__}: {text!r:.200}")
    items, faults = list[Item](), list[_Fault]()
    for at, word in _words(text, faults):
        try:
            items.append(_item(word, at))
        except _Fault as fault:
            faults.append(fault)
    if faults:
        raise _error(text, sorted(faults, key=lambda fault: fault.at))
    return tuple(items)


def _words(text: str, faults: list[_Fault]) -> Iterator[tuple[int, str]]:
    """(place, word) of each item; what stands in its place instead goes to `faults`."""
    at = 0
    while at < len(text):
        if separator := _SEPARATORS.match(text, at):
            at = separator.end()
            continue
        item = _ITEM.match(text, at)
        end = item.end() if item else len(text)
        if text[end : end + 1] == "(":
            faults.append(_Fault(end, "'(' is not closed, as in 'd_ff:(rows cols)'"))
            return
        if text[end : end + 1] == ")":
            faults.append(_Fault(end, "')' without '(' before it; several axes are written 'd_ff:(rows cols)'"))
            at = end + 1
            continue
        if end < len(text) and not _SEPARATORS.match(text, end):
            faults.append(_Fault(end, f"a blank is missing after {_quote(text[at:end])}"))
        yield at, text[at:end]
        at = end


def _item(word: str, at: int) -> Item:
    name, colon, value = word.partition(":")
    if not is_name(name):
        raise _Fault(at, _not_a_name(name, word))
    if not colon and name != PARTIAL:
        return Item(name, start=at)
    where = at + len(name) + 1
    if name == PARTIAL and (not value or value.isdecimal()):
        what = f"{PARTIAL} is a reserved name: it takes the mesh axes still to be summed over, as in {PARTIAL}:x"
        raise _Fault(where if colon else at, what)
    if value.isdecimal() and value.isascii():
        return Item(name, size=_size(name, value, where), start=at)
    return Item(name, axes=_axes(value, where, name), start=at)


def _not_a_name(name: str, word: str) -> str:
    if not name:
        return f"a name is missing before the colon: {NAME_RULE}"
    if name.startswith(f"({PARTIAL}"):
        return f"{_quote(word)}: write {PARTIAL}:x; the second paper's form is read by Sharding.from_paper"
    slip = _SLIP.match(word)
    hint = f"; did you mean '{slip[1]}:{slip[2]}'?" if slip else ""
    return f"{_quote(name)} is not a name: {NAME_RULE}{hint}"


def _size(name: str, digits: str, at: int) -> int:
    digits = digits.lstrip("0")
    if not digits:
        raise _Fault(at, f"{name} has size 0; a size is at least 1")
    if len(digits) > _MOST_DIGITS:
        raise _Fault(at, f"{name} has a size of {len(digits)} digits; the most is {_MOST_DIGITS}")
    return int(digits)


def parse_axes(value: str, name: str = "") -> tuple[str, ...]:
    """Read AXES: a run such as `xyz`, one axis `rows`, or several `(rows cols)`; outermost first."""
    try:
        return _axes(value, 0, name)
    except _Fault as fault:
        raise _error(value, [fault]) from None


def _axes(value: str, at: int, name: str) -> tuple[str, ...]:
    grouped = value.startswith("(") and value.endswith(")")
    words = list(re.finditer(r"[^\s;,]+", value[1:-1] if grouped else value))
    if not words:
        what = "no mesh axis stands between the parentheses" if grouped else "a size (digits) or mesh axes are missing"
        raise _Fault(at, f"after '{name}:' {what}")
    found: list[str] = []
    for match in words:
        word, where = match.group(), at + match.start() + grouped
        if not is_name(word):
            raise _Fault(where, f"{_quote(word)} is neither a size (digits only) nor a mesh axis ({NAME_RULE})")
        for axis in word if looks_like_run(word) else (word,):
            if axis in found:
                raise _Fault(
                    where, f"mesh axis {_quote(axis)} stands twice on {name or 'one dimension'}; write it once"
                )
            found.append(axis)
    return tuple(found)


def format_axes(axes: tuple[str, ...]) -> str:
    """Write axes so that `parse_axes` reads them back."""
    if len(axes) == 1:
        return axes[0]
    run = "".join(axes)
    return run if all(len(axis) == 1 for axis in axes) and looks_like_run(run) else f"({' '.join(axes)})"


def format_items(names: tuple[str, ...], axes: tuple[tuple[str, ...], ...], partial: tuple[str, ...] = ()) -> str:
    """Write a placement in our own form, `B L E:xyz partialsum:w`."""
    words = [f"{name}:{format_axes(on)}" if on else name for name, on in zip(names, axes, strict=True)]
    return " ".join([*words, *([f"{PARTIAL}:{format_axes(partial)}"] if partial else [])])


def format_paper(
    names: tuple[str, ...], axes: tuple[tuple[str, ...], ...], partial: tuple[str, ...] = ()
) -> str | None:
    """Write the second paper's form, `BLE_xyz (partialsum-w)`; None where its one-letter names do not reach."""
    letters = all(len(name) == 1 and "A" <= name <= "Z" for name in names)
    small = all(len(axis) == 1 and "a" <= axis <= "z" for on in (*axes, partial) for axis in on)
    if not (letters and small):
        return None
    body = "".join(name + (f"_{''.join(on)}" if on else "") for name, on in zip(names, axes, strict=True))
    return f"{body} (partialsum-{''.join(partial)})".lstrip() if partial else body


def parse_paper(text: str) -> tuple[Item, ...]:
    """Read the second paper's form, `BLE_xyz (partialsum-w)`, also with braces as in `E_{xyz}`."""
    if not isinstance(text, str):
        what = f"{type(text).__name__}: {text!r:.200}"
        raise NotationError(f"expected a text such as 'BLE_xyz (partialsum-w)', got {what}")
    items, at = [], len(text) - len(text.lstrip())
    while at < len(text) and (match := _PAPER_DIM.match(text, at)):
        on = match.group(2) or match.group(3)
        items.append(Item(match.group(1), axes=tuple(on) if on else None, start=at))
        at = match.end()
    if text[at:].strip():
        tail = _PAPER_PARTIAL.match(text, at)
        if not tail:
            what = "expected dimensions as single capitals without blanks, each with _axes, then (partialsum-axes)"
            raise _error(text, [_Fault(at, what)])
        items.append(Item(PARTIAL, axes=tuple(tail.group(1)), start=at))
    return tuple(items)
