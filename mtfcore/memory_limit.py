"""How much memory a notebook's kernel may take, so that a slip stops with words and not with the whole computer.

    mtf.devices(64)                      # in a notebook: sets the limit, 3/4 of the memory; mtf.doctor() shows it
    MESHWORK_MEMORY_GIB=6 make lab       # another limit; "off" for none

Three steps, each for what the one before cannot stop:
1. At the limit a watch interrupts the running cell: a MemoryError with the sentence below is raised in the main thread,
   where code of the cell runs and no import is under way. What the failed cell's frames held is let go, and a next cell
   may take a little more, so that it can delete.
2. 1/8 above, on Linux, the system refuses (RLIMIT_DATA): one huge array ends in Python's MemoryError or JAX's
   RESOURCE_EXHAUSTED. What was only reserved before the cell, such as stacks of JAX's threads, does not count.
   RLIMIT_AS would count addresses that nobody uses. Any thread may be refused here, also one of the kernel's own that
   cannot bear it: small things made inside one call (`names.extend(map(str, range(10**9)))`) give the watch no turn;
   then the kernel can die without words.
3. Held beyond 1.25 times the limit for seconds, the kernel is ended after the sentence.
Tested on Linux alone. macOS has no step 2, cells of a subshell no step 1, and a thread that a cell started fills on
when the cell was stopped. On Windows nothing is limited.
Next file to read: `diagnosis`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from mtfcore.errors import DeviceError, sure

ENVIRONMENT = "MESHWORK_MEMORY_GIB"
SHARE = 0.75  # of the memory, where nothing else is asked for
LEAST = 2 << 30  # lessons need so much
WALL = 1.125  # of the limit: here the system refuses
BEYOND = 1.25  # of the limit: the kernel is ended
ROOM = 1 / 8  # of the limit, that a cell gets where the limit is met already, for deleting and looking around
LOOKS_SECONDS = 0.01, 0.2  # between two looks of the watch: near the limit, and far from it
AGAIN_SECONDS = 0.05  # until the watch asks a cell again to stop
FASTEST = 8 << 30  # bytes a second that a program fills at most
PATIENCE_SECONDS = 5.0  # to come back from beyond
OUT_OF_MEMORY = re.compile("RESOURCE_EXHAUSTED|can't start new thread|Unable to allocate|std::bad_alloc")
GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container, v2 and v1
_GUARD: list[Guard] = []


def limit_bytes(environment: Mapping[str, str] = os.environ, total: int | None = None) -> int | None:
    """Bytes that a kernel may take: as asked for, else a share of all there is; None for no limit.

    `DeviceError` where the environment variable is no number.
    """
    asked = environment.get(ENVIRONMENT, "").strip()
    if asked.casefold() in ("off", "0", "none"):
        return None
    if asked:
        return _asked(asked)
    total = total or total_memory()
    return max(int(total * SHARE), LEAST) if total else None


def _asked(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text):
        raise DeviceError(
            f"{ENVIRONMENT}={text[:40]!r}: expected a number of GiB such as 6 or 1.5, or off for no limit"
        )
    return int(float(text) * 2**30)


def total_memory() -> int | None:
    """Bytes of this computer, or of the container that this runs in; None where nothing tells."""
    try:
        import psutil
    except ImportError:
        return None
    said = [
        int(text) for path in map(Path, GROUPS) if path.is_file() and (text := path.read_text().strip()).isdecimal()
    ]
    return min([psutil.virtual_memory().total, *said])


class Guard:
    """The limit of one kernel, and the thread that watches."""

    def __init__(self, limit: int, shell: Any) -> None:
        self.limit, self.shell = limit, shell
        self.measure = memory_used()
        self.allow()

    @property
    def words(self) -> str:
        """What is said when the limit is met."""
        return (
            f"This notebook's kernel may take {self.limit / 2**30:.1f} GiB of memory, so that the computer keeps "
            "working, and this cell asked for more. Use smaller sizes or a smaller batch, delete what is no longer "
            "needed (`del name`), or restart the kernel (menu Kernel > Restart Kernel). "
            f"To allow more, start the lab with {ENVIRONMENT}=<number of GiB>, or off for no limit."
        )

    def allow(self, _info: Any = None) -> None:
        """Before and after a cell: what the next may take; a little more than there is, where too much is held."""
        held = self.measure() if self.measure is not None else 0
        more = min(held + int(self.limit * ROOM), int(self.limit * (BEYOND - ROOM / 4)))
        self.allowed = more if held > self.limit else self.limit
        _refuse(int(self.limit * (BEYOND + ROOM if held > self.limit else WALL)))

    def explain(self, result: Any) -> None:
        """After a cell: where it ran out of memory, let go what its frames hold and add the sentence."""
        error = getattr(result, "error_in_exec", None)
        out = isinstance(error, MemoryError) or (error is not None and OUT_OF_MEMORY.search(str(error)[:10_000]))
        if out:
            _let_go(error)
        if out or self.over():
            _give_back()
        self.allow()
        if out and self.words not in str(error):
            print(self.words, file=sys.stderr)

    def start(self) -> Guard:
        """Explain from now on, and watch where memory can be measured."""
        self.shell.events.register("pre_run_cell", self.allow)
        self.shell.events.register("post_run_cell", self.explain)
        with contextlib.suppress(ValueError):  # a subshell is no main thread: nothing to interrupt, the rest stands
            signal.signal(signal.SIGURG, self._interrupt)  # nobody minds a stray one: its default is to be ignored
        if self.measure is not None:
            threading.Thread(target=self._watch, name="memory watch", daemon=True).start()
        return self

    def over(self) -> bool:
        """Whether more is held than may be; never where nothing tells."""
        return self.measure is not None and self.measure() > self.allowed

    def _interrupt(self, _signal: int, frame: FrameType | None) -> None:
        """In the main thread, asked by the watch: stop the cell, if it still holds too much."""
        if self.over() and may_stop(frame, self.shell.user_global_ns):
            raise MemoryError(self.words)

    def _watch(self) -> None:
        pause, wait, since = threading.Event(), 0.0, None
        while not pause.wait(wait):
            with contextlib.suppress(MemoryError):  # the watch is refused memory too, and must live on
                wait, beyond = self._look()
                since = (since or time.monotonic()) if beyond else None
                if since is not None and time.monotonic() - since > PATIENCE_SECONDS:
                    self._end(pause)

    def _look(self) -> tuple[float, bool]:
        """Ask the cell to stop if it is over; seconds until the next look, and whether it is beyond all patience."""
        (least, most), measure = LOOKS_SECONDS, sure(self.measure)
        if self.over():
            _give_back()
            if self.over():
                signal.pthread_kill(sure(threading.main_thread().ident), signal.SIGURG)  # also wakes a sleeping cell
                return AGAIN_SECONDS, measure() > self.limit * BEYOND
        return min(max((self.allowed - measure()) / FASTEST, least), most), False

    def _end(self, pause: threading.Event) -> None:
        """Say why, and end the kernel."""
        self._tell(
            self.words + "\nThe memory was not given back: this kernel is ended now. JupyterLab starts a new one.\n"
        )
        pause.wait(1.0)  # for the sentence to leave
        os.kill(os.getpid(), signal.SIGKILL)

    def _tell(self, text: str) -> None:
        """Print under the running cell; printing from this thread would go under the cell that started it."""
        kernel = self.shell.kernel
        content = {"name": "stderr", "text": text}
        kernel.session.send(kernel.iopub_socket, "stream", content, parent=kernel.get_parent())


def may_stop(frame: FrameType | None, names: Mapping[str, Any]) -> bool:
    """Whether a cell, whose global names are `names`, runs this: not in an import, left half done, nor a callback of
    the garbage collection, where Python would drop the error."""
    callbacks = [getattr(call, "__code__", None) for call in gc.callbacks]
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_filename.startswith("<frozen importlib"):
            return False
        if frame.f_globals is names:
            return True
        frame = frame.f_back
    return False


def guard(modules: Mapping[str, Any] = sys.modules) -> Guard | None:
    """Limit this process if it is a notebook's kernel, once; None where it is none, on Windows, or with no limit."""
    if _GUARD:
        return _GUARD[0]
    ipython = modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if os.name == "nt" or getattr(shell, "kernel", None) is None or (limit := limit_bytes()) is None:
        return None
    _GUARD.append(Guard(limit, shell).start())
    return _GUARD[0]


