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
from collections.abc import Callable
from typing import Any

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.errors import DeviceError


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

    def stop(self) -> None:
        """Cancel what was asked for; nothing happens where that has ended."""
        self._stop.set()
