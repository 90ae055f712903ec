"""Run on device in every explorer: the measured point stands on its axes, is stamped, grows old, and comes back."""

from __future__ import annotations

import contextlib
import re

import pytest

import mtfcore as mtf
from mtfcore.errors import DeviceError
from tests.widgets.pretend_device import WHERE, pretend
from tpu_runs import records
from widgets import attention, feedforward, generate, layouts, planner, roofline, traffic
from widgets.explorers import plan_finding
from widgets.explorers.roofline import priced_of
from widgets.figures import attention_svg
from widgets.figures.layouts_charts import time_chart
from widgets.figures.on_device import OLD
from widgets.frame import Frame

EXPLORERS = {
    "feedforward": (feedforward, {"batch": 64, "x": 2, "y": 2, "z": 2}, {"batch": 128}),
    "attention": (attention, {"model": "palm-8b", "mesh": "x:2 y:2 z:2", "batch": 16, "context": 512}, {"batch": 32}),
    "traffic": (traffic, {"kind": "all_reduce", "mesh": "x:4"}, {"n_bytes": 1 << 16}),
    "layouts": (layouts, {"rows": 2, "cols": 2, "planes": 2}, {"batch": 4096}),
    "planner": (planner, {"model": "palm-8b", "topology": "v4:2x2x2"}, {"batch": 32}),
    "generate": (generate, {"model": "untrained", "mesh": "x:2 y:1 z:1", "slots": 2}, {"slots": 4}),
    "roofline": (roofline, {"model": "palm-8b", "topology": "v4:2x2x2", "batch": 32}, {"batch": 64}),
}


@pytest.fixture(autouse=True)
def own_records(monkeypatch, tmp_path):
    """Records of these tests alone; and no plan beside the planner's, which nobody reads here."""
    monkeypatch.setattr(plan_finding, "around", lambda setup: [])
    monkeypatch.setenv("MESHWORK_RECORDS", str(tmp_path))
    monkeypatch.setenv("MESHWORK_CLASS", "")


@pytest.fixture(params=EXPLORERS)
def each(request, monkeypatch):
    """An explorer, what opens it again, other settings, and its device."""
    make, settings, others = EXPLORERS[request.param]
    explorer = make(**settings)
    explorer.queue.join(60)
    alone = explorer.call != "traffic"  # of a collective one device has no share
    yield explorer, lambda: make(**settings), others, pretend(monkeypatch, type(explorer), share=alone)
    explorer.close()


def pressed(explorer):
    explorer.top.press({"device": True})
    explorer.queue.join(60)


def html(explorer):
    return explorer.still(explorer._shown)


def test_the_measured_point_is_drawn_stamped_and_kept(each):
    explorer, again, others, device = each
    assert 'data-device="fresh"' not in html(explorer)
    pressed(explorer)
    assert explorer.kind == "ok" and 'data-device="fresh" data-seconds="0.003"' in html(explorer)
    ((program, options),) = device.asked
    assert isinstance(program, mtf.Program) and options["on"] == "attached"
    record = records.mine()[-1]
    n_collectives = sum(step.times for step in program.collectives())
    assert record.facts["explorer"] == explorer.call
    assert record.share is None or record.share["left_out"] == n_collectives
    assert any("[measured]" in cell and "TPU v4" in cell for row in explorer._shown.table for cell in row)
    explorer.state = {**explorer.state, **others}
    explorer.queue.join(60)
    assert 'data-device="old"' in html(explorer) and explorer.value["device"]["old"]
    other = again()
    other.queue.join(60)
    assert 'data-device="fresh" data-seconds="0.003"' in html(other)
    other.close()


def test_without_a_chip_one_sentence_says_so(each, monkeypatch):
    explorer, *_ = each
    pretend(monkeypatch, type(explorer), kind="none", words="no TPU or GPU is attached")
    with pytest.raises(DeviceError):
        pressed(explorer)
    assert explorer.kind == "refused" and "no TPU or GPU is attached; " in explorer.sentence
    assert explorer.fault is None and not explorer.measuring and not records.mine()


# ---- where the point lies


def measured(monkeypatch, make, seconds=(2e-3, 3e-3, 4e-3), **settings):
    explorer = make(**settings)
    explorer.queue.join(60)
    pretend(monkeypatch, type(explorer), seconds=seconds)
    pressed(explorer)
    return explorer


def test_a_decode_step_lies_at_its_context_and_time(monkeypatch):
    explorer = measured(monkeypatch, attention, **EXPLORERS["attention"][1])
    at = explorer.value["device"]
    assert at["params"]["context"] == 512 and at["seconds"] == 3e-3
    assert "data-device" in attention_svg.time_svg(explorer.value)
    assert [1e3 * at["seconds"]] == [3.0] and not explorer.value["device"]["share"]


