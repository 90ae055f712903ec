"""One chip, many notebooks, end to end: a real owner, Dask's scheduler, a worker that pretends, and clients."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import re
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.tpu_runs.owners import BY_MAKE, Owner, left_of, owner
from tpu_runs.asking import Asked, AskingError, Class, OwnerAway, RequestRefused, WrongToken, ask, the_class
from tpu_runs.serve import engine

pytestmark = pytest.mark.xdist_group("class")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    """One owner for all tests that leave it as it was."""
    with owner(tmp_path_factory.mktemp("class"), "--limit", "4") as running:
        yield running


NUMBERS = itertools.count(1)


def tag() -> int:
    """A number that no other run has."""
    return next(NUMBERS)


def until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not seen():
        assert time.monotonic() < deadline, "it did not happen in 20 s"
        time.sleep(0.01)


def running(asked: Asked) -> Asked:
    """Wait until a request has the chip."""
    until(lambda: asked.look()["state"] == "running" and bool(asked.told["progress"]))
    return asked


@contextlib.contextmanager
def busy(here: Owner, name: str = "somebody") -> Iterator[None]:
    """The chip is taken until the block ends (and for less than the limit), so that what is asked meanwhile waits."""
    asked = running(here.notebook(name).start("sleep", {"tag": tag(), "ms": 90, "steps": 40}))
    yield
    assert asked.look()["state"] == "running", "this machine is too slow for this test"
    asked.cancel()


@pytest.mark.parametrize("name", ["student-{}", "one notebook"])
def test_thirty_clients_get_their_own_answers_and_nothing_runs_twice(here: Owner, name: str) -> None:
    tags = [tag() for _ in range(30)]
    start = threading.Barrier(30)

    def client(mine: int) -> tuple[int, str, str]:
        start.wait(20)
        record = ask("sleep", {"tag": mine}, place=here.notebook(name.format(mine).replace(" ", "-")))
        return record.params["tag"], record.status, record.id

    with ThreadPoolExecutor(30) as room:
        answers = list(room.map(client, tags))
    assert [(mine, status) for mine, status, _ in answers] == [(mine, "ok") for mine in tags]
    assert sorted(mine for mine in here.started() if mine in tags) == sorted(tags)
    kept = [row["id"] for row in here.records() if row["params"]["tag"] in tags]
    assert sorted(kept) == sorted(id for _, _, id in answers)


def test_equal_requests_are_one_run_and_later_ones_come_from_the_records(here: Owner) -> None:
    params = {"tag": tag()}
    with busy(here):
        asked = [here.notebook(f"n{number}").start("sleep", params) for number in range(5)]
    ids = {one.wait().id for one in asked}
    assert len(ids) == 1 and here.started().count(params["tag"]) == 1
    later = here.notebook("later").start("sleep", params)
    assert later.told["state"] == "done" and later.told["source"] == "records" and later.wait().id in ids
    fresh = ask("sleep", params, fresh=True, place=here.notebook("later"))
    assert fresh.id not in ids and here.started().count(params["tag"]) == 2


def test_one_who_floods_delays_only_himself(here: Owner) -> None:
    with busy(here, "ann"):
        flood = [here.notebook("ann").start("sleep", {"tag": tag()}) for _ in range(6)]
        ben, carl = (here.notebook(name).start("sleep", {"tag": tag()}) for name in ("ben", "carl"))
        assert (ben.told["position"], carl.told["position"], flood[0].look()["position"]) == (1, 2, 3)
        last = flood[-1].look()
        assert last["position"] == last["waiting"] == 8
    order = [one.wait().params["tag"] for one in (ben, carl, *flood)]
    assert [mine for mine in here.started() if mine in order] == order


def test_progress_is_told_step_by_step(here: Owner) -> None:
    told: list[str] = []
    ask("sleep", {"tag": tag(), "ms": 60, "steps": 9}, progress=told.append, place=here.notebook("ann"))
    steps = [int(words.split()[2]) for words in told if words.startswith("running: repetition")]
    assert len(steps) >= 2 and steps == sorted(set(steps)) and told[-1] == "ok"  # a look may come too late for one


def test_a_waiting_request_is_taken_back_and_never_starts(here: Owner) -> None:
    mine = tag()
    with busy(here):
        waiting = here.notebook("ben").start("sleep", {"tag": mine})
        assert waiting.cancel()["state"] == "done" and waiting.wait().status == "stopped"
    assert ask("sleep", {"tag": tag()}, place=here.notebook("ben")).status == "ok"
    assert mine not in here.started()


def test_a_running_request_stops_between_repetitions_and_the_chip_goes_on(here: Owner) -> None:
    params = {"tag": tag(), "ms": 100, "steps": 15}
    asked = running(here.notebook("ann").start("sleep", params))
    ended: list[str] = []
    waiter = threading.Thread(target=lambda: ended.append(asked.wait().status))
    waiter.start()
    Asked(asked.place, asked.id, asked.told).cancel()
    waiter.join(5)
    assert ended == ["stopped"]
    assert ask("sleep", {"tag": tag()}, place=here.notebook("ben")).status == "ok"
    row = next(row for row in here.records() if row["params"]["tag"] == params["tag"])
    assert row["status"] == "stopped" and row["seconds"] == [] and "of 15" in row["reason"]


def test_one_of_two_who_wait_for_the_same_run_takes_it_back_and_the_other_has_it(here: Owner) -> None:
    params = {"tag": tag(), "ms": 60}
    both = [here.notebook(name).start("sleep", params) for name in ("ann", "ben")]
    both[0].cancel()
    assert both[0].wait().status == "stopped" and both[1].wait().status == "ok"
    with pytest.raises(RequestRefused, match="no such request of yours"):
        Asked(here.notebook("carl"), both[1].id, {}).look()


def test_a_run_past_the_limit_is_ended_and_the_next_is_answered(here: Owner) -> None:
    hung = here.notebook("ann").start("sleep", {"tag": tag(), "ms": 30_000, "steps": 1})
    after = here.notebook("ben").start("sleep", {"tag": tag()})
    record = hung.wait()
    assert record.status == "stopped" and "past the class's limit of 4 s" in record.reason
    assert after.wait().status == "ok"


def test_with_no_worker_to_end_the_owner_does_not_end_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[object] = []
    monkeypatch.setattr(engine.psutil, "Process", ended.append)  # of None psutil takes this very process
    engine.Engine("tests.tpu_runs.pretending", "simulated").kill()
    assert not ended


def test_a_worker_that_dies_is_started_again_and_the_queue_is_kept(here: Owner) -> None:
    run = {"tag": tag(), "ms": 20_000, "steps": 1}
    asked = running(here.notebook("ann").start("sleep", run))
    waiting = [here.notebook("ben").start("sleep", {"tag": tag()}) for _ in range(3)]
    here.worker().kill()
    record = asked.wait()
    assert record.status == "failed" and "its worker process ended" in record.reason
    assert [one.wait().status for one in waiting] == ["ok"] * 3
    assert here.started().count(run["tag"]) == 1, "a run that took its worker along is not tried again"
    assert ask("sleep", {"tag": tag(), "then": "die"}, place=here.notebook("ann")).status == "failed"
    fault = ask("sleep", {"tag": tag(), "then": "fault"}, place=here.notebook("ann"))
    assert fault.status == "failed" and fault.reason == "RuntimeError: the device said no"


REFUSED = {
    "pickle": (pickle.dumps({"case": "sleep"}), {}, 400, "looks like a pickle"),
    "another type": (b"{}", {"Content_Type": "application/x-python"}, 415, "only application/json"),
    "a form": (b'{"case": "sleep"}', {"Content_Type": "text/plain"}, 415, "only application/json"),
    "not JSON": (b"{case: 1}", {}, 400, "not JSON"),
    "NaN": (b'{"case": "sleep", "params": {"ms": NaN}}', {}, 400, "NaN is not a number of JSON"),
    "a name twice": (b'{"case": "sleep", "case": "x"}', {}, 400, "a name stands twice"),
    "deep": (b"[" * 16000, {}, 400, "not JSON"),
    "a list": (b"[]", {}, 400, "not a list"),
    "code": (b'{"case": "sleep", "code": "import os"}', {}, 400, "unknown field 'code'"),
    "wrong form": (b'{"case": 1, "params": []}', {}, 400, "case is a number; it must be a word; params is a list"),
    "unknown case": (b'{"case": "os.system"}', {}, 400, "no case 'os.system'"),
    "wrong kinds": (b'{"case": "sleep", "params": {"ms": "1", "x": 1}}', {}, 400, "no parameter 'x'; ms is a str"),
    "huge": (
        b'{"case": "sleep", "params": {"gib": 1000000}}',
        {},
        400,
        "977 TiB of the class's computer .modelled.; 16 GiB",
    ),
    "too much": (b'{"case": "' + b"x" * 20_000 + b'"}', {}, 413, "at most 16,384"),
    "no token": (b'{"case": "sleep"}', {"Authorization": ""}, 401, "the token is missing or wrong"),
    "wrong token": (b'{"case": "sleep"}', {"Authorization": "Bearer abc"}, 401, "the token is missing or wrong"),
    "not bearer": (b'{"case": "sleep"}', {"Authorization": "Basic YTpi"}, 401, "the token is missing or wrong"),
}


@pytest.mark.parametrize(("body", "headers", "status", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_with_words(here: Owner, body: bytes, headers: dict, status: int, words: str) -> None:
    before = len(here.started())
    got, answer, _ = here.send("POST", "/requests", body, **headers)
    assert got == status
    assert re.search(words, answer["error"])
    assert len(here.started()) == before


def test_other_sites_scripts_get_nothing(here: Owner) -> None:
    for method, path in (("OPTIONS", "/requests"), ("GET", "/"), ("GET", "/no/such"), ("PUT", "/requests")):
        status, _, headers = here.send(method, path, Origin="http://elsewhere.example")
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert (status == 200) == (path == "/")


def test_the_client_says_what_is_wrong(here: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MESHWORK_CLASS", raising=False)
    assert the_class() is None
    with pytest.raises(AskingError, match="no class is named: set MESHWORK_CLASS"):
        ask("sleep")
    monkeypatch.setenv("MESHWORK_CLASS", f'"{here.address} {here.tokens[0]}"')
    assert the_class().status()["device_bytes"] == 2**34 and list(the_class().cases()) == ["sleep"]
    with pytest.raises(RequestRefused, match="plain numbers and words"):
        ask("sleep", {"f": print})
    with pytest.raises(WrongToken, match="copy the line"):
        ask("sleep", place=here.notebook("ann", token="other"))
    with pytest.raises(OwnerAway, match="is `make class` running there"):
        Class("http://127.0.0.1:9", "t").status()
    with pytest.raises(AskingError, match="an address and a token"):
        the_class("127.0.0.1:8899")


def test_only_loopback_and_only_our_own_processes_may_speak_to_the_scheduler(here: Owner) -> None:
    """Dask sends pickles: whoever may speak to it may run code. Its pages are off, and it wants our certificate."""
    open_ends = [end for process in here.family() for end in process.net_connections("tcp") if end.status == "LISTEN"]
    ports = {(end.laddr.ip, end.laddr.port) for end in open_ends}
    assert {ip for ip, _ in ports} == {"127.0.0.1"}
    ours = int(here.address.rsplit(":", 1)[1])
    kinds = [speak(port) for _, port in ports if port != ours]
    assert set(kinds) == {"404", "certificate wanted"} and kinds.count("certificate wanted") >= 2


def speak(port: int) -> str:
    """How a port answers somebody without a certificate: to HTTP, and where that is not understood, to TLS."""
    with socket.create_connection(("127.0.0.1", port), 5) as plain, contextlib.suppress(ConnectionError):
        plain.sendall(b"GET /status HTTP/1.1\r\nHost: here\r\n\r\n")
        if answer := plain.recv(100):
            return answer.split()[1].decode()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 5) as plain:
        try:
            with context.wrap_socket(plain) as wrapped:
                return f"spoke: {wrapped.recv(100)!r}"
        except ssl.SSLError as fault:
            return "certificate wanted" if "CERTIFICATE_REQUIRED" in str(fault) else str(fault)


def test_an_owner_started_again_answers_from_its_records_and_leaves_nothing_behind(tmp_path: Path) -> None:
    token = "the-same-token-every-day"
    with owner(tmp_path, start=BY_MAKE, MESHWORK_CLASS_TOKEN=token) as first:
        assert first.tokens == [token]
        record = ask("sleep", {"tag": 1}, place=first.notebook("ann"))
        until(lambda: bool(re.search(r"client 1: sleep, ok after [\d.]+ .?s, of which", "".join(first.said))))
        hung = running(first.notebook("ann").start("sleep", {"tag": 2, "ms": 20_000}))
        assert first.end(signal.SIGTERM) == 143
        with pytest.raises(OwnerAway):
            hung.look()
    with owner(tmp_path, "--students", "2", "--quiet") as again:
        assert len(set(again.tokens)) == 2
        assert ask("sleep", {"tag": 1}, place=again.notebook("ann")).id == record.id
        with pytest.raises(RequestRefused, match="perhaps the owner was started again"):
            Asked(again.notebook("ann"), hung.id, hung.told).look()
        assert again.started() == [1, 2]
        assert again.end(signal.SIGINT) == 0 and "request" not in "".join(again.said)


def test_a_real_product_runs_in_the_worker_alone_and_an_owner_killed_outright_takes_it_along(tmp_path: Path) -> None:
    params = {"m": 16, "k": 16, "n": 16, "dtype": "f32"}
    with owner(tmp_path, menu="tpu_runs.serve.menu") as real:
        record = ask("product", params, place=real.notebook("ann"))
        assert record.status == "ok" and record.simulated and len(record.seconds) == 5 and record.check["error"] == 0
        assert ask("product", {**params, "mesh": "x:1"}, place=real.notebook("ben")).id == record.id
        with pytest.raises(RequestRefused, match=r"needs about [\d.,]+ [A-Z]iB of the class's computer \(modelled\)"):
            ask("product", dict.fromkeys("mkn", 2**20), place=real.notebook("ann"))
        with pytest.raises(RequestRefused, match=r"2 faults[\s\S]*no parameter 'kk'; did you mean 'k'"):
            ask("product", {"kk": 1, "m": -1}, place=real.notebook("ann"))
        if sys.platform == "linux":
            maps = [Path(f"/proc/{pid}/maps").read_text() for pid in (real.process.pid, real.worker().pid)]
            assert ["jaxlib" in text for text in maps] == [False, True], "only the worker loads JAX"
        family = real.family()
        real.process.kill()
        assert left_of(family) == []
        real.process.wait()


def test_a_port_in_use_is_said(here: Owner, tmp_path: Path) -> None:
    port = here.address.rsplit(":", 1)[1]
    with pytest.raises(AssertionError, match="choose another --port"), owner(tmp_path, "--port", port):
        pass


def test_an_owner_without_a_chip_says_so_and_ends(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match=r"held by another process: pid 4711.[\s\S]*--on simulated"),
        owner(tmp_path, PRETENDING_HELD="1"),
    ):
        pass
