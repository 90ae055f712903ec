"""Plans, lists and frontiers as pure data: what a reader compares, without any estimate being made."""

from __future__ import annotations

import json
import types
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from widgets.explorers.plan_inputs import (
    is_path,
    model_text,
    padded_heads,
    presets,
    read_model,
    slices_of,
    split_model,
    with_chip,
)  # fmt: skip
from widgets.explorers.plan_prices import price_of, read_prices
from widgets.figures.finding import find
from widgets.figures.finding_html import finding_html
from widgets.figures.finding_words import sentence as found_sentence
from widgets.figures.finding_words import table as found_table
from widgets.figures.frontier import frontier_facts, key, pareto, read_key
from widgets.figures.frontier_svg import frontier_svg, legend_html, saved_frontier
from widgets.figures.frontier_words import sentence as frontier_sentence
from widgets.figures.planner_svg import answers, memory_svg, partitions_svg, planner_file, planner_html, time_svg
from widgets.figures.planner_words import sentence, table
from widgets.figures.plans import candidates, item, money, plan_facts, shares
from widgets.numbers import ORIGINS

FOUND = {
    "prefill_seconds": 2.0, "decode_seconds": 6.4, "step_seconds": 0.1, "mfu": 0.5, "prefill_mfu": 0.6,
    "decode_mfu": 0.2, "fits": True, "layouts": {"prefill": "ws2d-heads", "decode": "ws2d-batch"},
    "bottleneck": {"prefill": "compute", "decode": "HBM: weights"},
    "memory": {"weights": 8e9, "cache": 4e9, "activations": 1e9, "gathered": 0.0, "reserve": 3e9, "total": 13e9,
               "capacity": 32e9},
    "parts": {"prefill": {"compute": 1.5, "hbm": 0.0, "link": 0.4, "launch": 0.1},
              "decode": {"compute": 0.0, "hbm": 0.075, "link": 0.019, "launch": 0.006}},
    "candidates": {
        "prefill": {"ws2d-heads": {"seconds": 2.0, "reason": ""}, "ws1d-heads": {"seconds": 3.0, "reason": ""},
                    "wg_x-heads": {"seconds": float("nan"), "reason": "batch 2 does not divide over x:4"}},
        "decode": {"ws2d-batch": {"seconds": 0.1, "reason": ""}, "ws1d-batch": {"seconds": 1.0, "reason": ""}},
    },
    "chip_seconds_per_token": 0.01, "max_batch_by_phase": {"prefill": 80, "decode": 200}, "max_context": 9000,
    "fits_by_phase": {"prefill": True, "decode": True}, "warnings": [],
}  # fmt: skip
ABOUT = {
    "model": "a-model", "n_params": 62e9, "source": "a paper", "left_out": "", "topology": "v4:2x2x4",
    "chips": 16, "chip": "v4", "title": "TPU v4", "price": None, "pinned": {"prefill": "auto", "decode": "auto"},
    "batch": 64, "prompts": 4,
    "input_tokens": 2048, "output_tokens": 64, "cached_tokens": 0, "weights": "int8", "cache": "bf16", "reserve": 10,
}  # fmt: skip
HELPS = [
    {"words": "v4:2x4x4", "settings": {}, "step": 0.06, "prefill_seconds": 1.1, "chip_seconds": 0.03, "fits": True},
    {"words": "batch 128", "settings": {}, "step": 0.13, "prefill_seconds": 4, "chip_seconds": 0.016, "fits": True},
    {"words": "batch 32", "settings": {}, "step": 0.01, "prefill_seconds": 1, "chip_seconds": 0.001, "fits": False},
]


def facts(found=FOUND, helps=HELPS, **about) -> dict:
    return {**plan_facts(found, {**ABOUT, **about}), "helps": helps}


# ---- one plan


def test_costs_are_chips_times_seconds_for_each_token():
    found = facts()["chip_seconds"]
    assert found["decode"] == 16 * 0.1 / 64 and found["prefill"] == 16 * 2.0 / (4 * 2048)
    assert money(3600, 2.5) == 2.5 and money(1, None) is None


def test_one_of_many_is_taken_out_of_every_kind_of_field():
    field = {"a": np.array([1.5, 2.5]), "b": {"c": np.array(["x", "y"], dtype=object)}, "d": 7, "e": np.float64(3)}
    assert item(field, (1,)) == {"a": 2.5, "b": {"c": "y"}, "d": 7, "e": 3.0}
    assert type(item(np.array([True]), (0,))) is bool and item(np.array(4.0)) == 4.0


