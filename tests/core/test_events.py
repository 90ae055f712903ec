"""Live events: what a run tells of itself is what it did, whatever else the library says about it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore import events, schedules
from mtfcore.errors import LayoutError
from widgets.explorers.examples import EXAMPLES
from widgets.explorers.inputs import example_inputs


@mtf.function
def net(x: "batch io", ws: "layers io hidden", vs: "layers hidden io"):
    def block(x, w, v):
        return x + mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")

    return mtf.repeat(block, 5, [ws, vs], x)


@mtf.function
def moved(x: "a b"):
    return mtf.reshard(mtf.reshard(x, "a:y b"), "a b:y")


def looped(mesh="rows:4 cols:2", layout="io:rows hidden:cols"):
    return mtf.plan(net, mesh, layout, sizes="batch:8 io:16 hidden:16 layers:5")


def permuted():
    return mtf.plan(moved, "x:2 y:2", "", sizes="a:8 b:8", place={"x": "a:x b"})


def example(name):
    settings = EXAMPLES[name].settings
    place = dict(part.split(": ", 1) for part in settings["place"].split("; ") if part)
    return mtf.plan(EXAMPLES[name].fn, settings["mesh"], settings["layout"], sizes=settings["sizes"], place=place)


def seen(program, **options):
    """A watched run of seeded inputs, and its result."""
    watch = events.watch(program, **options)
    return watch, watch(**example_inputs(program))


# ---- a run tells of every collective


@pytest.mark.parametrize("program", [looped(), permuted(), *map(example, EXAMPLES)], ids=lambda p: p.name)
def test_totals_by_axis_are_the_programs(program):
    watch, result = seen(program)
    np.testing.assert_allclose(result, mtf.simulate(program)(**example_inputs(program)), rtol=1e-5, atol=1e-5)
    tally = events.tallies(watch.events, program)
    assert tally.by_axis == program.link_bytes().by_axis
    assert tally.total == program.link_bytes().total
    assert tally.n_events == len(watch.events) == events.expected_events(program) > 0


def test_each_device_comes_to_each_step_in_each_turn_in_order():
    program = looped()
    watch, _ = seen(program)
    (repeat,) = [n for n, step in enumerate(program.steps) if step.kind == "repeat"]
    body = program.steps[repeat].body
    steps = [(repeat, n) for n, step in enumerate(body.steps) if step.is_collective]
    for device in range(8):
        mine = [(event.turn, event.step) for event in watch.events if event.device == device]
        assert sorted(mine) == [(turn, step) for turn in range(5) for step in steps]
        for step in steps:
            assert [turn for turn, at in mine if at == step] == list(range(5))
    assert [event.number for event in watch.events] == list(range(len(watch.events)))


def test_an_event_names_kind_axes_group_and_bytes():
    program = looped()
    watch, _ = seen(program)
    event = next(e for e in watch.events if e.device == 5 and e.axes == ("rows",))
    assert (event.kind, event.group) == ("all_reduce", (1, 3, 5, 7))
    assert event.sent_bytes == events.step_at(program, event.step).link_bytes
    assert {other for other, _ in event.to} == {1, 3, 7}


def test_pairs_of_a_permute_are_exact():
    program = permuted()
    (path,) = [(n,) for n, step in enumerate(program.steps) if step.kind == "permute"]
    watch, _ = seen(program)
    told = {event.device: event.to for event in watch.events if event.step == path}
    n_bytes = program.steps[path[0]].n_bytes
    # a:x → a:y on x:2 y:2: devices 0 (0, 0) and 3 (1, 1) hold what they want, 1 and 2 exchange
    assert told == {0: (), 1: ((2, n_bytes),), 2: ((1, n_bytes),), 3: ()}


def test_the_pairs_of_each_device_add_up_to_what_it_sends():
    for program in (looped(), example("weight_stationary_2d"), example("heads")):
        watch, _ = seen(program)
        tally = events.tallies(watch.events, program)
        sent = [sum(n for (one, _), n in tally.by_pair.items() if one == device) for device in range(8)]
        assert sent == [program.link_bytes().total] * 8
        assert all(one != other for one, other in tally.by_pair)


def test_events_are_of_one_run_alone():
    program = example("two_layers")
    watch, _ = seen(program)
    first = watch.events
    watch(**example_inputs(program))
    assert watch.events is not first
    assert len(watch.events) == len(first) == 8
    assert {event.turn for event in watch.events} == {0}


def test_the_listener_hears_while_the_program_runs():
    heard, watch = [], None

    def listen(event):
        heard.append((event.number, threading.current_thread() is threading.main_thread(), finished.is_set()))

    finished = threading.Event()
    watch = events.watch(looped(), listen)
    watch(**example_inputs(watch.program))
    finished.set()
    assert [number for number, _, _ in heard] == list(range(len(watch.events)))
    assert not any(late for _, _, late in heard)


def test_what_a_listener_raises_comes_out_after_the_run():
    def listen(event):
        if event.number == 3:
            raise KeyError("mine")

    watch = events.watch(example("two_layers"), listen)
    with pytest.raises(KeyError, match="mine"):
        watch(**example_inputs(watch.program))
    assert len(watch.events) == 8


def test_events_need_no_schedules(monkeypatch):
    def none(*args, **options):
        raise AssertionError("events asked for a schedule")

    for name in ("schedule", "of_step", "every_group", "replay", "start", "advance"):
        monkeypatch.setattr(schedules, name, none)
    monkeypatch.setattr("mtfcore.schedules.making.schedule", none)
    program = looped()
    watch, _ = seen(program)
    assert events.tallies(watch.events, program).by_axis == program.link_bytes().by_axis


def test_bf16_bool_and_whole_numbers_are_watched_too():
    @mtf.function(dtypes={"n": "i32"})
    def several(x: "a b", n: "a b"):
        return mtf.max(x, "a"), mtf.reshard(n, "a b"), mtf.reshard(mtf.less(n, n), "a b")

    program = mtf.plan(several, "x:4", "a:x", sizes="a:8 b:2", dtype="bf16")
    watch, _ = seen(program)
    assert events.tallies(watch.events, program).by_axis == program.link_bytes().by_axis


def test_a_backward_and_its_loop_are_watched_too():
    @mtf.function
    def trained(x: "batch io", ws: "layers io hidden", vs: "layers hidden io"):
        return mtf.gradients(mtf.sum(mtf.square(net.call(x, ws, vs))), {"ws": ws, "vs": vs})

    program = mtf.plan(trained, "rows:2 cols:2", "batch:rows hidden:cols", sizes="batch:8 io:8 hidden:8 layers:5")
    watch, _ = seen(program)
    tally = events.tallies(watch.events, program)
    assert tally.by_axis == program.link_bytes().by_axis
    assert tally.n_events == events.expected_events(program) >= 4 * 2 * 5


def test_halo_rows_go_to_one_neighbour():
    @mtf.function
    def shifted(x: "height width"):
        return mtf.shift(x, "height", 1)

    program = mtf.plan(shifted, "rows:4", "height:rows", sizes="height:8 width:4")
    watch, _ = seen(program)
    tally = events.tallies(watch.events, program)
    assert tally.by_pair == {(0, 1): 16, (1, 2): 16, (2, 3): 16}
    assert tally.by_axis == program.link_bytes().by_axis == {"rows": 16}


# ---- pure parts


def test_marks_stand_behind_collectives_and_change_nothing_else():
    program = looped()
    marked = events.marked(program, lambda path, device: None)
    (body,) = [step.body for step in marked.steps if step.kind == "repeat"]
    kinds = [step.kind for step in body.steps]
    assert kinds.count("mark") == 2
    assert all(kinds[n - 1] == "all_reduce" for n, kind in enumerate(kinds) if kind == "mark")
    assert [step.kind for step in program.walk()] == [step.kind for step in marked.walk() if step.kind != "mark"]


def test_members_count_the_first_axis_slowest():
    mesh = mtf.Mesh("x:2 y:2 z:2")
    assert events.members(mesh, ("y",), 5) == (5, 7)
    assert events.members(mesh, ("z", "x"), 2) == (2, 6, 3, 7)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: events.watch(net), "expected a program made by mtf.plan"),
        (lambda: events.watch(looped(), pause_seconds=3), "pause_seconds is 3; between 0 and 1"),
        (lambda: events.watch(looped())(), "x"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(LayoutError, match=words):
        call()
