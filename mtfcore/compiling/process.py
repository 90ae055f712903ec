"""One child process that compiles: started when first asked, kept warm, ended when idle, stopped at any moment.

    >>> WORKER.ask({"program": prog, "target": target, ...}, seconds=60)["text"][:9]
    'HloModule'

Starting it takes about two seconds and 450 MB; the next program finds it warm. `Ctrl-C`, a time limit and `stop()` end
it at once, and the next request starts another. A compiler that ends its process is told as a `DeviceError` with the
last lines that it printed. Next file to read: `worker`.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
from typing import IO, Any

from mtfcore.compiling.messages import Ended, TooLate, receive, send
from mtfcore.errors import DeviceError
from mtfcore.platforms import ANSWERS

IDLE_SECONDS = 600.0  # after so long without a request the child ends
GET = (
    "libtpu, the compiler for TPUs, is not installed; it comes with `make lab` on Linux with an x86-64 processor, "
    "or: pip install libtpu (Google Cloud's terms). Without it, mtf.price prices the same program"
)
# No device is looked for, no log is left behind, and another kernel may compile at the same time.
ENVIRONMENT = ANSWERS | {"JAX_PLATFORMS": "cpu", "TPU_LOG_DIR": "disabled", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
NOT_PASSED_ON = ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "JAX_COMPILATION_CACHE_DIR")  # said of the CPU, not of a TPU


def has_compiler() -> bool:
    """Whether libtpu is installed; it is not loaded for the answer."""
    return importlib.util.find_spec("libtpu") is not None


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

    def ask(self, request: dict[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """The child's answer; `DeviceError` if it ends, or if there is none after so many seconds."""
        if not has_compiler():
            raise DeviceError(GET)
        with self._turn:
            try:
                return self._exchange(request, seconds)
            except Ended:
                if self._ended_idle():  # just as it was asked: another one answers
                    return self._exchange(request, seconds)
                raise

    def _exchange(self, request: dict[str, Any], seconds: float | None) -> dict[str, Any]:
        if self.pid is None:
            self._start()
        try:
            send(self._child.stdin.fileno(), request)
            return receive(self._child.stdout.fileno(), seconds)
        except TooLate as error:
            self.stop()
            raise DeviceError(f"compiling took longer than {seconds:g} s and was stopped") from error
        except Ended as error:
            if self._ended_idle():
                raise
            raise DeviceError(self._last_words()) from error
        except BaseException:  # an interrupt: half an answer may be on its way, so the child goes
            self.stop()
            raise

    def _ended_idle(self) -> bool:
        return self._child.wait() == 0

    def _start(self) -> None:
        self.close()
        here = str(pathlib.Path(__file__).parents[2])
        passed = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
        paths = os.pathsep.join(filter(None, [here, passed.get("PYTHONPATH")]))
        self._said = tempfile.TemporaryFile()
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", self.module, str(self.idle_seconds)],
            env=passed | ENVIRONMENT | {"PYTHONPATH": paths}, bufsize=0, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
        )  # fmt: skip
        self._stopped = False

    def stop(self) -> None:
        """End the child at once, whatever it does; who waits for it is told. Safe to call from another thread."""
        if child := self._child:
            self._stopped = True
            child.kill()
            child.wait()

    def close(self) -> None:
        """Stop, and give back the pipe."""
        self.stop()
        for end in (self._child.stdin, self._child.stdout, self._said) if self._child else ():
            end.close()
        self._child = self._said = None

    def _last_words(self, most: int = 12) -> str:
        if self._stopped:
            return "the compilation was stopped"
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()[-most:]
        status = self._child.returncode
        why = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        said = "\n  ".join(lines) or "(it printed nothing)"
        return f"the compiler's process ended {why}; this one goes on. Its last lines:\n  {said}"


WORKER = Worker()
