"""What explorers ask of the compiler: one request at a time, and a Stop that ends no request but its own.

    compiling = Compiling()
    compiling.begin()
    report = compiling.report(program, "v4:2x2x2")      # on a worker; raises `Stopped` once stop() was called
    compiling.stop()                                    # from any thread, returns at once

All explorers of a kernel share one compiler (`mtfcore.compiling.process.WORKER`), a child that compiles one program at
a time; ending it is the only way to cancel. Next file to read: `timeline_answers`.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.compiling.process import WORKER
from mtfcore.errors import DeviceError

_TURN = threading.Lock()


class Stopped(Exception):
    """A request was cancelled; nothing is wrong."""


class Compiling:
    """One explorer's requests."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._mine = False  # whether what the compiler does now was asked for here

    def begin(self) -> None:
        """Forget an earlier stop."""
        self._stopped.clear()

    def report(self, program: mtf.Program, topology: str, **options: Any) -> CompiledReport:
        """As `mtf.compile`."""
        with _TURN:
            self.expect()
            self._mine = True
            try:
                return mtf.compile(program, topology, **options)
            except DeviceError:
                if self._stopped.is_set():
                    raise Stopped from None
                raise
            finally:
                self._mine = False

    def expect(self) -> None:
        """Raise `Stopped` where nobody waits any more."""
        if self._stopped.is_set():
            raise Stopped

    def stop(self) -> None:
        """Cancel what was asked for here; nothing happens where that has ended."""
        self._stopped.set()
        if self._mine:
            threading.Thread(target=self._end, daemon=True).start()

    def _end(self) -> None:
        """Again until it has ended: a request on its way to the child starts another one."""
        while self._mine and self._stopped.is_set():
            WORKER.stop()
            time.sleep(0.2)
