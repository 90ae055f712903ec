"""`planner` without a page: its numbers are those of `mtf.costs.inference`; one event a step; refusals lead out."""

from __future__ import annotations

import dataclasses
import json
import threading
import xml.etree.ElementTree as ET

import pytest
from ipywidgets.widgets.widget import _instances

import mtfcore as mtf
from widgets import frontier, planner, roofline
from widgets.explorers import plan_finding
from widgets.explorers.estimates import Setup, forget, known_trials, plan, trials
from widgets.explorers.planner import START
from widgets.figures.plans import fields

SMALL = {"model": "palm-8b", "topology": "v4:2x2x2", "batch": 16}


@pytest.fixture(autouse=True)
def only_changes(monkeypatch):
    """Look at what differs in one thing, and not at what a hand may ask for next, which takes seconds."""
    monkeypatch.setattr(plan_finding, "around", lambda setup: ([each] for each in list(changed(setup))[:2]))


def changed(setup):
    return (dataclasses.replace(setup, **settings) for _, settings in plan_finding.changes(setup))


def small(**settings):
    explorer = planner(**{**SMALL, **settings})
    explorer.queue.join(60)
    return explorer


# ---- estimates


def test_a_plan_is_the_estimate():
    own = plan(Setup(mtf.model.config("palm-8b"), "v4:2x2x2", 16))
    est = mtf.costs.inference(mtf.model.config("palm-8b"), "v4:2x2x2", batch=16, input_tokens=2048, output_tokens=64,
                              weights="int8", cache="bf16")  # fmt: skip
    assert own == fields(est) and own["step_seconds"] > 0
    assert own["warnings"] == []  # fitted, and it fits


def test_many_at_once_are_each_by_itself():
    cfg = mtf.model.config("palm-8b")
    setups = tuple(Setup(cfg, "v4:2x2x2", batch) for batch in (1, 4, 16))
    for setup, found in zip(setups, trials(setups), strict=True):
        own = plan(setup)
        assert found["step"] == pytest.approx(own["step_seconds"]) and found["fits"] == own["fits"]
        assert found["layouts"] == own["layouts"]
        assert found["chip_seconds"] == pytest.approx(8 * found["step"] / setup.batch)


def test_a_partition_pinned_for_one_phase_leaves_the_other_free():
    cfg = mtf.model.config("palm-8b")
    free, pinned = plan(Setup(cfg, "v4:2x2x2", 16)), plan(Setup(cfg, "v4:2x2x2", 16, decode="ws2d-heads"))
    assert pinned["layouts"] == {"prefill": free["layouts"]["prefill"], "decode": "ws2d-heads"}
    assert pinned["prefill_seconds"] == free["prefill_seconds"]
    assert pinned["step_seconds"] == free["candidates"]["decode"]["ws2d-heads"]["seconds"]


# ---- the explorer


def test_the_first_picture_says_its_numbers():
    explorer = small()
    found = plan(Setup(mtf.model.config("palm-8b"), "v4:2x2x2", 16, prefill_batch=1))
    assert explorer.kind == "ok" and explorer.value["step"] == found["step_seconds"]
    assert "palm-8b on v4:2x2x2, batch 16" in explorer.sentence and "[modelled]" in explorer.sentence
    assert explorer.value["held"] == pytest.approx(found["memory"]["total"] + found["memory"]["reserve"])


def test_a_step_of_the_slider_is_one_event_and_one_message():
    explorer, events, pushed = small(), [], []
    explorer.observe(events.append, "state")
    explorer.picture.observe(pushed.append, "html")
    explorer.top.press({"batch": 32}, released=False)
    assert explorer.kind == "ok" and len(events) == len(pushed) == 1 and explorer.value["batch"] == 32
    assert not explorer.queue.busy  # plans beside it are asked for on release


def test_plans_beside_it_come_when_the_hand_lets_go():
    forget()
    explorer = planner(**SMALL)
    assert explorer.kind == "ok" and not explorer.value["helps"]
    explorer.queue.join(60)
    assert [each["words"] for each in explorer.value["helps"]] == ["batch 32", "batch 8"]
    assert explorer.top.progress["text"] == "looked at plans beside this one"


def test_a_hand_that_moves_on_ends_the_looking():
    explorer = small()
    jobs = explorer.refine({**explorer.state, "batch": 3})
    assert list(jobs) == []


