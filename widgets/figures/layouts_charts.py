"""The layouts explorer's four charts as plain plotly data: time, ratio, memory, growth.

    >>> [trace["name"] for trace in time_chart(facts)["data"]]
    ['computing', 'sending']

Ranges and ticks are given, so the live chart and the still one agree. A bar too long for its chart is cut at the top
and says how long it is: the layout `none` takes as many times longer as there are devices. Colour never stands alone:
parts have a legend and a hover text, and every bar its number. Next file to read: `layouts_words`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from mtfcore.costs.first_paper.memory import PARTS
from widgets.figures.layouts import Facts
from widgets.figures.layouts_star import lift, measured
from widgets.numbers import quantity
from widgets.theme import AXES, COMPUTE, LINKS

MEMORY = {"parameters": "#0B4F79", "gradients": "#56B4E9", "optimizer": "#B7DDF5", "activations": "#CC79A7"}
LINES = {
    "mixed": ("batch, hidden", AXES[0], ""),
    "cubic": ("batch, hidden, io", AXES[2], ""),
    "data": ("batch", AXES[1], "dash"),
}
LOWEST, HIGHEST = -4, 2  # powers of ten of the ratio's axis
SHARES = ["0", "25 %", "50 %", "75 %", "100 %"]
EDGE = {"color": "#808080", "width": 1}


def time_chart(facts: Facts) -> Facts:
    """Seconds of a step, computing and sending on top of each other."""
    times = sorted(row["seconds"] for row in facts["rows"] if not row["fault"])
    top = min(1.2 * times[-1], 4 * times[0])  # what is much slower than the fastest is cut
    parts = (("computing", "compute", COMPUTE), ("sending", "communicate", LINKS))
    data = [_bars(facts, words, colour, lambda row, key=key: row[key], "s") for words, key, colour in parts]
    point = facts.get("device")
    if point:
        top = max(top, min(1.2 * point["seconds"], 4 * top))
        data.append(measured(facts["best"] or 0, point, top))
    chart = _chart(facts, "Time of a step (modelled)", data, top, "s", lambda row: row["seconds"])
    if point:
        lift(chart["layout"]["annotations"], data[-1], top)
    return chart


def memory_chart(facts: Facts) -> Facts:
    """Bytes on one device by what they are for, and the line where memory runs out."""
    hbm = facts["hbm"]
    most = max((row["held"] for row in facts["rows"] if not row["fault"]), default=0)
    top = min(1.35 * hbm, 1.2 * most)
    data = [_bars(facts, part, MEMORY[part], lambda row, part=part: row["memory"][part], "iB") for part in PARTS]
    chart = _chart(facts, "Memory of a device (modelled)", data, top, "iB", lambda row: row["held"])
    if hbm < top:
        words = f"a device has {quantity(hbm, 'iB')} (published)"
        chart["layout"]["shapes"] = [_level(hbm)]
        chart["layout"]["annotations"].append(_words(4.6, hbm, words, "bottom", xanchor="right"))
    return chart


def ratio_chart(facts: Facts) -> Facts:
    """Seconds of sending for each second of computing, by powers of ten."""
    data = [_bars(facts, "", LINKS, lambda row: _log(row["ratio"]), "", _says_ratio)]
    powers = range(HIGHEST - LOWEST + 1)
    chart = _chart(facts, "Sending / computing (modelled)", data, HIGHEST - LOWEST + 0.6, "", None)
    labels = [f"{10.0 ** (power + LOWEST):,g}" for power in powers]
    labels[-LOWEST] = "<b>1</b>"
    chart["layout"]["yaxis"] |= {"tickvals": list(powers), "ticktext": labels}
    chart["layout"]["annotations"] += [
        _words(n, _log(row["ratio"]), _short(row["ratio"]), "bottom")
        for n, row in enumerate(facts["rows"])
        if not row["fault"]
    ]
    return chart


def growth_chart(facts: Facts) -> Facts:
    """The share of time that computes as the mesh grows; hollow where a device's memory is too small."""
    data = [_line(points, *LINES[key]) for key, points in facts["curves"].items()]
    powers = range(0, 13, 2)
    x_axis = {
        "range": [-0.4, 12.4],
        "tickvals": list(powers),
        "ticktext": [f"{1 << power:,}" for power in powers],
        "tickangle": 0,
    }
    layout = {
        "title": _heading("Time computing, as it grows (modelled)", data), "margin": _margin(44),
        "xaxis": {**x_axis, "title": {"text": "devices (hollow: memory runs out)", "font": {"size": 11}}},
        "yaxis": {"range": [0, 1.1], "tickvals": [n / 4 for n in range(5)], "ticktext": SHARES},
        "showlegend": False, "dragmode": False, "shapes": [_here(math.log2(facts["devices"]))],
    }  # fmt: skip
    return {"data": data, "layout": layout}


# ---- parts


def _bars(facts: Facts, words: str, colour: str, value: Any, unit: str, says: Any = None) -> Facts:
    shown = [(n, row) for n, row in enumerate(facts["rows"]) if not row["fault"]]
    says = says or (lambda row: f"{words} {quantity(value(row), unit)} modelled")
    return {
        "type": "bar", "name": words, "x": [n for n, _ in shown], "y": [value(row) for _, row in shown],
        "marker": {"color": colour, "line": EDGE}, "width": 0.7, "hoverinfo": "text",
        "hovertext": [f"{row['layout'] or 'none'}: {says(row)}" for _, row in shown], "textposition": "none",
    }  # fmt: skip


