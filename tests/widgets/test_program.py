"""The program explorer without a browser: move a control, read the facts; press Run, compare values with numpy."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.errors import DeviceError, LayoutError
from mtfcore.source.names import Names
from widgets import program
from widgets.explorers.examples import EXAMPLES
from widgets.explorers.inputs import example_inputs
from widgets.explorers.planned import MOST_RUN_BYTES, planned, read_place, run_bytes
from widgets.figures.held import group_of, held_facts
from widgets.figures.program import compared, program_facts, table
from widgets.figures.words import differing
from widgets.numbers import quantity

SMALL = "batch:16 io:8 hidden:32"


def ran(explorer):
    """The explorer after its Run button was pressed and the run has ended."""
    explorer.top.press({"run": True})
    explorer.queue.join(60)
    explorer.check()
    return explorer


def chosen(explorer, step, device=0):
    """The explorer's values at a step and device."""
    explorer.state = {**explorer.state, "step": step, "device": device}
    return explorer.held


def plan_of(explorer):
    s = explorer.run_settings()
    return planned(EXAMPLES[s.pop("fn")].fn, **s)[0]


# ---- the plan


@pytest.mark.parametrize("name", EXAMPLES)
def test_facts_are_the_programs_own_numbers(name):
    explorer = program(name)
    prog, facts = plan_of(explorer), explorer.value
    assert explorer.kind == "ok"
    assert [row["kind"] for row in facts["steps"]] == [step.kind for step in prog.walk()]
    assert [row["arrow"] for row in facts["steps"]] == [step.arrow() for step in prog.walk()]
    assert sum(row["flops"] * row["times"] for row in facts["steps"]) == prog.flops() == facts["totals"]["flops"]
    for axis, sent in prog.link_bytes().by_axis.items():
        assert sum(row["by_axis"].get(axis, 0) * row["times"] for row in facts["steps"]) == sent
        assert facts["totals"]["by_axis"][axis] == sent
    for row, step in zip(facts["steps"], prog.walk(), strict=True):
        local = re.search(r"\[(.*)\]", row["after"]["shape"])[1]
        assert local == ", ".join(map(str, step.after.local_shape(prog.mesh)))


def test_one_sentence_says_why_and_how_much():
    explorer = program(step=3)
    assert explorer.sentence == (
        "Step 4 of 4, all-reduce over cols: hidden is contracted and split over cols: partial sums; the result is "
        "wanted as batch:rows io. Each device holds 32 KiB [modelled] and sends 32 KiB [modelled], in groups of 2."
    )


