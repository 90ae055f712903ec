"""Explorer 6 without a page: lines of the best, published points with ours, a picked point loads the planner."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

import mtfcore as mtf
from widgets import frontier, planner
from widgets.explorers.estimates import Setup, plan
from widgets.figures.frontier import AT


def small(**settings):
    return frontier(**{"models": "palm-8b", "chips": "v4", "weights": "int8", "most_chips": 8, "most_batch": 16,
                       **settings})  # fmt: skip


def published(**settings):
    return frontier(models="palm-540b", weights="int8", most_chips=64, most_batch=64, **settings)


def test_points_are_plans_of_every_slice_and_batch():
    explorer = small()
    assert explorer.kind == "ok" and explorer.value["n_trials"] == 4 * 5
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
    explorer.top.press({"most_batch": 32}, released=False)
    assert explorer.kind == "ok" and len(events) == len(pushed) == 1


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
    explorer.top.press({"add": "palm-62b"})
    assert explorer.state["models"] == "palm-8b, palm-62b" and explorer.kind == "ok"
    assert len(explorer.value["series"]) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"models": "palm-9b"}, "did you mean"), ({"models": " "}, "no model is named"), ({"chips": "v9"}, "no chip 'v9'"),
     ({"models": "a,b,c,d,e,f"}, "6 models"), ({"weights": "i3"}, "legal here"), ({"weights": ""}, "legal here"),
     ({"most_chips": 0}, "most chips is 0"), ({"cache": "i3"}, "legal here")],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_the_line(settings, words):
    explorer = small(**settings)
    assert explorer.kind == "refused" and words in explorer.sentence


def test_where_nothing_fits_it_says_so():
    explorer = small(models="palm-540b", most_chips=1)
    assert explorer.kind == "ok" and "fits in memory" in explorer.sentence


def test_the_chosen_point_is_kept_in_the_state():
    explorer = small()
    explorer.picture.pick("point:0")
    again = small(chosen=explorer.state["chosen"])
    assert again.planner.state == explorer.planner.state
    assert again._shown.sentence == explorer._shown.sentence