def _legend(data: list[Facts]) -> str:
    """Names beside their colours, in the title: plotly's own legend wraps over the title where a page is narrow."""
    marks = (
        f'<span style="color:{trace["marker"]["color"]}">{"★" if "star" in str(trace["marker"].get("symbol")) else "■"}'
        f"</span> {trace['name']}"
        for trace in data if trace["name"]
    )  # fmt: skip
    return f'<span style="font-size:11px">{"   ".join(marks)}</span>'


def _chart(facts: Facts, title: str, data: list[Facts], top: float, unit: str, length: Any) -> Facts:
    ticks = _ticks(top, unit)
    layout = {
        "title": _heading(title, data), "margin": _margin(48),
        "barmode": "stack", "dragmode": False, "showlegend": False,
        "xaxis": {"range": [-0.6, 4.6], "tickvals": [*range(5)], "ticktext": _labels(facts), "tickangle": 0},
        "yaxis": {"range": [0, top], "tickvals": ticks, "ticktext": [quantity(tick, unit) for tick in ticks]},
        "annotations": [*_faults(facts, top), *(_lengths(facts, top, unit, length) if length else ())],
    }  # fmt: skip
    return {"data": data, "layout": layout}


def _labels(facts: Facts) -> list[str]:
    """Each layout's dimensions, one a line; the best layout in bold."""
    lines = [row["name"].replace(", ", "<br>") for row in facts["rows"]]
    return [f"<b>{label} ★</b>" if n == facts["best"] else label for n, label in enumerate(lines)]


def _faults(facts: Facts, top: float) -> list[Facts]:
    return [
        _words(n, 0.03 * top, "does not divide", "bottom", textangle=-90)
        for n, row in enumerate(facts["rows"])
        if row["fault"]
    ]


def _lengths(facts: Facts, top: float, unit: str, length: Any) -> Iterator[Facts]:
    """Each bar's number above it; within it, with an arrow, where the bar leaves the chart."""
    for n, row in enumerate(facts["rows"]):
        if not row["fault"]:
            words = quantity(length(row), unit)
            cut = length(row) > 0.93 * top
            more = {"bgcolor": "rgba(255,255,255,0.85)", "font": {"size": 11, "color": "#111"}} if cut else {}
            yield _words(
                n,
                0.99 * top if cut else length(row),
                f"↑ {words}" if cut else words,
                "top" if cut else "bottom",
                **more,
            )


def _words(x: float, y: float, words: str, anchor: str, **more: Any) -> Facts:
    return {"x": x, "y": y, "text": words, "showarrow": False, "yanchor": anchor, "font": {"size": 11}, **more}


def _heading(words: str, data: list[Facts]) -> Facts:
    return {
        "text": f"<b>{words}</b><br>{_legend(data)}",
        "font": {"size": 13},
        "x": 0.01,
        "xanchor": "left",
        "y": 0.9,
        "yanchor": "top",
    }


def _margin(bottom: int) -> Facts:
    return {"l": 62, "r": 12, "t": 46, "b": bottom}


def _level(value: float) -> Facts:
    place = {"x0": 0, "x1": 1, "xref": "paper", "y0": value, "y1": value}
    return {"type": "line", **place, "line": {"color": "#D55E00", "dash": "dash", "width": 2}}


def _here(value: float) -> Facts:
    place = {"y0": 0, "y1": 1, "yref": "paper", "x0": value, "x1": value}
    return {"type": "line", **place, "line": {"color": "#808080", "dash": "dot", "width": 1}}


def _line(points: list[Facts], words: str, colour: str, dash: str) -> Facts:
    return {
        "type": "scatter", "mode": "lines+markers", "name": words, "hoverinfo": "text",
        "x": [math.log2(point["devices"]) for point in points], "y": [point["efficiency"] for point in points],
        "line": {"color": colour, "width": 2, **({"dash": dash} if dash else {})},
        "marker": {"color": colour, "size": 8, "symbol": [_symbol(point) for point in points]},
        "hovertext": [f"{words}, {point['devices']:,} devices, {point['sizes']}: {point['efficiency']:.0%} computing, "
                      f"{quantity(point['held'], 'iB')} held, modelled" for point in points],
    }  # fmt: skip


def _symbol(point: Facts) -> str:
    return "circle" if point["fits"] else "circle-open"


def _log(ratio: float) -> float:
    """Height of a ratio on the axis of powers of ten, within it."""
    return min(max(math.log10(ratio) - LOWEST, 0.0), HIGHEST - LOWEST) if ratio else 0.0


def _short(ratio: float) -> str:
    return "0" if not ratio else f"{ratio:.2g}" if ratio < 100 else f"{ratio:,.0f}"


def _says_ratio(row: Facts) -> str:
    return f"{_short(row['ratio'])} s sending a second of computing, modelled; Table 1: {row['formula']}"


def _ticks(top: float, unit: str) -> list[float]:
    """Round numbers up to `top`, about four."""
    if not top:
        return [0]
    if unit == "iB":
        step = 2.0 ** math.ceil(math.log2(top / 5))
    else:
        power = 10.0 ** math.floor(math.log10(top / 4))
        step = next(power * n for n in (1, 2, 5, 10) if power * n >= top / 5)
    return [step * n for n in range(int(top / step) + 1)]