def test_dragging_an_axis_changes_plan_and_traffic_at_once():
    explorer = program()
    assert explorer.value["totals"]["by_axis"] == {"rows": 0, "cols": 32768}
    explorer.top.press({"axis.cols": 8}, released=False)
    assert explorer.state["mesh"] == "rows:4 cols:8"
    assert explorer.value["totals"]["by_axis"] == {"rows": 0, "cols": 2 * 32768 * 7 // 8}
    assert 'data-traffic="cols" data-bytes="57344"' in explorer.steps.drawing["totals"]


def test_collectives_carry_their_axes_and_local_steps_none():
    drawn = program("weight_stationary_2d").steps.drawing["steps"]
    rows = re.findall(r'<div class="mw-step (mw-\w+)".*?data-axes="([^"]*)".*?style="--mw-edge:([^;]*);', drawn)
    assert [(kind, axes) for kind, axes, _ in rows if kind == "mw-collective"] == [
        ("mw-collective", "z y"), ("mw-collective", "x"), ("mw-collective", "x"), ("mw-collective", "z y"),
    ]  # fmt: skip
    assert all((edge == "transparent") == (kind == "mw-local") for kind, _, edge in rows)


def test_the_two_dimensional_layer_is_the_papers_sequence():
    labels = [row["label"] for row in program("weight_stationary_2d").value["steps"]]
    assert labels == [
        "all-gather over zy of E", "einsum", "reduce-scatter over x into F", "gelu",
        "all-gather over x of F", "einsum", "reduce-scatter over zy into E",
    ]  # fmt: skip


def test_both_choices_stand_side_by_side():
    explorer = program("weight_gradient")
    default, search = (explorer.value["choices"][name] for name in ("default", "search"))
    assert search["sent"] < default["sent"]
    assert explorer.value["differs"]["search"][0] == "step 1 all-gather over rows of batch"
    explorer.top.press({"search": "search"})
    assert explorer.state["search"] is True
    assert explorer.value["choices"] == {"default": default, "search": search}
    assert explorer.value["totals"] == search
    assert explorer.steps.drawing["steps"].count("≠") == len(explorer.value["differs"]["search"])


def test_equal_choices_say_so():
    assert program().value["differs"] == {"default": [], "search": []}
    assert "Both choose the same steps." in program().steps.drawing["totals"]


def test_differing_lays_like_parts_side_by_side():
    assert differing(["a", "b", "c"], ["a", "c", "d"]) == ([1], [2])
    assert differing([], ["a"]) == ([], [0])


def test_every_number_wears_its_origin():
    for name in EXAMPLES:
        explorer = program(name)
        drawn = explorer.steps.drawing["steps"]
        rows = re.findall(r'<span class="mw-numbers">(.*?)</span><span class="mw-bar">', drawn)
        assert len(rows) == len(explorer.value["steps"])
        assert all('<span class="mw-origin">modelled</span>' in row for row in rows)
        for line in table(explorer.value)[1:]:
            assert all(cell == "-" or cell.endswith("[modelled]") for cell in line[4:7])


# ---- choosing a step


def test_the_view_and_the_state_choose_the_same_step():
    explorer = program()
    explorer.steps.step = 2
    assert explorer.state["step"] == 2
    assert explorer.sentence.startswith("Step 3 of 4, einsum")
    explorer.state = {**explorer.state, "step": 1}
    assert explorer.steps.step == 1


def test_a_step_beyond_the_program_is_its_last():
    explorer = program(step=99)
    assert (explorer.value["step"], explorer.steps.step) == (3, 3)


def test_a_shorter_plan_is_one_event():
    explorer, events = program(step=3), []
    explorer.observe(events.append, "state")
    explorer.top.press({"layout": "batch:rows"})
    assert len(events) == 1 and explorer.steps.step == explorer.value["step"] < 3


def test_a_chosen_function_brings_its_settings():
    explorer = program(step=3)
    explorer.top.press({"fn": "weight_stationary_2d"})
    assert explorer.state["mesh"] == "x:2 y:2 z:2"
    assert explorer.state["step"] == 0
    assert explorer.kind == "ok"


# ---- values of a run


def test_values_are_numpys_slices():
    explorer = ran(program(sizes=SMALL))
    prog = explorer.result.value.program
    arrays = example_inputs(prog)
    h = np.maximum(arrays["x"] @ arrays["w"], 0)
    lies = {name: s for value, s in prog.shardings.items() if (name := Names(prog)[value])}
    whole = {**arrays, "h2": h, "out": h @ arrays["v"]}
    seen_at = {"x": 0, "w": 0, "h2": 1, "v": 2, "out": 3}
    for (name, step), device in itertools.product(seen_at.items(), range(8)):
        held = chosen(explorer, step, device)
        (card,) = [each for each in held["devices"] if each["device"] == device]
        (grid,) = [each for each in [*card["before"], card["after"]] if each["name"] == name]
        expected = whole[name][lies[name].slices(prog.mesh, device)]
        shown = np.array(grid["rows"], float)
        np.testing.assert_allclose(shown, expected[: shown.shape[0], : shown.shape[1]], rtol=1e-3, atol=1e-3)


def test_addends_of_a_group_stand_side_by_side_and_sum_up():
    explorer = ran(program(sizes=SMALL))
    held = chosen(explorer, 3, device=5)
    assert held["group"] == [4, 5] == [card["device"] for card in held["devices"]]
    before = sum(np.array(card["before"][0]["rows"], float) for card in held["devices"])
    for card in held["devices"]:
        np.testing.assert_allclose(np.array(card["after"]["rows"], float), before, rtol=2e-3, atol=2e-3)
        assert card["before"][0]["sum"] == "one addend of the sum over cols"
    assert 'data-card="4"' in explorer.values.shown["html"]


def test_a_grid_says_which_part_of_the_whole_it_is():
    explorer = ran(program(sizes=SMALL))
    (card,) = chosen(explorer, 0, device=3)["devices"]
    assert card["title"] == "device 3 (rows 1, cols 1)"
    assert [each["part"] for each in card["before"]] == ["batch 4–7 of 16, io whole", "io whole, hidden 16–31 of 32"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_step_of_every_example_shows_values(name):
    explorer = ran(program(name))
    run, n = explorer.result.value, len(explorer.value["steps"])
    assert explorer.steps.ran
    for step in range(n):
        held = chosen(explorer, step, device=1)
        assert held["step"] == step
        after = next(card["after"] for card in held["devices"] if card["device"] == 1)
        array = np.asarray(run.values(step, 1), float)
        corner = array[(0,) * max(array.ndim - 2, 0)] if array.ndim > 2 else array
        shown = np.array(after["rows"], float)
        corner = corner.reshape(1, -1) if corner.ndim == 1 else corner
        np.testing.assert_allclose(shown, corner[: shown.shape[0], : shown.shape[1]], rtol=1e-3)


def test_inputs_tell_devices_apart():
    prog = plan_of(program())
    for port in prog.inputs:
        array = example_inputs(prog)[port.name]
        parts = {array[port.sharding.slices(prog.mesh, device)].tobytes() for device in range(prog.mesh.size)}
        assert len(parts) == prog.mesh.size // port.sharding.copies(prog.mesh)


def test_looked_up_numbers_stay_inside_the_table():
    prog = plan_of(program("embedding"))
    tokens = example_inputs(prog)["tokens"]
    assert 10 < tokens.max() < 512 and tokens.min() >= 0


def test_groups_follow_the_order_of_the_axes():
    mesh = mtf.Mesh("x:2 y:3")
    assert group_of(mesh, 4, ("y",)) == [3, 4, 5]
    assert group_of(mesh, 0, ("y", "x")) == [0, 3, 1, 4, 2, 5]


def test_large_groups_show_a_part_with_the_chosen_device_in_it():
    explorer = ran(program("weight_gradient", mesh="rows:32", layout="batch:rows", sizes="batch:32 io:4 hidden:32"))
    at = next(n for n, row in enumerate(explorer.value["steps"]) if row["collective"])
    held = chosen(explorer, at, device=20)
    assert len(held["devices"]) == 8 and 20 in [card["device"] for card in held["devices"]]
    assert "8 of the 32 devices" in held["note"]


def test_a_loop_shows_its_body_and_the_last_turn():
    @mtf.function
    def layers(x: "batch io", ws: "layer io io2"):
        def block(carry, w):
            return mtf.rename(mtf.relu(mtf.einsum(carry, w, out="batch io2")), "io2", "io")

        return mtf.repeat(block, 3, ws, x)

    sizes = "batch:4 io:4 io2:4 layer:3"
    explorer = ran(program(layers, mesh="rows:2 cols:2", layout="batch:rows io2:cols", sizes=sizes))
    total = quantity(explorer.value["totals"]["sent"], "iB")
    assert explorer.sentence.endswith(f"; all its turns together send {total} [modelled].")
    inside = [n for n, row in enumerate(explorer.value["steps"]) if len(row["path"]) > 1]
    assert inside and all(explorer.value["steps"][n]["times"] == 3 for n in inside)
    held = chosen(explorer, inside[0])
    assert "Inside a loop" in held["note"]
    run = explorer.result.value
    first = run.values(tuple(explorer.value["steps"][inside[0]]["path"]), 0)
    np.testing.assert_allclose(float(held["devices"][0]["after"]["rows"][0][0]), first[0, 0], rtol=1e-3)


def test_no_time_is_ever_shown_for_a_simulated_run():
    explorer = ran(program(sizes=SMALL))
    values = explorer.values.shown
    said = [explorer.top.progress["text"], explorer.sentence, values["about"], values["html"]]
    assert explorer.top.progress["text"] == "all steps have run"
    assert not any(re.search(r"\d\s?(ns|µs|ms|s)\b|second", text) for text in said)


# ---- results and their settings


def test_walking_keeps_a_result_and_moving_a_control_greys_it():
    explorer = ran(program(sizes=SMALL))
    explorer.steps.step = 2
    explorer.values.device = 6
    assert not explorer.stale and explorer.steps.ran
    explorer.top.press({"axis.rows": 2})
    assert explorer.stale and not explorer.steps.ran
    assert "mw-stale" in explorer.results._dom_classes
    assert explorer.top.progress["text"] == "the result is for mesh='rows:4 cols:2'"
    assert "8 simulated devices" in explorer.values.shown["about"]
    explorer.top.press({"axis.rows": 4})
    assert not explorer.stale and "mw-stale" not in explorer.results._dom_classes


def test_stop_ends_between_two_launches_and_leaves_no_values(monkeypatch):
    explorer, reached, go = program(sizes=SMALL), threading.Event(), threading.Event()
    simulate = mtf.simulate

    def slow(prog):
        reached.set()
        assert go.wait(20)
        return simulate(prog)

    monkeypatch.setattr(mtf, "simulate", slow)
    explorer.top.press({"run": True})
    assert reached.wait(20)
    explorer.top.press({"stop": True})
    go.set()
    explorer.queue.join(60)
    assert explorer.result.stopped
    assert explorer.top.progress["text"] == "stopped: no values"
    assert explorer.values.shown["html"] == ""


def test_a_second_press_while_running_is_not_queued(monkeypatch):
    explorer, go, calls = program(sizes=SMALL), threading.Event(), []
    simulate = mtf.simulate
    monkeypatch.setattr(mtf, "simulate", lambda prog: (calls.append(prog), go.wait(20), simulate(prog))[2])
    for _ in range(3):
        explorer.top.press({"run": True})
    explorer.top.press({"size.batch": 32})  # controls answer while a run is on
    assert explorer.value["steps"][0]["after"]["shape"] == "f32[8, 16]"
    go.set()
    explorer.queue.join(60)
    assert len(calls) == 1 and explorer.stale


# ---- what is refused


def test_an_uneven_size_answers_in_the_sentence_with_ways_out():
    explorer = program()
    explorer.top.press({"size.batch": 63})
    assert explorer.kind == "refused"
    assert "dimension batch of size 63 does not divide over mesh axis rows:4 (4 parts)" in explorer.sentence
    assert [offer.label for offer in explorer.offers] == ["make batch 60", "make batch 64", "leave batch whole"]
    assert "mw-dim" in explorer.stage._dom_classes
    explorer.bottom.asked = {"number": 1, "offer": 1}
    assert explorer.kind == "ok" and explorer.state["sizes"].startswith("batch:64 ")


def test_a_run_too_large_is_refused_before_anything_runs_and_a_smaller_one_works(monkeypatch):
    monkeypatch.setattr(mtf, "simulate", lambda prog: pytest.fail("nothing may run"))
    explorer = program(sizes="batch:4096 io:4096 hidden:16384")
    explorer.top.press({"run": True})
    with pytest.raises(LayoutError, match="the limit here is 64 MiB"):
        explorer.queue.join(60)
    assert explorer.kind == "refused" and "2.88 GiB [modelled]" in explorer.sentence
    (offer,) = explorer.offers
    explorer.bottom.asked = {"number": 1, "offer": 0}
    assert explorer.state["sizes"] == offer.settings["sizes"] and explorer.kind == "ok"
    assert run_bytes(plan_of(explorer)) <= MOST_RUN_BYTES


def test_a_run_that_no_sizes_make_small_enough_names_another_way_out():
    @mtf.function
    def fixed(x: "batch io:8192", w: "io:8192 out:4096"):
        return mtf.einsum(x, w, out="batch out:4096")

    explorer = program(fixed, mesh="rows:2", layout="batch:rows", sizes="batch:2")
    explorer.top.press({"run": None})
    with pytest.raises(LayoutError):
        explorer.queue.join()
    assert explorer.kind == "refused" and not explorer.offers
    assert "halving sizes is not enough here, but watching its traffic" in explorer.sentence


def test_one_device_needs_no_mesh():
    explorer = ran(program(mesh="", layout="", sizes=SMALL))
    assert explorer.value["totals"]["sent"] == 0
    assert chosen(explorer, 0)["devices"][0]["title"] == "device 0"


@pytest.mark.parametrize("dtype", ["bf16", "f16", "i32", "i8"])
def test_other_dtypes_run_too(dtype):
    explorer = ran(program(sizes=SMALL, dtype=dtype))
    assert explorer.kind == "ok" and explorer.value["steps"][0]["after"]["shape"] == f"{dtype}[4, 16]"
    assert chosen(explorer, 3)["devices"][0]["after"]["rows"]


def test_too_few_devices_is_said_in_the_librarys_words():
    explorer = program(mesh="rows:16 cols:8", sizes="batch:16 io:8 hidden:8")
    explorer.top.press({"run": True})
    with pytest.raises(DeviceError):
        explorer.queue.join(60)
    assert explorer.kind == "refused"
    assert "mesh 'rows:16 cols:8' needs 128 devices, this kernel has 64 simulated" in explorer.sentence


def test_unknown_names_are_refused_with_the_nearest():
    explorer = program()
    explorer.state = {**explorer.state, "fn": "two_layer"}
    assert explorer.kind == "refused" and "did you mean 'two_layers'?" in explorer.sentence
    assert "no input 'y'" in program(place={"y": "batch:rows io"}).sentence
    with pytest.raises(LayoutError, match="placed twice") as fault:
        read_place("x: batch; x: io; nonsense")
    assert "'nonsense' does not place an input" in str(fault.value)


def test_a_rule_without_effect_is_a_note():
    explorer = program(layout="batch:rows hidden:cols vocab:rows")
    assert explorer.kind == "ok"
    assert explorer.sentence.startswith("Rule vocab -> rows ignored, no tensor has a dimension 'vocab'")


# ---- a reader's own function


@mtf.function
def scaled(x: "batch io", g: "io one"):
    return mtf.einsum(x, g, out="batch io")


def test_a_readers_function_runs_on_the_readers_arrays():
    x, g = np.arange(32.0).reshape(4, 8), np.arange(8.0).reshape(8, 1)
    settings = {"mesh": "rows:2 cols:2", "layout": "batch:rows io:cols", "sizes": {"batch": 4, "io": 8, "one": 1}}
    explorer = ran(program(scaled, **settings, inputs={"x": x, "g": g}))
    (card,) = chosen(explorer, 0, device=3)["devices"]
    np.testing.assert_allclose(np.array(card["after"]["rows"], float), (x * g[:, 0])[2:, 4:])
    assert "fn=scaled," in explorer.code and explorer.state["fn"] == "scaled"


def test_arrays_of_another_size_are_refused_by_the_run():
    settings = {"mesh": "rows:2", "layout": "batch:rows", "sizes": "batch:4 io:8 one:1"}
    explorer = program(scaled, **settings, inputs={"x": np.zeros((4, 8)), "g": np.zeros((7, 1))})
    explorer.top.press({"run": True})
    with pytest.raises(LayoutError, match="expected"):
        explorer.queue.join(60)
    assert "input g has shape (7, 1), expected (8, 1)" in explorer.sentence


def test_a_function_without_steps_says_so():
    @mtf.function
    def same(x: "batch io"):
        return x

    explorer = ran(program(same, mesh="rows:2", layout="batch:rows", sizes="batch:4 io:2"))
    assert "has no steps" in explorer.sentence and explorer.held is None
    assert "does nothing" in explorer.steps.drawing["steps"]


# ---- what is left behind


def test_closing_gives_up_every_part():
    explorer = program()
    parts = (explorer, explorer.top, explorer.bottom, explorer.stage, explorer.steps, explorer.results, explorer.values)
    assert all(part.comm is not None for part in parts)
    explorer.close()
    assert all(part.comm is None for part in parts)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_copied_call_gives_the_same_picture(name):
    explorer = program(name, search=True, step=1, device=2)
    found: dict = {}
    exec(explorer.code.replace("\nprogram(", "\nfound = program("), found)
    assert found["found"].state == explorer.state
    cleared = program(name)
    cleared.state = {**cleared.state, "place": ""}
    exec(cleared.code.replace("\nprogram(", "\nfound = program("), found)
    assert found["found"].state == cleared.state


def test_still_picture_and_svg_say_what_the_live_one_says():
    explorer = program("weight_stationary_2d")
    still = explorer._still_text()
    assert still.count('class="mw-step ') == 7 and "reduce-scatter over zy into E" in still
    drawing = ElementTree.fromstring(explorer.svg())
    assert len([node for node in drawing.iter() if "data-step" in node.attrib]) == 7
    assert "reduce-scatter over zy into E" in "".join(drawing.itertext())


def test_the_same_program_in_plain_jax_is_made_when_unfolded():
    explorer = program()
    assert explorer.steps.source == ""
    explorer.steps.unfolded = True
    assert "psum" in explorer.steps.source and "mtfcore" not in explorer.steps.source
    explorer.top.press({"fn": "embedding"})
    assert "def embedding" in explorer.steps.source


def test_an_explorer_needs_no_jax_until_run_is_pressed():
    code = "import sys\nfrom widgets import program\nprogram().top.press({'axis.rows': 8})\nprint('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"


def test_facts_work_without_an_explorer():
    prog = mtf.plan(EXAMPLES["two_layers"].fn, "rows:4 cols:2", "batch:rows hidden:cols", sizes=SMALL)
    facts = compared(program_facts(prog), program_facts(prog), search=False)
    assert facts["apart"] == [] and len(table(facts)) == 1 + 4 + 2
    run = mtf.simulate(prog)
    run(**example_inputs(prog))
    assert held_facts(run, (0,), 0)["label"] == "einsum"


def test_a_run_that_is_refused_leaves_the_plan_undimmed():
    mtf.devices(64)  # from the first run on there are no more
    explorer = program(mesh="rows:64 cols:2", sizes="batch:64 io:4 hidden:4")
    explorer.top.press({"run": True})
    with pytest.raises(mtf.DeviceError, match="needs 128 devices"):
        explorer.queue.join(60)
    assert explorer.kind == "refused" and "needs 128 devices" in explorer.sentence
    assert "mw-dim" not in explorer.stage._dom_classes
