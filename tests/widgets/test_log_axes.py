"""Axes by powers of ten, words beside marks, bars: the grounds of planner, frontier and roofline."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.figures.bars_svg import Bar, Part, bars_svg
from widgets.figures.labels import Labels, _meet
from widgets.figures.log_axes import LogAxes, around, ticks


def test_a_power_of_ten_is_as_wide_as_another():
    axes = LogAxes((1, 1e4), (1, 100), "x", "y")
    places = [axes.x(10.0**n) for n in range(5)]
    steps = [b - a for a, b in itertools.pairwise(places)]
    assert max(steps) - min(steps) < 1e-9 and axes.y(100) < axes.y(10) < axes.y(1)


def test_what_is_beyond_stays_at_the_rim():
    axes = LogAxes((1, 1e4), (1, 100), "x", "y")
    assert axes.x(1e9) == axes.x(1e4) and axes.x(0) == axes.x(1) == axes.x(-3)
    assert axes.x(float("inf")) == axes.x(1e4)


def test_ticks_are_round_and_inside():
    assert ticks((1, 100)) == [1, 2, 5, 10, 20, 50, 100]
    assert ticks((0.1, 1e5)) == [pytest.approx(10.0**n) for n in range(-1, 6)]
    assert ticks((1e-3, 1e9)) == [pytest.approx(10.0**n) for n in range(-3, 10, 2)]


@given(st.lists(st.floats(1e-9, 1e15), min_size=1, max_size=5))
def test_a_range_holds_all_values_and_its_ends_are_round(values):
    low, high = around(values)
    assert low <= min(values) and high >= max(values) and low < high
    for end in (low, high):
        assert f"{end:.0e}"[0] in "125" and f"{end:.0e}" == f"{end:.6e}".replace(".000000", "")


def test_a_range_of_nothing_is_still_one():
    assert around([]) == around([0.0, float("inf")]) == (0.5, 2.0)


def test_words_do_not_lie_on_each_other():
    labels = Labels(420, 300)
    for n in range(9):
        labels.place(f"C:{n} B:{n}", 200, 150)
    assert len(labels.taken) > 6
    assert not any(_meet(a, b) for a, b in itertools.combinations(labels.taken, 2))


def test_without_room_there_are_no_words():
    labels = Labels(30, 30)
    assert labels.place("a long label", 15, 15) is None
    labels = Labels(420, 300)
    labels.block((0, 0, 420, 300))
    assert labels.place("a", 200, 150) is None


def bars(*given: Bar, **how) -> ET.Element:
    return ET.fromstring(bars_svg("Memory (modelled)", given, 10.0, **how))


def parts(root: ET.Element) -> list[ET.Element]:
    return [each for each in root.iter("{http://www.w3.org/2000/svg}rect") if each.get("data-part")]


def test_parts_begin_where_the_last_one_ended():
    root = bars(Bar("in all", (Part(2, "#111", "a"), Part(3, "#222", "b")), "5"))
    first, second = parts(root)
    assert float(first.get("x")) + float(first.get("width")) == pytest.approx(float(second.get("x")))
    assert float(second.get("width")) == pytest.approx(1.5 * float(first.get("width")), rel=0.01)


def test_a_bar_too_long_is_cut_at_the_rim_and_says_how_long_it_is():
    root = bars(Bar("slow", (Part(40, "#111", "a"),), "40 s"))
    (box,) = parts(root)
    assert float(box.get("x")) + float(box.get("width")) <= 420 - 84 + 0.1
    assert "40 s" in ET.tostring(root, encoding="unicode")


def test_what_cannot_be_says_why_and_cannot_be_picked():
    root = bars(Bar("ws2d", reason="batch 2 does not divide over 4", pick=""), Bar("ok", (Part(1, "#1"),), pick="p:ok"))
    assert [each.get("data-pick") for each in root.iter() if each.get("data-pick")] == ["p:ok"]
    assert "batch 2 does not divide over 4" in "".join(root.itertext())


def test_as_high_as_its_rows_however_many_there_are():
    heights = {bars(*[Bar(f"{n}") for n in range(k)], rows=10).get("height") for k in (1, 5, 10)}
    assert len(heights) == 1
