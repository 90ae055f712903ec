"""A kernel that asks for all of the memory is stopped with words, and the computer keeps working.

The processes here get a small limit of their own, so nothing large is ever allocated."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mtfcore import memory_limit
from mtfcore.errors import DeviceError

GIB = 1 << 30
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the system refuses memory on Linux only")


@pytest.mark.parametrize(
    ("asked", "total", "limit"),
    [
        (None, 16 * GIB, 12 * GIB),
        (None, 1 * GIB, 2 * GIB),
        ("6", 16 * GIB, 6 * GIB),
        ("1.5", 16 * GIB, int(1.5 * GIB)),
        ("off", 16 * GIB, None),
        ("0", 16 * GIB, None),
    ],
)
def test_the_limit_is_what_was_asked_for_or_a_share(asked, total, limit):
    assert memory_limit.limit_bytes({} if asked is None else {memory_limit.ENVIRONMENT: asked}, total) == limit


@pytest.mark.parametrize("asked", ["much", "-1", "1e9", "nan", "٣", "9" * 400, "1.2.3"])
def test_a_limit_that_is_no_number_is_said(asked):
    with pytest.raises(DeviceError, match=r"expected a number of GiB such as 6 or 1\.5, or off") as caught:
        memory_limit.limit_bytes({memory_limit.ENVIRONMENT: asked}, 16 * GIB)
    assert len(str(caught.value)) < 200


def test_nothing_is_limited_outside_a_notebook():
    assert memory_limit.guard({}) is None


def test_the_limit_is_visible():
    assert "GiB a notebook, set by mtf.devices(64)" in memory_limit.state({})
    assert memory_limit.state({memory_limit.ENVIRONMENT: "off"}) == "no limit: MESHWORK_MEMORY_GIB is off"


SHELL = """
import sys
from types import SimpleNamespace as Thing
from mtfcore import memory_limit

class Session:
    def send(self, socket, kind, content, parent):
        print(content["text"], file=sys.stderr, flush=True)

events = {}
kernel = Thing(session=Session(), iopub_socket=None, get_parent=lambda: {})
register = Thing(register=lambda name, call: events.update({name: call}))
shell = Thing(kernel=kernel, events=register, user_global_ns=globals())
guard = memory_limit.guard({"IPython": Thing(get_ipython=lambda: shell)})
assert memory_limit.guard() is guard
def cell(body):
    error = None
    try:
        body()
    except BaseException as raised:
        error = raised
        print("ended in", f"{type(error).__name__}: {error}", flush=True)
    events["post_run_cell"](Thing(error_in_exec=error))
"""
GREEDY = """
cell(lambda: [0] * 10**10)
import numpy
cell(lambda: numpy.ones(10**10))
cell(lambda: 1 / 0)
print("alive", len(numpy.ones(10**6)))
"""
MAPPED = """
import mmap, time
memory_limit.PATIENCE_SECONDS = 1.0
def fill():
    shared = mmap.mmap(-1, 1 << 30)      # the system's own limit does not see shared memory
    for at in range(0, 1 << 30, 4096):
        shared[at] = 1
        if at % (1 << 24) == 0:
            time.sleep(0.02)
"""
GIVES_BACK = MAPPED + "cell(fill)\nprint('alive')"
STUBBORN = """
import mmap, time
memory_limit.PATIENCE_SECONDS = 1.0
shared, at = mmap.mmap(-1, 1 << 30), 0
for _ in range(200):
    try:
        while at < 400 << 20:
            shared[at], at = 1, at + 4096
        time.sleep(0.1)
    except MemoryError:
        pass
print("never reached")
"""


def in_a_process(code: str, gib: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, memory_limit.ENVIRONMENT: gib}
    command = [sys.executable, "-c", SHELL + code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@LINUX
def test_what_asks_for_all_the_memory_ends_in_an_error_with_words_and_the_kernel_lives_on():
    done = in_a_process(GREEDY, "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "alive 1000000"
    assert (done.stderr + done.stdout).count("This notebook's kernel may take 1.0 GiB of memory") == 2
    for part in ("Use smaller sizes", "Restart Kernel", "start the lab with MESHWORK_MEMORY_GIB="):
        assert part in done.stderr


@LINUX
def test_memory_that_the_system_does_not_count_interrupts_the_cell():
    done = in_a_process(GIVES_BACK, "0.2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ended in MemoryError: This notebook's kernel") and done.stdout.endswith("alive\n")
    assert "may take 0.2 GiB" in done.stdout and "is ended now" not in done.stderr


@LINUX
def test_a_kernel_that_gives_nothing_back_is_ended_after_saying_so():
    done = in_a_process(STUBBORN, "0.2")
    assert done.returncode == -9 and "never reached" not in done.stdout
    assert "may take 0.2 GiB" in done.stderr
    assert "this kernel is ended now. JupyterLab starts a new one." in done.stderr
