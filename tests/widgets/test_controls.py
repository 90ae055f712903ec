"""Controls clamp to the nearest possible value and say so."""

from __future__ import annotations

import pytest

from widgets.controls import Button, Choice, IntBox, TextBox, find, most


@pytest.mark.parametrize(
    ("asked", "given", "says"),
    [
        (8, 8, ""),
        (7, 7, ""),
        (64, 32, "rows 64 is not possible here; 32 is the nearest"),
        (0, 1, "rows 0 is not possible here; 1 is the nearest"),
        (3.7, 3, "rows 3.7 is not possible here; 3 is the nearest"),
        (8.0, 8, ""),
        (None, 4, "rows takes a whole number; it stays 4"),
        (float("-inf"), 4, "rows takes a whole number, not -inf; it stays 4"),
        ("many", 4, "rows takes a whole number, not 'many'; it stays 4"),
    ],
)
def test_int_box(asked, given, says):
    assert IntBox("rows", 4, high=32).clamp(asked) == (given, says)


def test_choice_falls_back_to_the_first_option():
    choice = Choice("dtype", "bf16", "type", options=(("bf16", "two bytes"), ("f32", "four bytes")))
    assert choice.clamp("f32") == ("f32", "")
    assert choice.clamp("f8") == ("bf16", "type 'f8' is not possible here; 'two bytes' is the nearest")
    assert choice.clamp(["f32"])[0] == "bf16"


def test_a_pasted_file_does_not_become_a_setting():
    text, says = TextBox("dims", "", longest=5).clamp("batch:64")
    assert text == "batch" and "cut at 5" in says


def test_what_no_saved_picture_may_hold_is_left_out_of_a_text():
    assert TextBox("dims", "").clamp("a:\x002\ud800 b:3\n")[0] == "a:2 b:3\n"
    assert "left out" in TextBox("dims", "").clamp("\x00")[1] and TextBox("dims", "").clamp("größe:2")[1] == ""


def test_a_note_stays_short_whatever_was_asked():
    long = "x" * 5_000
    asked = (IntBox("rows", 4), Choice("dtype", "f32", options=(("f32", "four bytes"),)))
    assert all(len(control.clamp(long)[1]) < 300 for control in asked)


def test_specs_are_what_the_page_draws():
    spec = IntBox("axis.rows", 4, "rows", "Mesh", high=8).spec()
    assert spec == {
        "kind": "int", "name": "axis.rows", "value": 4, "label": "rows", "group": "Mesh", "hint": "",
        "low": 1, "high": 8,
    }  # fmt: skip
    assert Button("run", None).spec()["label"] == "run"


def test_find_and_most():
    controls = [IntBox("a", 1), IntBox("b", 2)]
    assert find(controls, "b") is controls[1] and find(controls, "c") is None
    assert [most(512), most(512, 8), most(512, 8, 8), most(512, 600), most(512, 100)] == [512, 64, 8, 1, 5]
