"""`frontier` without a page: lines of the best, published points with ours, a picked point loads the planner."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

import mtfcore as mtf
from widgets import frontier, planner
from widgets.explorers import plan_finding
from widgets.explorers.estimates import Setup, forget, plan
from widgets.figures.frontier import AT
from widgets.figures.frontier_words import sentence


@pytest.fixture(autouse=True)
def no_looking_around(monkeypatch):
    """The planner that is loaded looks at nothing beside its plan."""
    monkeypatch.setattr(plan_finding, "around", lambda setup: iter(()))


def small(**settings):
    given = {"models": "palm-8b", "chips": "v4", "weights": "int8", "most_chips": 4, "most_batch": 4}
    explorer = frontier(**{**given, **settings})
    explorer.queue.join(60)
    return explorer


def published(**settings):
    return small(models="palm-540b heads=64", most_chips=1, **settings)


def test_points_are_plans_of_every_slice_and_batch():
    explorer = small()
    assert explorer.kind == "ok" and explorer.value["n_trials"] == 3 * 3
    point = explorer.value["points"][-1]
    own = plan(Setup(mtf.model.config("palm-8b"), point["topology"], point["batch"], weights="int8"))
    assert point["step"] == pytest.approx(own["step_seconds"])


def test_nothing_beats_a_line():
    found = small().value
    for phase, (x, y) in AT.items():
        for line in found["lines"][phase]:
            own = [point for point in found["points"] if point["series"] == line["name"]]
            for mine in (found["points"][n] for n in line["at"]):
                assert not any(point[x] < mine[x] and point[y] < mine[y] for point in own)


def test_a_slider_is_one_event_and_one_message():
    explorer, events, pushed = small(), [], []
    explorer.observe(events.append, "state")
    explorer.picture.observe(pushed.append, "html")
    explorer.top.press({"most_batch": 2}, released=False)
    assert explorer.kind == "ok" and len(events) == len(pushed) == 1 and explorer.value["n_trials"] == 3 * 2


def test_the_picture_grows_while_slices_are_looked_at():
    forget()
    explorer = frontier(models="palm-8b", weights="int8", most_chips=2, most_batch=2)
    assert explorer.sentence == "Looking at 2 slices at every batch." or explorer.value["points"]
    explorer.queue.join(60)
    assert explorer.value["n_waiting"] == 0 and len(explorer.value["points"]) == 4


def test_a_picked_point_loads_a_planner_below():
    explorer = small()
    assert explorer.planner is None and not explorer.below.children
    number = explorer.value["lines"]["decode"][0]["at"][0]
    explorer.picture.pick(f"point:{number}")
    point = explorer.value["points"][number]
    assert explorer.below.children == (explorer.planner,) and explorer.sentence.startswith("Chosen: palm-8b on")
    assert explorer.planner.value["step"] == pytest.approx(point["step"])
    assert explorer.planner.state["topology"] == point["topology"] and explorer.planner.state["batch"] == point["batch"]
    explorer.planner.state = {**explorer.planner.state, "price": "2"}
    explorer.picture.pick(f"point:{explorer.value['lines']['decode'][0]['at'][-1]}")
    assert explorer.planner.state["price"] == "2"  # the reader's own
    assert explorer.svg().count("data-chosen") == 2


def test_a_planner_of_the_readers_is_loaded_instead():
    own = planner(model="palm-8b", topology="v4:1x1x2")
    explorer = small(planner=own)
    explorer.picture.pick("point:0")
    assert not explorer.below.children and own.state["topology"] == explorer.value["points"][0]["topology"]
    explorer.close()
    assert own.kind == "ok" and own.top.comm is not None


def test_published_points_stand_beside_ours():
    explorer = published()
    found = explorer.value["published"]
    assert {point["phase"] for point in found} == {"decode", "prefill"}
    number = next(n for n, p in enumerate(found) if p["where"].startswith("Figure 1") and p["batch"] == 64)
    explorer.picture.pick(f"published:{number}")
    assert "27.9 ms [published]" in explorer.sentence or "27.8 ms [published]" in explorer.sentence
    assert "our plan of the same takes" in explorer.sentence and explorer.planner.state["model"] == "palm-540b heads=64"
    assert explorer.planner.value["step"] == explorer.value["against"]["seconds"]
    root = ET.fromstring(explorer.svg())
    assert len([each for each in root.iter() if each.get("data-published")]) == len(found)


def test_other_lengths_have_no_published_points():
    assert published(input_tokens=1024).value["published"] == []


def test_a_model_is_added_from_the_list():
    explorer = small()
    explorer.top.press({"add": "llama-3-8b"})
    assert explorer.state["models"] == "palm-8b, llama-3-8b" and explorer.kind == "ok"
    explorer.queue.join(60)
    assert len(explorer.value["series"]) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"models": "palm-9b"}, "legal here"), ({"models": " "}, "no model is named"), ({"chips": "v9"}, "no chip 'v9'"),
     ({"models": "a,b,c,d,e,f"}, "6 models"), ({"weights": "i3"}, "legal here"), ({"weights": ""}, "legal here"),
     ({"most_chips": 0}, "most chips is 0"), ({"cache": "i3"}, "legal here")],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_the_line(settings, words):
    explorer = small(**settings)
    assert explorer.kind == "refused" and words in explorer.sentence


def test_where_nothing_fits_it_says_so():
    assert small(models="palm-540b", most_chips=1).sentence.startswith("No slice that is allowed holds the weights")
    assert small(most_chips=1, input_tokens=1 << 20).sentence.startswith("None of 3 plans fits in memory")


def test_the_chosen_point_is_kept_in_the_state():
    explorer = small()
    explorer.picture.pick("point:0")
    again = small(chosen=explorer.state["chosen"])
    assert again.planner.state == explorer.planner.state
    assert again._shown.sentence == explorer._shown.sentence


def test_while_it_looks_it_says_what_is_left_and_rules_nothing_out():
    found = small().value
    assert "to go" not in sentence(found)
    looking = {**found, "n_waiting": 5}
    assert sentence(looking).endswith("So far: 5 slices to go.")
    none = {**looking, "models": ["palm-540b"]}
    assert "No plan of palm-540b fits of those looked at." in sentence(none)
    assert sentence({**none, "n_waiting": 0}) == "No plan of palm-540b fits."
