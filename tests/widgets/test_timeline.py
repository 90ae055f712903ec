"""`timeline` without a page: what it draws and says, when it compiles, how it stops, and what records give."""

from __future__ import annotations

import json
import threading
import time
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest
from compiling.timelines import US, Pretended, answer, layer, pretend

import mtfcore as mtf
from mtfcore.errors import DeviceError
from widgets import timeline
from widgets.explorers import compiling as compiling_home
from widgets.explorers import timeline as home
from widgets.explorers import timeline_answers, timeline_inputs
from widgets.explorers.compiling import Compiling, Stopped
from widgets.explorers.timeline_answers import Answer, said
from widgets.figures.timeline import bars_of, panel, places
from widgets.figures.timeline_svg import bars_svg, ticks
from widgets.figures.timeline_words import bar_text, heading


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    monkeypatch.setattr(timeline_answers, "recorded", dict)
    monkeypatch.setattr(timeline_inputs, "recorded", dict)
    monkeypatch.setattr(home, "recorded", dict)
    return pretend(monkeypatch)


def open_(**settings: object):
    explorer = timeline(**settings)
    explorer.queue.join(10)
    return explorer


# ---- figures


def test_bars_stand_at_their_times_in_their_rows():
    one = panel("plain", layer())
    root = ET.fromstring(bars_svg([one]))
    bars = [each for each in root.iter() if each.get("data-bar")]
    assert [bar.get("data-kind") for bar in bars] == ["all_gather", "wait", "compute", "permute"]
    boxes = {bar.get("data-kind"): [box.attrib for box in bar if box.get("class") == "mw-mark"] for bar in bars}
    assert [(box["x"], box["width"]) for box in boxes["compute"]] == [("28.5714%", "71.4286%")]
    heights = {kind: float(found[0]["height"]) for kind, found in boxes.items()}
    assert heights["permute"] < heights["all_gather"] / 2 + 2  # one way only: half of its row
    assert places(("x →", "x ←", "y →")) == [("x", ""), ("y", "→")]
    assert boxes["wait"][0]["fill"] == "url(#mwWait)"


def test_what_is_busy_for_a_part_is_filled_as_high():
    one = answer("plain").lines["step"]
    root = ET.fromstring(bars_svg([panel("plain", one)]))
    tall = {bar.get("data-kind"): float(next(iter(bar)).get("height")) for bar in root.iter() if bar.get("data-bar")}
    assert tall["wait"] / (tall["wait"] + tall["loop"]) == pytest.approx(40 / 140, abs=0.2)


def test_a_bar_says_where_it_comes_from_and_what_hides_it():
    one = panel("plain", layer(), said)
    gather, wait, compute, permute = (bar_text(one, bar) for bar in one["bars"])
    assert gather.startswith("all-gather gather.1 over x, step 3.1 (all-gather over x of E): 40 µs [modelled]")
    assert gather.endswith("nothing hides it: the device waits") and "waiting for gather.1, step 3.1" in wait
    assert "step 3.2 (E → F: x W_in or gate" not in compute and "step 3.2 (x W_in or gate: E → F)" in compute
    assert "105,000 cycles [compiled], 100 µs [modelled] from compiled schedule, 71 % of what is shown" in compute
    assert permute.endswith("all of it hidden behind fusion.1")
    half = panel("looped", layer(rings=True))
    assert bar_text(half, half["bars"][0]).endswith("20 µs of it hidden behind fusion.0, 20 µs waited for")
    assert heading(one) == "plain: one layer of 4, 140 µs, 29 % waiting (modelled from compiled schedule)"


def test_ticks_are_round_and_few():
    assert ticks(140 * US) == pytest.approx([0, 50 * US, 100 * US]) and len(ticks(0.93)) <= 7


# ---- compiling


def test_it_compiles_when_opened_and_on_release_and_keeps_answers(compiler):
    explorer = open_()
    assert compiler.asked == [("plain", "v4:2x2x2"), ("looped", "v4:2x2x2")]
    explorer.top.press({"batch": 8}, released=False)
    explorer.queue.join(10)
    assert len(compiler.asked) == 2 and explorer.value["stale"] and "mw-stale" in explorer.stage._dom_classes
    assert explorer.value["panels"][0]["bars"], "the picture before stays"
    explorer.top.press({"batch": 8}, released=True)
    explorer.queue.join(10)
    assert len(compiler.asked) == 4 and not explorer.value["stale"]
    assert "mw-stale" not in explorer.stage._dom_classes
    explorer.top.press({"batch": 1})
    explorer.top.press({"schedule": "plain"})
    explorer.top.press({"window": "step"})
    explorer.queue.join(10)
    assert len(compiler.asked) == 4 and explorer.value["panels"][0]["which"] == "step"
    open_(batch=8)
    assert len(compiler.asked) == 4


