"""What a notebook sees when the class's address answers oddly, late, or not at all. No owner runs here."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tpu_runs.asking import Asked, AskingError, Class, OwnerAway, RequestRefused, in_words
from tpu_runs.records import Record

ROOT = Path(__file__).parents[2]
RECORD = {**json.loads(Record(case="sleep").line()), "a field of tomorrow": 1}
Answer = tuple[int, dict[str, str], bytes]


class Somebody:
    """A web server with a list of answers; it keeps what it was sent, and drops the connection where there is none."""

    def __init__(self) -> None:
        self.answers: list[Answer | None] = []
        self.asked: list[tuple[str, dict[str, str]]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, dict(self.headers)))
                answer = outer.answers.pop(0) if outer.answers else None
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = Class(f"http://127.0.0.1:{self.server.server_port}", "secret")

    def says(self, *answers: tuple[int, object, dict[str, str]] | None) -> None:
        self.answers = [one and (one[0], one[2], json.dumps(one[1]).encode()) for one in answers]


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Somebody]:
    monkeypatch.setattr("tpu_runs.asking.time.sleep", lambda seconds: None)
    there = Somebody()
    thread = threading.Thread(target=there.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield there
    there.server.shutdown()
    thread.join()
    there.server.server_close()


def test_an_address_of_something_else_is_told(somebody: Somebody) -> None:
    somebody.answers = [(200, {}, b"<html>"), (200, {}, b"[]"), (404, {}, b"<html>")]
    for _ in range(3):
        with pytest.raises(AskingError, match="not as a class's owner does"):
            somebody.place.status()


def test_a_token_goes_nowhere_else_and_through_no_proxy(somebody: Somebody, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    somebody.says((302, {}, {"Location": somebody.place.address + "/elsewhere"}))
    with pytest.raises(AskingError, match="HTTP 302"):
        somebody.place.status()
    assert [path for path, _ in somebody.asked] == ["/"]
    assert somebody.asked[0][1]["Authorization"] == "Bearer secret" and "secret" not in repr(somebody.place)


def test_what_came_too_soon_is_asked_again_and_what_is_refused_is_not(somebody: Somebody) -> None:
    soon = (429, {"error": "too many requests"}, {"Retry-After": "0.1"})
    somebody.says(soon, soon, (200, {"waiting": 0}, {}))
    assert somebody.place.status() == {"waiting": 0}
    somebody.says(*[soon] * 9)
    with pytest.raises(RequestRefused, match="too many requests"):
        somebody.place.status()
    somebody.says((429, {"error": "you have 40 requests here"}, {}), soon)
    with pytest.raises(RequestRefused, match="you have 40"):
        somebody.place.status()
    assert somebody.answers, "it was not asked a second time"


def test_waiting_outlives_a_connection_that_breaks_but_not_an_owner_that_went(somebody: Somebody) -> None:
    told: list[str] = []
    waiting = {"id": "1", "state": "waiting", "position": 2, "waiting": 3, "mark": "a"}
    assert in_words({**waiting, "running": True}) == "number 2 of 3 that wait while another run is going"
    running = {"id": "1", "state": "running", "mark": "b", "progress": {"done": 1, "total": 5, "text": "repetition"}}
    done = {"id": "1", "state": "done", "source": "records", "record": RECORD, "mark": "c"}
    asked = Asked(somebody.place, "1", waiting)
    somebody.says(None, None, (200, running, {}), None, (200, done, {}))
    somebody.answers.insert(3, (200, {"Content-Length": "9"}, b"{"))  # cut off in the middle
    record = asked.wait(lambda now: told.append(in_words(now)))
    assert told == ["number 2 of 3 that wait", "running: repetition (1 of 5)", "ok (kept from before)"]
    assert isinstance(record, Record) and record.id == RECORD["id"]
    assert [path for path, _ in somebody.asked][-1] == "/requests/1?seen=b"
    with pytest.raises(OwnerAway, match="is `make class` running there"):
        Asked(somebody.place, "1", waiting).wait()


def test_asking_needs_nothing_but_python_itself() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tpu_runs.asking; print('here')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "here", done.stderr