def test_candidates_have_seconds_or_a_reason():
    nan = float("nan")
    given = {"a": {"seconds": 1.0, "reason": "", "fits": True},
             "b": {"seconds": nan, "reason": "9 heads", "fits": False}}  # fmt: skip
    assert candidates(given) == {"a": {"seconds": 1.0, "reason": "", "fits": True},
                                 "b": {"seconds": None, "reason": "9 heads", "fits": False}}  # fmt: skip


def test_answers_wear_their_origin_and_money_is_the_readers():
    given = {name: number for name, number, _ in answers(facts())}
    assert given["step"] == "100 ms [modelled]" and given["cost"] == "25 chip-ms [modelled]"
    assert given["million.decode"] == "6.94 chip-h [modelled]" and given["fits"] == "50 % [modelled]"
    priced = {name: number for name, number, _ in answers(facts(price=2.0))}
    assert priced["million.decode"] == "13.9 [modelled]"
    assert all(number.endswith("[modelled]") for number in given.values())


def test_memory_goes_term_by_term_to_the_sum_and_shows_where_it_ends():
    root = ET.fromstring(memory_svg(facts()))
    bars = {each.get("data-bar"): float(each.get("data-value")) for each in root.iter() if each.get("data-bar")}
    assert bars == {"weights": 8e9, "cache": 4e9, "activations": 1e9, "gathered": 0, "reserve": 3e9, "in all": 16e9}
    assert "a device has 29.8 GiB (published)" in "".join(root.itertext())


def test_time_is_split_by_what_it_waits_for():
    root = ET.fromstring(time_svg(facts()))
    found = [(each.get("data-part"), float(each.get("data-value"))) for each in root.iter() if each.get("data-part")]
    assert [value for part, value in found if part == "HBM"] == [0.0, 0.75]
    assert shares({"a": 1.0, "b": 3.0}) == {"a": 0.25, "b": 0.75} and shares({"a": 0.0}) == {"a": 0.0}


def test_partitions_are_sorted_and_the_impossible_say_why():
    root = ET.fromstring(partitions_svg(facts(), "prefill"))
    assert [each.get("data-pick") for each in root.iter() if each.get("data-pick")] == [
        "prefill:ws2d-heads", "prefill:ws1d-heads",
    ]  # fmt: skip
    assert "batch 2 does not divide over x:4" in "".join(root.itertext())
    decode = "".join(ET.fromstring(partitions_svg(facts(), "decode")).itertext())
    assert "100 ms" in decode and "1 s" in decode  # of one token, not of the output


def test_the_sentence_says_how_long_how_it_lies_what_it_waits_for_and_what_would_help():
    says = sentence(facts())
    for part in ("a-model on v4:2x2x4, batch 64: a token takes 100 ms, prefill of 4 prompts 2 s [modelled]",
                 "Prefill lies as ws2d-heads, decode as ws2d-batch: the fastest pair that keeps the weights once",
                 "a token waits most for HBM: weights (75 %)",
                 "What shortens a token most is v4:2x4x4: 60 ms a token [modelled]",
                 "What saves most is batch 128: 36 % less for a token [modelled]"):  # fmt: skip
        assert part in says
    full = sentence(facts({**FOUND, "fits": False, "fits_by_phase": {"prefill": True, "decode": False}}))
    assert "It does not fit in decode: 14.9 GiB [modelled] with the reserve" in full
    assert "where a device has 29.8 GiB [published]" in full
    assert "decode as you pinned it" in sentence(facts(pinned={"prefill": "auto", "decode": "ws2d-batch"}))


def test_table_and_pictures_are_whole():
    found = facts()
    head, *rows = table(found)
    assert all(len(row) == len(head) == 3 for row in rows) and len(rows) > 35
    json.dumps(found)
    assert planner_html(found).count('class="mw-chart"') == 4
    ET.fromstring(planner_file(found))


# ---- under a limit


