"""`run` without a page: its numbers are the library's, each job ends in a record, and what is old is said."""

from __future__ import annotations

import json
import threading
import xml.etree.ElementTree as ET
from typing import ClassVar

import pytest

import mtfcore as mtf
from mtfcore.compiling.process import has_compiler
from mtfcore.errors import DeviceError
from mtfcore.measuring import WrongAnswer
from mtfcore.planned_collective import planned_collective
from mtfcore.reference import rows
from tests.widgets.pretend_device import pretend
from tpu_runs import records
from tpu_runs.asking import RequestRefused
from tpu_runs.cases import CASES, check
from widgets import run
from widgets.explorers import history, run_jobs, run_published
from widgets.explorers.examples import two_layers
from widgets.explorers.run import RunExplorer
from widgets.explorers.run_inputs import KINDS, START, WORDS, mesh_for
from widgets.explorers.run_program import program_of, small
from widgets.frame import Frame, Refused

SMALL = {"what": "two_layers", "topology": "v5e:2x2", "sizes": "batch:64 io:256 hidden:512"}


@pytest.fixture(autouse=True)
def own_records(monkeypatch, tmp_path):
    """Records of these tests alone."""
    monkeypatch.setenv("MESHWORK_RECORDS", str(tmp_path))
    monkeypatch.setenv("MESHWORK_CLASS", "")
    return tmp_path


def pressed(explorer, name, seconds=60):
    explorer.top.press({name: True})
    explorer.queue.join(seconds)
    return explorer


def cell(explorer, row, column):
    return explorer.value["cells"][row][column]


def offered(explorer, label):
    number = [offer.label for offer in explorer.offers].index(label)
    explorer.bottom.asked = {"number": len(label), "offer": number}


# ---- programs, and what is published of them


@pytest.mark.parametrize("what", WORDS)
def test_every_kind_is_priced_and_has_a_size_to_simulate(what):
    state = {**START, "what": what, "tokens": 64}
    state["mesh"] = mesh_for(state)
    program, fewer = program_of(state), program_of({**state, **small(state)})
    assert mtf.price(program, state["topology"]).seconds > 0
    assert not run_jobs.too_large(fewer) and fewer.mesh.size <= 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("axes", "n_bytes"), [("x", 1 << 16), ("zx", 1 << 16), ("xyz", 1000)])
def test_a_collective_is_one_step_of_the_bytes_that_were_asked_for(kind, axes, n_bytes):
    (step,) = planned_collective(kind, "x:2 y:3 z:2", axes, n_bytes, "f32").collectives()
    assert step.kind == kind and sorted(step.axes) == sorted(axes)
    assert n_bytes <= step.n_bytes < n_bytes + 4 * step.group**2


def test_every_printed_time_of_one_phase_is_found_from_its_own_settings():
    listed = run_published.listed()
    assert len(listed) == len(set(map(run_published.words, listed))) > 40
    for row in listed:
        if row.setup["attention"] != "auto" or row.setup["batch"] == 64:
            found = run_published.printed({**START, **run_published.settings_of(row)})["seconds"]
            assert found.row is row and found.value == row.seconds / run_published.steps_of(row)


def test_a_row_that_is_picked_stands_beside_ours():
    explorer = run()
    row = next(row for row in rows(table="Figure 1") if "bf16, 64 chips, batch 256" in row.name)
    explorer.top.press({"row": row.key})
    assert explorer.kind == "ok" and explorer.state["weights"] == "bf16" and explorer.state["batch"] == 256
    printed, ours = cell(explorer, "seconds", "published"), cell(explorer, "seconds", "modelled")
    assert printed["value"] == pytest.approx(56.88e-3) and printed["origin"] == "published"
    price = mtf.price(program_of(explorer.state), "v4:4x4x4", model="calibrated")
    assert ours["value"] == price.seconds and ours["error"] == pytest.approx(price.seconds / 56.88e-3 - 1)
    assert f"{100 * ours['error']:+.1f} %" in explorer.sentence and "Figure 1" in explorer.sentence