def test_a_phase_lies_on_the_roofline_at_its_planned_intensity_and_measured_rate(monkeypatch):
    explorer = measured(monkeypatch, roofline, **EXPLORERS["roofline"][1])
    point, cost = explorer.value["decode"]["device"], priced_of(explorer.device_state(explorer.state))
    assert point["rate"] == pytest.approx(cost.program.flops() / 3e-3)
    assert point["intensity"] > 1 and explorer.value["prefill"]["device"] is None
    explorer.top.press({"phase": "prefill"})
    pressed(explorer)
    assert explorer.value["prefill"]["device"]["rate"] > point["rate"] and explorer.value["decode"]["device"]


def test_the_best_layout_stands_as_a_star_on_the_axis_of_seconds(monkeypatch):
    explorer = measured(monkeypatch, layouts, **EXPLORERS["layouts"][1])
    star = time_chart(explorer.value)["data"][-1]
    assert star["y"] == [3e-3] and star["x"] == [explorer.value["best"]] and "[measured]" in star["hovertext"][0]
    explorer.state = {**explorer.state, "batch": 4096}
    assert time_chart(explorer.value)["data"][-1]["marker"]["color"] == OLD


FINDING = {"mode": "find", "model": "palm-8b", "chips": "v4", "most_chips": 1, "limit": 99}


@pytest.mark.parametrize(("make", "settings", "words"), [
    (traffic, {"kind": "halo_exchange"}, "a device is timed with"), (planner, FINDING, "show one plan"),
])  # fmt: skip
def test_what_has_no_program_says_what_has_one(monkeypatch, make, settings, words):
    monkeypatch.setattr(Frame, "reraise", False)
    explorer = make(**settings)
    explorer.queue.join(60)
    pretend(monkeypatch, type(explorer))
    explorer.top.press({"device": True})
    with contextlib.suppress(mtf.LayoutError):
        explorer.queue.join(60)
    assert explorer.kind == "refused" and words in explorer.sentence


def test_a_collective_alone_has_no_share_of_one_device(monkeypatch):
    explorer = traffic(**EXPLORERS["traffic"][1])
    pretend(monkeypatch, type(explorer), share=True, where={**WHERE, "devices": 1})
    with pytest.raises(DeviceError, match="mesh 'x:4' needs 4 devices; attached: 1"):
        pressed(explorer)
    assert explorer.value["device"] is None and not explorer.fault


# ---- what stays to be read


def line(explorer):
    return explorer.top.progress["text"]


@pytest.mark.parametrize("name", ["attention", "planner", "generate"])
def test_what_is_looked_at_meanwhile_does_not_hide_the_run(monkeypatch, name):
    make, settings, others = EXPLORERS[name]
    explorer = measured(monkeypatch, make, **settings)
    when = explorer.value["device"]["when"]
    for _ in range(2):
        assert line(explorer).startswith(f"run on the device {when}")
        explorer.refine and explorer.start_refining()
        explorer.queue.join(60)
    explorer.state = {**explorer.state, **others}
    explorer.queue.join(60)
    ((key, old),) = [(key, settings.get(key, explorer.start[key])) for key in others]
    assert line(explorer).startswith(f"the run on the device is for {key} {old}")


def test_what_was_said_of_a_job_goes_with_its_settings(monkeypatch):
    monkeypatch.setattr(Frame, "reraise", False)
    explorer = roofline(**EXPLORERS["roofline"][1])
    pretend(monkeypatch, type(explorer), kind="none", words="no TPU or GPU is attached (no device file)")
    with contextlib.suppress(DeviceError):
        pressed(explorer)
    assert line(explorer) == "nothing was run: no TPU or GPU is attached"
    explorer.state = {**explorer.state, "batch": 64}
    assert line(explorer) == ""


@pytest.mark.parametrize("name", [name for name in EXPLORERS if name != "generate"])
def test_the_saved_file_has_the_measured_time(monkeypatch, name):
    make, settings, _ = EXPLORERS[name]
    explorer = make(**settings)
    explorer.queue.join(60)
    before = explorer.svg()
    pretend(monkeypatch, type(explorer))
    pressed(explorer)
    assert "[measured]" not in before and "3 ms [measured] on 64 × TPU v4" in explorer.svg()


@pytest.mark.parametrize("name", ["attention", "roofline", "planner"])
def test_a_mark_is_reached_with_tab_and_reads_its_stamp(monkeypatch, name):
    make, settings, _ = EXPLORERS[name]
    marks = re.findall(r"<g [^>]*data-device=[^>]*>", html(measured(monkeypatch, make, **settings)))
    assert len(marks) == 1 and 'tabindex="0"' in marks[0]
    assert re.search(r'aria-label="3 ms \[measured\] on 64 × TPU v4, median of 3, spread \d+ %, \d{4}-', marks[0])


def test_words_make_way_for_the_star(monkeypatch):
    explorer = measured(monkeypatch, layouts, **EXPLORERS["layouts"][1])
    best = explorer.value["rows"][explorer.value["best"]]["seconds"]
    for seconds, moves in ((best, True), (best / 4, False)):
        facts = {**explorer.value, "device": {**explorer.value["device"], "seconds": seconds}}
        words = [each for each in time_chart(facts)["layout"]["annotations"] if each["x"] == facts["best"]]
        assert [bool(each.get("yshift")) for each in words] == [moves]
