"""Compilers that share a machine: slots that end with whoever has them, waiting that is told and can be stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from compiling.compiled import needs_compiler, small_report

import mtfcore as mtf
from mtfcore.compiling import turns
from mtfcore.compiling.process import WORKER, Wait, Worker
from mtfcore.compiling.turns import CHILD_BYTES, FOR_OTHERS, CompilerSlots, waiting_words
from mtfcore.machine import Machine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no compiler on Windows, nor such locks")


def limited(folder: Path, slots: int) -> CompilerSlots:
    return CompilerSlots(folder, Machine(environment={turns.SET_BY: str(slots)}))


class Watch:
    """Hears what is waited for, and can be waited for itself."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.waits = threading.Event()

    def __call__(self, words: str) -> None:
        self.heard.append(words)
        self.waits.set()


def in_thread(call, *args) -> tuple[threading.Thread, list]:
    result: list = []

    def run() -> None:
        try:
            result.append(call(*args))
        except mtf.DeviceError as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, result


def test_a_slot_is_given_back_when_it_is_closed(tmp_path):
    shared = limited(tmp_path, 2)
    first, second = shared.take(), shared.take()
    assert {Path(slot.name).name for slot in (first, second)} == {"slot-0", "slot-1"}
    first.close()
    third = shared.take()
    assert Path(third.name).name == "slot-0"
    second.close()
    third.close()


def test_who_waits_is_told_and_gets_its_turn(tmp_path):
    shared, watch = limited(tmp_path, 1), Watch()
    first = shared.take()
    thread, result = in_thread(shared.take, watch)
    assert watch.waits.wait(20) and shared.is_wanted() and not result
    first.close()
    thread.join(20)
    assert watch.heard == ["waiting for 1 other compiler", ""] and not shared.is_wanted()
    result[0].close()


def test_the_first_to_ask_is_the_first_to_go_on(tmp_path):
    shared, watches = limited(tmp_path, 1), [Watch(), Watch()]
    slot, waiting = shared.take(), []
    for watch in watches:
        waiting.append(in_thread(shared.take, watch))
        assert watch.waits.wait(20)
    assert watches[1].heard == ["waiting for 1 other compiler, after 1 other who asked before"]
    slot.close()
    waiting[0][0].join(20)
    assert not waiting[1][1]
    waiting[0][1][0].close()
    waiting[1][0].join(20)
    waiting[1][1][0].close()


def test_waiting_can_be_stopped(tmp_path):
    shared, watch, stop = limited(tmp_path, 1), Watch(), threading.Event()
    with shared.take():
        thread, result = in_thread(shared.take, watch, stop.is_set)
        assert watch.waits.wait(20)
        stop.set()
        thread.join(20)
        assert "was stopped while it waited for other compilers" in str(result[0]) and not shared.is_wanted()


@pytest.mark.parametrize("kind", ["slot", "ticket"])
def test_what_a_killed_process_had_is_free_again(tmp_path, kind):
    """A holder that is killed gives back its slot, and one that waited is not waited for."""
    code = (
        "import sys; from pathlib import Path; from mtfcore.compiling.turns import _lock\n"
        "mine = _lock(Path(sys.argv[1])); print(bool(mine), flush=True); input()"
    )
    name = {"slot": "slot-0", "ticket": f"ticket-{0:020d}-1"}[kind]
    command = [sys.executable, "-c", code, str(tmp_path / name)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as other:
        assert other.stdout.readline() == "True\n"
        watch = Watch()
        thread, result = in_thread(limited(tmp_path, 1).take, watch)
        assert watch.waits.wait(20) and not result
        other.kill()
    thread.join(20)
    result[0].close()


def test_slots_follow_from_memory_and_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    machine = Machine(environment={})
    for free, taken, slots in ((0, 0, 1), (0, 3, 3), (2 * CHILD_BYTES, 1, 3), (99 * CHILD_BYTES, 0, 8)):
        machine.free_memory = lambda free=free: (free + FOR_OTHERS, 0)
        assert CompilerSlots(machine=machine).slots(taken) == slots
    machine.environment = {turns.SET_BY: "3"}
    assert CompilerSlots(machine=machine).slots(0) == 3


def test_where_nothing_can_be_locked_nobody_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "DOOR_SECONDS", 0.02)
    assert CompilerSlots(tmp_path / "missing").take() is None
    given = tmp_path / "given"
    given.mkdir()
    made = CompilerSlots(machine=Machine(environment={"XDG_RUNTIME_DIR": str(given)})).folder
    assert made == given / f"meshwork-{os.getuid()}" and made.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(os, "getuid", lambda: -5)  # somebody else's folder of that name
    (given / "meshwork--5").mkdir()
    assert CompilerSlots(machine=Machine(environment={"XDG_RUNTIME_DIR": str(given)})).folder is None


