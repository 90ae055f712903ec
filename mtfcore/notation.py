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

import re
from dataclasses import dataclass

from mtfcore.errors import NotationError

PARTIAL = "partialsum"
_NAME = re.compile(r"[^\W\d]\w*\Z")
_SEPARATORS = re.compile(r"[\s;,]+")
_ITEM = re.compile(r"[^\s;,()]*(?:\([^()]*\))?")
_PAPER_DIM = re.compile(r"([A-Z])(?:_(?:\{([a-z]+)\}|([a-z]+)))?")
_PAPER_PARTIAL = re.compile(r"\s*\(?\s*partialsum\s*[-:]\s*([a-z]+)\s*\)?\s*\Z")


@dataclass(frozen=True)
class Item:
    """One item of a text: a name with either a size, or axes, or neither; `start` is its place in the text."""

    name: str
    size: int | None = None
    axes: tuple[str, ...] | None = None
    start: int = 0


def fault(text: str, at: int, message: str) -> NotationError:
    """An error whose message shows the text with a caret under the character at fault."""
    shown = text.replace("\n", " ").replace("\t", " ")
    return NotationError(f"{message}\n  {shown}\n  {' ' * at}^")


def is_name(word: str) -> bool:
    """Whether a word can name a dimension or an axis: letters, digits and _, not starting with a digit."""
    return bool(_NAME.match(word))


def looks_like_run(word: str) -> bool:
    """Whether a word stands for several one-letter axes: two to four different letters out of w x y z."""
    letters = word.casefold()
    return 2 <= len(word) <= 4 and set(letters) <= set("wxyz") and len(set(letters)) == len(letters)


def parse(text: str) -> tuple[Item, ...]:
    """Read a text into its items, in order. Raises `NotationError` with a caret."""
    if not isinstance(text, str):
        raise NotationError(f"expected a text such as 'batch:64 io:512', got {type(text).__name__}: {text!r}")
    items, at = [], 0
    while at < len(text):
        if separator := _SEPARATORS.match(text, at):
            at = separator.end()
            continue
        end = _ITEM.match(text, at).end()
        if end == at or text[end : end + 1] in ("(", ")"):
            bad = end if end < len(text) else at
            raise fault(text, bad, f"unexpected {text[bad]!r}: parentheses stand after a colon, as in 'd_ff:(rows cols)'")
        items.append(_item(text, at, text[at:end]))
        at = end
    return tuple(items)


def _item(text: str, at: int, word: str) -> Item:
    name, colon, value = word.partition(":")
    if not is_name(name):
        what = f"{name!r} is not a name" if name else "a name is missing before the colon"
        raise fault(text, at, f"{what}: letters, digits and _ only, not starting with a digit")
    if not colon:
        return Item(name, start=at)
    where = at + len(name) + 1
    if value.isdecimal() and value.isascii():
        if name == PARTIAL:
            raise fault(text, where, f"{PARTIAL} is a reserved name: it takes mesh axes, not a size")
        if int(value) == 0:
            raise fault(text, where, f"{name} has size 0; a size is at least 1")
        return Item(name, size=int(value), start=at)
    return Item(name, axes=parse_axes(value, text, where, name), start=at)


def parse_axes(value: str, text: str | None = None, at: int = 0, name: str = "") -> tuple[str, ...]:
    """Read AXES: a run such as `xyz`, one axis `rows`, or several `(rows cols)`; outermost first."""
    text = value if text is None else text
    if not value:
        raise fault(text, at, f"after '{name}:' a size (digits) or mesh axes are missing")
    grouped = value.startswith("(") and value.endswith(")")
    found: list[str] = []
    for match in re.finditer(r"[^\s;,]+", value[1:-1] if grouped else value):
        word, where = match.group(), at + match.start() + grouped
        if not is_name(word):
            raise fault(text, where, f"{word!r} is neither a size (digits only) nor a mesh axis (not starting with a digit)")
        for axis in word if looks_like_run(word) else (word,):
            if axis in found:
                raise fault(text, where, f"mesh axis {axis!r} stands twice on {name or 'one dimension'}")
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


def format_paper(names: tuple[str, ...], axes: tuple[tuple[str, ...], ...], partial: tuple[str, ...] = ()) -> str | None:
    """Write the second paper's form, `BLE_xyz (partialsum-w)`; None where its one-letter names do not reach."""
    letters = all(len(name) == 1 and "A" <= name <= "Z" for name in names)
    small = all(len(axis) == 1 and "a" <= axis <= "z" for on in (*axes, partial) for axis in on)
    if not (letters and small):
        return None
    body = "".join(name + (f"_{''.join(on)}" if on else "") for name, on in zip(names, axes, strict=True))
    return body + (f" (partialsum-{''.join(partial)})" if partial else "")


def parse_paper(text: str) -> tuple[Item, ...]:
    """Read the second paper's form, `BLE_xyz (partialsum-w)`, also with braces as in `E_{xyz}`."""
    items, at = [], 0
    while at < len(text) and (match := _PAPER_DIM.match(text, at)):
        on = match.group(2) or match.group(3)
        items.append(Item(match.group(1), axes=tuple(on) if on else None, start=at))
        at = match.end()
    if text[at:].strip():
        tail = _PAPER_PARTIAL.match(text, at)
        if not tail:
            raise fault(text, at, "expected dimensions as single capitals, each with _axes, then (partialsum-axes)")
        items.append(Item(PARTIAL, axes=tuple(tail.group(1)), start=at))
    return tuple(items)
