"""A picture that grows: what is known is drawn at once, and a worker looks at more while the reader looks at that.

    class Planner(Growing):
        def refine(self, settings):            # asks for more, a little at a time; ends when the settings change
            yield Progress(n, total, f"looking at {self.what()}", value=True)
        def what(self):
            return "plans beside this one"

`draw` takes what is there. What the worker does never changes the state, so nothing jumps back under a hand. Next file
to read: `one_plan`.
"""

from __future__ import annotations

from typing import Any

from widgets.frame import Frame, Progress, Result


class Growing(Frame):
    """What planner and frontier inherit; see the module's text."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.kind == "ok":
            self.start_refining()

    def what(self) -> str:
        """What the worker looks at."""
        raise NotImplementedError

    def show_progress(self, progress: Progress) -> None:
        self.redraw()

    def show_result(self, result: Result) -> None:
        self.redraw()

    def redraw(self) -> None:
        """The same settings again, since more is known now; why a run was refused or failed stays to be read."""
        with self.drawing:
            told = self._line if self._true and self.kind != "ok" else None
            self._notes = list(self._said)
            self._redraw()
            if told and self._true:
                self._line = told
                self._say()
            self.refresh_still()

    def _stamp(self, result: Result) -> str:
        """How long it took says nothing about what was found."""
        return f"looked at {self.what()}"