def test_a_picked_partition_is_pinned_and_picked_again_let_go():
    explorer = small()
    other = next(name for name, each in explorer.value["candidates"]["decode"].items()
                 if each["seconds"] and name != explorer.value["layouts"]["decode"])  # fmt: skip
    explorer.picture.pick(f"decode:{other}")
    assert explorer.state["decode"] == other == explorer.value["layouts"]["decode"]
    assert "decode as you pinned it" in explorer.sentence
    explorer.picture.pick(f"decode:{other}")
    assert explorer.state["decode"] == "auto"


def test_another_chip_keeps_the_number_of_chips():
    explorer = small()
    explorer.top.press({"chip": "v5e"})
    assert explorer.state["topology"] == "v5e:2x4" and explorer.kind == "ok"
    explorer.top.press({"slice": "v5e:4x4"})
    assert explorer.value["chips"] == 16


def test_what_would_help_is_offered():
    explorer = small()
    assert [offer.label for offer in explorer.offers] == ["batch 8", "batch 32"]  # sooner, and cheaper
    before = explorer.value
    explorer.bottom.asked = {"number": 1, "offer": 1}
    assert explorer.kind == "ok" and explorer.value["chip_seconds"]["decode"] < before["chip_seconds"]["decode"]


def test_beyond_memory_it_says_so_and_the_nearest_batch_fits():
    given = {"model": "palm-540b", "topology": "v4:4x4x4", "input_tokens": 8192, "weights": "bf16"}
    explorer = small(**given, batch=2048)
    assert explorer.kind == "ok" and not explorer.value["fits"] and "It does not fit" in explorer.sentence
    labels = [offer.label for offer in explorer.offers]
    assert any(label.startswith("batch ") for label in labels)
    explorer.bottom.asked = {"number": 1, "offer": next(n for n, each in enumerate(labels) if each.startswith("batch"))}
    assert explorer.value["fits"]


def test_where_the_weights_do_not_fit_a_slice_that_holds_them_is_offered():
    explorer = small(model="palm-540b", topology="v4:2x2x1")
    assert not explorer.value["fits"] and not any("settings do not fit" in said for said in explorer.value["warnings"])
    larger = next(n for n, each in enumerate(explorer.offers) if each.label.startswith("v4:"))
    explorer.bottom.asked = {"number": 1, "offer": larger}
    assert explorer.value["chips"] > 4 and explorer.value["fits"]


def test_one_change_is_offered_once():
    explorer = small(decode="ws2d-heads", batch=64)
    labels = [offer.label for offer in explorer.offers]
    assert labels and len(labels) == len(set(labels))


def test_prompts_that_do_not_fit_together_may_be_read_a_few_at_a_time():
    explorer = small(batch=512, input_tokens=8192, prefill_batch=0)
    assert not explorer.value["fits_in"]["prefill"] and explorer.value["fits_in"]["decode"]
    assert "It does not fit in prefill" in explorer.sentence
    assert explorer.offers[0].label == f"read {explorer.value['max_batch']['prefill']} at a time"
    explorer.bottom.asked = {"number": 1, "offer": 0}
    assert explorer.value["fits"] and explorer.value["prompts"] < 512


def test_the_price_is_the_readers():
    explorer = small()
    assert "at your price" not in explorer.picture.html and START["price"] == ""
    explorer.top.press({"price": "2.5"})
    assert "at your price" in explorer.picture.html
    explorer.top.press({"price": "free"})
    assert explorer.kind == "refused" and "write a number above 0" in explorer.sentence


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"model": "palm-9b"}, "did you mean"), ({"topology": "v4:3x3x3"}, "nearest: 'v4:"),
     ({"topology": "v9:4"}, "no topology 'v9:4'"), ({"weights": "i3"}, "legal here"), ({"decode": "x"}, "legal here"),
     ({"batch": 0}, "batch is 0; it goes from 1"), ({"mode": "dream"}, "mode 'dream'"),
     ({"model": "nowhere/config.json"}, "nowhere/config.json"), ({"reserve": 90}, "reserve is 90")],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_the_line_and_controls_stay(settings, words):
    explorer = small(**settings)
    assert explorer.kind == "refused" and words in explorer.sentence
    explorer = small()
    explorer.state = {**explorer.state, **settings}
    assert explorer.kind == "refused" and len(explorer.top.row["items"]) > 8


def test_every_offer_of_a_refusal_leads_out():
    for settings in ({"topology": "v4:3x3x3"}, {"batch": 1 << 20}, {"reserve": 99}):
        for number in range(len(small(**settings).offers)):
            explorer = small(**settings)
            explorer.bottom.asked = {"number": 1, "offer": number}
            assert explorer.kind == "ok"


# ---- under a limit


