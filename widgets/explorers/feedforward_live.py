"""The small run of a feedforward layer, shown as it happens in a part that stands from the first run on.

    show = LayerRun()
    ran = yield from show.steps(small_layer("ws2d", layer, mesh), frame.drawing)     # Progress for each event
    frame.children = [*frame.children, show.part]

Next file to read: `feedforward_run`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager
from typing import Any

import ipywidgets

from mtfcore.events import Tally
from widgets.closing import close_all
from widgets.explorers.feedforward_run import Ran, Small, run_watched
from widgets.figures.live_traffic import live_facts, run_words
from widgets.frame import Progress
from widgets.numbers import count, tagged_html
from widgets.views.live_view import LiveView


class LayerRun:
    """Runs a layer with marks behind its collectives, and shows what they have sent so far."""

    def __init__(self) -> None:
        self.live, self.part = LiveView(), ipywidgets.VBox([])

    def steps(self, small: Small, drawing: AbstractContextManager[Any]) -> Generator[Progress, None, Ran]:
        """One step an event; then the answer is laid beside one device's."""
        program = small.program
        total = program.mesh.size * sum(step.times for step in program.collectives())
        yield Progress(0, total + 1, f"starting {count(program.mesh.size, 'simulated device')}")
        running = run_watched(small)
        try:
            while True:
                tally = next(running)
                self._show(small, tally, drawing, "running")
                yield Progress(tally.n_events, total + 1, f"{tally.n_events:,} of {total:,} events")
        except StopIteration as end:
            self._show(small, end.value.tally, drawing, "finished", end.value.details)
            return end.value
        finally:
            running.close()

    def _show(
        self, small: Small, tally: Tally, drawing: AbstractContextManager[Any], how: str, details: str = ""
    ) -> None:  # fmt: skip
        program = small.program
        with drawing:
            facts = live_facts(program, tally)
            self.live.show(facts, tagged_html(f"{program.name} at a small size. {run_words(facts, how)} {details}"))
            if not self.part.children:
                self.part.children = (self.live,)

    def close(self) -> None:
        close_all(self.live, self.part)
