"""The writing model without a browser: what is shown is what the engine did, and nothing is lost between turns."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import mtfcore as mtf
from mtfcore.errors import DeviceError, LayoutError
from mtfcore.model.files import known
from widgets import generate
from widgets.explorers import generate_inputs, generate_prices
from widgets.explorers.generate_inputs import REAL, START, model_here, served, ways
from widgets.figures.generate_html import block_words, picture

SMALL = {"model": "untrained", "mesh": "x:2 y:2", "tokens": 5, "slots": 4}


def small(**more):
    explorer = generate(**{**SMALL, **more})
    explorer.queue.join(30)
    return explorer


def write(explorer, prompt=""):
    if prompt:
        explorer.top.press({"prompt": prompt})
    explorer.top.press({"run": True})
    explorer.queue.join(100)
    explorer.check()
    return explorer.writer.facts


@pytest.fixture(scope="module")
def held():
    """A conversation that has had one turn, for tests that go on from there."""
    explorer = small(others=1)
    write(explorer, "Hello")
    return explorer


# ---- before anything runs


def test_it_is_planned_and_priced_without_jax():
    source = (
        "from widgets import generate; e = generate(model='untrained'); e.queue.join(60); assert 'ws2d' in e.sentence"
    )
    quiet = "import sys; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", f"{source}\n{quiet}"], check=True, timeout=100)


def test_the_sentence_says_what_write_does_and_what_was_padded():
    explorer = small(mesh="x:2 y:2 z:2")
    assert "reads under ws2d-heads and writes under ws2d-heads" in explorer.sentence
    assert "heads 9 → 12, key/value heads 3 → 4" in explorer.sentence and "mean nothing" in explorer.sentence
    assert 'data-state="planned"' in explorer.picture.html and "Press Write." in explorer.picture.html
    explorer.top.press({"decode": "auto", "prefill": "auto"})
    explorer.queue.join(30)
    assert explorer.sentence.count("(auto: the cheapest, modelled)") == 2


def test_every_partition_stands_in_the_list_and_the_impossible_say_why():
    options = dict(next(c for c in small().controls({**START, **SMALL}) if c.name == "decode").options)
    assert len(options) == 11 and options["ws2d-batch"] == "ws2d-batch"
    assert ways("untrained", "x:2 y:2 z:2", 4, "decode")["wg_xyz-heads"].startswith("batch 4 does not divide over")
    eight = dict(next(c for c in generate_inputs.controls({**START, "model": "untrained"}, False)
                      if c.name == "decode").options)  # fmt: skip
    assert eight["wg_xyz-heads"] == "wg_xyz-heads (batch 4 does not divide)"


@pytest.mark.parametrize(
    ("settings", "words", "offer"),
    [
        ({"mesh": "x:2 y:2 z:2", "decode": "wg_xyz-batch"}, "batch 4 does not divide over x:2 z:2 y:2", "8 slots"),
        ({"decode": "ws1d-heads"}, "store the weights in different places", "decode auto"),
        ({"decode": "ws3d"}, "decode is 'ws3d'; legal here: 'auto', 'ws1d-heads'", ""),
        ({"mesh": "rows:2"}, "these partitions lie on mesh axes x, y and z", ""),
        ({"mesh": "x:128"}, "has 128 devices; a run here has up to 64", ""),
        ({"slots": 2, "others": 2}, "so at most 1 others fit", "3 slots"),
        ({"tokens": 0}, "tokens is 0; it goes from 1 to 900", "use tokens 1"),
        ({"temperature": -1.0}, "temperature is -1.0", ""),
        ({"model": "gpt"}, "model is 'gpt'", ""),
        ({"chip": "v9"}, "v9", ""),
        ({"on": "moon"}, "on is 'moon'", ""),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(settings, words, offer):
    explorer = small()
    explorer.state = {**explorer.state, **settings}
    assert explorer.kind == "refused" and words in explorer.sentence
    assert not offer or offer in [each.label for each in explorer.offers]
    explorer.top.press({"run": True})  # nothing runs
    assert explorer.writer.chat is None and not explorer.queue.busy
    for n, each in enumerate(explorer.offers):
        if each.label == offer:
            explorer.bottom.asked = {"offer": n}
            assert explorer.kind == "ok"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("mesh", ["x:1000000 y:1000000", "batch:64 io:512 hidden:2048"])
def test_a_mesh_of_any_size_is_refused_at_once(mesh):
    explorer = generate(model="untrained")
    explorer.state = {**explorer.state, "mesh": mesh}
    assert explorer.kind == "refused" and "a run here has up to 64" in explorer.sentence
    explorer.state = {"model": "untrained"}
    assert explorer.kind == "ok"
    explorer.close()


def test_without_the_real_model_the_tiny_one_stands_in(monkeypatch, tmp_path):
    assert model_here("auto") in (REAL, "untrained")
    monkeypatch.setattr(known, "models_folder", lambda: tmp_path)
    assert model_here("auto") == "untrained"
    explorer = small(model=REAL)
    assert "python -m mtfcore.model fetch" in explorer.sentence
    explorer.bottom.asked = {"offer": 0}
    assert explorer.kind == "ok"


def test_what_is_modelled_are_the_engine_s_own_programs(held):
    state = {**held.state, "prefill": "ws2d-heads", "decode": "ws2d-heads"}
    modelled = generate_prices.modelled(generate_prices.asked_of(state))
    plans = held.writer.chat.engine.plans
    assert modelled["token_by_axis"] == plans["decode"].link_bytes().by_axis
    assert modelled["token_seconds"] == mtf.price(plans["decode"], "v4:1x2x2").seconds
    assert modelled["chunk_seconds"] == mtf.price(plans["prefill"], "v4:1x2x2").seconds
    odd = generate_prices.modelled(generate_prices.asked_of({**state, "mesh": "x:3 y:1 z:1", "model": "untrained"}))
    assert "token_seconds" not in odd


def test_padding_is_what_the_chat_does(held):
    own, wide = served("untrained", "x:2 y:2 z:2", 4)
    assert (own.heads, wide.heads, wide.kv_heads) == (9, 12, 4)
    assert held.writer.chat.engine.cfg == served("untrained", SMALL["mesh"], 4)[1]


# ---- turns


def test_a_turn_is_shown_as_it_happens(held, monkeypatch):
    explorer, shown, phases = held, [], []
    explorer.top.press({"new": True})
    explorer.picture.observe(lambda change: shown.append(change.new), "html")
    monkeypatch.setattr(explorer.queue._pacer, "per_second", 1e9)  # every launch
    tell = explorer.writer._tell
    monkeypatch.setattr(
        explorer.writer, "_tell", lambda *args: (tell(*args), phases.append(explorer.writer.facts["phase"]))
    )
    facts = write(explorer, "Hello")
    assert set(phases) == {"", "prefill", "give", "decode"}
    assert phases.index("prefill") < phases.index("give") < len(phases) - 1
    assert facts["state"] == "finished" and facts["log"][0] == ("you", "Hello")
    assert len(facts["text"]) == facts["phases"]["give"]["tokens"] + facts["phases"]["decode"]["tokens"] == 5
    assert explorer.state["prompt"] == "" and "mw-now-writing" in "".join(shown)
    assert "prompt='Hello'" in explorer.code
    assert "Written. " in explorer.sentence and explorer.top.progress["text"] == "the answer is written"


def test_bytes_are_those_of_the_programs_that_ran(held):
    sent = held.writer.chat.engine.launches.sent
    facts = held.writer.facts
    assert facts["so_far"] == {axis: n for axis, n in sent.items() if axis in facts["so_far"]}
    phases = held.writer.chat.sent.by_phase.values()
    assert sum(sum(phase.values()) for phase in phases) == sum(sent.values())
    for axis, n_bytes in facts["a_token"].items():
        assert f'data-axis="{axis}" data-token-bytes="{n_bytes:.0f}" data-bytes="{facts["so_far"][axis]:.0f}"' in (
            held.picture.html
        )


def test_a_conversation_goes_on_while_partition_and_mesh_change():
    explorer = small(others=2)
    write(explorer, "Hello")
    explorer.top.press({"decode": "ws2d-batch"})
    facts = write(explorer, "And then?")
    assert "the kept tokens moved" in facts["log"][2][1] and facts["moved"] > 0
    assert facts["cache"]["blocks"] == 4 and facts["cache"]["axes"] == "xy"
    whose = [slot["who"] for slot in facts["cache"]["slots"]]
    assert whose.count("you") == 1 and facts["cache"]["slots"][whose.index("you")]["kept"] > 20
    assert 'data-block="3"><div>devices x=1 y=1</div>' in explorer.picture.html
    explorer.top.press({"axis.y": 1})
    facts = write(explorer, "And here?")
    assert [who for who, _ in facts["log"]] == ["you", "model", "note", "you", "model", "note", "you", "model"]
    assert "will be read again" in facts["log"][5][1] and facts["mesh"] == [["x", 2], ["y", 1]]
    assert facts["phases"]["prefill"]["tokens"] > 40  # all of it
    assert len(facts["others"]) == 2
    words = "".join(cell for row in explorer._shown.table for cell in row)
    assert "turn 8: model" in words and "And here?" in words


def test_it_stops_at_once_with_nothing_lost_and_two_runs_cannot_overlap(held):
    explorer, begun = held, threading.Event()
    explorer.top.press({"new": True})
    explorer.top.press({"tokens": 800, "prompt": "Once"})
    explorer.picture.observe(lambda change: begun.set() if 'mw-now" data-phase="decode' in change.new else None, "html")
    explorer.top.press({"run": True})
    assert begun.wait(60)
    explorer.top.press({"prompt": "Twice", "run": True})
    assert explorer.state["prompt"] == "Twice"  # not taken: one run at a time
    explorer.top.press({"stop": True})
    explorer.queue.join(30)
    first = explorer.writer.facts
    assert first["state"] == "stopped" and 0 < len(first["text"]) < 800
    assert "Stopped; what was written stays." in explorer.sentence
    explorer.top.press({"tokens": 5})
    facts = write(explorer)
    assert facts["log"][:2] == first["log"][:2] and facts["log"][2] == ("you", "Twice") and len(facts["text"]) == 5


def test_settings_refused_while_it_writes_leave_the_turn_in_sight(held):
    explorer, begun = held, threading.Event()
    before = explorer.state["decode"]
    explorer.top.press({"new": True})
    explorer.top.press({"tokens": 800, "prompt": "Once more"})
    explorer.picture.observe(lambda change: begun.set() if 'mw-now" data-phase="decode' in change.new else None, "html")
    explorer.top.press({"run": True})
    assert begun.wait(60)
    explorer.top.press({"decode": "ws1d-heads", "prefill": "ws2d-heads"})
    assert "take ws1d for both or for neither" in explorer.sentence
    explorer.top.press({"stop": True})
    explorer.queue.join(30)
    assert explorer.kind == "refused" and 'data-state="stopped"' in explorer.picture.html
    explorer.top.press({"decode": before, "tokens": 5})
    assert explorer.kind == "ok" and 'data-state="stopped"' in explorer.picture.html


def test_an_empty_prompt_and_a_full_conversation_are_said_kindly(held):
    held.top.press({"prompt": "", "run": True})
    assert held.kind == "refused" and held.sentence.startswith("Say something first")
    held.bottom.asked = {"offer": 0}
    assert held.kind == "ok" and held.state["prompt"]
    held.top.press({"prompt": "x" * 1100, "run": True})
    with pytest.raises(LayoutError):
        held.queue.join(30)
    assert "there is room for 1,024: begin a new one" in held.sentence
    assert held.state["prompt"] == "x" * 1100  # nothing that was typed is lost
    facts = write(held, "Still here?")
    assert facts["log"][-2] == ("you", "Still here?") and "x" * 1100 not in str(facts["log"])


def test_forgetting_begins_again(held):
    held.top.press({"new": True})
    assert held.writer.facts is None and 'data-state="planned"' in held.picture.html
    assert write(held, "Hello")["log"][0] == ("you", "Hello")


def test_on_attached_devices_it_says_that_there_are_none():
    explorer = small(on="attached")
    explorer.top.press({"run": True})
    with pytest.raises(DeviceError):
        explorer.queue.join(60)
    assert "no TPU or GPU is attached" in explorer.sentence and explorer.kind == "refused"


# ---- figures


def test_what_is_said_is_text_and_never_markup(held):
    facts = write(held, "<b>&<script>alert(1)</script>")
    assert "<script>" not in held.picture.html and "&lt;script&gt;" in held.picture.html
    assert facts["log"][-2][1] == "<b>&<script>alert(1)</script>"


def test_blocks_of_slots_are_named_by_their_devices():
    sizes = {"x": 2, "y": 4}
    assert block_words("", 0, sizes) == "all devices, each its heads of every slot"
    assert [block_words("xy", n, sizes) for n in (0, 3, 5)] == [
        "devices x=0 y=0", "devices x=0 y=3", "devices x=1 y=1",
    ]  # fmt: skip


def test_time_here_is_never_hardware_s(held):
    assert "here: simulated, no hardware speed" in held.picture.html
    text = picture({**held.value, "on": "attached"})
    assert "simulated" not in text and "here, attached" in text
    assert not {"tokens/s", "tokens a second"} & {text}


def test_the_public_call_names_its_settings():
    explorer = generate("Hi", "x:2", model="untrained", others=1)
    call = "generate(prompt='Hi', mesh='x:2', model='untrained', others=1)"
    assert explorer.code == f"from widgets import generate\n{call}"
