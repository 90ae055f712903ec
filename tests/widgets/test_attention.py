"""`attention` without a page: its parts are those of the plan, its bytes those of the costs, and its run is checked."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.costs.serving_memory.cache_bytes import cache
from mtfcore.costs.serving_memory.inference_memory import device_bytes
from mtfcore.events import Tally
from mtfcore.reference import rows
from widgets import attention
from widgets.explorers import attention_run, attention_times
from widgets.explorers.attention_facts import attention_facts, steps
from widgets.explorers.attention_inputs import START, check, key_heads, padded_to, with_heads
from widgets.explorers.attention_program import attention_program, smaller
from widgets.explorers.attention_published import settings_of, table_1
from widgets.explorers.attention_run import small_inputs, small_program
from widgets.queue import Result

SMALL = {"model": "palm-8b", "mesh": "x:2 y:2 z:2", "batch": 16, "context": 512}
KINDS = {"multihead": "palm-8b kv_heads=16", "grouped": "palm-8b kv_heads=8", "multiquery": "palm-8b"}
CUBE = "x:4 y:4 z:4"


@pytest.fixture(autouse=True)
def few_times(monkeypatch):
    """Time two contexts, so that no test waits for a chart that it does not read."""
    monkeypatch.setattr(attention_times, "CONTEXTS", (128, 512))


def small(**settings):
    explorer = attention(**{**SMALL, **settings})
    explorer.queue.join(60)
    return explorer


def facts_of(**settings):
    state = {**START, **settings}
    cfg, _, mesh = check(state)
    return attention_facts(state, cfg, mesh)


def offered(explorer, label):
    number = [offer.label for offer in explorer.offers].index(label)
    explorer.bottom.asked = {"number": len(label), "offer": number}


# ---- who holds what


@pytest.mark.parametrize("by", ["heads", "batch"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mesh", "batch"), [("x:2 y:2 z:2", 16), ("x:4 y:2 z:1", 2), ("x:1 y:8 z:1", 24)])
def test_who_holds_what_is_where_the_plan_has_the_cache(kind, by, mesh, batch):
    facts = facts_of(model=KINDS[kind], mesh=mesh, batch=batch, by=by, context=64)
    cfg, grid = mtf.model.config("palm-8b", kv_heads=facts["kv_heads"]), mtf.Mesh(mesh)
    planned = mtf.model.plan_phase(cfg, "decode", mesh, attention=by, batch=batch, cached_tokens=64)
    kept = next(port.sharding for port in planned.inputs if port.name == "cache_k")
    keys, queries = facts["holds"]["tensors"]
    assert keys["bytes"] == kept.bytes_per_device(grid, "bf16") // cfg.layers
    assert keys["copies"] == kept.copies(grid) == facts["ways"][by]["copies"]
    for one in range(grid.size):
        same = [other for other in range(grid.size) if kept.slices(grid, other) == kept.slices(grid, one)]
        assert same == [other for other in range(grid.size) if keys["holds"][other] == keys["holds"][one]]
    scores = next(step for step in inside(planned) if "S" in step.after.names)
    assert queries["copies"] == scores.before[0].copies(grid)


def inside(program):
    return next(step.body for step in program.steps if step.body is not None).steps


def test_bytes_are_those_of_the_costs():
    facts = facts_of(by="batch", batch=512)
    palm = mtf.model.config("palm-540b", heads=64)
    for by, way in facts["ways"].items():
        held = device_bytes(palm, (4, 4, 4), batch=512, context=2048, attention=by, capacity=32 * 2**30)
        assert way["terms"] == held.terms and way["fits"] == held.fits
        assert way["cache"] == cache(palm, (4, 4, 4), batch=512, context=2048, attention=by).bytes


def test_the_known_cases_of_copied_heads():
    grouped = facts_of(model="llama-3.1-70b", mesh="x:2 y:8 z:1", batch=32, context=8192)["ways"]
    assert [(grouped[by]["cache"] / 2**30, grouped[by]["copies"]) for by in grouped] == [(10, 2), (5, 1)]
    one_head = {by: facts_of(mesh="x:2 y:4 z:8", batch=8, by=by)["ways"][by] for by in ("heads", "batch")}
    assert one_head["batch"]["cache"] == pytest.approx(0.247e9, rel=0.01) and one_head["batch"]["copies"] == 8
    assert one_head["heads"]["copies"] == 64


# ---- what is sent


@pytest.mark.parametrize("by", ["heads", "batch"])
@pytest.mark.parametrize("kind", KINDS)
def test_its_collectives_are_those_of_a_whole_decode_step(kind, by):
    state = {**START, **SMALL, "model": KINDS[kind], "by": by}
    cfg, _, mesh = check(state)
    whole = [
        (step.label(), step.link_bytes, str(step.after))
        for step in inside(mtf.model.plan_phase(cfg, "decode", str(mesh), attention=by, batch=16, cached_tokens=512))
        if step.is_collective
    ]
    own = [(step["label"], step["bytes"], step["after"]) for step in steps(cfg, str(mesh), state)]
    assert len(own) > 3 and [each for each in own if each not in whole] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_never_moves_and_all_to_alls_move_what_is_new(kind):
    facts = facts_of(**{**SMALL, "model": KINDS[kind], "by": "batch"})
    assert {step["moves"] for step in facts["steps"]} == {"x", "q", "k, v", "result"}
    turned = [step["moves"] for step in facts["steps"] if step["kind"] == "all_to_all"]
    assert turned[0] == "q" and turned[-1] == "result" and "k, v" in turned
    heads = facts_of(**{**SMALL, "model": KINDS[kind]})
    assert not [step for step in heads["steps"] if step["kind"] == "all_to_all"]


# ---- published beside ours


def test_table_1_is_printed_beside_ours():
    printed = {row.key: row for row in rows(table="Table 1", quantity="context")}
    assert len(table_1()) == len(printed) == 6
    for ours, row in zip(table_1(), printed.values(), strict=True):
        assert ours["value"] == row.value and row.agrees(ours["ours"])


def test_a_row_of_table_1_loads_its_settings():
    explorer = small()
    explorer.picture.device = 3
    explorer.charts.pick("table:4")
    explorer.queue.join(60)
    assert explorer.kind == "ok" and explorer.state == settings_of(4)
    assert explorer.value["ways"]["batch"]["longest"] == table_1()[4]["ours"]
    assert [value for *_, value in explorer.value["published"]] == [660, 165, 43_000, 10_700]
    assert explorer.charts.html.count("data-published") == 4


def test_figure_8_stands_beside_ours_where_the_settings_are_its_own(monkeypatch):
    monkeypatch.setattr(attention_times, "CONTEXTS", (128, 8192))
    explorer = attention(batch=256, by="batch")
    explorer.queue.join(60)
    times = explorer.value["times"]
    assert times["published"] == [(128, 3.848), (8192, 4.152)] and "8 of 118 layers" in times["title"]
    ours, printed = dict(times["lines"]["batch"]), dict(times["published"])
    assert ours == pytest.approx(printed, rel=0.05)
    assert ours[8192] - ours[128] == pytest.approx(printed[8192] - printed[128], rel=0.3)
    assert explorer.charts.html.count("data-published") == 2
    explorer.top.press({"batch": 128})
    assert explorer.value["times"]["published"] == [] and "layers" not in explorer.value["times"]["title"]


# ---- the explorer


def test_the_first_picture_says_what_is_copied_and_why():
    explorer = attention()
    explorer.queue.join(60)
    assert explorer.kind == "ok" and explorer.value["ways"]["heads"]["copies"] == 64
    assert "one head cannot be cut over x y z" in explorer.sentence and "64 devices [modelled]" in explorer.sentence
    assert "does not fit a v4, by batch it would" in explorer.sentence
    offered(explorer, "by batch")
    assert (
        "every kept key and value lies on one device" in explorer.sentence and explorer.value["ways"]["batch"]["fits"]
    )


def test_a_step_of_the_slider_is_one_event_and_one_message():
    explorer, events, pushed = small(), [], []
    explorer.observe(events.append, "state")
    explorer.charts.observe(pushed.append, "html")
    explorer.top.press({"batch": 32}, released=False)
    assert explorer.kind == "ok" and len(events) == len(pushed) == 1 and explorer.value["batch"] == 32
    assert not explorer.queue.busy  # times are asked for on release


def test_times_come_when_the_hand_lets_go():
    explorer = attention(**{**SMALL, "batch": 48})
    explorer.queue.join(60)
    lines = explorer.value["times"]["lines"]
    assert [context for context, _ in lines["heads"]] == [128, 512] and all(ms > 0 for _, ms in lines["batch"])
    assert explorer.top.progress["text"] == "looked at times at other contexts"


def test_kinds_of_heads_change_the_model():
    explorer = small()
    for kind, kv_heads in (("multihead", 16), ("grouped", 8), ("multiquery", 1)):
        explorer.top.press({"kind": kind})
        assert (explorer.value["kind"], explorer.value["kv_heads"]) == (kind, kv_heads)
    assert explorer.state["model"] == "palm-8b"  # as it was: nothing is said that the model says
    explorer.top.press({"heads": 24})
    assert explorer.value["n_heads"] == 24 and explorer.value["kind"] == "multiquery"


def test_texts_of_models():
    assert with_heads("palm-8b kv_heads=16", "heads", 32) == "palm-8b kv_heads=32 heads=32"  # multihead stays
    assert key_heads("palm-540b", "grouped") == 8 and key_heads("palm-540b", "multihead") == 48
    assert padded_to("palm-540b", mtf.Mesh(CUBE)) == "palm-540b heads=64"
    assert padded_to("palm-540b", mtf.Mesh("x:2 y:4 z:2")) == ""
    assert padded_to("llama-3.1-70b", mtf.Mesh(CUBE)) == "llama-3.1-70b heads=128"  # 16 for each key head


def test_heads_that_do_not_divide_are_padded_on_request_with_the_cost():
    explorer = small(model="palm-540b", mesh=CUBE)
    assert "48 heads leave x idle" in explorer.sentence and "33 % [modelled] more" in explorer.sentence
    offered(explorer, "pad 48 heads to 64")
    assert explorer.state["model"] == "palm-540b heads=64" and explorer.value["padding"] is None
    assert "idle" not in explorer.sentence


def test_heads_that_cannot_be_cut_are_refused_with_ways_out():
    explorer = small(model="palm-540b", mesh="x:2 y:4 z:8")
    assert explorer.kind == "refused" and "48 heads do not divide over z:8 y:4" in explorer.sentence
    assert [offer.label for offer in explorer.offers][:2] == ["by batch", "pad 48 heads to 64"]
    offered(explorer, "pad 48 heads to 64")
    assert explorer.kind == "ok"


def test_a_batch_smaller_than_every_axis_is_refused_with_ways_out():
    explorer = small(batch=1, by="batch")
    assert explorer.kind == "refused" and "copied everywhere" in explorer.sentence
    assert {"by heads", "batch 2"} <= {offer.label for offer in explorer.offers}
    offered(explorer, "batch 2")
    assert explorer.kind == "ok" and explorer.value["ways"]["batch"]["copies"] == 4


@pytest.mark.parametrize(("settings", "label"), [
    ({"model": "gpt-3-175b", "mesh": CUBE, "context": 4096}, "context 2,047"),
    ({"mesh": "x:3 y:2 z:2"}, "mesh x:2 y:2 z:2"),
])  # fmt: skip
def test_other_sizes_that_cannot_be_lead_out_too(settings, label):
    explorer = small(**settings)
    assert explorer.kind == "refused" and label in [offer.label for offer in explorer.offers]
    offered(explorer, label)
    assert explorer.kind == "ok"


@pytest.mark.parametrize(("settings", "words"), [
    ({"by": "heds"}, "did you mean 'heads'"), ({"chip": "v44"}, "v4"), ({"cache": "int3"}, "int8"),
    ({"batch": 0}, "batch is 0"), ({"context": 1 << 30}, "context is"), ({"model": "palm-9b"}, "palm-8b"),
    ({"mesh": "rows:4"}, "x, y and z"), ({"mesh": "x:512 y:2"}, "up to 256"), ({"room": "all"}, "table"),
    ({"model": "palm-8b kv_heads=3"}, "3"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_words(settings, words):
    explorer = attention(**{**SMALL, **settings})
    explorer.queue.join(60)
    assert explorer.kind == "refused" and words in explorer.sentence


def test_key_heads_that_do_not_divide_offer_the_nearest():
    explorer = small(model="palm-8b kv_heads=3")
    assert [offer.label for offer in explorer.offers] == ["2 key heads", "4 key heads"]
    offered(explorer, "4 key heads")
    assert explorer.value["kv_heads"] == 4


def test_beyond_memory_the_longest_context_is_offered_and_fits():
    explorer = small(model="palm-540b heads=64", mesh=CUBE, batch=256, by="batch", context=1 << 16)
    assert not explorer.value["ways"]["batch"]["fits"]
    offered(explorer, f"context {explorer.value['ways']['batch']['longest']:,}")
    assert explorer.value["ways"]["batch"]["fits"]
    more = facts_of(batch=256, by="batch", context=explorer.state["context"] + 1)
    assert not more["ways"]["batch"]["fits"]


def test_bars_and_lines_choose_the_way():
    explorer = small()
    explorer.charts.pick("by:batch")
    assert explorer.state["by"] == "batch" and 'aria-pressed="true"' in explorer.charts.html


def test_picture_and_table_say_the_same_and_can_be_kept():
    explorer = small(by="batch")
    tree = ET.fromstring(explorer.svg())
    assert tree.tag.endswith("svg") and "data-drawn" not in explorer.svg()
    said = {row[0]: row[1] for row in explorer._shown.table}
    assert said["by heads: copies"] == "8 [modelled]" and said["by batch: copies"] == "1 [modelled]"
    assert all(len(row) == 3 for row in explorer._shown.table)
    still = explorer.still(explorer._shown)
    assert still.count("mw-panel") >= 3 and "Table 1" in still and "<script" not in still
    assert explorer.code.startswith("from widgets import attention\nattention(")
    again = attention(**json.loads(json.dumps(explorer.state)))
    again.queue.join(60)
    assert again.value["ways"] == explorer.value["ways"]


# ---- running


@pytest.mark.parametrize("by", ["heads", "batch"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_small_run_has_the_steps_of_the_large_one(kind, by):
    cfg = mtf.model.config("palm-8b", kv_heads={"multihead": 16, "grouped": 8, "multiquery": 1}[kind])
    for mesh, batch in (("x:2 y:2 z:2", 16), ("x:4 y:2 z:1", 6), ("x:1 y:1 z:1", 3)):
        large = attention_program(cfg, mesh, batch, 512, by)
        one = small_program(cfg, mesh, batch, by)
        assert [step.label() for step in one.collectives()] == [step.label() for step in large.collectives()]
    short, sequences = smaller(cfg, "x:2 y:2 z:2", 16)
    assert (short.heads, short.kv_heads, sequences) == (cfg.heads, cfg.kv_heads, 8)


def test_the_run_is_checked_first_and_counts_its_own_traffic():
    explorer = small(by="batch")
    explorer.top.press({"pace": "full", "run": None})
    explorer.queue.join(100)
    ran = explorer.ran
    assert ran.state == "finished" and ran.difference < attention_run.TOLERANCE
    assert ran.tally.by_axis == ran.program.link_bytes().by_axis
    assert "as planned" in explorer.live.drawing["about"] and "off the oracle" in explorer.live.drawing["about"]
    assert explorer.live.layout.display is None and not explorer.stale
    explorer.top.press({"batch": 32})
    explorer.queue.join(60)
    assert explorer.stale and "the traffic below is for batch 16" in explorer.top.progress["text"]


def test_a_stopped_run_says_so():
    explorer, program = small(), small_program(mtf.model.config("palm-8b"), "x:2 y:1 z:1", 4, "heads")
    half = attention_run.Ran(program, Tally(program), 0.0, "running")
    explorer._finished(Result(explorer.run_settings(), half, stopped=True, seconds=1.0))
    assert explorer.live.drawing["about"].startswith("Stopped: 0 of") and explorer.top.progress["text"] == "stopped"


def test_a_wrong_run_is_told_and_shows_no_traffic(monkeypatch):
    monkeypatch.setattr(attention_run, "difference", lambda program, arrays: 0.5)
    explorer = small()
    explorer.reraise = False
    explorer.top.press({"pace": "full", "run": None})
    with pytest.raises(ArithmeticError, match="differs from the oracle"):
        explorer.queue.join(100)
    assert explorer.kind == "broken" and explorer.ran is None and explorer.live.layout.display == "none"


def test_the_check_sees_keys_of_another_sequence():
    """What a wrong exchange would do: the values are far from the oracle's beside the tolerance."""
    program = small_program(mtf.model.config("palm-8b"), "x:1 y:2 z:2", 8, "batch")
    arrays = small_inputs(program)
    wrong = {**arrays, "cache_k": np.roll(arrays["cache_k"], 1, axis=0)}
    right, other = mtf.single(program)(**arrays)["y"], mtf.single(program)(**wrong)["y"]
    assert np.abs(right - other).max() / np.abs(right).max() > 100 * attention_run.TOLERANCE


def test_too_many_devices_to_run_are_refused():
    explorer = small(mesh="x:4 y:8 z:4", batch=128, by="batch")
    explorer.top.press({"run": None})
    with pytest.raises(mtf.LayoutError, match="a run here has up to 64"):
        explorer.queue.join(60)
    assert explorer.kind == "refused"


def test_closing_gives_up_every_part():
    explorer = small()
    parts = [explorer.charts, explorer.live, explorer.below, explorer.results]
    explorer.close()
    assert all(part.comm is None for part in parts)
    assert dataclasses.is_dataclass(explorer.offers[0]) or explorer.offers == ()