def test_moving_in_the_picture_is_one_event(compiler):
    explorer, events = open_(window="step"), []
    explorer.observe(events.append, "state")
    explorer.picture.open_loop("layer")
    assert len(events) == 1 and explorer.value["panels"][0]["which"] == "layer"
    explorer.queue.join(10)


def test_stop_cancels_and_compile_asks_again(compiler):
    compiler.gate.clear()
    explorer = timeline()
    wait_for(lambda: compiler.asked)
    assert explorer.busy and "not compiled yet" in explorer.sentence
    explorer.top.press({"stop": None})
    explorer.queue.join(10)
    assert not explorer.busy and len(compiler.asked) == 1 and explorer.top.progress["text"] == "stopped"
    compiler.gate.set()
    explorer.top.press({"run": None})
    explorer.queue.join(10)
    assert explorer.value["panels"][1]["bars"] and explorer.kind == "ok"


def test_the_progress_line_says_how_long_it_has_taken(compiler, monkeypatch):
    monkeypatch.setattr(compiling_home, "BEAT", 0.02)
    compiler.gate.clear()
    explorer = timeline(schedule="plain")
    wait_for(lambda: explorer.top.progress["text"] == "compiling plain for v4:2x2x2, 0 s")
    assert explorer.busy
    explorer._waits("waiting for others")
    wait_for(lambda: explorer.top.progress["text"] == "waiting for others, 0 s")
    compiler.gate.set()
    explorer.queue.join(10)
    assert not explorer.busy and not any("beat" in thread.name for thread in threading.enumerate())


def test_newer_settings_end_the_compilation_of_older_ones(compiler):
    compiler.gate.clear()
    explorer = timeline(schedule="plain")
    wait_for(lambda: compiler.asked)
    explorer.top.press({"slice": "v4:1x2x2"})
    wait_for(lambda: len(compiler.asked) == 2)
    compiler.gate.set()
    explorer.queue.join(10)
    assert compiler.asked == [("plain", "v4:2x2x2"), ("plain", "v4:1x2x2")]
    assert mtf.Mesh(explorer.state["mesh"]).size == 4 and explorer.kind == "ok" and explorer.value["panels"][0]["bars"]
    assert not explorer.value["stale"]


def wait_for(test, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.005)


def test_stop_reaches_the_compiler_and_only_the_own_request(monkeypatch):
    running, ended = threading.Event(), []

    def compile_(program, topology, *, told, stop):
        running.set()
        assert stop.wait(10)
        raise DeviceError("the compilation was stopped")

    monkeypatch.setattr(compiling_home.mtf, "compile", compile_)
    mine, other = Compiling(), Compiling()

    def work() -> None:
        with pytest.raises(Stopped):
            mine.report(None, "v4:2x2x2")
        ended.append(True)

    worker = threading.Thread(target=work)
    worker.start()
    assert running.wait(10)
    other.stop()
    worker.join(0.05)
    assert not ended
    mine.stop()
    worker.join(10)
    assert ended == [True]
    with pytest.raises(Stopped):
        mine.report(None, "v4:2x2x2")


# ---- what it says


def test_the_sentence_says_time_share_and_effect(compiler):
    says = open_().sentence
    assert says.startswith("One step takes 560 µs [modelled] from compiled schedule; 29 % [modelled] of it waits")
    assert "Looped it takes 560 µs [modelled], 1.00 times as fast [modelled]: 80 µs [modelled] less waiting" in says
    assert "blocks cost 80 µs [modelled] more computing" in says
    compiler.answers["looped"] = Answer(answer("plain").lines, rings=0)
    assert "rings pay nowhere here" in open_(batch=2).sentence


def test_the_compilers_refusal_is_the_sentence(compiler):
    compiler.answers["plain"] = Answer(says="the compiler refuses it, needs 50 GiB of 32 GiB [compiled]")
    explorer = open_(schedule="plain")
    assert explorer.sentence == "Plain: the compiler refuses it, needs 50 GiB of 32 GiB [compiled]."
    assert explorer.kind == "ok" and explorer.picture.drawing["says"] == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"partition": "ws3d-heads"}, "did you mean 'ws2d-heads'"), ({"batch": 9999}, "it goes from 1 to 4,096"),
     ({"topology": "h100:1"}, "libtpu compiles for"), ({"window": "day"}, "window 'day'"),
     ({"mesh": "x:2 y:2 z:1"}, "has 4 devices, slice v4:2x2x2 has 8"), ({"record": "none"}, "no record 'none'"),
     ({"partition": "wg_xyz-batch"}, "batch 1")],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_the_line(compiler, settings, words):
    explorer = open_(**settings)
    assert explorer.kind == "refused" and words in explorer.sentence, explorer.sentence
    assert compiler.asked == [] and len(explorer.top.row["items"]) > 5


def test_mesh_and_slice_move_together(compiler):
    explorer = open_(schedule="plain")
    explorer.top.press({"axis.x": 4})
    assert mtf.topology(explorer.state["topology"]).devices == 16
    explorer.top.press({"topology": "v4:2x2x1"})
    assert mtf.Mesh(explorer.state["mesh"]).size == 4 and explorer.kind == "ok"
    explorer.top.press({"phase": "decode"})
    assert explorer.state["partition"] == "ws2d-batch"
    explorer.queue.join(10)


