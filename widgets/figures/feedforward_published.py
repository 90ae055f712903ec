"""Figures 6 and 7 of the second paper as charts: what it prints, and what our model of time says of the same setups.

    >>> facts = figure_facts("Figure 6", {})
    >>> facts["points"][0]["at"], facts["points"][0]["published"], facts["points"][0]["ours"]
    (64, 92.04, None)

Ours comes row by row from `mtfcore.costs.against_published.predicted`, which asks for whole estimates; what is not
known yet is left out. Both are of all of PaLM 540B, not of one layer. Source: "Efficiently Scaling Transformer
Inference" (arXiv 2211.05102), Figures 6 and 7. Next file to read: `../explorers/feedforward`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mtfcore.reference import Published, rows
from mtfcore.topologies import topology
from widgets.figures.chart_svg import chart_svg
from widgets.figures.feedforward_svg import LINES
from widgets.numbers import origin, quantity

Facts = dict[str, Any]
QUANTITIES = {"Figure 6": "step latency", "Figure 7": "MFU"}
TITLES = {"Figure 6": "Figure 6: a step of decode, 512 sequences", "Figure 7": "Figure 7: MFU of prefill on 64 chips"}
X_TITLES = {"Figure 6": "TPU v4 chips", "Figure 7": "tokens in the batch"}
Y_AXES = {"Figure 6": ((0, 110), 25, "ms"), "Figure 7": ((0, 100), 25, "%")}


def rows_of(figure: str) -> list[Published]:
    """The points that the figure has."""
    return list(rows(table=figure, quantity=QUANTITIES[figure]))


def figure_facts(figure: str, ours: Mapping[str, float]) -> Facts:
    """Every point, with our value where it is known."""
    points = [
        {
            "layout": row.setup["ffn"],
            "at": _at(row),
            "published": row.value,
            "ours": ours.get(row.key),
            "unit": row.unit,
        }
        for row in rows_of(figure)
    ]
    return {"figure": figure, "points": points}


def _at(row: Published) -> int:
    if row.table == "Figure 6":
        return topology(row.setup["topology"]).chips
    return row.setup["batch"] * row.setup["input_tokens"]


def figure_svg(facts: Facts) -> str:
    """Lines of ours, hollow marks of the paper's."""
    figure, points = facts["figure"], facts["points"]
    places = sorted({point["at"] for point in points})
    (low, high), step, unit = Y_AXES[figure]
    ticks = list(range(low, high + 1, step))
    data = [trace for layout in dict.fromkeys(p["layout"] for p in points) for trace in _traces(points, layout)]
    layout = {
        "title": {"text": TITLES[figure]},
        "xaxis": {"title": {"text": X_TITLES[figure]},
                  "range": [math.log2(places[0]) - 0.3, math.log2(places[-1]) + 0.3],
                  "tickvals": [math.log2(at) for at in places], "ticktext": [f"{at:,}" for at in places]},
        "yaxis": {"range": [low, high], "tickvals": ticks, "ticktext": [f"{tick} {unit}" for tick in ticks]},
    }  # fmt: skip
    return chart_svg({"data": data, "layout": layout}, 500.0, 330.0)


def _traces(points: list[Facts], layout: str) -> list[Facts]:
    mine = [point for point in points if point["layout"] == layout]
    known = [point for point in mine if point["ours"] is not None]
    colour, dash = LINES[layout]
    line = {"color": colour, **({"dash": "dash"} if dash else {})}
    return [
        {"type": "scatter", "mode": "lines+markers", "name": f"● {layout} modelled", "line": line,
         "x": [math.log2(p["at"]) for p in known], "y": [p["ours"] for p in known]},
        {"type": "scatter", "mode": "markers", "name": f"○ {layout} published", "line": line,
         "marker": {"color": colour, "symbol": "circle-open"},
         "x": [math.log2(p["at"]) for p in mine], "y": [p["published"] for p in mine]},
    ]  # fmt: skip


def figure_sentence(facts: Facts) -> str:
    """Both layouts where the figure ends, as printed and as modelled."""
    last = max(point["at"] for point in facts["points"])
    ends = [point for point in facts["points"] if point["at"] == last]
    said = "; ".join(_both(point) for point in ends)
    unit = "chips" if facts["figure"] == "Figure 6" else "tokens"
    return f"{facts['figure']}, of the whole model, at {last:,} {unit}: {said}."


def _both(point: Facts) -> str:
    printed, ours = _cells(point)
    return f"{point['layout']} {printed}, {'ours is being worked out' if ours == '-' else ours}"


def figure_table(facts: Facts) -> list[tuple[str, ...]]:
    """The points, row by row."""
    head = ("layout", X_TITLES[facts["figure"]], "published", "ours")
    return [head, *((point["layout"], f"{point['at']:,}", *_cells(point)) for point in facts["points"])]


def _cells(point: Facts) -> tuple[str, str]:
    ours = "-" if point["ours"] is None else origin(f"{quantity(point['ours'])} {point['unit']}", "modelled")
    return origin(f"{quantity(point['published'])} {point['unit']}", "published"), ours
