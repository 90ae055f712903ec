"""A watched run on a thread of its own, so that the worker is free to tell what has happened so far.

    for tally in watched(program, arrays, pause_seconds=0.1):
        print(tally.n_events)                       # 20 times a second, the last time when all is over

A launch cannot be taken back: whoever leaves the loop early waits until the run, without its pauses, has come to
its end. Next file to read: `live_traffic`.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from mtfcore.events import Event, Tally, Watch, watch
from mtfcore.steps import Program

BEAT_SECONDS = 1 / 20
MOST_DEVICES = 64  # simulated ones, which every kernel starts with
SLOW_SECONDS = 4.0  # about how long a run takes in slow motion
PACES = (("slow", "slow motion"), ("full", "as fast as marks allow"))
PACE_HINT = "neither says anything about hardware"
PLACES = (("simulated", "simulated devices"), ("attached", "attached TPU or GPU"))
Arrays = Mapping[str, Any] | Sequence[Any]


def watched(
    program: Program, arrays: Arrays, pause_seconds: float, attached: bool = False
) -> Generator[Tally, None, Any]:
    """Run the program and give what its events add up to, again and again until it has ended; returns its answer."""
    happened: queue.SimpleQueue[Event] = queue.SimpleQueue()
    tally, running = Tally(program), _Running(watch(program, happened.put, pause_seconds, attached), arrays)
    try:
        while running.alive or not happened.empty():
            while not happened.empty():
                tally.add(happened.get())
            yield tally
    finally:
        running.hurry()
    running.raise_fault()
    return running.answer


class _Running:
    """The launch, on its thread."""

    def __init__(self, run: Watch, arrays: Arrays) -> None:
        self._run, self._arrays = run, arrays
        self._fault: BaseException | None = None
        self.answer: Any = None
        self._thread = threading.Thread(target=self._work, name="meshwork-watched", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            given = self._arrays
            self.answer = self._run(**given) if isinstance(given, Mapping) else self._run(*given)
        except Exception as fault:  # a thread has nobody to raise to: `raise_fault` does it on the worker
            self._fault = fault

    @property
    def alive(self) -> bool:
        """Whether it runs; takes a beat to answer."""
        self._thread.join(BEAT_SECONDS)
        return self._thread.is_alive()

    def hurry(self) -> None:
        """Let the run come to its end without pauses."""
        self._run.pause_seconds = 0.0
        self._thread.join()

    def raise_fault(self) -> None:
        """Raise what the run raised."""
        if self._fault is not None:
            raise self._fault