def memory_used() -> Callable[[], int] | None:
    """A function that tells the bytes that this process holds, cheap enough to ask often."""
    page, path = os.sysconf("SC_PAGE_SIZE"), Path("/proc/self/statm")
    if path.is_file():
        return lambda: int(path.read_text().split()[1]) * page
    try:
        import psutil
    except ImportError:
        return None
    process = psutil.Process()
    return lambda: process.memory_info().rss


def _refuse(most: int) -> None:
    """On Linux, make the system refuse private memory beyond so many bytes; what is only reserved now is no part."""
    status = Path("/proc/self/status")
    if sys.platform != "linux" or not status.is_file():
        return
    import resource

    said = {name: int(n) << 10 for name, n in re.findall(r"(VmData|VmRSS|RssAnon):\s+(\d+) kB", status.read_text())}
    most += max(0, said["VmData"] - said.get("RssAnon", said["VmRSS"]))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _give_back() -> None:
    """Hand what is free already to the system, where the C library keeps it (glibc), so that it does not count."""
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)


def _let_go(error: BaseException | None) -> None:
    """Empty the frames that this error and those behind it went through, whoever keeps the error."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        for frame, _ in traceback.walk_tb(error.__traceback__):
            _ = frame.f_locals  # makes Python renew the copy that was taken to show the error
        error = error.__cause__ or error.__context__


def state(environment: Mapping[str, str] = os.environ) -> str:
    """The limit in words, for `mtf.doctor`; `DeviceError` where the environment variable is no number."""
    if os.name == "nt":
        return "no limit: Windows has none that a kernel can set for itself"
    limit = limit_bytes(environment)
    if limit is None:
        return f"no limit: {ENVIRONMENT} is off" if environment.get(ENVIRONMENT) else "no limit: psutil is missing"
    how = "set" if _GUARD else "set by mtf.devices(64), a lesson's first cell"
    return f"{limit / 2**30:.1f} GiB a notebook, {how}; {ENVIRONMENT}=<GiB> or off changes it"
