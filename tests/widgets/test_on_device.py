"""Run on device in every explorer: the measured point stands on its axes, is stamped, grows old, and comes back."""

from __future__ import annotations

import pytest

import mtfcore as mtf
from mtfcore.errors import DeviceError
from tests.widgets.pretend_device import pretend
from tpu_runs import records
from widgets import attention, feedforward, roofline

EXPLORERS = {
    "feedforward": (feedforward, {"batch": 64, "x": 2, "y": 2, "z": 2}, {"batch": 128}),
    "attention": (attention, {"model": "palm-8b", "mesh": "x:2 y:2 z:2", "batch": 16, "context": 512}, {"batch": 32}),
    "roofline": (roofline, {"model": "palm-8b", "topology": "v4:2x2x2", "batch": 32}, {"batch": 64}),
}


@pytest.fixture(autouse=True)
def own_records(monkeypatch, tmp_path):
    """Records of these tests alone."""
    monkeypatch.setenv("MESHWORK_RECORDS", str(tmp_path))
    monkeypatch.setenv("MESHWORK_CLASS", "")


@pytest.fixture(params=EXPLORERS)
def each(request, monkeypatch):
    """An explorer, what opens it again, other settings, and its device."""
    make, settings, others = EXPLORERS[request.param]
    explorer = make(**settings)
    explorer.queue.join(60)
    yield explorer, lambda: make(**settings), others, pretend(monkeypatch, type(explorer), share=True)
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
    assert explorer.top.progress["text"] == "run on the device"
    ((program, options),) = device.asked
    assert isinstance(program, mtf.Program) and options["on"] == "attached"
    record = records.mine()[-1]
    assert record.facts["explorer"] == explorer.call and record.share["left_out"] == sum(
        step.times for step in program.collectives()
    )
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
