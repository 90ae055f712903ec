"""What an explorer asks of the compiler, and a Stop that ends its own request and no other.

    compiling = Compiling(told=print)                   # hears that it waits for other compilers
    compiling.begin()
    report = compiling.report(program, "v4:2x2x2")      # on a worker; raises `Stopped` once stop() was called
    compiling.stop()                                    # from any thread, returns at once

A compilation has no steps between which to stop: its process is ended, and the next request starts another. Next file
to read: `timeline_answers`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.errors import DeviceError

BEAT = 1.0  # seconds between two words about how long it has taken


class Stopped(Exception):
    """A request was cancelled; nothing is wrong."""


class Compiling:
    """One explorer's requests, one after another."""

    def __init__(self, told: Callable[[str], None] = lambda words: None) -> None:
        self._told, self._stop = told, threading.Event()

    def begin(self) -> None:
        """Forget an earlier stop."""
        self._stop = threading.Event()

    def report(self, program: mtf.Program, topology: str, **options: Any) -> CompiledReport:
        """As `mtf.compile`."""
        self.expect()
        try:
            return mtf.compile(program, topology, told=self._told, stop=self._stop, **options)
        except DeviceError:
            self.expect()
            raise

    def expect(self) -> None:
        """Raise `Stopped` where nobody waits any more."""
        if self._stop.is_set():
            raise Stopped

    @contextmanager
    def clocked(self, say: Callable[[int], None]) -> Iterator[None]:
        """Say the whole seconds so far, from a thread of its own; nothing is said any more once this is left."""
        begun, over = time.monotonic(), threading.Event()

        def beat() -> None:
            while not over.wait(BEAT):
                say(round(time.monotonic() - begun))

        clock = threading.Thread(target=beat, daemon=True)
        clock.start()
        try:
            yield
        finally:
            over.set()
            clock.join()

    def stop(self) -> None:
        """Cancel what was asked for; nothing happens where that has ended."""
        self._stop.set()
