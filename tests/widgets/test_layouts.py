"""`layouts` without a page: the five layouts' numbers, what it says, what it refuses and offers, one event a step."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ET

import pytest
from ipywidgets.widgets.widget import _instances

import mtfcore as mtf
from mtfcore.costs.first_paper.two_layers import ROWS, Sizes, cost
from mtfcore.costs.first_paper.two_layers_programs import planned
from widgets import iteration_space, layouts, program, traffic
from widgets.figures.layouts import compared
from widgets.figures.layouts_charts import growth_chart, memory_chart, ratio_chart, time_chart
from widgets.figures.layouts_words import sentence, table
from widgets.numbers import ORIGINS, quantity

SIZES, MESH = Sizes(batch=8192, io=4096, hidden=131072), (16, 8, 4)


def facts(sizes: Sizes = SIZES, mesh=MESH, chip="v2", dtype="bf16", optimizer="adam", passes="training"):
    return compared(sizes, mesh, mtf.chip(chip), dtype, optimizer, passes)


# ---- facts


@pytest.mark.parametrize("passes", ["forward", "training"])
def test_the_numbers_are_those_of_the_planned_program(passes):
    sizes, mesh, chip = Sizes(64, 32, 128), (4, 2, 2), mtf.chip("v2")
    for row, found in zip(ROWS.values(), facts(sizes, mesh, passes=passes)["rows"], strict=True):
        program = planned(row, sizes, *mesh, passes=passes)
        assert found["compute"] == program.flops() / chip.peak_flops_per_device("bf16")
        assert found["communicate"] == pytest.approx(program.link_bytes() / chip.link_bytes_per_second)
        assert found["mesh"] == str(program.mesh)


def test_the_best_is_the_fastest_that_fits():
    found = facts()
    assert [row["fits"] for row in found["rows"]] == [False, False, True, True, True]
    assert found["rows"][found["best"]]["layout"] == "batch:rows hidden:cols"
    fastest = min((row for row in found["rows"] if row["fits"]), key=lambda row: row["seconds"])
    assert fastest is found["rows"][found["best"]]


def test_of_equal_layouts_the_earlier_is_best():
    found = facts(mesh=(16, 32, 1))
    assert found["rows"][3]["seconds"] == found["rows"][4]["seconds"] and found["best"] == 3
    assert "batch:rows hidden:cols io:planes does the same here" in sentence(found)


def test_a_size_too_small_for_all_devices_is_said_for_its_layout_alone():
    found = facts(Sizes(64, 4096, 131072))
    assert [bool(row["fault"]) for row in found["rows"]] == [False, True, False, False, False]
    assert "batch 64 does not divide into 512 parts" in found["rows"][1]["fault"]
    assert "Cannot be here: batch, since" in sentence(found)


def test_growing_keeps_what_a_device_has():
    found = facts()["curves"]
    assert [point["devices"] for point in found["mixed"]] == [1, 4, 16, 64, 256, 1024, 4096]
    assert [point["devices"] for point in found["cubic"]] == [1, 8, 64, 512, 4096]
    assert len({round(point["printed"], 12) for point in found["mixed"]}) == 1
    data = [point["printed"] for point in found["data"]]
    assert [two / one for one, two in itertools.pairwise(data)] == [2.0] * (len(data) - 1)
    assert [point["fits"] for point in found["data"]][-2:] == [False, False]


# ---- charts and words


def test_bars_are_the_facts():
    found = facts()
    compute, send = time_chart(found)["data"]
    assert compute["y"] == [row["compute"] for row in found["rows"]]
    assert send["y"] == [row["communicate"] for row in found["rows"]]
    parts = memory_chart(found)["data"]
    assert [sum(column) for column in zip(*(part["y"] for part in parts))] == [row["held"] for row in found["rows"]]
    assert growth_chart(found)["data"][0]["y"] == [point["efficiency"] for point in found["curves"]["mixed"]]


def test_long_bars_are_cut_and_say_how_long_they_are():
    found = facts()
    chart = time_chart(found)["layout"]
    assert chart["yaxis"]["range"][1] < found["rows"][0]["seconds"]
    assert f"↑ {quantity(found['rows'][0]['seconds'], 's')}" in [each["text"] for each in chart["annotations"]]


def test_memory_shows_the_line_where_it_runs_out():
    layout = memory_chart(facts())["layout"]
    assert layout["shapes"][0]["y0"] == mtf.chip("v2").hbm_bytes_per_device
    assert not memory_chart(facts(Sizes(512, 64, 512)))["layout"].get("shapes")  # far below it


def test_a_ratio_of_nothing_and_of_very_much_stay_on_the_axis():
    found = facts(Sizes(512, 16384, 65536))
    heights = ratio_chart(found)["data"][0]["y"]
    assert heights[0] == 0 and max(heights) <= 6
    assert ratio_chart(found)["layout"]["annotations"][0]["text"] == "0"


@pytest.mark.parametrize("make", [time_chart, memory_chart, ratio_chart, growth_chart])
def test_charts_are_json_and_wear_their_origin(make):
    chart = make(facts(Sizes(64, 4096, 131072)))
    json.dumps(chart)
    assert "modelled" in chart["layout"]["title"]["text"]
    assert all("modelled" in text for trace in chart["data"] for text in trace["hovertext"])


def test_the_sentence_gives_layout_reason_and_memory():
    says = sentence(facts())
    for part in ("Best of the five: batch:rows hidden:cols. A step takes 6.95 ms, 65.9 % of it computing [modelled]",
                 "Most of its ratio c/d_h + r/b is the 16/8,192 of batch: a larger batch, or fewer rows, would help",
                 "Memory runs out for none (16.1 GiB), batch (12 GiB) [modelled] on a device with 8 GiB [published]",
                 "memory ends at 1,024 devices"):  # fmt: skip
        assert part in says


@pytest.mark.parametrize(
    ("sizes", "mesh", "words"),
    [
        (Sizes(64, 64, 64), (1, 1, 1), "One device has nobody to send to"),
        (Sizes(4096, 262144, 262144), (1, 1, 1), "No layout of the five fits"),
        (Sizes(8192, 1024, 131072), (1, 512, 1), "Best of the five: hidden:all"),
        (Sizes(65536, 8192, 8192), (512, 1, 1), "Best of the five: batch:all"),
        (Sizes(8, 8, 8), (2, 2, 2), "Best of the five"),
    ],
)
def test_the_sentence_elsewhere(sizes, mesh, words):
    assert words in sentence(facts(sizes, mesh))


def test_the_table_has_every_layout_and_every_number_its_origin():
    head, *rows = table(facts())
    assert [row[0] for row in rows[:5]] == ["none", *list(ROWS)[1:]]
    assert all(len(row) == len(head) for row in rows)
    tags = tuple(f"[{word}]" for word in ORIGINS)
    assert all(cell.endswith(tags) for row in rows[:5] for cell in row[2:12])
    assert [row[-1] for row in rows[:2]] == ["no: 64,512 [modelled]", "no: 87,321 [modelled]"]
    published = ["[published]" in row[2] for row in rows[:5]]  # the formula, never the number
    assert published == [row.published for row in ROWS.values()]


# ---- the explorer


def values(explorer) -> dict[str, object]:
    return {item["name"]: item["value"] for item in explorer.top.row["items"]}


def test_one_step_is_one_event_and_one_message_for_all_charts():
    explorer, events, pushed = layouts(), [], []
    explorer.observe(events.append, "state")
    explorer.picture.observe(pushed.append, "html")
    explorer.top.press({"batch": 16384}, released=False)
    assert len(events) == 1 and len(pushed) == 1
    assert explorer.value["sizes"]["batch"] == 16384 and explorer.kind == "ok"


def test_axes_clamp_to_what_the_sizes_can_give():
    explorer, events = layouts(), []
    explorer.observe(events.append, "state")
    explorer.top.press({"planes": 4096})
    assert explorer.state["planes"] == 32 and len(events) == 1  # 4,096 devices at most, with rows 16 and cols 8
    assert explorer.sentence.startswith("Planes 4096 is not possible here; 32 is the nearest.")
    explorer.top.press({"batch": 3})
    assert explorer.state["batch"] == 16 and len(events) == 2
    assert explorer.sentence.startswith("Batch 3 is not possible here; 16 is the nearest.")


def test_uneven_sizes_are_refused_with_ways_out():
    explorer = layouts()
    explorer.top.press({"batch": 8200})
    assert explorer.kind == "refused" and "batch 8,200 does not divide over rows = 16" in explorer.sentence
    assert [offer.label for offer in explorer.offers] == ["batch 8,192", "batch 8,208", "rows 10"]
    explorer.bottom.asked = {"number": 1, "offer": 2}
    assert explorer.kind == "ok" and explorer.state["rows"] == 10


def test_every_offer_leads_out():
    settings = {"batch": 100, "io": 50, "hidden": 333, "rows": 8, "cols": 3, "planes": 2}
    for number in range(len(layouts(**settings).offers)):
        explorer = layouts(**settings)
        faults = explorer.sentence.count("does not divide")
        explorer.bottom.asked = {"number": 1, "offer": number}
        assert explorer.kind == "ok" or explorer.sentence.count("does not divide") < faults


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"rows": 1 << 31}, "rows is 2,147,483,648; it goes from 1 to 4,096"),
     ({"batch": 1 << 40, "io": -4}, "io is -4; it goes from 1 to 1,048,576"),
     ({"rows": 64, "cols": 64, "planes": 4}, "rows · cols · planes = 16,384 devices; the most here is 4,096"),
     ({"rows": 4096, "cols": 4096, "planes": 4096}, "the most here is 4,096")],
)  # fmt: skip
def test_beyond_the_controls_it_refuses_at_once_and_leads_back(settings, words):
    explorer = layouts(**settings)
    assert explorer.kind == "refused" and words in explorer.sentence
    while explorer.kind != "ok":
        before = explorer.sentence
        explorer.bottom.asked = {"number": len(before), "offer": 0}
        assert explorer.sentence != before


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"chip": "v9"}, "no chip 'v9'"), ({"optimizer": "adams"}, "did you mean 'adam'"), ({"rows": 0}, "rows is 0"),
     ({"passes": "both"}, "no 'both'"), ({"dtype": "f33"}, "f33")],
)  # fmt: skip
def test_unknown_words_are_refused_in_the_sentence(settings, words):
    explorer = layouts(**settings)
    assert explorer.kind == "refused" and words in explorer.sentence


@pytest.mark.parametrize("chip", ["v2", "v3", "v4", "v5e", "v5p", "v6e", "v7x", "a100", "h100", "h200"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_every_chip_and_type_gives_a_picture(chip, dtype):
    explorer = layouts(chip=chip, dtype=dtype)
    assert explorer.kind == "ok" and explorer.value["hbm"] == mtf.chip(chip).hbm_bytes_per_device


def test_the_call_gives_the_same_picture():
    explorer = layouts(batch=512, rows=8, chip="v4")
    scope: dict = {}
    exec(explorer.code.replace("\nlayouts(", "\nagain = layouts("), scope)
    assert scope["again"].value == explorer.value


def test_the_still_page_and_the_file_hold_the_four_charts():
    explorer = layouts()
    still = explorer._still_text()
    assert still.count('class="mw-chart"') == 4 and "a device has 8 GiB (published)" in still
    assert len(list(ET.fromstring(explorer.svg()).iter("{http://www.w3.org/2000/svg}svg"))) == 5
    assert len(still) < 80_000  # the drawings stand in it twice


def test_closing_gives_up_the_charts():
    explorer = layouts()
    explorer.close()
    assert explorer.picture.comm is None


@pytest.mark.parametrize("make", [layouts, traffic, program, iteration_space])
def test_an_explorer_that_is_closed_leaves_no_model_behind(make):
    make().close()
    before = set(_instances)
    explorer = make()
    assert len(_instances) > len(before)
    explorer.close()
    assert set(_instances) == before


def test_costs_are_those_of_the_forms():
    row = ROWS["batch:rows hidden:cols"]
    assert facts()["rows"][3]["sent"] == cost(row, SIZES, row.parts(*MESH)).sent_bytes
