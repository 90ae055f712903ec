"""The desk without Dask: turns, merging, records, limits of time, and moments in which two things happen at once."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_runs.records import Record, append, read
from tpu_runs.serve.desk import Desk, Ticket
from tpu_runs.serve.limits import Limits, Rate, Refused, Request, read_request
from tpu_runs.serve.lines import AT_MOST, Lines
from tpu_runs.serve.turns import Turns

HERE = {"where": {"platform": "simulated", "device_kind": "cpu", "devices": 8}, "versions": {"jax": "1"}}


class Queue:
    """Stands for Dask's: what was queued, by key, and what was asked of it."""

    def __init__(self) -> None:
        self.queued: dict[str, tuple[int, int]] = {}
        self.asked_to_stop: list[str] = []
        self.killed = 0

    def submit(self, key: str, case: str, params: dict, priority: int) -> None:
        assert key not in self.queued
        self.queued[key] = (priority, params["tag"])

    def drop(self, key: str) -> None:
        self.queued.pop(key, None)

    def ask_to_stop(self, key: str) -> None:
        self.asked_to_stop.append(key)

    def kill(self) -> None:
        self.killed += 1

    def first(self) -> tuple[str, int]:
        """The key and the tag of what has the highest priority."""
        key = max(self.queued, key=lambda key: self.queued[key])
        return key, self.queued[key][1]


class Room:
    """A desk, its queue, a clock that is set by hand, and a chip that does what Dask would."""

    def __init__(self, folder: Path, **limits: float) -> None:
        self.now, self.queue = 0.0, Queue()
        self.desk = Desk(self.queue, Limits(**limits), folder / "kept.jsonl", clock=lambda: self.now)
        self.desk.here = HERE

    def ask(self, client: str, tag: int, fresh: bool = False) -> Ticket:
        return self.desk.ask(client, Request("sleep", {"tag": tag}, fresh))

    def start(self) -> tuple[str, int]:
        key, tag = self.queue.first()
        self.desk.event({"key": key, "what": "started"})
        return key, tag

    def finish(self, key: str, tag: int) -> None:
        record = Record(case="sleep", params={"tag": tag}, seconds=[1.0], **HERE)
        self.desk.event({"key": key, "what": "finished", "record": record.line()})

    def run(self) -> int:
        """Run what is first; its tag."""
        key, tag = self.start()
        self.finish(key, tag)
        return tag


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


# ---- turns ----


def test_turns_go_round(room: Room) -> None:
    for tag in (1, 2, 3):
        room.ask("ann", tag)
    key, tag = room.start()
    room.ask("ben", 11)
    room.ask("ben", 12)
    room.ask("carl", 21)
    room.finish(key, tag)
    assert [tag, *(room.run() for _ in range(5))] == [1, 11, 21, 2, 12, 3]


def test_who_comes_back_at_once_does_not_pass_those_who_wait(room: Room) -> None:
    room.ask("ann", 1)
    for tag in (11, 12, 13):
        room.ask("ben", tag)
    order = []
    for tag in (2, 3, 4):
        key, ran = room.start()
        room.ask("ann", tag)  # while the chip is busy, and so before anybody else's next turn
        room.finish(key, ran)
        order.append(ran)
    assert [*order, *(room.run() for _ in range(4))] == [1, 11, 12, 2, 13, 3, 4]  # rounds of two


def test_what_was_taken_back_costs_no_turn(room: Room) -> None:
    room.ask("ben", 10)
    taken = [room.ask("ann", tag) for tag in range(1, 6)]
    for ticket in taken:
        room.desk.cancel("ann", ticket.id)
    room.ask("ben", 11)
    room.ask("ann", 6)
    assert [room.run() for _ in range(3)] == [10, 6, 11]
    assert room.queue.queued == {}


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_in_each_round_a_client_has_one_turn(clients: list[str]) -> None:
    turns, waiting = Turns(), []
    for client in clients:
        waiting.append((turns.place(client, [round for round, name in waiting if name == client]), client))
    assert len(set(waiting)) == len(waiting)
    for round, client in sorted(waiting):
        turns.serve(client, round)
        assert turns.place(client, []) == round + 1, "who was served in this round waits for the next"


# ---- merging and records ----