def trial(chip="v4", chips=16, batch=64, step=0.02, fits=True, **more) -> dict:
    return {
        "chip": chip, "topology": f"{chip}:{chips}", "chips": chips, "batch": batch, "step": step, "fits": fits,
        "fits_in": {"prefill": fits, "decode": fits},
        "prefill_seconds": 1.0, "chip_seconds": chips * step / batch, "held": 0.5,
        "prefill_chip_seconds": chips / (batch * 2048), "mfu": {"prefill": 0.5, "decode": 0.1},
        "layouts": {"prefill": "ws2d-heads", "decode": "ws2d-batch"},
        "bottleneck": {"prefill": "compute", "decode": "HBM: weights"}, **more,
    }  # fmt: skip


TRIALS = [
    trial(batch=1, step=0.01), trial(batch=64, step=0.02), trial(batch=128, step=0.04), trial(chips=8, step=0.025),
    trial(chips=4, step=0.05), trial("v5e", 32, 16, 0.029), trial("h100", 8, 64, 0.04), trial("h100", 8, 1, 0.031),
    trial("v2", 8, fits=False),
]  # fmt: skip
ALL = {"n_waiting": 0, "n_slices": 6, "uncalibrated": ["h100", "v5e"]}


def test_each_slice_has_the_batch_that_costs_least_within_the_limit():
    found = find(TRIALS, 0.030, {})
    assert [(row["topology"], row["batch"]) for row in found["rows"]] == [("v4:8", 64), ("v4:16", 64), ("v5e:32", 16)]
    assert found["n_met"] == 3 and found["n_trials"] == len(TRIALS)


def test_a_chip_that_misses_says_how_near_it_comes():
    found = find(TRIALS, 0.030, {})
    assert set(found["nearest"]) == {"h100", "v2"} and found["nearest"]["v2"] is None
    assert found["nearest"]["h100"]["step"] == 0.031
    says = found_sentence({**found, **ALL})
    assert "Fewest chips under 30 ms a token: v4:8 (8 chips), batch 64" in says
    assert "Fewest chip-seconds a token: v4:8 at batch 64: 3.12 chip-ms; v5e:32 at batch 16: 58 chip-ms" in says
    assert "h100: at best 31 ms with h100:8; v2: nothing fits [modelled]" in says


def test_with_prices_the_list_goes_by_money():
    found = find(TRIALS, 0.030, {"v4": 10.0, "v5e": 0.01, "h100": 1.0})
    assert [row["chip"] for row in found["rows"]] == ["v5e", "v4", "v4"]
    assert [row["topology"] for row in find(TRIALS, 0.030, {"v4": 1.0})["rows"]] == ["v4:8", "v4:16", "v5e:32"]
    assert found["rows"][0]["million"] == pytest.approx(1e6 * 32 * 0.029 / 16 * 0.01 / 3600)
    assert "Least money: v5e:32" in found_sentence({**found, **ALL})


def test_the_list_can_be_pressed_and_is_a_table():
    found = find(TRIALS, 0.030, {})
    page = finding_html({**found, **ALL})
    assert "h100, v5e: no fitted constants, so bounds" in page
    assert [f'data-pick="load:{n}"' in page for n in range(4)] == [True, True, True, False]
    assert 'data-missed="h100"' in page and "[" not in page
    head, *rows = found_table(found)
    tags = tuple(f"[{word}]" for word in ORIGINS)
    assert len(rows) == 3 and all(row[3].endswith(tags) and len(row) == len(head) for row in rows)


def test_nothing_met_is_said():
    nothing = find(TRIALS, 0.001, {})
    assert found_sentence({**nothing, **ALL}).startswith("Nothing meets 1 ms a token.")
    waiting = found_sentence({**nothing, "n_waiting": 2, "n_slices": 6})
    assert waiting.startswith("Nothing yet meets 1 ms a token.") and "on 4 slices, 2 to go." in waiting


# ---- frontier


def test_the_line_has_what_nothing_beats():
    places = [(1, 9), (2, 9), (2, 5), (3, 6), (4, 1), (1, 10)]
    assert pareto(range(6), places.__getitem__) == [0, 2, 4]


