"""`roofline` without a page: steps are those of the priced program, their places, what it says and refuses."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

import mtfcore as mtf
from widgets import roofline
from widgets.explorers.layer_steps import layer_steps, mesh_of, outside_seconds, priced, roof
from widgets.figures.roofline import WORDS, chosen, place, ridge, side
from widgets.figures.roofline_svg import groups, roofline_svg, runs
from widgets.figures.roofline_words import sentence, table
from widgets.numbers import ORIGINS

ROOF = {"peak": 100.0, "hbm": 10.0, "link": 1.0}


def step(name="x", flops=0.0, hbm=0.0, sent=0.0, **seconds) -> dict:
    took = {"compute": flops / 100, "hbm": hbm / 10, "link": sent / 1, "hops": 0.0, "launch": 0.0} | seconds
    total = max(took["compute"], took["hbm"]) if not sent else took["link"] + took["launch"]
    return {"name": name, "flops": flops, "hbm_bytes": hbm, "link_bytes": sent, "is_collective": bool(sent),
            "padded_share": 0.0, "seconds": total, **took}  # fmt: skip


# ---- places


def test_left_of_the_ridge_a_step_lies_on_the_slope_and_right_of_it_at_the_peak():
    assert ridge(ROOF) == 10
    slope, flat = place(step(flops=50, hbm=50), ROOF), place(step(flops=500, hbm=10), ROOF)
    assert (slope["intensity"], slope["rate"], slope["bound"]) == (1, 10, "hbm")
    assert (flat["intensity"], flat["rate"], flat["bound"]) == (50, 100, "compute")
    assert slope["share_of_roof"] == flat["share_of_roof"] == 1


def test_a_collective_has_no_place_and_a_step_from_fast_memory_no_bytes():
    sent, near = place(step(sent=3), ROOF), place(step(flops=5), ROOF)
    assert not sent["is_local"] and sent["bound"] == "link"
    assert near["is_local"] and near["intensity"] == float("inf")


def test_a_side_sums_its_steps():
    found = side("decode", [step(flops=50, hbm=50), step(sent=3), step(flops=500, hbm=10)], ROOF)
    assert found["waits"] == {"compute": 5.0, "hbm": 5.0, "link": 3.0, "hops": 0.0, "launch": 0.0}
    assert found["layer"]["seconds"] == 13 and found["layer"]["link_intensity"] == pytest.approx(550 / 3)
    assert [each["number"] for each in found["steps"]] == [1, 2, 3]


def facts(*steps, **more) -> dict:
    both = {phase: side(phase, steps, ROOF, about="batch 1") for phase in ("prefill", "decode")}
    return {**both, "roof": ROOF, "chosen": "", "title": "a chip", **more}


def test_marks_that_would_lie_on_each_other_are_one():
    found = facts(step("a", flops=50, hbm=50), step("b", flops=50, hbm=50), step("c", flops=500, hbm=10), step(sent=1))
    root = ET.fromstring(roofline_svg(found, "decode"))
    marks = [each.get("data-steps") for each in root.iter() if each.get("data-steps")]
    assert sorted(marks) == ["1,2", "3"]
    strip = [each.get("data-seconds") for each in root.iter() if each.get("data-seconds")]
    assert [float(each) for each in strip] == [5, 5, 5, 1]


def test_numbers_are_run_together():
    assert runs([1, 2, 3, 5, 7, 8]) == "1–3, 5, 7–8"


def test_the_chosen_step_is_found_by_its_name():
    found = facts(step("a", flops=50, hbm=50), step(sent=3))
    assert chosen(found, "decode:2")[1]["bound"] == "link" and chosen(found, "decode:9") is None
    assert chosen(found, "") is None
    says = sentence({**found, "chosen": "decode:2"})
    assert "it has no place under the roof; each device sends 3 B [modelled]" in says


def test_a_reading_step_says_that_it_multiplies_nothing():
    found = facts(step("sum over E", hbm=50))
    assert "It multiplies nothing" in sentence({**found, "chosen": "prefill:1"})
    assert "is still in fast memory" in sentence({**facts(step("a", flops=5)), "chosen": "prefill:1"})


# ---- from the priced program


@pytest.fixture(scope="module")
def decode():
    return priced(mtf.model.config("palm-8b"), "v4:2x2x2", "decode", "ws2d-batch", 64, 2048, "int8", "bf16")


def test_a_layer_and_what_is_outside_make_the_whole_phase(decode):
    layer = sum(each["seconds"] for each in layer_steps(decode))
    assert 32 * layer + outside_seconds(decode) == pytest.approx(decode.additive_seconds)


def test_products_have_the_names_that_people_use(decode):
    names = [each["name"].partition(":")[0] for each in layer_steps(decode) if not each["is_collective"]]
    known = {"x Wq", "q · cached keys", "q · new keys", "mix cached values", "mix new values", "heads Wo", "h W_out"}
    assert known < set(names)
    assert {name for name in names if name not in known} <= {"x Wk or x Wv", "x Wk, x Wv", "x W_in or gate",
                                                             "x W_in, gate"}  # fmt: skip


def test_more_sequences_climb_the_slope_but_the_cache_does_not():
    def intensity(batch: int, name: str) -> float:
        cost = priced(mtf.model.config("palm-8b"), "v4:2x2x2", "decode", "ws2d-batch", batch, 2048, "int8", "bf16")
        found = side("decode", layer_steps(cost), roof(cost, "int8"))["steps"]
        return next(each["intensity"] for each in found if each["name"].startswith(name))

    assert intensity(128, "h W_out") == pytest.approx(2 * intensity(64, "h W_out"), rel=0.02)
    assert intensity(128, "q · cached") == intensity(64, "q · cached")


@pytest.mark.parametrize(
    ("topology", "mesh"),
    [("v4:4x4x4", "x:4 y:4 z:4"), ("v5e:4x8", "x:4 y:8 z:1"), ("v5e:1x1", "x:1 y:1 z:1"), ("v3:8x8", "x:8 y:2 z:8"),
     ("v4:1x1x2", "x:2 y:1 z:1")],
)  # fmt: skip
def test_the_mesh_has_every_device(topology, mesh):
    assert mesh_of(mtf.topology(topology)) == mesh or mtf.Mesh(mesh).size == mtf.topology(topology).devices
    assert mtf.Mesh(mesh_of(mtf.topology(topology))).size == mtf.topology(topology).devices


# ---- the explorer


def small(**settings):
    return roofline(model="palm-8b", topology="v4:2x2x2", **settings)


def test_a_step_of_the_slider_is_one_event_and_one_message():
    explorer, events, pushed = small(), [], []
    explorer.observe(events.append, "state")
    explorer.picture.observe(pushed.append, "html")
    explorer.top.press({"batch": 128}, released=False)
    assert explorer.kind == "ok" and len(events) == len(pushed) == 1
    assert "batch 128" in explorer.value["decode"]["about"]


def test_a_picked_step_is_told_and_picked_again_let_go():
    explorer = small()
    explorer.picture.pick("decode:2")
    assert explorer.state["chosen"] == "decode:2" and explorer.sentence.startswith("Decode, step 2")
    explorer.picture.pick("decode:2")
    assert explorer.state["chosen"] == "" and explorer.sentence.startswith("Prefill waits for")
    explorer.picture.pick("decode:2")
    explorer.top.press({"batch": 256})
    assert explorer.state["chosen"] == "decode:2"
    explorer.top.press({"decode": "ws1d-batch"})
    assert explorer.state["chosen"] == ""


def test_both_phases_say_what_they_wait_for_and_why():
    explorer = small()
    for phase in ("prefill", "decode"):
        waits = explorer.value[phase]["waits"]
        assert f"{phase.capitalize()} waits for {WORDS[max(waits, key=waits.get)]}" in explorer.sentence
    assert "[modelled]" in explorer.sentence and "[published]" in explorer.sentence


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"batch": 1}, "batch"), ({"decode": "ws3d-batch"}, "did you mean 'ws2d-batch'?"), ({"weights": "i3"}, "weights"),
     ({"batch": 9999}, "it goes from 1 to 4,096"), ({"tokens": 0}, "tokens is 0")],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_the_line(settings, words):
    explorer = small(prefill="wg_xyz-heads", **settings)
    assert explorer.kind == "refused" and words in explorer.sentence
    assert len(explorer.top.row["items"]) > 5


def test_an_impossible_grid_offers_possible_ones():
    explorer = small()
    explorer.top.press({"topology": "v4:3x3x3"})
    assert explorer.kind == "refused" and "nearest: 'v4:" in explorer.sentence
    explorer.bottom.asked = {"number": 1, "offer": 0}
    assert explorer.kind == "ok"


def test_heads_that_do_not_divide_have_ways_out():
    explorer = roofline(model="palm-540b", topology="v4:8x8x8")
    assert explorer.kind == "refused" and "48 heads do not divide" in explorer.sentence
    labels = [offer.label for offer in explorer.offers]
    assert "pad heads: palm-540b heads=64" in labels
    explorer.bottom.asked = {"number": 1, "offer": labels.index("pad heads: palm-540b heads=64")}
    assert explorer.kind == "ok" and explorer.state["model"] == "palm-540b heads=64"


def test_the_table_has_every_step_with_its_origin():
    explorer = small()
    head, *rows = explorer._shown.table
    assert len(rows) == sum(len(explorer.value[phase]["steps"]) for phase in ("prefill", "decode"))
    tags = tuple(f"[{word}]" for word in ORIGINS)
    assert all(cell == "-" or cell.endswith(tags) for row in rows for cell in row[3:11])
    assert all(len(row) == len(head) for row in rows)


def test_call_state_still_and_file():
    explorer = small(batch=32, cache="int8")
    scope: dict = {}
    exec(explorer.code.replace("\nroofline(", "\nagain = roofline("), scope)
    assert scope["again"].value == explorer.value
    json.dumps(explorer.value)
    still = explorer._still_text()
    assert still.count('class="mw-chart"') == 2 and len(still) < 120_000
    assert len(list(ET.fromstring(explorer.svg()).iter("{http://www.w3.org/2000/svg}svg"))) == 3


def test_marks_stand_for_all_products():
    found = small().value
    axes_steps = [s for s in found["decode"]["steps"] if s["is_local"]]
    from widgets.figures.roofline_svg import _axes

    drawn = [s["number"] for group in groups(_axes(found["roof"]), found["decode"]["steps"]) for s in group]
    assert sorted(drawn) == [s["number"] for s in axes_steps]
    assert table(found)[0][0] == "phase"
