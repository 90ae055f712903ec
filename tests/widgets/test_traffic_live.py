"""Live traffic without a browser: what the bars and the matrix say is the sum of one run's events."""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ElementTree

import pytest

import mtfcore as mtf
from mtfcore import events, schedules
from mtfcore.errors import DeviceError
from mtfcore.events import Tally
from widgets import program, traffic
from widgets.explorers import live_traffic
from widgets.explorers.examples import EXAMPLES, two_layers
from widgets.explorers.inputs import example_inputs
from widgets.figures.live_traffic import live_facts, pair_words, peak, plan_words, run_words, table
from widgets.figures.live_traffic_html import bars_html, grouped, matrix_svg

SETTINGS = {"mesh": "rows:4 cols:2", "layout": "batch:rows hidden:cols", "sizes": "batch:16 io:8 hidden:32"}


@mtf.function
def net(x: "batch io", ws: "layers io hidden", vs: "layers hidden io"):
    def block(x, w, v):
        return x + mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")

    return mtf.repeat(block, 6, [ws, vs], x)


def looped():
    return mtf.plan(net, "rows:4 cols:2", "io:rows hidden:cols", sizes="batch:8 io:16 hidden:16 layers:6")


def ran(explorer):
    explorer.top.press({"run": True})
    explorer.queue.join(60)
    explorer.check()
    return explorer


def watched(program):
    watch = events.watch(program)
    watch(**example_inputs(program))
    return events.tallies(watch.events, program)


# ---- the explorer


@pytest.mark.parametrize("fn", EXAMPLES)
def test_a_run_ends_as_planned(fn):
    live = ran(traffic(fn=fn, pace="full")).live
    assert live["events"] == live["expected"] > 0
    assert all(row["sent"] == row["planned"] for row in (*live["axes"], *live["steps"]))
    assert max(live["pairs"].values()) == live["peak"]


def test_a_program_of_the_readers_own_runs_with_its_loop():
    explorer = ran(traffic(program=looped(), pace="full"))
    assert [(row["label"], row["times"], row["events"]) for row in explorer.live["steps"]] == [
        ("all-reduce over rows", 6, 48), ("all-reduce over cols", 6, 48),
    ]  # fmt: skip
    assert "96 of 96 events" in explorer.picture.drawing["about"]
    assert "as planned" in explorer.picture.drawing["about"]
    assert explorer.code == "from widgets import traffic\ntraffic(program='net', pace='full')".replace("'net'", "net")


def test_it_moves_while_the_program_runs_and_needs_no_schedules(monkeypatch):
    def none(*args, **options):
        raise AssertionError("live traffic asked for a schedule")

    for name in ("schedule", "of_step", "every_group", "replay", "start", "advance"):
        monkeypatch.setattr(schedules, name, none)
    monkeypatch.setattr("mtfcore.schedules.making.schedule", none)
    monkeypatch.setattr(live_traffic, "SLOW_SECONDS", 1.0)
    explorer, shown = traffic(program=looped()), []
    explorer.picture.observe(lambda change: shown.append(change.new["events"]), "drawing")
    ran(explorer)
    between = [n for n in shown if 0 < n < 96]
    assert len(between) >= 3
    assert shown == sorted(shown)
    assert shown[-1] == 96


def test_a_new_run_starts_from_nothing():
    explorer, shown = traffic(two_layers, **SETTINGS, pace="full"), []
    ran(explorer)
    explorer.picture.observe(lambda change: shown.append(change.new["events"]), "drawing")
    ran(explorer)
    assert shown[0] == 0
    assert explorer.live["events"] == 8


