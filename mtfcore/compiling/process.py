"""One child process that compiles: started when first asked, kept warm, ended when idle, stopped at any moment.

    >>> WORKER.ask({"program": prog, "target": target, ...}, seconds=60)["text"][:9]
    'HloModule'

Starting it takes about two seconds and 450 MB; the next program finds it warm. On a shared machine it may have to wait
for room before it starts (`turns`), which is told. `Ctrl-C`, a time limit and `stop()` end it at once, and the next
request starts another. A compiler that ends its process is told as a `DeviceError` with the last lines that it printed.

Two kernels compile at once, each with a child of its own: no child takes a device or libtpu's lock. Beside a process
that holds a real TPU this is untested. First file to read: `turns`. Next file to read: `worker`.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from mtfcore.compiling.messages import LOOK_SECONDS, Ended, Stopped, TooLate, receive, send
from mtfcore.compiling.turns import CompilerSlots
from mtfcore.errors import DeviceError, sure
from mtfcore.platforms import ANSWERS

IDLE_SECONDS = 600.0  # after so long without a request the child ends
HOW_TO_GET_IT = (
    "libtpu, the compiler for TPUs, is not installed; it comes with `make lab` on Linux with an x86-64 processor, "
    "or: pip install libtpu (Google Cloud's terms). Without it, mtf.price prices the same program, and what was "
    "compiled before is shown by `python -m tpu_runs papers` and in the explorers"
)
# No device is looked for, no log is left behind, and another kernel may compile at the same time.
ENVIRONMENT = ANSWERS | {"JAX_PLATFORMS": "cpu", "TPU_LOG_DIR": "disabled", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
STOPPED = "the compilation was stopped"
TRIES = 3
# What is said to JAX, XLA and libtpu is said of this process and its devices, and could change what is compiled.
NOT_PASSED_ON = ("JAX_", "XLA_", "TPU_", "LIBTPU_")


def has_compiler() -> bool:
    """Whether libtpu is installed; it is not loaded for the answer."""
    return importlib.util.find_spec("libtpu") is not None


def say(words: str) -> None:
    """Print what is waited for; nothing when the wait is over."""
    if words:
        print(words, flush=True)


@dataclass(frozen=True)
class Wait:
    """What somebody who asks hears while others compile, and how it says that it wants no answer any more."""

    told: Callable[[str], None] = say
    is_stopped: Callable[[], bool] = lambda: False


NO_WAIT = Wait()


class Worker:
    """The child and the pipe to it. One request at a time; others wait their turn."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self.idle_seconds, self.module = idle_seconds, "mtfcore.compiling.worker"
        self._turn = threading.Lock()
        self._child: subprocess.Popen | None = None
        self._said: IO[bytes] | None = None
        self._stopped = False
        atexit.register(self.close)

    @property
    def pid(self) -> int | None:
        """The child's process number while it runs."""
        return self._child.pid if self._child and self._child.poll() is None else None

    def ask(self, request: dict[str, Any], seconds: float | None = None, wait: Wait = NO_WAIT) -> dict[str, Any]:
        """The child's answer; `DeviceError` if it ends, is stopped, or has none after so many seconds of its own."""
        if not has_compiler():
            raise DeviceError(HOW_TO_GET_IT)
        if wait.is_stopped():
            raise DeviceError(STOPPED)
        with self._own_turn(wait):
            for _ in range(TRIES):
                with contextlib.suppress(Ended):  # of itself, as nothing was asked for long, just when this was asked
                    return self._exchange(request, seconds, wait)
            raise DeviceError(f"the compiler's process ended {TRIES} times before it was asked")

    @contextlib.contextmanager
    def _own_turn(self, wait: Wait) -> Iterator[None]:
        """One request of this kernel after the other."""
        is_told = False
        while not self._turn.acquire(timeout=LOOK_SECONDS):
            if wait.is_stopped():
                raise DeviceError(STOPPED)
            if not is_told:
                wait.told("waiting for another compilation of this kernel")
                is_told = True
        try:
            if is_told:
                wait.told("")
            yield
        finally:
            self._turn.release()

    def _exchange(self, request: dict[str, Any], seconds: float | None, wait: Wait) -> dict[str, Any]:
        if self.pid is None:
            self._start(wait)
        try:
            child = sure(self._child)
            send(sure(child.stdin).fileno(), request)
            return receive(sure(child.stdout).fileno(), seconds, wait.is_stopped)
        except TooLate as error:
            self.stop()
            raise DeviceError(f"compiling took longer than {seconds:g} s and was stopped") from error
        except Stopped as error:
            self.stop()
            raise DeviceError(STOPPED) from error
        except Ended as error:
            if self._ended_idle():
                raise
            raise DeviceError(self._last_words()) from error
        except BaseException:  # an interrupt: half an answer may be on its way, so the child goes
            self.stop()
            raise

    def _ended_idle(self) -> bool:
        return sure(self._child).wait() == 0

    def _start(self, wait: Wait) -> None:
        self.close()
        self._stopped = False
        slot = CompilerSlots().take(wait.told, lambda: self._stopped or wait.is_stopped())
        try:
            self._spawn([slot.fileno()] if slot else [])
        finally:
            if slot:
                slot.close()  # the child has it now, and its end gives it back
        if self._stopped:  # since it waited, by another thread
            self.stop()

    def _spawn(self, handed_on: list[int]) -> None:
        here = str(pathlib.Path(__file__).parents[2])
        passed = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
        paths = os.pathsep.join(filter(None, [here, passed.get("PYTHONPATH")]))
        self._said = tempfile.TemporaryFile()
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", self.module, str(self.idle_seconds)],
            env=passed | ENVIRONMENT | {"PYTHONPATH": paths}, bufsize=0, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, pass_fds=handed_on,
        )  # fmt: skip

    def stop(self) -> None:
        """End the child at once, whatever it does; who waits for it is told. Safe to call from another thread."""
        self._stopped = True
        if child := self._child:
            child.kill()
            child.wait()

    def close(self) -> None:
        """Stop, and give back the pipe."""
        self.stop()
        for end in (self._child.stdin, self._child.stdout, self._said) if self._child else ():
            sure(end).close()
        self._child = self._said = None

    def _last_words(self, most: int = 12) -> str:
        if self._stopped:
            return STOPPED
        said_file = sure(self._said)
        said_file.seek(0)
        lines = said_file.read().decode(errors="replace").strip().splitlines()[-most:]
        status = sure(self._child).returncode
        why = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        said = "\n  ".join(lines) or "(it printed nothing)"
        return f"the compiler's process ended {why}; this one goes on. Its last lines:\n  {said}"


WORKER = Worker()