def test_an_equal_request_with_an_earlier_turn_brings_the_run_forward(room: Room) -> None:
    for tag in (1, 2, 3):
        late = room.ask("ann", tag)
    both = room.ask("ben", 3)
    assert room.desk.look("ben", both.id)["position"] == room.desk.look("ann", late.id)["position"] == 2
    assert [room.run() for _ in range(3)] == [1, 3, 2]
    assert both.record == late.record and room.queue.queued == {}


def test_a_run_that_started_while_it_was_brought_forward_is_one_run(room: Room) -> None:
    """Dask began with the earlier key in the very moment in which the later one was queued."""
    room.ask("ann", 1)
    room.ask("ann", 2)
    before = min(room.queue.queued, key=lambda key: room.queue.queued[key])
    ben = room.ask("ben", 2)
    room.desk.event({"key": before, "what": "started"})
    assert [tag for _, tag in room.queue.queued.values()] == [1], "the second key is out of the queue again"
    room.finish(before, 2)
    assert ben.record.status == "ok" and len(read(room.desk.file)[0]) == 1


def test_a_run_that_started_while_it_was_taken_back_is_asked_to_stop(room: Room) -> None:
    ticket = room.ask("ann", 1)
    key, _ = room.queue.first()
    room.desk.cancel("ann", ticket.id)
    room.desk.event({"key": key, "what": "started"})
    assert room.queue.asked_to_stop == [key] and room.desk.running() is None


def test_a_run_that_ends_for_those_who_left_is_not_joined(room: Room) -> None:
    left = room.ask("ann", 1)
    key, _ = room.start()
    room.desk.cancel("ann", left.id)
    assert room.queue.asked_to_stop == [key] and left.record.status == "stopped"
    again = room.ask("ann", 1)
    room.desk.event({"key": key, "what": "stopped", "done": 1, "total": 5})
    assert again.record is None
    assert room.run() == 1 and again.record.status == "ok"


@pytest.mark.parametrize("change", [{"where": {**HERE["where"], "device_kind": "TPU v4"}}, {"versions": {"jax": "2"}},
                                    {"status": "failed"}, {"origin": "compiled"}, {"params": {"tag": 2}},
                                    {"where": {**HERE["where"], "devices": 16}}, {"share": {"mesh": "x:16"}}, {}],
                         ids=str)  # fmt: skip
def test_only_a_good_measurement_from_such_a_chip_answers(tmp_path: Path, change: dict) -> None:
    made = {"case": "sleep", "params": {"tag": 1}, "seconds": [1.0], **HERE, **change}
    append(Record(**made), tmp_path / "kept.jsonl")
    ticket = Room(tmp_path).ask("ann", 1)
    assert (ticket.record is not None) == (change == {})