def test_without_a_compiler_it_says_how_to_get_it(compiler, monkeypatch):
    monkeypatch.setattr(home, "has_compiler", lambda: False)
    explorer = open_()
    assert "pip install libtpu" in explorer.sentence and compiler.asked == [] and explorer.kind == "ok"


def test_records_are_shown_without_compiling(compiler, monkeypatch):
    names = {"palm/decode": {kind: Answer({"layer": answer(kind).lines["layer"]}) for kind in ("plain", "looped")}}
    for module in (home, timeline_inputs, timeline_answers):
        monkeypatch.setattr(module, "recorded", lambda: names)
    monkeypatch.setattr(home, "has_compiler", lambda: False)
    explorer = open_(record="palm/decode")
    assert len(bars_of(explorer.value["panels"])) == 9 and "pip install" not in explorer.sentence
    explorer.top.press({"window": "step"})
    assert explorer.sentence.startswith("Show 'step' is not possible here") and explorer.state["window"] == "layer"
    menu = next(item for item in explorer.top.row["items"] if item["name"] == "window")
    assert menu["off"] == ("step",) and menu["options"][1] == ("step", "the whole step (not kept)")
    asked = open_(record="palm/decode", window="step")
    assert asked.sentence.startswith("Plain: nothing kept of the step")
    asked.top.press({"record": "palm/decode", "schedule": "both"})
    assert asked.state["window"] == "layer"
    explorer.top.press({"batch": 2})
    assert explorer.state["record"] == "" and "pip install" in explorer.sentence
    explorer.queue.join(10)


def test_a_record_brings_its_settings_to_the_controls():
    first, *_, last = timeline_answers.recorded()
    explorer = open_(record=first)
    for name in (first, last):
        explorer.top.press({"record": name})
        state, (model, phase, request, partition, weights, slice_, _) = explorer.state, name.split("/")
        assert (state["model"].split()[0], state["topology"], state["weights"]) == (model, slice_, weights)
        assert (state["phase"], state["partition"]) == (phase, partition)
        assert state["batch"] == int(request.replace("x", "@").split("@")[0])
        assert explorer.kind == "ok" and explorer.code.endswith(f"timeline(record={name!r})")


def test_records_are_read_and_paired(monkeypatch):
    def record(name, form, facts):
        inner = {"looped": form, "largest": 3, "axes": ""} if form else {}
        return SimpleNamespace(params={"name": name, "params": inner}, facts=facts, words=lambda: "compiled by …")

    lines = [
        record("a/b", "", {"timeline": layer().to_json()}),
        record("a/b-3", "latency", {"timeline": layer(True).to_json()}),
        record("c", "", {}), record("d", "", {"timeline": {"timeline": 99}}),
    ]  # fmt: skip
    records = pytest.importorskip("tpu_runs.records")
    monkeypatch.setattr(records, "committed", lambda: lines)
    found = timeline_answers.recorded.__wrapped__()
    assert list(found) == ["a/b"] and set(found["a/b"]) == {"plain", "looped"}
    assert found["a/b"]["plain"].lines["layer"].seconds == pytest.approx(140 * US)


def test_any_program_can_be_shown(compiler):
    @mtf.function
    def product(x: "B E", w: "E F"):
        return mtf.einsum(x, w, out="B F")

    own = mtf.plan(product, "x:2 y:2", "B:x F:y", sizes="B:8 E:8 F:8")
    explorer = open_(program=own, topology="v5e:2x2")
    assert compiler.asked == [("plain", "v5e:2x2"), ("looped", "v5e:2x2")] and explorer.kind == "ok"
    assert "timeline(program=product, topology='v5e:2x2'" in explorer.code
    assert explorer.value["panels"][0]["rows"] == ["compute", "x", "y"]
    explorer.top.press({"topology": "v5e:2x4"})
    assert explorer.kind == "refused" and "has 4 devices, slice v5e:2x4 has 8" in explorer.sentence
    assert [offer.label for offer in explorer.offers] == ["slice v5e:2x2"] and len(compiler.asked) == 2


def test_call_table_still_and_file(compiler):
    explorer = open_(batch=2)
    scope: dict = {}
    exec(explorer.code.replace("\ntimeline(", "\nagain = timeline("), scope)
    assert scope["again"].value == explorer.value
    json.dumps(explorer.value)
    head, *rows = explorer._shown.table
    assert len(rows) == len(bars_of(explorer.value["panels"])) and all(len(row) == len(head) for row in rows)
    still = explorer._still_text()
    assert still.count('class="mw-bar"') == len(rows) and len(still) < 60_000
    assert len(list(ET.fromstring(explorer.svg()).iter("{http://www.w3.org/2000/svg}svg"))) >= 3
