"""The compiler's child: killed, too slow, interrupted, idle, its parent gone; each told, and the next request works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from compiling.compiled import needs_compiler

import mtfcore as mtf
from mtfcore.compiling import process
from mtfcore.compiling.process import Worker

pytestmark = needs_compiler
NOTHING: dict = {}  # a request that the child answers at once, by saying what is missing


@pytest.fixture
def worker():
    made = Worker(idle_seconds=60)
    yield made
    made.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int, seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_alive(pid)


def held(worker: Worker) -> int:
    """The child's number, after it was told to stand still: as if it compiled for ever."""
    worker.ask(NOTHING)
    os.kill(worker.pid, signal.SIGSTOP)
    return worker.pid


def after(seconds: float, call, *args) -> threading.Timer:
    timer = threading.Timer(seconds, call, args)
    timer.start()
    return timer


def test_it_stays_warm_and_answers_what_is_wrong(worker):
    first = worker.ask(NOTHING)
    pid = worker.pid
    assert "KeyError: 'target'" in first["failed"] and worker.ask(NOTHING) == first
    assert worker.pid == pid


def test_a_child_that_dies_is_told_with_its_last_lines(worker):
    pid = held(worker)
    after(0.2, os.kill, pid, signal.SIGKILL)
    with pytest.raises(
        mtf.DeviceError, match=r"ended by SIGKILL; this one goes on\. Its last lines:\n  \(it printed noth"
    ):
        worker.ask(NOTHING)
    assert "failed" in worker.ask(NOTHING) and worker.pid != pid


def test_what_it_printed_last_is_shown(worker):
    worker.module = "compiling_that_aborts"
    with pytest.raises(mtf.DeviceError, match=r"with status 1.*\n.*No module named compiling_that_aborts"):
        worker.ask(NOTHING)


def test_a_time_limit_ends_it(worker):
    pid = held(worker)
    with pytest.raises(mtf.DeviceError, match=r"took longer than 0\.2 s and was stopped"):
        worker.ask(NOTHING, 0.2)
    assert gone(pid) and "failed" in worker.ask(NOTHING)


def test_an_interrupt_ends_it(worker):
    pid = held(worker)
    after(0.2, os.kill, os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        worker.ask(NOTHING)
    assert gone(pid) and "failed" in worker.ask(NOTHING)


def test_another_thread_can_stop_it(worker):
    held(worker)
    after(0.2, worker.stop)
    with pytest.raises(mtf.DeviceError, match="the compilation was stopped"):
        worker.ask(NOTHING)


def test_an_interrupt_of_the_terminal_does_not_reach_it(worker):
    worker.ask(NOTHING)
    assert os.getpgid(worker.pid) != os.getpgid(os.getpid())


def test_it_ends_when_idle_and_the_next_request_starts_another(worker):
    worker.idle_seconds = 0.1
    worker.ask(NOTHING)
    first = worker._child
    assert first.wait(20) == 0
    assert "failed" in worker.ask(NOTHING) and worker._child is not first


def test_it_ends_with_its_parent():
    code = (
        "from mtfcore.compiling.process import WORKER; import os, signal\n"
        "WORKER.ask({}); os.kill(WORKER.pid, signal.SIGCONT); print(WORKER.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL and gone(int(done.stdout))


def test_what_is_said_of_this_process_does_not_reach_the_compiler(worker, monkeypatch):
    said = {
        "XLA_FLAGS": "--xla_cpu_no_such_flag=1", "JAX_DISABLE_JIT": "1", "JAX_DEFAULT_MATMUL_PRECISION": "highest",
        "LIBTPU_INIT_ARGS": "--no_such_flag", "TPU_VISIBLE_CHIPS": "3", "TPU_LIBRARY_PATH": "/nowhere",
        "TPU_ACCELERATOR_TYPE": "v2-8", "JAX_PLATFORMS": "tpu,cpu",
    }  # fmt: skip
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    worker.ask(NOTHING)
    with open(f"/proc/{worker.pid}/environ", "rb") as file:
        given = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if entry)
    assert given[b"ALLOW_MULTIPLE_LIBTPU_LOAD"] == b"1" and given[b"JAX_PLATFORMS"] == b"cpu"
    ours = {name for name in given if name.startswith((b"JAX_", b"XLA_", b"TPU_", b"LIBTPU_"))}
    assert ours == {name.encode() for name in process.ENVIRONMENT} - {b"ALLOW_MULTIPLE_LIBTPU_LOAD"}


def test_without_libtpu_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(process, "has_compiler", lambda: False)
    with pytest.raises(
        mtf.DeviceError, match=r"libtpu.* is not installed; it comes with `make lab`.*mtf\.price"
    ) as told:
        Worker().ask(NOTHING)
    assert "is shown by `python -m tpu_runs papers` and in the explorers" in str(told.value)