def test_a_decode_step_is_compiled_beforehand_where_a_record_is_committed():
    kept = [one for one in records.committed() if one.case == "paper" and one.status == "ok"]
    explorer = run()
    found = cell(explorer, "seconds", "compiled")
    assert found["value"] in [one.facts["seconds"] for one in kept] and found["origin"] == "modelled"
    assert found["words"].startswith("modelled from compiled schedule") and abs(found["error"]) < 0.1
    sent = [cell(explorer, f"sent.{axis}", "compiled")["value"] for axis in "xyz"]
    assert sum(sent) == cell(explorer, "sent", "compiled")["value"] and min(sent) > 0


def test_another_slice_or_kind_brings_its_own_mesh():
    explorer = run()
    explorer.top.press({"chip": "v5e"})
    assert explorer.kind == "ok" and mtf.Mesh(explorer.state["mesh"]).size == 64
    explorer.top.press({"what": "two_layers"})
    assert explorer.kind == "ok" and explorer.state["mesh"] == "rows:8 cols:8"
    explorer.top.press({"mesh": "rows:4 cols:2"})
    assert explorer.kind == "refused" and "8 devices" in explorer.sentence
    offered(explorer, "v5e:2x4")
    assert explorer.kind == "ok" and explorer.state["topology"] == "v5e:2x4"


