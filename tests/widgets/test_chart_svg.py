"""The still picture of a chart: the same bars, lines, ticks and words as plotly draws, as one SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from widgets.figures.chart_svg import chart_svg
from widgets.views.plot_view import saved_charts, still_charts

BARS = {
    "data": [
        {"type": "bar", "name": "low", "x": [0, 1], "y": [1, 2], "marker": {"color": "#111111"}},
        {"type": "bar", "name": "high", "x": [0, 1], "y": [3, 0], "marker": {"color": "#222222"}},
    ],
    "layout": {
        "title": {"text": "<b>bytes</b><br>of a device"}, "barmode": "stack",
        "xaxis": {"range": [-0.6, 1.6], "tickvals": [0, 1], "ticktext": ["batch", "batch<br>hidden"]},
        "yaxis": {"range": [0, 4], "tickvals": [0, 2, 4], "ticktext": ["0", "2", "<b>4</b>"]},
        "annotations": [{"x": 0, "y": 4, "text": "full <a>"}],
        "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 2, "y1": 2}],
    },
}  # fmt: skip
LINE = {
    "data": [{"type": "scatter", "mode": "lines+markers", "name": "a", "x": [0, 2], "y": [1, 3],
              "line": {"color": "#333333", "dash": "dash"}, "marker": {"symbol": ["circle", "circle-open"]}}],
    "layout": {"xaxis": {"range": [0, 2]}, "yaxis": {"range": [0, 4]},
               "shapes": [{"type": "line", "yref": "paper", "x0": 1, "x1": 1, "y0": 0, "y1": 1}]},
}  # fmt: skip
NS = "{http://www.w3.org/2000/svg}"


def parsed(figure: dict) -> ET.Element:
    return ET.fromstring(chart_svg(figure))


def bars(svg: ET.Element) -> list[dict[str, str]]:
    return [rect.attrib for rect in svg.iter(f"{NS}rect") if "data-value" in rect.attrib]


def words(svg: ET.Element) -> list[str]:
    return ["".join(node.itertext()) for node in svg.iter(f"{NS}text")]


def test_stacked_bars_stand_on_each_other_in_proportion():
    low, two, high = bars(parsed(BARS))
    assert (low["data-value"], two["data-value"], high["data-value"]) == ("1", "2", "3")  # nothing is drawn for 0
    assert float(high["height"]) == pytest.approx(3 * float(low["height"]), abs=0.05)
    assert float(high["y"]) + float(high["height"]) == pytest.approx(float(low["y"]), abs=0.02)
    assert (low["fill"], high["fill"]) == ("#111111", "#222222")


def test_ticks_title_and_words_are_plain_and_escaped():
    assert words(parsed(BARS)) == ["bytes", "low", "high", "0", "2", "4", "batch", "batch", "hidden", "", "full <a>"]
    assert parsed(BARS).attrib["aria-label"] == "bytes"


def test_lines_marks_and_lines_across():
    svg = parsed(LINE)
    line, across = (path.attrib for path in svg.iter(f"{NS}path") if "stroke-dasharray" in path.attrib)
    assert line["stroke"] == "#333333" and "V2000" in across["d"]
    assert [mark.attrib["fill"] for mark in svg.iter(f"{NS}circle")] == ["#333333", "none"]


def test_what_leaves_the_chart_is_cut_there():
    svg = parsed({**BARS, "layout": {**BARS["layout"], "yaxis": {"range": [0, 2]}}})
    clipped = [group for group in svg.iter(f"{NS}g") if "clip-path" in group.attrib]
    assert len(clipped) == 1 and bars(clipped[0]) == bars(svg)


def test_the_same_chart_is_the_same_text():
    """The file must not change when nothing has."""
    assert chart_svg(BARS) == chart_svg(BARS)


def test_pages_and_files_hold_every_chart():
    assert still_charts([BARS, LINE]).count("<svg") == 2
    whole = ET.fromstring(saved_charts([BARS, LINE, LINE], width=100, height=50))
    assert (whole.attrib["width"], whole.attrib["height"]) == ("200.0", "100") or float(whole.attrib["height"]) == 100
    assert len(list(whole.iter(f"{NS}svg"))) == 4
