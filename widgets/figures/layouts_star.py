"""The star of a measured step on the layouts explorer's axis of seconds, and words that make way for it.

    >>> star = measured(3, point, top=0.03)              # over the fourth bar
    >>> star["name"], star["marker"]["symbol"]
    ('measured 7.1 ms', 'star')

What is slower than the axis goes stands at its rim; the legend says how long it took. Next file to read: `on_device`.
"""

from __future__ import annotations

from widgets.figures.on_device import COLOUR, OLD, Facts, point_words
from widgets.numbers import quantity

TALL, STAR = 130.0, 9.0  # pixels: a chart's bars at most, half a star


def measured(place: int, point: Facts, top: float) -> Facts:
    """The layout that was best as a device ran it, over its bar; grey where it is of other settings."""
    name = f"measured {quantity(point['seconds'], 's')}{', other settings' if point['old'] else ''}"
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": [place],
        "y": [min(point["seconds"], 0.93 * top)], "hoverinfo": "text",
        "hovertext": [point_words(point)],
        "marker": {"color": OLD if point["old"] else COLOUR, "symbol": "star", "size": 17,
                   "line": {"color": "#111", "width": 1}},
    }  # fmt: skip


def lift(words: list[Facts], star: Facts, top: float) -> None:
    """Words that would lie on the star stand above it."""
    for each in words:
        above = (star["y"][0] - each["y"]) * TALL / top
        if each["x"] == star["x"][0] and -STAR < above < STAR + 14 and each["yanchor"] == "bottom":
            each["yshift"] = max(above, 0.0) + STAR
