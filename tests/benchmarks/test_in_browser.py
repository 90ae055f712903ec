"""The arithmetic and the page of `make speed`, on made-up times: nothing here is measured."""

from __future__ import annotations

import json

import pytest

import widgets

pytest.importorskip("playwright")

from tests.benchmarks.in_browser import arithmetic, lessons, limits, needed, subjects, table
from tests.benchmarks.in_browser.pages import ROOT

ROW = {
    "name": "slices", "n": 42, "median": 50.0, "share95": 90.0, "slowest": "axis.rows", "unsteady": [],
    "released": 10.0, "handler": 3.0, "handler95": 9.0,
}  # fmt: skip
LESSON = {"name": "01_named_dimensions", "cpu": 12.0, "wall": 9.0, "first_picture": 6.0, "n_bytes": 60_000}


def noted(is_: int, frames: list, **more) -> dict:
    return {"moved": True, "at": 100.0, "was": 1, "is": is_, "frames": frames, "name": "x", "state": "s", **more}


def test_a_stale_frame_does_not_end_a_move():
    assert arithmetic.painted(noted(3, [[90.0, 3], [120.0, 2], [160.0, 3], [200.0, 3]])) == 60.0


def test_what_did_not_change_has_no_time():
    assert arithmetic.painted(noted(1, [])) is None
    assert arithmetic.painted(noted(2, [[120.0, 2]], moved=False)) is None


def test_a_drag_is_timed_from_its_release():
    assert arithmetic.after_release(noted(3, [[80.0, 2], [130.0, 3], [140.0, 2], [170.0, 3], [180.0, 3]])) == 70.0
    assert arithmetic.after_release(noted(3, [[80.0, 2], [95.0, 3]])) == 0.0  # it stood before the hand let go
    assert arithmetic.after_release(noted(3, [])) == 0.0


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (19, 19), (20, 19), (40, 38), (42, 40)])
def test_at_least_95_of_a_hundred_are_within_the_share(n, expected):
    values = list(range(n, 0, -1))
    assert arithmetic.share(values, 0.95) == expected
    assert sum(value <= expected for value in values) >= 0.95 * n


def test_two_pictures_for_the_same_settings_are_a_miss():
    steady = [noted(3, []), noted(4, [], state="t"), noted(3, [])]
    assert arithmetic.unsteady(steady) == []
    assert arithmetic.unsteady([*steady, noted(5, [])]) == ["x"]
    assert limits.misses("sliders", {**ROW, "unsteady": ["x"]}) == ["x showed two pictures for the same settings"]


@pytest.mark.parametrize(("start", "low", "high"), [(6, 0, 20), (0, 0, 20), (20, 0, 20), (1, 0, 2)])
def test_a_sweep_visits_neighbours_within_the_ends(start, low, high):
    found = arithmetic.sweep(start, low, high, 14)
    assert len(found) == 14 and all(low <= each <= high for each in found)
    assert all(abs(a - b) == 1 for a, b in zip([start, *found], found))


def test_a_slider_without_room_is_not_moved():
    assert arithmetic.sweep(3, 3, 3, 14) == []


def test_each_limit_is_held():
    found = {"sliders": [ROW], "lessons": [LESSON], "start": [{"first_picture": 9.9}]}
    assert limits.missed(found) == []
    assert limits.missed({"sliders": [{**ROW, "median": 101.0}]}) == ["slices: median 101 ms, more than 100 ms"]
    assert limits.missed({"sliders": [{**ROW, "share95": 301.0}]}) == ["slices: 95 % 301 ms, more than 300 ms"]
    late = {**LESSON, "cpu": 61.0, "first_picture": 12.0}
    assert len(limits.missed({"lessons": [late], "start": [{"first_picture": 11.0}]})) == 3
    assert limits.missed({"lessons": [{**LESSON, "first_picture": None}]}) == []


def test_the_page_says_every_figure_and_every_miss():
    start = {name: 1.0 + n for n, name in enumerate(table.WORDS)}
    slow = {**ROW, "name": "program", "median": 130.0}
    found = {"start": [start, start, start], "sliders": [ROW, slow], "lessons": [LESSON]}
    page = table.page(found, "a test", "1 May 2026", "Python 3.11", limits.missed(found))
    assert "- program: median 130 ms, more than 100 ms" in page and "Every limit is met" not in page
    assert "| slices | 42 | 50 ms | 90 ms | `axis.rows` | 10 ms | 3 ms, 9 ms | passes |" in page
    assert page.count("**misses**") == 1 and "| 01 named dimensions | 12.0 s | 9.0 s | 6.0 s | 60 kB | passes |" in page
    assert "Every limit is met." in table.page({"sliders": [ROW]}, "a test", "today", "Python", [])


def test_every_explorer_is_measured_and_every_call_parses():
    explorers = {name for name, home in widgets._HOME.items() if home.startswith("widgets.explorers")}
    assert {one.explorer for one in subjects.SUBJECTS.values()} == explorers
    for one in subjects.SUBJECTS.values():
        compile(one.call, "call", "eval")


def test_lessons_with_an_explorer_are_seen():
    for path in (ROOT / "lessons" / "solutions").glob("01_*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        (place,) = lessons.explorers(notebook)
        assert "".join(notebook["cells"][place]["source"]).startswith("slices(")


def test_an_explorer_needs_the_cells_that_make_its_names():
    cells = [
        "import mtfcore as mtf",
        "size = 3",
        "",
        "other = 1",
        "def double(n):\n    return n * size",
        "slices(double)",
    ]
    assert needed.needed(cells, 5) == [1, 4, 5]
    assert needed.needed(["d = {}", "d['x'] = 1", "e = 2", "slices(d)"], 3) == [0, 1, 3]
