"""Two hosts as two processes with Gloo: the same runs in step, and a clear end for one whose companion dies.

Each host is the real command: a watching process, and its child that runs JAX on two simulated devices.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tpu_runs import hosts, joining, records
from tpu_runs.records import Record

ROOT = Path(records.__file__).parents[1]
LONGEST = 60  # seconds within which a host whose companion died must have ended


class Two:
    """Two hosts that run the same words."""

    def __init__(self, folder: Path, words: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{free.getsockname()[1]}"
        self.records = folder / "mine.jsonl"
        environment = {**os.environ, "MESHWORK_RECORDS": str(self.records)}
        more = ["--on", "simulated", "--hosts", "2", "--coordinator", place, "--patience", "10"]
        self.hosts = [
            subprocess.Popen([sys.executable, "-m", "tpu_runs", "run", *words.split(), *more, "--host", str(host)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
            for host in range(2)
        ]  # fmt: skip

    def wait_for_a_record(self) -> None:
        """Until host 0 has said that one is kept."""
        assert self.hosts[0].stdout.readline().startswith("1/"), self.hosts[0].communicate(timeout=LONGEST)

    def ended(self, host: int) -> tuple[int, str, str]:
        """How a host ended: its status, and what it said."""
        out, err = self.hosts[host].communicate(timeout=LONGEST)
        return self.hosts[host].returncode, out, err

    def kept(self) -> list[Record]:
        found, notes = records.read(self.records)
        assert notes == []
        return found


@pytest.fixture
def two(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Two]:
    made = Two(tmp_path, request.param)
    yield made
    for host in made.hosts:
        host.kill()
        host.communicate(timeout=LONGEST)


@pytest.mark.parametrize("two", ["collective mesh=x:4 kind=reduce_scatter n_bytes=4096 --repeats 3"], indirect=True)
def test_two_hosts_run_in_step(two: Two) -> None:
    (first, out, err), (second, other_out, other_err) = two.ended(0), two.ended(1)
    assert (first, second) == (0, 0), (err, other_err)
    (record,) = two.kept()  # host 0's alone
    assert record.status == "ok" and record.where["hosts"] == 2 and record.where["devices"] == 4
    assert record.check["error"] <= record.check["tolerance"] and len(record.seconds) == 3
    assert "1 record in" in out and other_out == ""


@pytest.mark.skipif(os.name == "nt", reason="jax.distributed's CPU collectives are for Linux and macOS")
@pytest.mark.parametrize("two", ["collective --sweep simulated --repeats 200"], indirect=True)
def test_a_host_that_dies_ends_the_other_clearly_and_what_was_measured_is_kept(two: Two) -> None:
    two.wait_for_a_record()
    two.hosts[1].send_signal(signal.SIGKILL)  # its child ends with it
    began = time.monotonic()
    status, _, err = two.ended(0)
    assert status == hosts.LOST and time.monotonic() - began < LONGEST
    assert "host 0 of 2: host 1 has gone, or cannot be reached (found while" in err and "JAX says:" in err
    assert f"What was measured until then is kept in {two.records}" in err and "***" not in err
    assert two.kept()[0].status == "ok"


# ---- the watching alone, with children that need no JAX ----------------------------------------------------------


def watched(code: str, monkeypatch: pytest.MonkeyPatch, limit: float = 30.0) -> int:
    """The status of a watch over a child that runs this code."""
    real = subprocess.Popen
    monkeypatch.setattr(hosts.subprocess, "Popen", lambda command, **how: real([sys.executable, "-c", code], **how))
    return hosts.watch(["run"], hosts=3, host=1, patience=10, limit=limit)


def test_a_child_that_does_nothing_is_ended(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    code = f"import sys, time; print({hosts.MARK!r} + 'compiling', file=sys.stderr, flush=True); time.sleep(60)"
    assert watched(code, monkeypatch, limit=1.0) == hosts.STUCK
    assert "host 1 of 3: nothing happened for 1 s while compiling, so it ended." in capfd.readouterr().err


def test_what_c_prints_is_read_and_not_shown(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    said = ("F1130 10:00:00.000000    4711 client.h:77] Terminating process because the JAX distributed service "
            "detected fatal errors: /job:jax_worker/replica:0/task:2")  # fmt: skip
    code = (
        f"import os, sys; print('kept'); print({said!r}, file=sys.stderr, flush=True); sys.stdout.flush(); os.abort()"
    )
    assert watched(code, monkeypatch) == hosts.LOST
    told = capfd.readouterr()
    assert told.out == "kept\n" and "host 2 has gone" in told.err and "kept by host 0" in told.err
    assert "F1130" not in told.err


def test_hosts_that_do_not_all_come(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    told = f"{hosts.MARK}{hosts.GATHERING} 3 hosts at a:1"
    code = f"import os, sys; print({told!r}, file=sys.stderr, flush=True); os.abort()"
    assert watched(code, monkeypatch) == hosts.LOST
    assert "gathering 3 hosts at a:1: they did not all come within 120 s" in capfd.readouterr().err


def test_a_fault_of_its_own_is_shown(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    assert watched("raise KeyError('ours')", monkeypatch) == 1
    told = capfd.readouterr().err
    assert "KeyError: 'ours'" in told and "has gone" not in told


def test_no_host_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hosts' runs in one process: what each says is gathered by turns."""
    right, wrong = Record(case="product"), Record(case="product", status="failed", reason="wrong answer")

    def run(parts: int, end: Record) -> Iterator[str]:
        yield from map(str, range(parts))
        return end

    def ends(states: list[list[int]], going: Iterator[str]) -> Record:
        left = iter(states)
        monkeypatch.setattr(joining, "_gathered", lambda mine: next(left))
        stepped = joining.in_step(going, lambda why: Record(case="product", status="stopped", reason=why))
        try:
            while True:
                next(stepped)
        except StopIteration as end:
            return end.value

    assert ends([[0, 0], [0, 0], [1, 1]], run(2, right)) is right
    assert ends([[0, 0], [2, 0]], run(1, wrong)) is wrong
    other = ends([[0, 0], [2, 0]], run(5, right))
    assert (other.status, other.reason) == ("stopped", "host 0 could not go on; its own output says why")


def test_hosts_must_agree_on_what_they_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "_gathered", lambda mine: [mine, mine])
    joining.expect_same("abc1234 product")
    monkeypatch.setattr(joining, "_gathered", lambda mine: [mine, 1])
    with pytest.raises(Exception, match="give all the same command, code and versions"):
        joining.expect_same("abc1234 product")
