"""The traffic explorer without a browser: facts of every hop, sentences, refusals, and the real collective."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore import schedules
from mtfcore.errors import DeviceError, LayoutError
from mtfcore.traffic import link_bytes
from widgets import traffic
from widgets.explorers import traffic as module
from widgets.figures.traffic import NAMES, carried, planned, traffic_facts
from widgets.figures.traffic_places import places
from widgets.figures.traffic_run import arrays_for, run_facts, values, verdict
from widgets.figures.traffic_svg import along, traffic_svg
from widgets.figures.traffic_words import END, MEANS, table, why

MESHES = {"x:8": (("x", 8),), "x:2 y:4": (("x", 2), ("y", 4)), "x:2 y:2 z:2": (("x", 2), ("y", 2), ("z", 2))}
CASES = list(itertools.product(NAMES, MESHES, schedules.WAYS))


def ran(explorer):
    """The explorer after its Run button was pressed and the run has ended."""
    explorer.top.press({"run": True})
    explorer.queue.join(60)
    explorer.check()
    return explorer


# ---- facts


@pytest.mark.parametrize(("kind", "mesh", "way"), CASES)
def test_facts_are_the_schedules(kind, mesh, way):
    facts = traffic_facts(kind, MESHES[mesh], way, 1 << 20)
    plan = schedules.schedule(kind, [size for _, size in MESHES[mesh]], way, 1 << 20)
    assert facts["steps"] == plan.steps == len(facts["moves"])
    assert len(facts["held"]) == len(facts["counts"]) == plan.steps + 1
    so_far = carried(facts, facts["steps"])
    ends = {tuple(link): sent for link, sent in zip(facts["links"], so_far, strict=True)}
    assert ends == pytest.approx({tuple(link): float(sent) for link, sent in plan.link_bytes.items()})
    assert max(so_far) == pytest.approx(facts["busiest"])
    assert facts["sent"] == pytest.approx(float(plan.mean_sent_bytes))
    if kind in ("all_gather", "reduce_scatter", "all_reduce"):
        assert facts["sent"] == facts["closed"] == link_bytes(kind, 1 << 20, 8)


@pytest.mark.parametrize("way", schedules.WAYS)
def test_what_devices_hold_at_the_end_is_what_the_collective_means(way):
    last = {kind: traffic_facts(kind, (("x", 8),), way, 8)["held"][-1] for kind in NAMES}
    assert last["all_gather"] == last["all_reduce"] == last["all_to_all"] == ["z" * 8] * 8
    assert last["reduce_scatter"] == ["0" * n + "z" + "0" * (7 - n) for n in range(8)]
    assert last["permute"] == ["0" * ((n - 1) % 8) + "z" + "0" * (7 - (n - 1) % 8) for n in range(8)]
    assert last["halo_exchange"] == ["0" * 8, *last["permute"][1:]]


def test_addends_are_seen_to_grow():
    held = traffic_facts("reduce_scatter", (("x", 4),), "ring", 4)["held"]
    blocks = [[int(state[device][device], 36) for state in held] for device in range(4)]
    assert blocks == [[9, 9, 9, 35]] * 4  # a quarter each, until the other three arrive as one sum


def test_bytes_scale_and_steps_are_shared():
    small, large = (traffic_facts("all_gather", (("x", 8),), "ring", n) for n in (1, 1 << 30))
    assert small["moves"] is large["moves"]
    assert large["sent"] == 7 << 30
    assert carried(large, 3) == [3 << 30] * 8


def test_a_block_that_does_not_divide_keeps_its_exact_bytes():
    facts = traffic_facts("all_reduce", (("x", 3),), "ring", 10)
    assert facts["piece_bytes"] == pytest.approx(10 / 3)
    assert facts["sent"] == pytest.approx(40 / 3)


# ---- picture


@pytest.mark.parametrize("way", schedules.WAYS)
@pytest.mark.parametrize("mesh", [*MESHES, "x:64", "x:4 y:4 z:4", "x:2"])
def test_devices_stand_apart_and_within_the_picture(mesh, way):
    facts = traffic_facts("all_gather", mtf.Mesh(mesh).axes, way, 8)
    picture = places(facts)
    width, height = picture["box"]
    for (x, y), (u, v) in itertools.combinations(picture["nodes"], 2):
        assert abs(x - u) >= width or abs(y - v) >= height
    on_links = (along(points, n / 4) for points in picture["links"] for n in range(5))
    for x, y in itertools.chain(picture["nodes"], on_links):
        assert 0 <= x <= picture["width"] and 0 <= y <= picture["height"]


def test_the_drawing_says_what_the_facts_say():
    facts = traffic_facts("reduce_scatter", (("x", 8),), "ring", 1 << 20)
    root = ElementTree.fromstring(traffic_svg(facts, places(facts), 2))
    keys = ("data-held", "data-bytes", "data-label")
    found = {key: [e.attrib[key] for e in root.iter() if key in e.attrib] for key in keys}
    assert found["data-held"] == facts["held"][2]
    assert [float(sent) for sent in found["data-bytes"]] == carried(facts, 2)
    assert found["data-label"] == [f"+{label}" for _, _, label, _ in facts["moves"][1]]


def test_64_devices_are_drawn_as_gauges():
    facts = traffic_facts("all_reduce", (("x", 4), ("y", 4), ("z", 4)), "two_way", 1 << 20)
    root = ElementTree.fromstring(traffic_svg(facts, places(facts), 3))
    assert len([e for e in root.iter() if "data-device" in e.attrib]) == 64
    assert not [e for e in root.iter() if "data-held" in e.attrib]
    assert len(json.dumps(facts)) < 400_000


def test_the_still_picture_of_many_devices_has_few_elements():
    explorer = traffic("all_gather", mesh="x:4 y:4 z:4", way="two_way", hop=2)
    still = explorer.still(explorer._shown)
    assert still.count("<path") < 40
    assert still.count("h0") == 2 * len(explorer.value["moves"][1])  # each message, edged
    assert len(still) < len(explorer.svg()) / 2


# ---- words


def test_the_sentence_says_what_happens_and_why():
    explorer = traffic(hop=3)
    assert explorer.sentence == (
        "Step 3 of 7: each device passes on what it received in the step before (first: its own block), and keeps it. "
        "8 messages at once, up to 1 MiB [modelled] each: device 0 sends block 6 to device 1, which keeps it. "
        "The busiest link has carried 3 MiB [modelled] so far."
    )
    explorer.state = {**explorer.state, "hop": 7}
    assert explorer.sentence.endswith("Now every device has all 8 blocks.")
    explorer.state = {**explorer.state, "hop": 0}
    assert "In 7 steps one device sends 7 MiB [modelled]" in explorer.sentence


def test_both_halves_of_an_all_reduce_have_their_own_reason():
    facts = traffic_facts("all_reduce", (("x", 8),), "ring", 1 << 20)
    assert "adds its own addend" in why(facts, 7)
    assert "now they are gathered" in why(facts, 8)


def test_passing_on_for_others_is_told_apart():
    words = why(traffic_facts("all_to_all", (("x", 8),), "ring", 1 << 20), 0)
    assert "896 KiB [modelled] of its own, and with what it passes on 3.5 MiB [modelled] on average" in words


@pytest.mark.parametrize(("kind", "mesh", "way"), CASES)
def test_every_hop_has_words_and_a_table(kind, mesh, way):
    facts = traffic_facts(kind, MESHES[mesh], way, 1 << 20)
    assert why(facts, 0).startswith(f"Before: {MEANS[kind]}")
    assert END[kind].format(n=8)[1:] in why(facts, facts["steps"])
    for hop in range(facts["steps"] + 1):
        assert "[modelled]" in why(facts, hop)
        assert len(table(facts, hop)) == 1 + 8 + len(facts["links"])


def test_a_group_of_one_sends_nothing():
    explorer = traffic(mesh="x:1")
    assert explorer.sentence == "A group of one: all-gather has nothing to send."
    assert ran(explorer).result.value["same"]


# ---- controls


def test_controls_move_the_picture():
    explorer = traffic()
    explorer.top.press({"axis.x": 4}, released=False)
    assert (explorer.state["mesh"], explorer.value["steps"]) == ("x:4", 3)
    explorer.top.press({"n_axes": "2"})
    assert explorer.state["mesh"] == "x:4 y:2"
    explorer.top.press({"way": "two_way"})
    assert explorer.value["steps"] == 3
    explorer.top.press({"order": "in_turn"})
    assert explorer.state["at_once"] is False
    explorer.top.press({"kind": "all_to_all"})
    assert explorer.value["kind"] == "all_to_all"
    assert explorer.kind == "ok"


def test_a_hop_behind_the_end_is_the_last_one():
    explorer = traffic("permute", hop=14)
    assert explorer.value["hop"] == explorer.picture.hop == 1
    events = []
    explorer.observe(events.append, "state")
    explorer.state = {**explorer.state, "hop": 99}
    assert len(events) == 1 and explorer.picture.hop == 1
    explorer.picture.hop = 0
    assert explorer.state["hop"] == 0


@pytest.mark.parametrize("change", [{"kind": "permute"}, {"way": "line"}, {"axis.x": 4}, {"n_axes": 2}])
def test_another_schedule_begins_at_its_beginning(change):
    explorer = traffic("all_reduce", hop=14)
    assert explorer.value["hop"] == explorer.picture.hop == 14
    explorer.top.press({"n_bytes": 64})
    assert explorer.value["hop"] == 14
    explorer.top.press(change)
    assert explorer.value["hop"] == explorer.picture.hop == 0


def test_the_page_and_the_kernel_share_the_hop():
    explorer = traffic()
    explorer.picture.hop = 5  # what the page does
    assert explorer.state["hop"] == 5
    assert explorer.sentence.startswith("Step 5 of 7")
    before = explorer.picture.drawing
    explorer.top.press({"n_bytes": 1 << 10})
    assert explorer.picture.drawing is before or explorer.picture.drawing == before
    assert explorer.picture.scale == {"piece_bytes": 1024, "busiest": 7 * 1024}


def test_the_code_gives_the_same_picture_again():
    explorer = traffic("all_reduce", mesh="x:4 y:4", way="two_way", hop=2, n_bytes=64)
    scope: dict = {}
    exec(explorer.code.replace("\ntraffic(", "\nagain = traffic("), scope)
    assert scope["again"].state == explorer.state


# ---- refusals


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "all_gathr"}, "unknown kind; did you mean 'all_gather'? legal here: 'all_gather', 'reduce_scatter'"),
        ({"way": "rings"}, "unknown way 'rings'; did you mean 'ring'?"),
        ({"mesh": "x:0"}, "x has size 0; a size is at least 1"),
        ({"mesh": "x:8 x:2"}, "axis 'x' stands 2 times; names must differ"),
        ({"mesh": "x:128"}, "128 devices on 1 axis; this picture draws up to 64 devices on up to 3 axes"),
        ({"mesh": "w:2 x:2 y:2 z:2"}, "16 devices on 4 axes; this picture draws up to 64 devices on up to 3 axes"),
        ({"n_bytes": -1}, "a device cannot hold -1 bytes here; from 0 to 1 PiB"),
        ({"on": "moon"}, "no place 'moon' to run on"),
    ],
)
def test_bad_settings_are_refused_with_what_is_legal(settings, words):
    explorer = traffic()
    explorer.state = {**explorer.state, **settings}
    assert explorer.kind == "refused"
    assert words in explorer.sentence
    explorer.state = {}
    assert explorer.kind == "ok"


def test_an_unknown_function_lists_the_known_ones():
    with pytest.raises(LayoutError, match="no function 'two_layer'; did you mean 'two_layers'"):
        traffic(fn="two_layer")


# ---- for real


@pytest.mark.parametrize("kind", NAMES)
def test_the_run_shows_values_and_agrees_with_the_schedule(kind):
    explorer = ran(traffic(kind, mesh="x:2 y:4", way="two_way"))
    result = explorer.result.value
    assert result["same"] and len(result["rows"]) == 8
    assert 'data-same="true"' in explorer.values.value
    assert "ran on 8 simulated devices" in explorer.values.value
    assert explorer.top.progress["text"] == "the run and the schedule agree"


def test_the_values_are_those_of_the_collective():
    rows = ran(traffic("all_to_all", mesh="x:4")).result.value["rows"]
    assert [row["before"] for row in rows] == ["0, 1, 2, 3", "10, 11, 12, 13", "20, 21, 22, 23", "30, 31, 32, 33"]
    assert [row["after"] for row in rows] == ["0, 10, 20, 30", "1, 11, 21, 31", "2, 12, 22, 32", "3, 13, 23, 33"]


def test_a_difference_is_said_and_named():
    before = arrays_for("all_gather", 4)
    right = schedules.replay(planned("all_gather", (("x", 4),), "ring"), before)
    wrong = [*right[:2], right[2] + 1, right[3]]
    facts = run_facts("all_gather", "x:4", "ring", True, before, wrong)
    assert not facts["same"]
    words = "1 of 4 simulated devices differ from the schedule; the first is device 2 (x 2)."
    assert verdict(facts, "simulated") == words


def test_a_wrong_collective_is_seen(monkeypatch):
    monkeypatch.setattr(module, "perform", lambda kind, mesh, arrays, attached: [np.zeros(16)] * 8)
    explorer = ran(traffic())
    assert 'data-same="false"' in explorer.values.value
    assert explorer.top.progress["text"] == "the run and the schedule differ"


def test_moving_a_hop_or_bytes_leaves_the_result_and_a_mesh_greys_it():
    explorer = ran(traffic())
    explorer.top.press({"n_bytes": 64})
    explorer.picture.hop = 2
    assert not explorer.stale
    explorer.top.press({"axis.x": 4})
    assert explorer.stale
    assert explorer.top.progress["text"] == "the result is for mesh='x:8'"


def test_where_nothing_is_attached_the_sentence_says_so():
    explorer = traffic(on="attached")
    explorer.top.press({"run": True})
    with pytest.raises(DeviceError):
        explorer.queue.join(60)
    assert "no TPU or GPU is attached" in explorer.sentence


def test_long_arrays_are_cut():
    assert values(np.arange(20.0)).endswith("15, …")


def test_opening_it_loads_no_jax():
    source = (
        "import sys; from widgets import traffic; traffic(hop=2); traffic(fn='two_layers'); "
        "assert not {'jax', 'jaxlib', 'plotly'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", source], check=True, timeout=60)
