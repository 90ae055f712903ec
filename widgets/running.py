"""The part of a frame that runs things: Run and Stop, progress, results that keep their settings and age.

    class Slow(Frame):
        def run(self, settings):                    # on the worker, one step at a time
            for step in range(20):
                yield Progress(step + 1, 20, f"step {step + 1} of 20", value=measure(settings))
            return "all of it"
        def show_result(self, result):
            self.results.value = str(result.value)
        def result_part(self):
            return self.results                     # greyed when the controls have moved on

Sliders and Stop answer while a run is on, since it is on another thread and the handlers are short. `launch_lock`
is held during each step: give it the process's launch lock where steps start JAX. Next file to read: `queue`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, ClassVar

import ipywidgets
import traitlets as t

from widgets.controls import Button, Control
from widgets.numbers import quantity
from widgets.parts import Part
from widgets.queue import Progress, Result, RunQueue, Settings


class Running(Part, t.HasTraits):
    """What `Frame` inherits; see the module's text."""

    run: ClassVar[Any] = None  # def run(self, settings) -> Iterator[Progress]
    refine: ClassVar[Any] = None  # the same, started on release
    launch_lock: ClassVar[AbstractContextManager[Any] | None] = None

    stale = t.Bool(False)
    busy = t.Bool(False)
    measuring = t.Bool(False)  # busy with what Run asked for, not with the dear part of the picture
    result: Result | None = None

    def show_progress(self, progress: Progress) -> None:
        """A value on the way; called on the worker, at most 20 times a second."""

    def show_result(self, result: Result) -> None:
        """A finished run; called on the worker."""

    def result_part(self) -> ipywidgets.DOMWidget | None:
        """A box or HTML that shows results, to be greyed when they are old (an anywidget: put it into a box)."""
        return None

    def make_queue(self) -> RunQueue:
        """The queue, tied to the hooks above."""
        return RunQueue(self._progress, self._finished, self._failed, self.launch_lock, self._begun)

    def run_buttons(self) -> list[Control]:
        """Run and Stop, where there is something to run."""
        if self.run is None:
            return []
        run = Button("run", None, "Run", "run", enabled=not self.measuring)
        return [run, Button("stop", None, "Stop", "run", enabled=self.busy)]

    def press_run(self, name: str) -> bool:
        """Handle Run and Stop; False for any other button."""
        if name == "stop":
            self.queue.stop()
        elif name == "run":
            self.queue.start(self.run, self.run_settings())
        return name in ("run", "stop")

    def start_refining(self) -> None:
        """Start the dear part of the picture, if there is one."""
        if self.refine is not None:
            self.queue.latest(self.refine, self.state)

    def age_result(self) -> None:
        """Grey a result whose settings are no longer those above, and say which it belongs to."""
        if self.result is None:
            return
        stale = not self.result.matches(self.state)
        if stale != self.stale and (part := self.result_part()) is not None:
            (part.add_class if stale else part.remove_class)("mw-stale")
        self.stale = stale
        if not self.busy:
            self._mark(False, self._stamp(self.result))

    def _stamp(self, result: Result) -> str:
        if not self.stale:
            how = "stopped" if result.stopped else "finished"
            return f"{how} after {quantity(result.seconds, 's')} here (measured)"
        old = [f"{key}={value!r}" for key, value in result.settings.items() if self.state[key] != value]
        return f"the result is for {', '.join(old)}"

    def _mark(self, busy: bool, text: str, done: int = 0, total: int = 1) -> None:
        with self.drawing:
            was, measuring = (self.busy, self.measuring), busy and self.queue.by_button
            self.busy, self.measuring = busy, measuring
            if was != (busy, measuring):
                self._show_controls()
            self.top.progress = {"busy": busy, "done": done, "total": total, "text": text}

    def _begun(self, settings: Settings) -> None:
        self._mark(True, "running")

    def _progress(self, progress: Progress) -> None:
        self._mark(True, progress.text, progress.done, progress.total)
        self.show_progress(progress)

    def _finished(self, result: Result) -> None:
        self.result = result
        self.show_result(result)
        self._mark(False, "")
        self.age_result()

    def _failed(self, fault: BaseException) -> None:
        self._mark(False, "the run failed")
        self.tell(fault)