def test_an_answer_reaches_those_who_wait_though_the_disk_is_full(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("tpu_runs.serve.desk.append", full)
    ticket = room.ask("ann", 1)
    room.run()
    assert ticket.record.status == "ok" and "no space left" in room.desk.trouble


# ---- time ----


def test_a_run_past_its_limit_ends_its_worker_once(tmp_path: Path) -> None:
    room = Room(tmp_path, run_seconds=10, patience_seconds=1000)
    ticket, other = room.ask("ann", 1), room.ask("ben", 2)
    room.start()
    for room.now in (9.0, 11.0, 12.0):
        room.desk.tick()
    assert room.queue.killed == 1
    room.desk.died()
    assert ticket.record.status == "stopped" and "limit of 10 s" in ticket.record.reason
    assert other.record is None and room.run() == 2


def test_a_run_that_the_owners_end_takes_along_says_so(tmp_path: Path) -> None:
    room = Room(tmp_path)
    ticket = room.ask("ann", 1)
    room.start()
    room.desk.end()
    room.desk.died()
    assert (ticket.record.status, ticket.record.reason) == ("failed", "the class's owner was ended")


def test_what_nobody_looks_for_is_given_up(tmp_path: Path) -> None:
    room = Room(tmp_path, patience_seconds=60)
    gone, here = room.ask("ann", 1), room.ask("ben", 2)
    room.now = 50.0
    room.desk.look("ben", here.id)
    room.now = 70.0
    room.desk.tick()
    assert "nobody looked for it in 60 s" in gone.record.reason and room.run() == 2


def test_too_many_of_one_client_are_refused_and_those_of_others_are_not(tmp_path: Path) -> None:
    room = Room(tmp_path, queued_per_client=3)
    mine = [room.ask("ann", tag) for tag in range(3)]
    with pytest.raises(Refused, match="you have 3 requests here, the most one may have") as refused:
        room.ask("ann", 3)
    assert refused.value.status == 429 and not refused.value.retry_seconds
    room.ask("ben", 4)
    room.desk.cancel("ann", mine[0].id)
    assert room.ask("ann", 3).record is None


def test_only_so_many_wait(tmp_path: Path) -> None:
    room = Room(tmp_path, queued=3)
    for tag in range(3):
        room.ask(f"client {tag}", tag)
    with pytest.raises(Refused, match="3 requests wait, the most this class keeps") as refused:
        room.ask("ann", 4)
    assert refused.value.status == 503


def test_a_rate_is_kept_for_each_client_and_recovers() -> None:
    now = [0.0]
    rate = Rate(Limits(requests_per_second=2, burst=4), clock=lambda: now[0])
    for _ in range(4):
        rate.take("ann")
    with pytest.raises(Refused, match="too many requests") as refused:
        rate.take("ann")
    assert refused.value.status == 429 and refused.value.retry_seconds
    rate.take("ben")
    now[0] = 0.6
    rate.take("ann")


@given(st.binary(max_size=60))
def test_whatever_bytes_come_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(Refused):  # and nothing else
        asked = read_request("application/json", body)
        assert isinstance(asked.case, str) and isinstance(asked.params, dict)


def test_old_answers_are_forgotten_and_those_who_wait_are_not(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpu_runs.serve.desk.KEPT", 3)
    first = room.ask("ann", 1)
    room.run()
    waits = [room.ask("ann", tag) for tag in (2, 3, 4)]
    assert all(room.desk.look("ann", ticket.id)["state"] == "waiting" for ticket in waits)
    with pytest.raises(Refused, match="no such request of yours"):
        room.desk.look("ann", first.id)
    assert room.ask("ann", 1).record.id == first.record.id, "but the records know it"


def test_the_terminal_is_told_of_each_request_and_answer_and_of_no_names(room: Room) -> None:
    said: list[str] = []
    room.desk.lines = Lines(said.append, clock=lambda: room.now)
    room.ask("ann", 1)
    room.now = 2.0
    key, tag = room.start()
    room.ask("ben", 1)
    waits = room.ask("ben", 2)
    room.now = 5.0
    room.finish(key, tag)
    room.ask("ann", 1)
    room.desk.cancel("ben", waits.id)
    assert [line.partition("  ")[2] for line in said] == [
        "request 1, client 1: sleep, waiting as number 1 of 1",
        "request 2, client 2: sleep, joins the run going on",
        "request 3, client 2: sleep, waiting as number 1 of 1",
        "request 1, client 1: sleep, ok after 5 s, of which 2 s waiting",
        "request 2, client 2: sleep, ok after 3 s, of which 0 s waiting",
        "request 4, client 1: sleep, answered from the records",
        "request 3, client 2: sleep, stopped after 3 s, of which 3 s waiting",
    ]


def test_in_a_rush_lines_are_left_out_and_counted() -> None:
    said: list[str] = []
    now = [0.0]
    lines = Lines(said.append, clock=lambda: now[0])
    for number in range(AT_MOST.burst + 7):
        lines.say(Ticket("", "ann", 0, 0.0, number), "sleep", "ok")
    now[0] = 1.0
    lines.say(Ticket("", "ann", 0, 0.0, 99), "sleep", "ok")
    assert len(said) == AT_MOST.burst + 1 and said[-1].endswith("ok (7 lines left out before this)")


def test_a_terminal_that_was_closed_costs_nobody_an_answer(room: Room) -> None:
    def closed(line: str) -> None:
        raise BrokenPipeError

    room.desk.lines = Lines(closed)
    ticket = room.ask("ann", 1)
    room.run()
    assert ticket.record.status == "ok"


@pytest.mark.parametrize("words", [["--port", "99999"], ["--port", "-5"], ["--students", "-3"], ["--limit", "nan"]])
def test_options_that_say_nothing_are_refused(words: list[str], capsys: pytest.CaptureFixture) -> None:
    from tpu_runs.serve.owner import options

    with pytest.raises(SystemExit):
        options(words)
    assert f"{words[0]} {words[1]}:" in capsys.readouterr().err


def test_help_says_what_it_is_and_nothing_for_readers_of_code(capsys) -> None:
    from tpu_runs.serve.owner import options

    with pytest.raises(SystemExit):
        options(["--help"])
    said = capsys.readouterr().out
    assert "The owner of a class's chip" in said and "--students" in said and "Next file" not in said
