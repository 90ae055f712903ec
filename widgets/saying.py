"""The part of a frame that speaks: the sentence below the picture, refusals with ways out, and faults of ours.

    with self.told():                 # whatever is raised inside lands in the sentence
        self._go(state, True)
    frame.sentence, frame.kind, frame.offers
    frame.check()                     # raises the last fault of ours, for tests

A `LayoutError` or a `DeviceError` is said in its own words. Anything else is a fault of ours: short in the sentence, in
full in the details, and never swallowed. Next file to read: `frame`.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import ipywidgets

from mtfcore.errors import DeviceError, LayoutError
from widgets.parts import Part
from widgets.shown import Offer
from widgets.state import write_state
from widgets.static import sentence_html, table_html
from widgets.views.status_view import StatusView


class Saying(Part):
    """What `Frame` inherits; see the module's text."""

    reraise: ClassVar[bool] = False
    bottom: StatusView
    stage: ipywidgets.Box

    def keep_quiet(self) -> None:
        """Nothing has been said yet."""
        self.fault: BaseException | None = None
        self._true = False  # whether the picture is that of the settings
        self._notes: list[str] = []  # for the next redraw; then on show as _said
        self._said: list[str] = []
        self._line: tuple[str, str, tuple[Offer, ...], str] = ("ok", "", (), "")

    def pictures(self) -> Sequence[ipywidgets.DOMWidget]:
        """What is dimmed while the settings are refused."""
        return (self.stage,)

    def note(self, text: str) -> None:
        """Say this above the next sentence; for `edit`, when it had to change more than was asked."""
        self._notes += [text] if text else []

    @contextmanager
    def told(self) -> Iterator[None]:
        """Whatever is raised inside lands in the sentence; nothing is swallowed. One thread draws at a time."""
        with self.drawing:
            try:
                yield
            except Exception as fault:
                self._notes = []  # of an edit that came to nothing
                self.tell(fault)
                if self.reraise and self.kind == "broken":
                    raise

    def tell(self, fault: BaseException) -> None:
        """Put a fault into the sentence: the library's in its own words, ours with its full text in the details."""
        if isinstance(fault, (LayoutError, DeviceError)):
            self._line = ("refused", str(fault), getattr(fault, "offers", ()), getattr(fault, "full", ""))
            return self._say()
        self.fault = fault
        short = f"This went wrong inside: {type(fault).__name__}: {str(fault)[:200]} (full text in the details)"
        self._line = ("broken", short, (), "".join(traceback.format_exception(fault)))
        self._say()

    def check(self) -> None:
        """Raise the last fault of ours, if there was one; for tests."""
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault

    @property
    def sentence(self) -> str:
        """What the line says now, as plain text."""
        notes = (*self._said, *(self._shown.notes if self._shown and self._line[0] == "ok" else ()))
        return "\n".join([*(f"{note[:1].upper()}{note[1:]}." for note in notes), self._line[1]])

    @property
    def kind(self) -> str:
        """Whether the line says something true (ok), refuses (refused), or reports a fault of ours (broken)."""
        return self._line[0]

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The ways out on show."""
        return self._line[2]

    def _say(self, change: Any = None) -> None:
        kind, _, offers, error = self._line
        for picture in self.pictures():  # a refused run leaves them true
            (picture.remove_class if self._true else picture.add_class)("mw-dim")
        table = table_html(self._shown.table) if self.bottom.unfolded and self._shown else ""
        self.bottom.shown = {
            "sentence": sentence_html(self.sentence), "kind": kind, "offers": [offer.label for offer in offers],
            "code": self.code, "state": write_state(self.state), "error": error, "table": table,
        }  # fmt: skip