def test_after_a_run_of_these_settings_the_sentence_says_what_was_counted():
    explorer, promise = traffic(two_layers, **SETTINGS, pace="full"), "Run it, and each collective"
    assert promise in explorer.sentence
    ran(explorer)
    counted = explorer.sentence
    assert promise not in counted and "This run: 8 of 8 events; one device sent " in counted
    assert counted.endswith("[counted] over cols, as planned.") and "[modelled] over cols. This run" in counted
    assert explorer.value == explorer.live and explorer._shown.table == table(explorer.live)
    assert "This run: 8 of 8 events" in explorer.bottom.shown["sentence"]
    explorer.top.press({"axis.cols": 4})
    assert promise in explorer.sentence
    explorer.top.press({"axis.cols": 2})
    assert explorer.sentence == counted


def test_another_mesh_goes_back_to_the_plan():
    explorer = ran(traffic(two_layers, **SETTINGS, pace="full"))
    assert explorer.picture.drawing["events"] == 8
    explorer.top.press({"axis.cols": 4})
    assert explorer.picture.drawing["events"] == 0
    assert "Press Run" in explorer.picture.drawing["about"]
    explorer.top.press({"axis.cols": 2})
    assert explorer.picture.drawing["events"] == 8


def test_stop_lets_the_launch_come_to_its_end(monkeypatch):
    monkeypatch.setattr(live_traffic, "SLOW_SECONDS", 60.0)
    explorer, begun = traffic(program=looped()), threading.Event()
    explorer.picture.observe(lambda change: begun.set() if change.new["events"] else None, "drawing")
    explorer.top.press({"run": True})
    assert begun.wait(30)
    explorer.top.press({"stop": True})
    explorer.queue.join(30)
    assert explorer.live["events"] < 96
    assert "Stopped" in explorer.picture.drawing["about"]
    assert f"A stopped run: {explorer.live['events']} of 96 events; one device sent " in explorer.sentence
    assert ran_again(explorer, monkeypatch)["events"] == 96


def ran_again(explorer, monkeypatch):
    monkeypatch.setattr(live_traffic, "SLOW_SECONDS", 0.1)
    return ran(explorer).live


def test_a_cell_reads_out_what_one_device_sent_another():
    explorer = ran(traffic(two_layers, **SETTINGS, pace="full"))
    explorer.picture.pair = [0, 1]
    assert "device 0 → device 1: 128 B" in explorer.picture.pointed
    explorer.picture.pair = [0, 2]
    assert "device 0 → device 2: 0 B" in explorer.picture.pointed
    explorer.picture.pair = []
    assert explorer.picture.pointed == "Point at a cell to read it."


def test_a_reader_s_inputs_are_used():
    program = mtf.plan(two_layers, SETTINGS["mesh"], SETTINGS["layout"], sizes=SETTINGS["sizes"])
    explorer = traffic(program=program, inputs={**example_inputs(program), "x": [[1.0]]}, pace="full")
    explorer.top.press({"run": True})
    with pytest.raises(mtf.LayoutError):
        explorer.queue.join(60)
    assert explorer.kind == "refused"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"on": "moon"}, "no place 'moon' to run on; legal here: 'simulated', 'attached'"),
        ({"pace": "fast"}, "no pace 'fast'; legal here: 'slow', 'full'"),
        ({"mesh": "rows:64 cols:2", "sizes": "batch:64 io:8 hidden:32"}, "has 128 devices; a run here has up to 64"),
        ({"layout": "batch:row hidden:cols", "mesh": "rows:3"}, "does not divide"),
    ],
)
def test_what_cannot_run_is_refused(settings, words):
    explorer = traffic(two_layers, **SETTINGS)
    explorer.state = {**explorer.state, **settings}
    assert words in explorer.sentence or explorer.kind == "ok"
    assert (explorer.kind == "refused") == (words in explorer.sentence)


def test_too_many_events_are_refused_before_the_run(monkeypatch):
    monkeypatch.setattr(live_traffic, "MOST_EVENTS", 50)
    explorer = traffic(program=looped())
    explorer.top.press({"run": True})
    with pytest.raises(mtf.LayoutError):
        explorer.queue.join(60)
    assert "this run would tell of 96 events" in explorer.sentence


