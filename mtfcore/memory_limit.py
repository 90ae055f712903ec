"""How much memory a notebook's kernel may take, so that a slip stops with words and not with the whole computer.

    mtf.devices(64)                      # in a notebook: sets the limit, 3/4 of the memory; mtf.doctor() shows it
    MESHWORK_MEMORY_GIB=6 make lab       # another limit; "off" for none

On Linux the system refuses what goes beyond (RLIMIT_DATA): the cell ends in Python's MemoryError or JAX's
RESOURCE_EXHAUSTED, the sentence below says why, and the kernel lives on. What was only reserved when the limit was set,
about 1 GiB of stacks of JAX's threads, does not count. RLIMIT_AS would count addresses that nobody uses, and stop JAX
early. What that limit does not see (mapped files, shared memory) and on macOS everything is watched instead: beyond
the limit the running cell is interrupted, and if that frees nothing, the kernel is ended after the sentence. On Windows
nothing is limited. Next file to read: `diagnosis`.
"""

from __future__ import annotations

import _thread
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mtfcore.errors import DeviceError

ENVIRONMENT = "MESHWORK_MEMORY_GIB"
SHARE = 0.75  # of the memory, where nothing else is asked for
LEAST = 2 << 30  # lessons need so much
BEYOND = 1.25  # of the limit, where the system refuses by itself and the watch is for what it does not see
LOOKS_SECONDS = 0.2  # between two looks of the watch
PATIENCE_SECONDS = 5.0  # that an interrupted cell has to give memory back
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
        self.refuses = _let_the_system_refuse(limit)
        self.measure = memory_used()
        self.most = int(limit * BEYOND) if self.refuses else limit  # that the watch lets pass

    @property
    def words(self) -> str:
        """What is said when the limit is met."""
        return (
            f"This notebook's kernel may take {self.limit / 2**30:.1f} GiB of memory, so that the computer keeps "
            "working, and this cell asked for more. Use smaller sizes or a smaller batch, delete what is no longer "
            "needed (`del name`), or restart the kernel (menu Kernel > Restart Kernel). "
            f"To allow more, start the lab with {ENVIRONMENT}=<number of GiB>, or off for no limit."
        )

    def explain(self, result: Any) -> None:
        """After a cell: add the sentence where it ran out of memory."""
        error = getattr(result, "error_in_exec", None)
        if isinstance(error, MemoryError) or (error is not None and OUT_OF_MEMORY.search(str(error)[:10_000])):
            print(self.words, file=sys.stderr)

    def start(self) -> Guard:
        """Explain from now on, and watch where memory can be measured."""
        self.shell.events.register("post_run_cell", self.explain)
        if self.measure is not None:
            threading.Thread(target=self._watch, name="memory watch", daemon=True).start()
        return self

    def over(self) -> bool:
        """Whether more is held than may be; never where nothing tells."""
        return self.measure is not None and self.measure() > self.most

    def _watch(self) -> None:
        pause = threading.Event()
        while not pause.wait(LOOKS_SECONDS):
            if self.over():
                self._stop(pause)

    def _stop(self, pause: threading.Event) -> None:
        """Interrupt the cell; end the kernel if that does not help."""
        self._tell(self.words)
        _thread.interrupt_main()
        for _ in range(int(PATIENCE_SECONDS / LOOKS_SECONDS)):
            pause.wait(LOOKS_SECONDS)
            if not self.over():
                return
        self._tell("\nThe memory was not given back: this kernel is ended now. JupyterLab starts a new one.\n")
        pause.wait(1.0)  # for the sentence to leave
        os.kill(os.getpid(), signal.SIGKILL)

    def _tell(self, text: str) -> None:
        """Print under the running cell; printing from this thread would go under the cell that started it."""
        kernel = self.shell.kernel
        content = {"name": "stderr", "text": text}
        kernel.session.send(kernel.iopub_socket, "stream", content, parent=kernel.get_parent())


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


def _let_the_system_refuse(limit: int) -> bool:
    """On Linux, make the system refuse private memory beyond the limit; whether it does."""
    status = Path("/proc/self/status")
    if sys.platform != "linux" or not status.is_file():
        return False
    import resource

    said = {name: int(n) * 1024 for name, n in re.findall(r"(VmData|VmRSS):\s+(\d+) kB", status.read_text())}
    reserved = max(0, said["VmData"] - said["VmRSS"])
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = limit + reserved
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    return True


def state(environment: Mapping[str, str] = os.environ) -> str:
    """The limit in words, for `mtf.doctor`; `DeviceError` where the environment variable is no number."""
    if os.name == "nt":
        return "no limit: Windows has none that a kernel can set for itself"
    limit = limit_bytes(environment)
    if limit is None:
        return f"no limit: {ENVIRONMENT} is off" if environment.get(ENVIRONMENT) else "no limit: psutil is missing"
    how = "set" if _GUARD else "set by mtf.devices(64), a lesson's first cell"
    return f"{limit / 2**30:.1f} GiB a notebook, {how}; {ENVIRONMENT}=<GiB> or off changes it"
