"""Dear work off the handler: one worker, the newest request, stop between steps, results that keep their settings.

    queue = RunQueue(on_progress=show, on_result=keep, on_error=say)
    queue.latest(compile_it, {"batch": 64})    # on release: replaces what waits; at most one runs, one waits
    queue.start(measure, {"batch": 64})        # a button: refused (False) while a run is going on, never queued;
                                               # a recomputation makes room at its next step and is begun again after
    queue.stop()                               # between two steps

A job is a function of one settings dictionary. If it is a generator it yields `Progress` after each step and
returns its value; stopping is looked at between steps. `lock` is held during each step, so that one launch is
in flight in the process (two have hung JAX on simulated devices); it must be re-entrant where the job takes it
itself. Progress goes out at most 20 times a second: the page does not slow the kernel down by itself.
Next file to read: `frame`.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Settings = Mapping[str, Any]
Job = Callable[[dict[str, Any]], Any]
Request = tuple[Job, dict[str, Any]]
PUSHES_PER_SECOND = 20


@dataclass(frozen=True)
class Progress:
    """What a job says after a step: how far it is, in words, and a value to show meanwhile."""

    done: int
    total: int
    text: str = ""
    value: Any = None


@dataclass(frozen=True)
class Result:
    """A job's value with the settings that it belongs to, whether it was stopped, and how long it took."""

    settings: Settings
    value: Any
    stopped: bool
    seconds: float

    def matches(self, settings: Settings) -> bool:
        """Whether these settings would give this result; if not, it is shown greyed."""
        return all(settings.get(name) == value for name, value in self.settings.items())


@dataclass
class Pacer:
    """Calls `push` at most so often: the first value at once, then the newest at each beat, the last one always."""

    push: Callable[[Any], None]
    per_second: float = PUSHES_PER_SECOND
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _waiting: list[Any] = field(default_factory=list)
    _timer: threading.Timer | None = None
    _last: float = float("-inf")

    def offer(self, value: Any) -> None:
        """Push now if it is time, else soon, unless something newer comes first."""
        with self._lock:
            self._waiting[:] = [value]
            wait = self._last + 1 / self.per_second - time.monotonic()
            if wait <= 0:
                self.flush()
            elif self._timer is None:
                self._timer = threading.Timer(wait, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Push what waits, now."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._waiting:
                self._last = time.monotonic()
                self.push(self._waiting.pop())


class RunQueue:
    """One worker thread, there only while there is work; all `on_…` are called on it, in order."""

    def __init__(
        self,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        on_result: Callable[[Result], None] = lambda result: None,
        on_error: Callable[[BaseException], None] = lambda error: None,
        lock: contextlib.AbstractContextManager[Any] | None = None,
        on_begin: Callable[[Settings], None] = lambda settings: None,
    ) -> None:
        self._pacer = Pacer(on_progress)
        self._on_begin, self._on_result, self._on_error = on_begin, on_result, on_error
        self._launch = contextlib.nullcontext() if lock is None else lock
        self._state = threading.Condition()
        self._waiting: dict[str, Request] = {}
        self._running = ""  # "run", "latest", or nothing
        self._request: Request
        self._stop = threading.Event()
        self.error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits."""
        return bool(self._running or self._waiting)

    @property
    def by_button(self) -> bool:
        """Whether what runs now was asked for with `start`."""
        return self._running == "run"

    def latest(self, job: Job, settings: Settings) -> None:
        """Do this when the worker is free, unless a newer one comes first."""
        self._submit("latest", job, settings)

    def start(self, job: Job, settings: Settings) -> bool:
        """Do this now; False, and nothing queued, if such a run is going on."""
        with self._state:
            if self._running == "run" or "run" in self._waiting:
                return False
            self._submit("run", job, settings)
            return True

    def stop(self) -> None:
        """End what runs at its next step, and forget what waits."""
        with self._state:
            self._waiting.clear()
            self._stop.set()

    def join(self, timeout: float = 10.0) -> None:
        """Wait until nothing runs (for tests), then raise what a job raised since the last call."""
        with self._state:
            if not self._state.wait_for(lambda: not self.busy, timeout):
                raise TimeoutError(f"the worker is still busy after {timeout} s")
            error, self.error = self.error, None
        if error is not None:
            raise error

    def _submit(self, kind: str, job: Job, settings: Settings) -> None:
        request = (job, dict(settings))
        with self._state:
            if self._running:
                self._waiting[kind] = request
                if kind == "run":  # only a recomputation can be running: `start` has looked
                    self._waiting.setdefault("latest", self._request)
                    self._stop.set()
                return
            self._running, self._request = kind, request
            self._stop.clear()
        threading.Thread(target=self._work, args=(request,), name="meshwork-run", daemon=True).start()

    def _next(self) -> Request | None:
        """Take what waits, a run before a recomputation; None ends the worker."""
        with self._state:
            self._stop.clear()
            self._running = next((kind for kind in ("run", "latest") if kind in self._waiting), "")
            if not self._running:
                self._state.notify_all()
                return None
            self._request = self._waiting.pop(self._running)
            return self._request

    def _work(self, request: Request | None) -> None:
        while request is not None:
            job, settings = request
            begun = time.perf_counter()
            try:
                self._on_begin(settings)
                value, stopped = self._steps(job, settings)
                self._pacer.flush()
                self._on_result(Result(settings, value, stopped, time.perf_counter() - begun))
            except Exception as error:  # a thread has nobody to raise to: it is told, kept, and raised by join
                self.error = error
                self._on_error(error)
            request = self._next()

    def _steps(self, job: Job, settings: dict[str, Any]) -> tuple[Any, bool]:
        with self._launch:
            made = job(settings)
        if not inspect.isgenerator(made):
            return made, False
        last = None
        while not self._stop.is_set():
            with self._launch:
                try:
                    last = next(made)
                except StopIteration as end:
                    return end.value, False
            self._pacer.offer(last)
        made.close()
        return (last.value if isinstance(last, Progress) else last), True