def test_words():
    assert waiting_words(1, 0) == "waiting for 1 other compiler"
    assert waiting_words(3, 2) == "waiting for 3 other compilers, after 2 others who asked before"


# ---- with the compiler ------------------------------------------------------------------------------------------

COMPILES = """
import sys; sys.path.insert(0, sys.argv[1])
import mtfcore as mtf
from compiling.compiled import small
report = mtf.compile(small(), "v5e:2x2", told=lambda words: print("told:", words, flush=True))
print(report.link_bytes, report.cycles, report.memory.total, flush=True)
input()
"""


def kernel(**environment: str) -> subprocess.Popen:
    """Another kernel that compiles, and then stays with its compiler warm until it is told to end."""
    command = [sys.executable, "-c", COMPILES, str(Path(__file__).parents[1])]
    return subprocess.Popen(command, env=os.environ | environment, stdin=-1, stdout=-1, stderr=-1, text=True)


def said(one: subprocess.Popen) -> list[str]:
    """Ends a kernel; the rest of what it said."""
    out, err = one.communicate("\n", timeout=60)
    assert one.returncode == 0 and not err
    return out.splitlines()


def expected() -> str:
    report = small_report()
    return f"{report.link_bytes} {report.cycles} {report.memory.total}"


class TestWithTheCompiler:
    pytestmark = needs_compiler

    def test_two_kernels_compile_at_once(self, tmp_path):
        both = [kernel(XDG_RUNTIME_DIR=str(tmp_path), MESHWORK_COMPILERS="2") for _ in range(2)]
        first = [one.stdout.readline().strip() for one in both]  # both compilers are still there
        assert first == [expected()] * 2 and [said(one) for one in both] == [[], []]

    def test_with_one_slot_the_second_waits_until_the_first_idles(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        monkeypatch.setenv("MESHWORK_COMPILERS", "1")
        first, second, watch = Worker(60), Worker(60), Watch()
        assert "KeyError" in first.ask({})["failed"]
        assert "KeyError" in second.ask({}, None, Wait(watch))["failed"]
        assert watch.heard == ["waiting for 1 other compiler", ""] and first.pid is None
        first.close()
        second.close()

    def test_a_compilation_is_stopped_while_it_waits_or_works(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        monkeypatch.setenv("MESHWORK_COMPILERS", "1")
        worker, stop, watch = Worker(60), threading.Event(), Watch()
        taken = CompilerSlots().take()
        thread, result = in_thread(worker.ask, {}, None, Wait(watch, stop.is_set))
        assert watch.waits.wait(20)
        behind, own = Watch(), threading.Event()
        other, its = in_thread(worker.ask, {}, None, Wait(behind, own.is_set))  # of the same kernel
        assert behind.waits.wait(20) and behind.heard == ["waiting for another compilation of this kernel"]
        own.set()
        other.join(20)
        assert str(its[0]) == "the compilation was stopped" and not result
        stop.set()
        thread.join(20)
        assert "while it waited for other compilers" in str(result[0]) and worker.pid is None
        taken.close()
        stop.clear()
        assert "KeyError" in worker.ask({}, None, Wait(watch, stop.is_set))["failed"]
        os.kill(worker.pid, 19)  # SIGSTOP: as if it compiled for ever
        thread, result = in_thread(worker.ask, {}, None, Wait(watch, stop.is_set))
        time.sleep(0.1)
        stop.set()
        thread.join(20)
        assert str(result[0]) == "the compilation was stopped" and worker.pid is None
        worker.close()

    def test_a_program_is_stopped_by_an_event(self):
        small_report()
        stop, compiler = threading.Event(), WORKER.pid
        os.kill(compiler, 19)  # SIGSTOP: as if it compiled for ever
        threading.Timer(0.2, stop.set).start()
        with pytest.raises(mtf.DeviceError, match="the compilation was stopped"):
            mtf.compile(small_report().program, "v5e:2x2", stop=stop)
        assert WORKER.pid is None  # or who asks next would wait for a compiler that stands still
