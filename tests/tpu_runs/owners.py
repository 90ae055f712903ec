"""Start an owner of a class's chip for a test, and see that nothing of it is left afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tpu_runs.asking import Class

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DIRECTLY = ("-m", "tpu_runs.serve")
BY_MAKE = ("-c", """
import pathlib, sys
sys.path.insert(0, sys.argv.pop(1))
import setup_lab
setup_lab.ensure_environment = lambda extra: pathlib.Path(sys.executable)
sys.exit(setup_lab.main(["class", *sys.argv[1:]]))
""", str(ROOT))  # fmt: skip
LINE = re.compile(r'MESHWORK_CLASS="(\S+) (\S+)"')


@dataclass
class Owner:
    """An owner that runs, where it keeps its files, and its first words."""

    process: subprocess.Popen[str]
    folder: Path
    address: str
    tokens: list[str]
    said: list[str] = field(default_factory=list)  # lines of its terminal

    def notebook(self, name: str, token: str | None = None) -> Class:
        """A client of its own for fair turns."""
        return Class(self.address, token or self.tokens[0], notebook=name, timeout=30)

    def started(self) -> list[int]:
        """The tag of every run that started, in order."""
        log = self.folder / "log"
        return [int(line) for line in log.read_text(encoding="utf-8").split()] if log.exists() else []

    def records(self) -> list[dict]:
        """Every line of the owner's file."""
        return [json.loads(line) for line in (self.folder / "kept.jsonl").read_text(encoding="utf-8").splitlines()]

    def family(self) -> list[psutil.Process]:
        """The owner and all that it started."""
        me = psutil.Process(self.process.pid)
        return [me, *me.children(recursive=True)]

    def worker(self) -> psutil.Process:
        """The process that would hold the chip."""
        return next(p for p in self.family()[1:] if "spawn_main" in " ".join(p.cmdline()))

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict, dict]:
        """A raw request, whatever it holds: the status, the answer's JSON and its headers."""
        named = {"Authorization": f"Bearer {self.tokens[0]}", "Content-Type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.address + path, data=body, headers=named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read()), dict(answer.headers)
        except urllib.error.HTTPError as fault:
            with fault:
                return fault.code, json.loads(fault.read()), dict(fault.headers)

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; nothing that it started may be left."""
        family = self.family()
        self.process.send_signal(number)
        status = self.process.wait(timeout=20)
        assert left_of(family) == [], "something that the owner started is still there"
        return status


def left_of(family: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after some seconds; one that ended and that nobody has asked after yet does not run."""
    deadline = time.monotonic() + 10
    while left := [process for process in family if _runs(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def owner(
    folder: Path, *words: str, menu: str = "pretending", start: Sequence[str] = DIRECTLY, **environment: str
) -> Iterator[Owner]:
    """An owner on simulated devices, at a free port, with its records in `folder`."""
    named = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}", "PRETENDING_LOG": str(folder / "log")}
    command = [sys.executable, *start, "--on", "simulated", "--port", "0", "--menu", menu]
    command += ["--records", str(folder / "kept.jsonl"), *words]
    process = subprocess.Popen(command, cwd=folder, env={**named, **environment}, text=True, encoding="utf-8",
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    said: list[str] = []
    reading: threading.Thread | None = None
    try:
        for line in process.stdout:
            said.append(line)
            if "Ctrl-C here ends it" in line:
                break
        found = LINE.findall("".join(said))
        assert found, "the owner did not start:\n" + "".join(said)
        reading = threading.Thread(target=said.extend, args=(process.stdout,), daemon=True)
        reading.start()  # a full pipe would hold the owner up
        yield Owner(process, folder, found[0][0], [token for _, token in found], said)
    finally:
        if process.poll() is None:
            Owner(process, folder, "", []).end()
        if reading is not None:  # to the end, which comes with the process's
            reading.join(20)
        process.stdout.close()
