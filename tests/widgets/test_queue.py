"""The run queue: newest wins, nothing piles up, stop is between steps."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from widgets.queue import Pacer, Progress, Result, RunQueue


def test_rapid_drag_settles_on_the_last_value_without_a_backlog():
    """40 values in one second, 0.3 s of work each: elsewhere 12 s of queued work."""
    done: list[Result] = []
    queue = RunQueue(on_result=done.append)
    for value in range(40):
        queue.latest(lambda settings: time.sleep(0.3) or settings["n"], {"n": value})
        time.sleep(1 / 40)
    released = time.monotonic()
    queue.join()
    # one was running at release, then the newest: at most two of 0.3 s, and a little
    assert time.monotonic() - released < 1.5
    assert done[-1].value == 39 and done[-1].settings == {"n": 39}
    assert len(done) <= 7


def test_at_most_one_runs_and_one_waits():
    gate, running, most = threading.Event(), [], []

    def job(settings):
        running.append(settings["n"])
        most.append(len(running))
        gate.wait(5)
        running.remove(settings["n"])
        return settings["n"]

    done: list[Result] = []
    queue = RunQueue(on_result=done.append)
    for n in range(10):
        queue.latest(job, {"n": n})
    gate.set()
    queue.join()
    assert max(most) == 1 and [result.value for result in done] == [0, 9]


def test_a_second_run_is_refused_not_queued():
    begun, gate, done = threading.Event(), threading.Event(), []

    def run(settings):
        begun.set()
        gate.wait(5)
        yield Progress(1, 1)
        return settings["n"]

    queue = RunQueue(on_result=done.append)
    assert queue.start(run, {"n": 1})
    assert begun.wait(5)
    assert not queue.start(run, {"n": 2}) and not queue.start(run, {"n": 3})
    gate.set()
    queue.join()
    assert [result.value for result in done] == [1]
    assert queue.start(run, {"n": 4})
    queue.join()
    assert done[-1].value == 4


def test_a_run_comes_before_a_recomputation_which_is_begun_again():
    """Who presses Run while a picture still grows need not wait for it, and loses neither."""
    begun, steps, done = threading.Event(), [], []

    def look(settings):
        for n in range(200):
            begun.set()
            steps.append(n)
            time.sleep(0.01 if len(done) == 0 else 0)
            yield Progress(n + 1, 200, value=n)
        return "all of it"

    queue = RunQueue(on_result=done.append)
    queue.latest(look, {"n": 1})
    assert begun.wait(5) and not queue.by_button
    assert queue.start(lambda settings: queue.by_button, {"n": 2})
    queue.join()
    assert [(result.value, result.stopped) for result in done[1:]] == [(True, False), ("all of it", False)]
    assert done[0].stopped and done[0].value < 199


def test_stop_acts_between_repetitions_and_keeps_what_there_is():
    """A long run of short repetitions ends within one of them."""
    steps, done = [], []

    def run(settings):
        for n in range(1000):
            time.sleep(0.02)
            steps.append(n)
            yield Progress(n + 1, 1000, value=n)

    queue = RunQueue(on_result=done.append)
    queue.start(run, {})
    while len(steps) < 3:
        time.sleep(0.005)
    pressed = time.monotonic()
    queue.stop()
    queue.join()
    assert time.monotonic() - pressed < 1
    assert done[0].stopped and done[0].value == steps[-1] and len(steps) < 20


def test_stop_forgets_what_waits():
    gate, done = threading.Event(), []
    queue = RunQueue(on_result=done.append)
    queue.latest(lambda settings: gate.wait(5) and "first", {})
    queue.latest(lambda settings: "second", {})
    queue.stop()
    gate.set()
    queue.join()
    assert [result.value for result in done] == ["first"]


def test_stop_before_the_first_step_still_reports():
    done: list[Result] = []
    held = threading.Lock()
    queue = RunQueue(on_result=done.append, lock=held)

    def run(settings):
        yield Progress(1, 1)

    with held:
        queue.start(run, {"n": 1})
        queue.stop()
    queue.join()
    assert len(done) == 1 and done[0].stopped


def test_a_fault_is_told_and_raised_by_join():
    """A thread has nobody to raise to."""
    told = []
    queue = RunQueue(on_error=told.append)
    queue.latest(lambda settings: 1 / 0, {})
    with pytest.raises(ZeroDivisionError):
        queue.join()
    assert [type(error) for error in told] == [ZeroDivisionError]
    done = []
    queue._on_result = done.append
    queue.latest(lambda settings: "works again", {})
    queue.join()
    assert done[0].value == "works again"


def test_the_launch_lock_is_held_during_each_step_and_free_between():
    lock, inside, between = threading.RLock(), [], []

    def owned() -> bool:
        taken = []

        def attempt() -> None:
            taken.append(lock.acquire(blocking=False))
            if taken[0]:
                lock.release()

        other = threading.Thread(target=attempt)
        other.start()
        other.join()
        return not taken[0]

    def run(settings):
        for n in range(3):
            inside.append(owned())
            yield Progress(n, 3)

    queue = RunQueue(on_progress=lambda progress: between.append(owned()), lock=lock)
    queue.start(run, {})
    queue.join()
    assert inside == [True] * 3 and between and not any(between)


def test_a_result_knows_whether_the_sliders_still_match():
    result = Result({"mesh": "rows:4", "size": 8}, "value", False, 0.1)
    assert result.matches({"mesh": "rows:4", "size": 8}) and not result.matches({"mesh": "rows:2", "size": 8})


def test_pushes_are_capped_and_the_last_one_arrives():
    """UI: the page does not slow the kernel down, so the kernel does it: about 20 a second."""
    pushed = []
    pacer = Pacer(lambda value: pushed.append((time.monotonic(), value)), per_second=20)
    begun = time.monotonic()
    n = 0
    while time.monotonic() - begun < 0.5:
        pacer.offer(n)
        n += 1
        time.sleep(0.001)
    time.sleep(0.1)
    assert pushed[0][1] == 0 and pushed[-1][1] == n - 1
    assert 5 <= len(pushed) <= 13
    assert all(later - earlier > 0.045 for (earlier, _), (later, _) in itertools.pairwise(pushed))


def test_flush_pushes_what_waits_at_once():
    pushed = []
    pacer = Pacer(pushed.append, per_second=1)
    for n in range(3):
        pacer.offer(n)
    pacer.flush()
    assert pushed == [0, 2]