@pytest.mark.parametrize(("settings", "words"), [
    ({"what": "decod"}, "did you mean 'decode'"), ({"topology": "v9:2x2"}, "v9"), ({"batch": 0}, "batch is 0"),
    ({"partition": "ws3d-heads"}, "ws2d-heads"), ({"model": "palm-540"}, "palm-540b"), ({"mesh": "x:4 y:"}, "y:"),
    ({"what": "collective", "axes": "w"}, "no mesh axis 'w'"), ({"what": "collective", "kind": "gather"}, "all_gather"),
    ({"model": "palm-540b", "mesh": "x:1 y:8 z:8", "partition": "ws2d-heads"}, "48 heads"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_words(settings, words):
    explorer = run(**{"mesh": "x:4 y:4 z:4", **settings})
    assert explorer.kind == "refused" and words in explorer.sentence
    explorer.top.press({"device": True})  # what is refused has no program
    assert explorer.kind == "refused" and words in explorer.sentence


# ---- simulate


def test_simulated_devices_check_the_answer_count_the_bytes_and_show_no_time():
    explorer = pressed(run(**{**SMALL, "topology": "v4:2x2x2"}), "simulate")
    assert "the answer is that of one device" in explorer.sentence and "as planned" in explorer.sentence
    assert "no hardware's speed" in explorer.sentence
    for row in ("seconds", "local", "links", "mfu"):
        assert cell(explorer, row, "measured") is None
    for row in ("flops", "sent"):
        found = cell(explorer, row, "measured")
        assert (found["origin"], found["error"]) == ("counted", 0) and "simulated" in found["words"]
    assert explorer.records[0].simulated and "ms" not in explorer.value["history"][0]["gave"]


def test_what_is_too_large_to_simulate_leads_to_a_size_that_is_not():
    explorer = run()
    with pytest.raises(Refused, match="540 GiB"):
        pressed(explorer, "simulate")
    assert explorer.kind == "refused" and "Compiling needs none of it" in explorer.sentence
    offered(explorer, "a size to simulate")
    assert explorer.kind == "ok" and not run_jobs.too_large(explorer.program(explorer.state))


# ---- compile


@pytest.mark.skipif(not has_compiler(), reason="libtpu has no wheel for this computer")
@pytest.mark.xdist_group("compiling")
def test_a_compiled_program_stands_beside_its_plan():
    explorer = pressed(run(**SMALL), "compile")
    seconds, sent = cell(explorer, "seconds", "compiled"), cell(explorer, "sent", "compiled")
    assert seconds["value"] > 0 and seconds["origin"] == "modelled" and sent["origin"] == "compiled"
    by_axis = [cell(explorer, f"sent.{axis}", "compiled")["value"] for axis in ("rows", "cols")]
    assert sum(by_axis) == sent["value"]
    (record,) = explorer.records
    assert record.facts["timeline"] and record.where["topology"] == "v5e:2x2" and record.versions["libtpu"]
    again = run(**SMALL)  # tomorrow
    assert cell(again, "seconds", "compiled")["value"] == seconds["value"]


@pytest.mark.skipif(not has_compiler(), reason="libtpu has no wheel for this computer")
def test_a_collective_of_sums_is_compiled_too():
    explorer = run(what="collective", kind="reduce_scatter", mesh="x:4", axes="x", topology="v5e:2x2")
    pressed(explorer, "compile")
    assert explorer.kind == "ok" and cell(explorer, "sent", "compiled")["value"] == 3 << 18
    assert [line[:2] for line in explorer.records[0].facts["collectives"]] == [["reduce_scatter", "x"]]


def test_the_compilers_refusal_is_told_and_kept(monkeypatch):
    refused = records.Record(case="program", params={}, origin="compiled", status="refused", facts={"explorer": "run"},
                             reason="the compiler finds no room: it needs 40 GiB of 16 GiB")  # fmt: skip
    monkeypatch.setattr(run_jobs, "compiled_record", lambda report, settings, explorer: _with(refused, settings))
    monkeypatch.setattr(RunExplorer, "compiler", staticmethod(lambda *program, **options: None))
    explorer = pressed(run(**SMALL), "compile")
    assert "needs 40 GiB of 16 GiB [compiled]" in explorer.sentence and cell(explorer, "seconds", "compiled") is None
    assert explorer.value["history"][0]["gave"] == "too large [compiled]"


def _with(record, settings):
    return records.Record(**{**vars(record), "params": settings})


def test_stop_cancels_a_compilation(monkeypatch):
    begun = threading.Event()

    def compiler(program, topology, told, stop):
        told("waiting for 2 other compilers")
        begun.set()
        assert stop.wait(20)
        raise DeviceError("the compilation was stopped")

    monkeypatch.setattr(RunExplorer, "compiler", staticmethod(compiler))
    explorer = run(**SMALL)
    explorer.top.press({"compile": True})
    assert begun.wait(20) and explorer.top.progress["text"] == "waiting for 2 other compilers"
    explorer.top.press({"batch": 32, "stop": True})
    with pytest.raises(DeviceError):
        explorer.queue.join(20)
    assert explorer.kind == "ok" and explorer.top.progress["text"] == "stopped"
    assert (explorer.records[0].status, explorer.records[0].origin) == ("stopped", "compiled")


# ---- on a device


def test_a_device_fills_its_column_and_is_what_errors_are_against(monkeypatch):
    device = pretend(monkeypatch, RunExplorer, seconds=(29e-3, 29.3e-3, 31e-3))
    explorer = pressed(run(), "device")
    found = cell(explorer, "seconds", "measured")
    assert found["value"] == 29.3e-3 and found["error"] is None
    assert cell(explorer, "seconds", "published")["error"] == pytest.approx(1.82 / 64 / 29.3e-3 - 1)
    assert "64 × TPU v4" in explorer.sentence and explorer.value["truth"] == "measured or published"
    ((program, options),) = device.asked
    assert program is program_of(explorer.state) and options["topology"] == "v4:4x4x4" and options["on"] == "attached"
    record = records.mine()[-1]
    assert record.seconds == [29e-3, 29.3e-3, 31e-3] and record.commit and record.params["batch"] == 64
    assert 'title="measured · 64 × TPU v4' in explorer.side.html


def test_results_keep_their_settings_are_greyed_and_come_back(monkeypatch):
    pretend(monkeypatch, RunExplorer)
    explorer = pressed(run(), "device")
    explorer.top.press({"batch": 128})
    assert explorer.value["old"]["measured"] == "batch 64" and 'mw-old">' in explorer.side.html
    assert "for batch 64" in explorer.picture.html and cell(explorer, "seconds", "modelled")["against"] == "published"
    (line,) = [one for one in explorer.value["history"] if one["loads"]]
    assert "median 3 ms of 3" in line["words"] and line["words"] in explorer.picture.html
    explorer.picture.pick(f"record:{line['id']}")
    assert explorer.state["batch"] == 64 and "measured" not in explorer.value["old"]
    assert run(batch=64).value["cells"]["seconds"]["measured"]["value"] == 3e-3  # opened again


def test_another_chip_is_shown_and_not_compared(monkeypatch):
    where = {"platform": "gpu", "device_kind": "NVIDIA H200", "devices": 64, "hosts": 8, "topology": ""}
    pretend(monkeypatch, RunExplorer, where=where)
    explorer = pressed(run(), "device")
    assert cell(explorer, "seconds", "measured")["error"] is None and cell(explorer, "mfu", "measured") is None
    assert cell(explorer, "seconds", "modelled")["against"] == "published"


def test_one_devices_share_says_so_and_stands_beside_work_alone(monkeypatch):
    pretend(monkeypatch, RunExplorer, share=True, kind="fewer", words="1 × TPU v4 attached")
    explorer = pressed(run(), "device")
    assert cell(explorer, "seconds", "measured") is None and cell(explorer, "local", "measured")["value"] == 3e-3
    assert "One device's share" in explorer.sentence or "one device's share" in explorer.sentence
    assert "collectives left out" in explorer.sentence


@pytest.mark.parametrize(("kind", "words", "fix", "said"), [
    ("none", "no TPU or GPU is attached", "mtf.simulate", "no TPU or GPU is attached; Simulate runs the same steps"),
    ("held", "the TPU is held by process 7", "end it", "the TPU is held by process 7; end it"),
    ("version", "libtpu is too old", "upgrade it", "libtpu is too old; upgrade it"),
])  # fmt: skip
def test_a_chip_that_cannot_be_run_on_is_one_sentence(monkeypatch, kind, words, fix, said):
    device = pretend(monkeypatch, RunExplorer, kind=kind, words=words, fix=fix)
    explorer = run()
    with pytest.raises(DeviceError, match=words):
        pressed(explorer, "device")
    assert explorer.kind == "refused" and said in explorer.sentence and not device.asked
    assert explorer.fault is None and not explorer.bottom.shown["error"]


def test_stop_ends_a_run_between_repetitions_and_a_second_run_is_not_queued(monkeypatch):
    turns, go_on = threading.Semaphore(0), threading.Semaphore(0)

    def between():
        turns.release()
        assert go_on.acquire(timeout=20)

    device = pretend(monkeypatch, RunExplorer, seconds=[1e-3] * 50, between=between)
    explorer = run()
    explorer.top.press({"device": True})
    assert turns.acquire(timeout=20)
    explorer.top.press({"device": True})
    explorer.top.press({"batch": 32})  # a slider moves meanwhile
    assert explorer.state["batch"] == 32 and explorer.measuring
    explorer.top.press({"stop": True})
    go_on.release(2)
    explorer.queue.join(20)
    assert len(device.asked) == 1 and explorer.top.progress["text"] == "stopped"
    assert explorer.records[0].status == "stopped" and explorer.records[0].params["batch"] == 64


def test_an_answer_that_is_wrong_is_kept_as_a_failed_run_and_shows_no_time(monkeypatch):
    monkeypatch.setattr(Frame, "reraise", False)  # it is told, as in a notebook

    def wrong():
        raise WrongAnswer("the answer differs from the oracle's by 0.5")

    pretend(monkeypatch, RunExplorer, between=wrong)
    explorer = run()
    with pytest.raises(WrongAnswer):
        pressed(explorer, "device")
    assert "differs from the oracle" in explorer.sentence and cell(explorer, "seconds", "measured") is None
    assert explorer.records[0].status == "failed" and explorer.value["history"][0]["gave"] == "failed"


# ---- one's own program, the class, what is kept


def test_a_program_of_ones_own_is_found_again_by_its_steps(monkeypatch):
    pretend(monkeypatch, RunExplorer)
    at = {"sizes": "batch:64 io:128 hidden:256", "dtype": "bf16"}
    mine = mtf.plan(two_layers, "rows:2 cols:2", "batch:rows hidden:cols", **at)
    explorer = pressed(run(mine, "v5e:2x2"), "device")
    assert explorer.kind == "ok" and cell(explorer, "seconds", "measured")["value"] == 3e-3
    assert explorer.code.endswith("run(prog, topology='v5e:2x2')") and not explorer.value["history"][0]["loads"]
    assert cell(run(mine, "v5e:2x2"), "seconds", "measured") is not None
    other = mtf.plan(two_layers, "rows:2 cols:2", "batch:rows", **at)
    assert cell(run(other, "v5e:2x2"), "seconds", "measured") is None


class Class:
    """A class's owner that answers at once."""

    where: ClassVar = {"platform": "tpu", "device_kind": "TPU v4", "devices": 4}

    def start(self, case, params):
        self.asked = (case, params)
        return self

    def wait(self, progress):
        progress({"state": "waiting", "position": 1, "waiting": 3, "progress": None})
        return records.Record(case=self.asked[0], params=self.asked[1], seconds=[5e-3, 6e-3, 7e-3],
                              where=self.where)  # fmt: skip


def test_with_a_class_its_owner_is_asked(monkeypatch):
    owner = Class()
    monkeypatch.setattr("widgets.explorers.on_device.the_class", lambda: owner)
    explorer = pressed(run(), "device")
    case, params = owner.asked
    assert (
        case == "phase" and params["model"] == "palm-540b" and params["heads"] == 64 and params["cached_tokens"] == 2079
    )
    assert (
        cell(explorer, "seconds", "measured")["value"] == 6e-3 and explorer.records[0].params == explorer.run_settings()
    )
    with pytest.raises(DeviceError, match="collectives, and whole steps"):
        pressed(run(**SMALL), "device")


@pytest.mark.parametrize("start", [{}, {"what": "prefill", "model": "palm-8b d_ff=8192"}])
def test_where_a_class_takes_no_such_run_a_small_one_is_offered_that_it_takes(monkeypatch, start):
    class Small(Class):
        def start(self, case, params):
            if CASES[case].bytes(check(CASES[case], params)) > 1 << 20:
                raise RequestRefused(f"{case} in this size needs about 549 GiB of the class's computer (modelled)")
            return super().start(case, params)

    owner = Small()
    monkeypatch.setattr("widgets.explorers.on_device.the_class", lambda: owner)
    explorer = run(**start)
    with pytest.raises(DeviceError, match=r"of the class's computer|takes collectives"):
        pressed(explorer, "device")
    assert explorer.top.progress["text"].startswith("nothing was run: ")
    offered(explorer, "a size to simulate")
    pressed(explorer, "device")
    case, params = owner.asked
    assert (case, params["model"], params["mesh"]) == ("phase", "tiny-palm", "x:2 y:2 z:2")
    assert explorer.kind == "ok" and cell(explorer, "seconds", "measured")["value"] == 6e-3
    assert not list(explorer.smaller(explorer.state)) and ("tiny-palm", "tiny-palm") in options(explorer, "preset")


def options(explorer, name):
    return next(one.options for one in explorer.controls(explorer.state) if one.name == name)


def test_a_class_that_practises_gives_no_time(monkeypatch):
    owner = Class()
    owner.where = {"platform": "simulated", "device_kind": "cpu", "devices": 64}
    monkeypatch.setattr("widgets.explorers.on_device.the_class", lambda: owner)
    explorer = pressed(run(), "device")
    assert cell(explorer, "seconds", "measured") is None and "simulated devices" in explorer.top.progress["text"]
    assert "no hardware's speed" in explorer.sentence and "NOT as planned" not in explorer.sentence
    assert not explorer.value["old"]


def test_a_disk_that_takes_no_more_is_said_and_loses_nothing_on_show(monkeypatch):
    pretend(monkeypatch, RunExplorer)

    def full(record):
        raise OSError("no space left")

    monkeypatch.setattr(history, "append", full)
    explorer = pressed(run(), "device")
    assert "no space left" in explorer.sentence and cell(explorer, "seconds", "measured")["value"] == 3e-3


def test_picture_and_table_say_the_same_and_can_be_kept():
    explorer = run()
    assert ET.fromstring(explorer.svg()).tag.endswith("svg")
    said = {row[0]: row[1:] for row in explorer._shown.table}
    assert said["memory held"][0].endswith("[modelled]") and said["one launch"][3].endswith("[published]")
    still = explorer.still(explorer._shown)
    assert "mw-side" in still and "<script" not in still
    again = run(**json.loads(json.dumps(explorer.state)))
    assert again.value["cells"] == explorer.value["cells"] and again.code == explorer.code
    explorer.close()