def test_the_program_explorer_opens_the_traffic_of_its_settings():
    explorer = program("weight_gradient", search=True)
    explorer.top.press({"watch": True})
    watching = ran(explorer.watching)
    assert explorer.children[-1] is watching
    assert watching.live["axes"] == [
        {"axis": axis, "sent": sent, "planned": sent} for axis, sent in explorer.value["totals"]["by_axis"].items()
    ]
    explorer.top.press({"watch": True})
    assert explorer.watching is None
    assert watching not in explorer.children


def test_on_an_attached_mesh_it_says_that_there_is_none():
    explorer = traffic(two_layers, **SETTINGS, on="attached")
    explorer.top.press({"run": True})
    with pytest.raises(DeviceError):
        explorer.queue.join(60)
    assert "no TPU or GPU is attached" in explorer.sentence


def test_a_run_that_fills_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(live_traffic, "MOST_BYTES", 1 << 10)
    explorer = traffic(two_layers, **SETTINGS)
    explorer.top.press({"run": True})
    with pytest.raises(mtf.LayoutError):
        explorer.queue.join(60)
    assert "the limit here is 1 KiB: use smaller sizes" in explorer.sentence


# ---- figures


def test_half_a_run_is_half_full():
    program = looped()
    watch = events.watch(program)
    watch(**example_inputs(program))
    facts = live_facts(program, events.tallies([e for e in watch.events if e.turn < 3], program))
    assert [row["sent"] * 2 for row in facts["axes"]] == [row["planned"] for row in facts["axes"]]
    drawn = bars_html(facts)
    assert drawn.split("By step")[1].count("width:50.0%") == 2
    assert 'data-live-step="0" data-events="24"' in drawn
    assert "Running: 48 of 96 events" in run_words(facts, "running")


def test_cells_have_the_colour_of_the_axis_between_the_two():
    program = mtf.plan(EXAMPLES["weight_stationary_2d"].fn, "x:2 y:2 z:2", "", sizes="B:8 L:4 E:64 F:256",
                       place={"x": "B L E:xzy", "w_in": "E:x F:zy", "w_out": "F:zy E:x"})  # fmt: skip
    facts = live_facts(program, watched(program))
    axes = dict.fromkeys(["x", "y", "z", ""], 0)
    for (axis, _), pairs in grouped(facts).items():
        axes[axis] += len(pairs)
    assert axes == {"x": 8, "y": 8, "z": 8, "": 8}
    root = ElementTree.fromstring(matrix_svg(facts))
    assert {e.attrib["data-axis"] for e in root.iter() if "data-axis" in e.attrib} == {"x", "y", "z", "several"}


def test_64_devices_cost_few_elements():
    program = mtf.plan(two_layers, "rows:8 cols:8", "batch:rows hidden:cols", sizes="batch:64 io:64 hidden:64")
    facts = live_facts(program, watched(program))
    assert len(facts["pairs"]) == 64 * 7
    assert matrix_svg(facts).count("<path") == 1


def test_words_and_table_carry_their_origins():
    program = looped()
    facts = live_facts(program, Tally(program))
    words = plan_words(facts)
    assert words.startswith("net on 8 devices has 2 collectives, run 12 times in all. One device sends ")
    assert words.count("[modelled]") == 2
    assert pair_words(facts, 0, 1) == "device 0 → device 1: 0 B [counted]"
    assert all("[counted]" in row[1] and "[modelled]" in row[2] for row in table(facts)[1:])
    assert peak(program) > 0


def test_a_program_that_sends_nothing_says_so():
    @mtf.function
    def alone(x: "batch io"):
        return mtf.relu(x)

    explorer = ran(traffic(program=mtf.plan(alone, "rows:2", "batch:rows", sizes="batch:4 io:4")))
    assert "has no collective here" in explorer.sentence
    assert "0 of 0 events" in explorer.picture.drawing["about"]
