"""`feedforward` without a page: its bytes are those of planned programs, formulas and the paper; runs are checked."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from ipywidgets.widgets.widget import _instances

import mtfcore as mtf
from mtfcore.costs.second_paper import LAYOUTS, winners
from mtfcore.costs.second_paper.programs import paper_bytes, planned
from mtfcore.reference import rows
from widgets import feedforward
from widgets.explorers import feedforward_run
from widgets.explorers.feedforward_figures import known
from widgets.explorers.feedforward_inputs import START, WORDS
from widgets.explorers.feedforward_lies import lying
from widgets.explorers.feedforward_run import difference, small_layer, smaller_mesh
from widgets.figures.feedforward import Layer, layer_facts, line_of, parts_of, reason, winner_at
from widgets.figures.feedforward_svg import crossing_words, spread

PALM, CUBE = (18432, 73728), (4, 4, 4)


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """No slow motion: nobody is watching."""
    monkeypatch.setattr(feedforward_run, "SLOW_SECONDS", 0.0)


def row(facts, layout):
    return next(each for each in facts["rows"] if each["layout"] == layout)


# ---- facts


@pytest.mark.parametrize("counted", ["sent", "paper"])
@pytest.mark.parametrize("weights", ["bf16", "int8"])
@pytest.mark.parametrize("gated", [False, True])
def test_every_layout_moves_what_its_plan_and_its_formula_say(gated, weights, counted):
    layer = Layer(96, 192, batch=48, length=2, gated=gated, weights=weights, counted=counted)
    facts = layer_facts(layer, (4, 2, 3))
    for layout in LAYOUTS:
        program = planned(layout, (4, 2, 3), 48, 2, 96, 192, gated=gated, weights="i8" * (weights == "int8"))
        own = paper_bytes(program) if counted == "paper" else program.link_bytes().total
        assert row(facts, layout)["n_bytes"] == sum(row(facts, layout)["parts"].values()) == pytest.approx(own)
        assert row(facts, layout)["closed"] == pytest.approx(own, rel=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_line_through_two_plans_is_right_everywhere(layout):
    fixed, each = line_of(layout, Layer(*PALM, length=7), CUBE)
    for batch in (64, 192, 4096):
        own = planned(layout, CUBE, batch, 7, *PALM).link_bytes().total
        assert fixed + each * batch * 7 == pytest.approx(own, rel=1e-12)


@pytest.mark.parametrize("mesh", [(4, 4, 4), (4, 4, 8), (2, 4, 4), (8, 2, 2)], ids=str)
def test_crossings_are_the_envelope_of_the_closed_forms(mesh):
    for counted in ("sent", "paper"):
        facts = layer_facts(Layer(*PALM, counted=counted), mesh)
        own = winners(*PALM, mesh, pinned=mesh, exact=counted == "sent")
        assert [each["layout"] for each in facts["crossings"]] == [part.layout for part in own]
        assert [each["tokens"] for each in facts["crossings"]] == pytest.approx([float(part.tokens) for part in own])


def test_the_best_of_figure_3s_settings_is_the_lowest_published_point():
    for tokens in (2048, 32768, 131072, 2097152):
        facts = layer_facts(Layer(16384, 65536, batch=tokens // 1024, length=1024, counted="paper"), CUBE)
        printed = {p["layout"]: p["n_bytes"] for p in facts["published"] if p["tokens"] == tokens}
        assert len(printed) == 4 and winner_at(facts, tokens) == min(printed, key=printed.get)
        for layout, n_bytes in printed.items():
            fixed, each = row(facts, layout)["line"]
            assert fixed + each * tokens == pytest.approx(n_bytes, rel=1e-3)


def test_published_points_stand_only_where_they_belong():
    assert len(layer_facts(Layer(16384, 65536), CUBE)["published"]) == len(rows(table="Figure 3")) == 56
    for layer, mesh in (
        (Layer(*PALM), CUBE),
        (Layer(16384, 65536), (4, 4, 2)),
        (Layer(16384, 65536, gated=True), CUBE),
    ):
        assert layer_facts(layer, mesh)["published"] == []


def test_what_cannot_be_cut_is_said():
    layer = Layer(*PALM, batch=8)
    assert [reason(layout, layer, CUBE) for layout in LAYOUTS] == [
        "", "", "", "needs sequences in multiples of 16", "needs sequences in multiples of 64"]  # fmt: skip
    assert "E 100 does not divide by 64" in reason("ws1d", Layer(100, 6400), CUBE)
    assert parts_of("wg_xy", (2, 3, 5)) == {"B": 6, "L": 1, "E": 5, "F": 15}


def test_crossings_are_named_by_e_and_f():
    facts = layer_facts(Layer(*PALM), CUBE)
    assert [crossing_words(facts, tokens) for tokens in (18432, 73728, 12 * 73728, 1000)] == [
        "18,432 = E", "73,728 = F", "884,736 = 12F", "1,000"]  # fmt: skip


def test_names_at_the_ends_of_lines_do_not_lie_on_each_other():
    assert spread([10.0, 12.0, 40.0, 41.0], 13.0) == [10.0, 23.0, 40.0, 53.0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slices_lie_where_the_program_has_them(layout):
    layer = Layer(64, 128, batch=16, length=4)
    drawn = {tensor["name"]: tensor for tensor in lying(layout, layer, (2, 2, 2))}
    inputs = {port.name: port for port in planned(layout, (2, 2, 2), 16, 4, 64, 128).inputs}
    mesh = mtf.Mesh("x:2 y:2 z:2")
    for name, port in (("x rests", "x"), ("W_in rests", "w_in")):
        assert drawn[name]["bytes"] == inputs[port].sharding.bytes_per_device(mesh, "bf16")
    used = [step for step in planned(layout, (2, 2, 2), 16, 4, 64, 128).steps if step.kind == "einsum"]
    sizes = [each.bytes_per_device(mesh, "bf16") for step in used for each in step.before]
    assert [drawn[name]["bytes"] for name in ("x used", "W_in used", "hidden used", "W_out used")] == sizes


# ---- the explorer


def test_the_first_picture_says_who_wins_and_why():
    explorer = feedforward()
    assert explorer.kind == "ok" and explorer.value["best"] == "ws2d" == explorer.value["chosen"]
    assert "ws2d) moves least for 512 tokens: 15.2 MiB [modelled]" in explorer.sentence
    assert "at 512 sequences activations are cheaper to move than weights" in explorer.sentence
    assert "wg_x moves least from 18,432 = E [modelled] tokens on" in explorer.sentence


def test_the_winner_changes_as_the_batch_grows():
    explorer, seen = feedforward(length=2048), []
    for batch in (4, 16, 64, 1024):
        explorer.top.press({"batch": batch}, released=False)
        seen.append(explorer.value["best"])
    assert seen == ["ws2d", "wg_x", "wg_xy", "wg_xyz"]
    assert "weights are cheaper to move than activations" in explorer.sentence


def test_a_step_of_the_slider_is_one_event_and_one_message():
    explorer, events, pushed = feedforward(), [], []
    explorer.observe(events.append, "state")
    explorer.picture.observe(pushed.append, "html")
    explorer.top.press({"batch": 1024}, released=False)
    assert explorer.kind == "ok" and len(events) == len(pushed) == 1 and explorer.value["tokens"] == 1024


def test_slices_of_many_devices_are_grey_until_the_hand_lets_go():
    explorer = feedforward(y=8)
    explorer.top.press({"y": 16}, released=False)
    mesh = explorer.slices.drawing["panels"][0]["facts"]
    assert explorer.value["devices"] == 256 != len(mesh["holds"]) and "mw-stale" in explorer.sliced._dom_classes
    explorer.top.press({"y": 16})
    mesh = explorer.slices.drawing["panels"][0]["facts"]
    assert len(mesh["holds"]) == 256 and "mw-stale" not in explorer.sliced._dom_classes
    explorer.top.press({"y": 32}, released=False)
    explorer.top.press({"y": 2}, released=False)  # few enough to be drawn at once
    assert len(explorer.slices.drawing["panels"][0]["facts"]["holds"]) == 32
    assert "mw-stale" not in explorer.sliced._dom_classes


def test_the_ground_of_the_chart_stands_still_while_the_batch_moves():
    grounds = set()
    for batch in (1, 64, 8192):
        page = feedforward(batch=batch).picture.html
        svg = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
        texts = [each for each in svg.iter("{http://www.w3.org/2000/svg}text") if each.get("text-anchor") == "end"]
        grounds.add(tuple((each.get("y"), each.text) for each in texts))
    assert len(grounds) == 1


def test_a_picked_layout_is_shown_and_picked_again_let_go():
    explorer = feedforward()
    explorer.picture.pick("layout:wg_x")
    assert explorer.state["layout"] == "wg_x" == explorer.value["program"]["name"]
    assert "Your wg_x moves 251 MiB [modelled], 16.6 times as much" in explorer.sentence
    explorer.picture.pick("layout:wg_x")
    assert explorer.state["layout"] == "best" and explorer.value["program"]["name"] == "ws2d"


def test_the_star_stands_at_the_best_and_an_arrow_at_what_is_looked_at():
    words = "".join(ET.fromstring(feedforward(layout="wg_xy").svg()).itertext())
    assert "★ ws2d" in words and "▸ wg_xy" in words and words.count("★") == 1
    assert "▸" not in "".join(ET.fromstring(feedforward().svg()).itertext())


def test_a_layout_that_has_too_few_sequences_gives_way_and_an_offer_leads_to_it():
    explorer = feedforward(batch=8, layout="wg_xyz")
    assert explorer.kind == "ok" and explorer.value["chosen"] == "ws2d"
    assert "Wg_xyz needs sequences in multiples of 64, so the best is shown." in explorer.sentence
    explorer.bottom.asked = {"number": 1, "offer": 0}
    assert explorer.state["batch"] == 64 and explorer.value["chosen"] == "wg_xyz"


def test_one_long_sequence_is_told_what_more_would_do():
    explorer = feedforward(batch=1, length=8192 * 1, x=2)
    explorer.top.press({"batch": 9})
    assert "would move less, but needs sequences in multiples of" in explorer.sentence
    explorer.bottom.asked = {"number": 1, "offer": 0}
    assert explorer.value["best"] == "wg_xy" and explorer.value["batch"] == 16


def test_the_steps_are_those_of_the_plan_and_say_why():
    explorer = feedforward(step=2)
    totals = explorer.value["program"]["totals"]
    assert totals["sent"] == planned("ws2d", CUBE, 512, 1, *PALM).link_bytes().total
    assert "reduce-scatter over x" in explorer.steps.drawing["totals"] and explorer.steps.step == 2
    explorer.steps.step = 5
    assert explorer.state["step"] == 5 and "F is contracted" in explorer.steps.drawing["totals"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"layout": "ws3d"}, "no layout 'ws3d'"), ({"weights": "int9"}, "no weights"), ({"batch": 0}, "batch is 0"),
     ({"x": 64, "y": 64}, "the most here is 256"), ({"counted": "twice"}, "no counted"), ({"chart": "x"}, "no chart"),
     ({"d_model": 99}, "No layout can be here"), ({"length": -3, "d_ff": 0}, "d_ff is 0")],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_the_line_and_every_offer_leads_out(settings, words):
    explorer = feedforward(**settings)
    assert explorer.kind == "refused" and words in explorer.sentence and len(explorer.top.row["items"]) > 10
    for number in range(len(explorer.offers)):
        again = feedforward(**settings)
        again.bottom.asked = {"number": 1, "offer": number}
        assert again.kind == "ok"


def test_a_wrong_model_is_refused_by_name():
    with pytest.raises(mtf.LayoutError, match="did you mean"):
        feedforward("palm-541b")
    assert feedforward("Figure 3").state["d_model"] == 16384
    assert feedforward("palm-62b").state["d_ff"] == mtf.model.config("palm-62b").d_ff


def test_a_model_of_the_menu_brings_its_sizes_and_other_sizes_are_ones_own():
    explorer = feedforward()
    explorer.top.press({"model": "palm-8b"})
    cfg = mtf.model.config("palm-8b")
    assert (explorer.state["d_model"], explorer.state["d_ff"]) == (cfg.d_model, cfg.d_ff)
    explorer.top.press({"d_ff": 2 * cfg.d_ff})
    menu = next(each for each in explorer.top.row["items"] if each["name"] == "model")
    assert menu["value"] == "own sizes"


# ---- running


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_runs_at_a_small_size_and_its_answer_is_checked(layout):
    explorer = feedforward(x=2, y=2, z=2, batch=64, layout=layout)
    explorer.top.press({"run": True})
    explorer.queue.join(60)
    _, ran = explorer.ran
    assert ran.same and ran.tally.total == ran.small.program.link_bytes().total > 0
    assert explorer.sentence.startswith(f"Run on 8 simulated devices: the answer of {layout} is that of one device")
    assert "[counted], as planned" in explorer.sentence and explorer.small.part.children == (explorer.small.live,)
    assert "B 2" in explorer.small.live.drawing["about"] or layout != "ws2d"


def test_a_run_of_int8_weights_with_a_gate_moves_them_as_they_are_stored():
    explorer = feedforward(x=2, y=1, z=2, batch=8, layout="wg_x", weights="int8", gated="yes")
    explorer.top.press({"run": True})
    explorer.queue.join(60)
    program = explorer.ran[1].small.program
    assert explorer.ran[1].same and len(program.inputs) == 4
    assert {step.dtype for step in program.collectives() if "L" not in step.before[0].names} == {"i8"}


def test_a_run_is_spoken_of_only_beside_its_own_settings():
    explorer = feedforward(x=2, y=2, z=1, batch=64)
    explorer.top.press({"run": True})
    explorer.queue.join(60)
    explorer.top.press({"counted": "paper"})
    assert explorer.sentence.startswith("Run on 4") and not explorer.stale
    explorer.top.press({"batch": 128})
    assert "Run on 4" not in explorer.sentence and explorer.stale
    explorer.top.press({"batch": 64})
    assert explorer.sentence.startswith("Run on 4") and not explorer.stale


def test_a_wrong_answer_is_never_called_right(monkeypatch):
    monkeypatch.setattr(feedforward_run, "difference", lambda *_: 0.5)
    explorer = feedforward(x=2, y=1, z=1, batch=4, layout="wg_x")
    explorer.top.press({"run": True})
    explorer.queue.join(60)
    assert "is NOT that of one device" in explorer.sentence


def test_differences_are_in_parts_of_the_largest_value():
    assert difference(np.array([1.0, 4.0]), np.array([1.0, 5.0])) == pytest.approx(0.2)
    assert difference(np.array([np.nan, 5.0]), np.array([1.0, 5.0])) == np.inf


def test_a_large_mesh_runs_on_as_many_devices_as_there_are():
    assert smaller_mesh((4, 8, 8)) == (4, 4, 4) and smaller_mesh((1, 1, 256)) == (1, 1, 64)
    for layout in LAYOUTS:
        small = small_layer(layout, Layer(*PALM, batch=512, length=2048), (4, 8, 8))
        assert not reason(layout, small.layer, small.mesh) and small.layer.d_ff == 4 * small.layer.d_model
    odd = small_layer("ws2d", Layer(100, 70, batch=3), (1, 3, 1))
    assert not reason("ws2d", odd.layer, odd.mesh)


def test_a_stopped_run_ends():
    explorer = feedforward(x=2, y=2, z=2, batch=64)
    feedforward_run.SLOW_SECONDS = 20.0
    explorer.top.press({"run": True})
    explorer.top.press({"stop": True})
    explorer.queue.join(60)
    assert explorer.result.stopped and not explorer.sentence.startswith("Run on")


# ---- figures 6 and 7, and the program


def test_a_figure_of_the_paper_gets_our_points_from_the_worker():
    explorer = feedforward(chart="Figure 6")
    explorer.asking.join(60)
    points = explorer.value["figure"]["points"]
    assert len(points) == 6 and len(known("Figure 6")) == 6
    for point in points:
        assert point["ours"] == pytest.approx(point["published"], rel=0.25)
    assert "Figure 6, of the whole model, at 256 chips" in explorer.sentence and "[published]" in explorer.sentence


def test_the_program_of_the_chosen_layout_opens_and_its_code_gives_it_again():
    explorer = feedforward(x=2, y=2, z=2, batch=64, layout="wg_xy", weights="int8", gated="yes")
    explorer.top.press({"program": True})
    opened = explorer.opened
    assert opened.kind == "ok" and opened in explorer.children
    assert opened.value["totals"]["sent"] == explorer.value["program"]["totals"]["sent"]
    scope: dict = {}
    exec(opened.code.replace("\nprogram(", "\nagain = program("), scope)
    assert scope["again"].value["totals"] == opened.value["totals"]
    explorer.top.press({"program": True})
    assert explorer.opened is None and opened not in explorer.children
    explorer.top.press({"d_model": 99})
    explorer.top.press({"program": True})
    assert explorer.opened is None and explorer.kind == "refused"


# ---- shared habits


def test_the_call_gives_the_same_picture():
    explorer = feedforward("palm-62b", batch=64, x=2, layout="wg_x", weights="int8", gated="yes", counted="paper")
    scope: dict = {}
    exec(explorer.code.replace("\nfeedforward(", "\nagain = feedforward("), scope)
    assert scope["again"].state == explorer.state


def test_still_page_file_table_and_facts():
    explorer = feedforward("Figure 3", counted="paper")
    json.dumps(explorer.value)
    still = explorer._still_text()
    assert still.count('class="mw-chart"') == 2 and "[published]" not in still and ">published<" in still
    assert len(still) < 110_000  # the drawings stand in it twice
    ET.fromstring(explorer.svg())
    lines = explorer._shown.table
    assert len({len(line) for line in lines}) == 1 and len(lines) == 1 + 5 + 4 + 56


def test_every_word_of_a_menu_can_be_drawn():
    for name, legal in WORDS.items():
        for word in legal:
            assert feedforward(**{name: word, "x": 2, "y": 2, "z": 2}).kind == "ok"
    assert set(WORDS) < set(START)


def test_an_explorer_that_is_closed_leaves_no_model_behind():
    def opened():
        explorer = feedforward(x=2, y=1, z=1, batch=4)
        explorer.top.press({"program": True})
        return explorer

    opened().close()
    before = set(_instances)
    explorer = opened()
    assert len(_instances) > len(before)
    explorer.close()
    assert set(_instances) == before
