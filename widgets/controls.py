"""The controls an explorer can ask for, as data: what they show, what they allow, how they clamp.

    >>> IntBox("rows", 4, high=32).clamp(64)
    (32, 'rows 64 is not possible here; 32 is the nearest')

`ControlsView` draws them. An `IntBox` is a slider over the powers of two with a box for any integer; one control
gives one event, whichever half was moved. `group` is the heading a control stands under. Next file to read: `frame`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from widgets.state import UNWRITABLE


@dataclass(frozen=True)
class Control:
    """Name (the key of an edit), the value shown, and where it stands."""

    kind: ClassVar[str] = ""
    name: str
    value: Any
    label: str = ""
    group: str = ""
    hint: str = ""

    def spec(self) -> dict[str, Any]:
        """What the page needs to draw it."""
        return {"kind": self.kind, **asdict(self), "label": self.label or self.name}

    def clamp(self, value: Any) -> tuple[Any, str]:
        """The nearest possible value, and a sentence if that is another than was asked for."""
        return value, ""

    def _say(self, asked: object, given: object) -> str:
        return f"{self.label or self.name} {asked!s:.100} is not possible here; {given} is the nearest"


@dataclass(frozen=True)
class IntBox(Control):
    """A whole number: a slider in powers of two, and a box for any other."""

    kind: ClassVar[str] = "int"
    low: int = 1
    high: int = 1 << 20

    def clamp(self, value: Any) -> tuple[int, str]:
        """The nearest whole number between `low` and `high`."""
        try:
            asked = int(value)
        except (TypeError, ValueError, OverflowError):  # the last: infinite
            instead = "" if value is None else f", not {value!r:.100}"  # None: the box is empty
            return self.value, f"{self.label or self.name} takes a whole number{instead}; it stays {self.value}"
        given = min(max(asked, self.low), self.high)
        if isinstance(value, float) and value != asked:
            return given, self._say(value, given)
        return given, "" if given == asked else self._say(asked, given)


@dataclass(frozen=True)
class Choice(Control):
    """One of several options, each a (value, words) pair; those in `off` stand in the menu, greyed."""

    kind: ClassVar[str] = "choice"
    options: tuple[tuple[str, str], ...] = ()
    off: tuple[str, ...] = ()

    def clamp(self, value: Any) -> tuple[str, str]:
        """The option itself, or the first one when it has become impossible."""
        legal = {option: words for option, words in self.options if option not in self.off}
        if not legal or (isinstance(value, str) and value in legal):
            return value, ""
        first = next(iter(legal))
        return first, self._say(repr(value), repr(legal[first]))


@dataclass(frozen=True)
class TextBox(Control):
    """A line of text in the library's notation; taken on Enter or when the box is left."""

    kind: ClassVar[str] = "text"
    longest: int = 2_000
    wide: bool = False

    def clamp(self, value: Any) -> tuple[str, str]:
        """Cut at `longest`, so that a pasted file does not become a setting; what no file of text may hold is left out.

        A picture is saved with its settings, and an SVG with a control character in it does not open.
        """
        text, about = UNWRITABLE.sub("", str(value)), self.label or self.name
        notes = [f"{about} has characters that no text has; they are left out"] if text != str(value) else []
        notes += [f"{about} was cut at {self.longest} characters"] if len(text) > self.longest else []
        return text[: self.longest], "; ".join(notes)


@dataclass(frozen=True)
class Button(Control):
    """Something to press; `value` is unused, `enabled` greys it."""

    kind: ClassVar[str] = "button"
    enabled: bool = True


def find(controls: Sequence[Control], name: str) -> Control | None:
    """The control of that name, if there is one now."""
    return next((control for control in controls if control.name == name), None)


def most(high: int, *others: int) -> int:
    """How large one factor may be so that its product with the others stays within `high`."""
    for other in others:
        high //= max(other, 1)
    return max(high, 1)


__all__ = ["Button", "Choice", "Control", "IntBox", "TextBox", "find", "most"]