def test_points_lines_and_published_marks_are_drawn():
    tried = [{**each, "model": "palm-540b", "weights": "int8", "setup": None} for each in TRIALS]
    printed = [{"phase": "decode", "model": "palm-540b heads=64", "seconds": 0.03, "chip_seconds": 0.03, "chip": "v4",
                "topology": "v4:16", "batch": 64, "where": "Figure 1: a point", "partition": "ws2d-batch"}]  # fmt: skip
    about = {"models": ["palm-540b"], "chips": ["v4", "v5e", "h100", "v2"], "chosen": key(tried[3]),
             "input_tokens": 2048, "output_tokens": 64, "n_waiting": 0, "n_slices": 9,
             "uncalibrated": ["h100"]}  # fmt: skip
    found = frontier_facts(tried, printed, about)
    assert len(found["points"]) == 8 and found["series"] == ["palm-540b int8 v4", "palm-540b int8 v5e",
                                                             "palm-540b int8 h100"]  # fmt: skip
    root = ET.fromstring(frontier_svg(found, "decode"))
    keys = [each.get("data-key") for each in root.iter() if each.get("data-key")]
    assert len(keys) == sum(len(line["at"]) for line in found["lines"]["decode"])
    assert [each.get("data-published") for each in root.iter() if each.get("data-published")] == ["Figure 1: a point"]
    assert [each.get("data-chosen") for each in root.iter() if each.get("data-chosen")] == [key(tried[3])]
    assert "published" in legend_html(found) and "h100" in legend_html(found)
    ET.fromstring(saved_frontier(found))
    assert "Chosen: palm-540b on v4:8, batch 64" in frontier_sentence(found)


def test_a_points_name_is_read_back():
    point = {"model": "palm-540b heads=64", "weights": "int8", "topology": "v4:4x4x4", "batch": 64}
    assert read_key(key(point)) == point and read_key("published 3") == {}


# ---- what a reader types


def test_models_are_presets_with_changes_or_files():
    assert "palm-540b" in presets() and not any(name.startswith("tiny") for name in presets())
    assert read_model("palm-540b heads=64").heads == 64
    assert split_model("a/b c.json heads=64") == ("a/b c.json", {"heads": 64})
    assert model_text("palm-8b", {"heads": 32}) == "palm-8b heads=32" and is_path("config.json")
    assert padded_heads("palm-540b") == "palm-540b heads=64" and padded_heads("palm-540b heads=64") == ""
    for wrong, words in (("palm-540", "did you mean 'palm-540b'"), ("palm-540b heads=x", "'heads=x' changes nothing"),
                         (f"palm-8b heads={'9' * 5_000}", "changes nothing"),
                         ("mtf-translate-4.9b", "legal here"), ("palm-540b head=3", "heads")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            read_model(wrong)


def test_one_slice_for_each_power_of_two():
    assert [one.chips for one in slices_of("v4", 64)] == [1, 2, 4, 8, 16, 32, 64]
    assert str(slices_of("v4", 64)[-1]) == "v4:4x4x4" and str(slices_of("h100", 16)[-1]) == "h100:2x8"
    assert slices_of("v5e", 1024)[-1].chips == 256
    assert with_chip("v4:8x8x8", "v5e") == "v5e:16x16" and with_chip("v4:4x4x4", "h100") == "h100:8x8"


def test_prices_are_read_or_refused():
    assert read_prices("") == {} and price_of({}, "v4") is None
    assert read_prices("2.5") == {"*": 2.5} and price_of(read_prices("2.5"), "v4") == 2.5
    assert read_prices("v5e 1.2, h100: 3") == {"v5e": 1.2, "h100": 3.0}
    for wrong in ("free", "-1", "v9 2", "v4 nan", "1e99"):
        with pytest.raises(ValueError, match="price"):
            read_prices(wrong)


def test_published_rows_become_points():
    from widgets.figures.frontier import published_points

    setup = {"model": "palm-540b", "changes": {"heads": 64}, "topology": "v4:4x4x4", "phase": "decode", "batch": 64,
             "input_tokens": 2048, "output_tokens": 64, "weights": "int8", "cache": "bf16", "ffn": "ws2d",
             "attention": "batch"}  # fmt: skip
    row = types.SimpleNamespace(setup=setup, quantity="latency", seconds=1.82, table="Table 2", name="low latency",
                                printed="1.82", unit="s")  # fmt: skip
    (found,) = published_points([row], ["palm-540b"], (2048, 64))
    assert found["seconds"] == 1.82 / 64 and found["chip_seconds"] == pytest.approx(1.82 / 64)
    assert (found["model"], found["partition"]) == ("palm-540b heads=64", "ws2d-batch")
    assert published_points([row], ["palm-62b"], (2048, 64)) == published_points([row], ["palm-540b"], (20, 8)) == []