def finding(**settings):
    given = {"model": "palm-8b", "mode": "find", "chips": "v4", "most_chips": 8, "batches": "own", "batch": 4}
    explorer = planner(**{**given, **settings})
    explorer.queue.join(60)
    return explorer


def test_found_slices_meet_the_limit_and_fit():
    explorer = finding(limit=10)
    rows = explorer.value["rows"]
    assert rows and all(row["step"] <= 0.010 and row["fits"] for row in rows)
    assert len({(row["chip"], row["chips"]) for row in rows}) == len(rows)
    assert explorer.value["n_waiting"] == 0 and explorer.value["n_trials"] == 4
    assert "chips under 10 ms a token" in explorer.sentence


def test_a_row_loads_its_plan():
    explorer = finding(limit=10)
    row = explorer.value["rows"][0]
    explorer.picture.pick("load:0")
    assert explorer.state["mode"] == "plan" and explorer.value["topology"] == row["topology"]
    assert explorer.value["step"] == pytest.approx(row["step"]) and explorer.value["batch"] == row["batch"]


def test_the_list_grows_while_slices_are_looked_at():
    forget()
    explorer = finding()
    steps = plan_finding.search(mtf.model.config("palm-8b"), explorer.state)
    assert [step[0].chips for step in steps] == [1, 2, 4, 8] and known_trials(steps[-1]) is not None
    forget()
    explorer.redraw()
    assert "Nothing yet meets 30 ms a token" in explorer.sentence and "4 to go" in explorer.sentence
    trials(steps[3])
    explorer.redraw()
    assert [row["chips"] for row in explorer.value["rows"]] == [8] and explorer.value["n_waiting"] == 3


def test_where_a_batch_does_not_fit_no_larger_one_is_asked_for(monkeypatch):
    forget()
    cfg, asked = mtf.model.config("palm-62b"), []
    own, here = mtf.costs.inference, threading.get_ident()

    def recorded(*args: object, **how: object) -> object:
        if threading.get_ident() == here:  # explorers of other tests may still be asking on their own threads
            asked.append(list(how["batch"]))
        return own(*args, **how)

    monkeypatch.setattr(mtf.costs, "inference", recorded)
    found = trials(tuple(Setup(cfg, "v4:1x1x2", batch, 8192, weights="int8") for batch in (1, 2, 4, 8, 16, 32)))
    assert asked == [[1, 2, 4, 8]] and [each["fits"] for each in found][3:] == [False] * 3


def test_moving_the_limit_asks_for_nothing_new(monkeypatch):
    explorer = finding(limit=10)
    monkeypatch.setattr(mtf.costs, "inference", lambda *a, **k: pytest.fail("asked again"))
    explorer.top.press({"limit": 20})
    explorer.queue.join(60)
    assert explorer.kind == "ok" and explorer.value["limit"] == 0.020


def test_a_limit_that_nothing_meets_offers_the_nearest():
    explorer = finding(limit=1)
    assert not explorer.value["rows"] and explorer.sentence.startswith("Nothing meets 1 ms a token. Not met by v4: at")
    explorer.bottom.asked = {"number": 1, "offer": 0}
    assert explorer.value["rows"] and explorer.offers == ()


def test_unknown_chips_are_refused_all_at_once():
    explorer = finding(chips="v44 h10")
    assert explorer.kind == "refused" and "'v44'" in explorer.sentence and "'h10'" in explorer.sentence
    assert finding(chips=" ").kind == "refused"


# ---- shared habits


def tiny_frontier():
    explorer = frontier(models="palm-8b", weights="int8", most_chips=2, most_batch=2)
    explorer.queue.join(60)
    return explorer


@pytest.mark.parametrize("make", [small, tiny_frontier, roofline, finding])
def test_the_call_gives_the_same_picture(make):
    explorer = make()
    scope: dict = {}
    name = explorer.call
    exec(explorer.code.replace(f"\n{name}(", f"\nagain = {name}("), scope)
    assert scope["again"].state == explorer.state


def test_still_page_file_and_facts():
    explorer = small()
    json.dumps(explorer.value)
    still = explorer._still_text()
    assert still.count('class="mw-chart"') == 4 and len(still) < 80_000
    assert len(list(ET.fromstring(explorer.svg()).iter("{http://www.w3.org/2000/svg}svg"))) == 5
    assert "load" in finding(limit=10)._still_text()


@pytest.mark.parametrize("make", [small, finding, tiny_frontier, roofline])
def test_an_explorer_that_is_closed_leaves_no_model_behind(make):
    make().close()
    before = set(_instances)
    explorer = make()
    assert len(_instances) > len(before)
    explorer.close()
    assert set(_instances) == before
