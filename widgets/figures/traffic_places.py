"""Where devices and links stand in the picture of a collective: a circle, a row, a grid, or a grid in depth.

    >>> picture = places(traffic_facts("all_gather", (("x", 8),), "ring", 1 << 20))
    >>> picture["nodes"][0], picture["links"][0]
    ([256.3, 31.0], [[292.6, 33.0], [330.5, 41.6], [368.4, 50.1]])

One axis that closes is a circle, one that does not is a row (folded when long); two axes are a grid, a third goes
into depth. A link is a quadratic curve from device to device, given by three points; both directions of a wire lie
side by side, and a wire that goes round the end bends around the devices between. Next file to read: `traffic_svg`.
"""

from __future__ import annotations

import math
from typing import Any

from widgets.figures.traffic import MOST_CELLS, Facts

Point = tuple[float, float]
MARGIN = 14.0
SHIFTS = {True: 6.0, False: 3.5}  # how far a direction lies from its wire's middle, where messages are named or not


def places(facts: Facts) -> dict[str, Any]:
    """Nodes, links, the size of a node, and the size of the picture."""
    sizes = [size for _, size in facts["mesh"]]
    cells = facts["n_devices"] <= MOST_CELLS
    box = (max(8.0 * facts["n_devices"] + 8, 44.0), 34.0) if cells else (22.0, 22.0)
    centres = _centres(sizes, facts["way"] != "line", box)
    left, top = (min(point[n] for point in centres) for n in (0, 1))
    bend = 0.0 if _is_flat(sizes, facts["way"]) else _bend(sizes, box) + 14  # room for wires that go round the end
    shift = (box[0] / 2 + MARGIN + bend - left, box[1] / 2 + MARGIN + bend - top)
    nodes = [(x + shift[0], y + shift[1]) for x, y in centres]
    width, height = (max(point[n] for point in nodes) + box[n] / 2 + MARGIN + bend for n in (0, 1))
    return {
        "box": box,
        "cells": cells,
        "width": width,
        "height": height,
        "nodes": [_round(node) for node in nodes],
        "links": [[_round(point) for point in _curve(link, nodes, sizes, box)] for link in facts["links"]],
    }


def _round(point: Point) -> list[float]:
    return [round(point[0], 1), round(point[1], 1)]


def _is_flat(sizes: list[int], way: str) -> bool:
    """Whether no wire bends."""
    real = [size for size in sizes if size > 1]
    return way == "line" or (len(real) < 2 and 2 not in real)


# ---- devices


def _centres(sizes: list[int], closed: bool, box: Point) -> list[Point]:
    real = [size for size in sizes if size > 1]
    if len(real) < 2:
        n = math.prod(sizes)
        return _circle(n, box) if closed and n > 2 else _row(n, box)
    return _grid(sizes, box)


def _circle(n: int, box: Point) -> list[Point]:
    """Devices around a circle wide enough for a link between any two, the first one at the top."""
    gap = (90.0, 54.0) if box[0] > 30 else (26.0, 8.0)
    wide, high = (max(n * (box[k] + gap[k]) / (2 * math.pi), 0.8 * (box[k] + gap[k])) for k in (0, 1))
    turns = (2 * math.pi * k / n for k in range(n))
    return [(wide * math.sin(turn), -high * math.cos(turn)) for turn in turns]


def _row(n: int, box: Point) -> list[Point]:
    """A row, folded like a path that turns back, so that neighbours stay neighbours."""
    pitch = (box[0] + 64, box[1] + 44) if box[0] > 30 else (box[0] + 30, box[1] + 30)
    across = min(n, max(int(1150 // pitch[0]), 2), 16)
    return [
        ((k % across if k // across % 2 == 0 else across - 1 - k % across) * pitch[0], k // across * pitch[1])
        for k in range(n)
    ]


def _grid(sizes: list[int], box: Point) -> list[Point]:
    """The first axis goes down, the second to the right, the third into depth."""
    rows, columns, depth = (*sizes, 1)[:3]
    step = (box[0] * 0.6 + 26, -(box[1] + 12)) if box[0] > 30 else (27.0, -25.0)
    down = box[1] + 48 + (depth - 1) * -step[1]
    right = box[0] + (62 if box[0] > 30 else 36) + (depth - 1) * step[0]
    return [
        (c * right + d * step[0], r * down + d * step[1])
        for r in range(rows) for c in range(columns) for d in range(depth)
    ]  # fmt: skip


# ---- links


def _curve(link: list[int], nodes: list[Point], sizes: list[int], box: Point) -> tuple[Point, Point, Point]:
    """From the edge of one device to the edge of the other, by way of a point that bends it."""
    source, target, axis, direction = link
    a, b = nodes[source], nodes[target]
    length = math.dist(a, b) or 1.0
    across = ((b[1] - a[1]) / length, (a[0] - b[0]) / length)  # to the left of the way
    shift = SHIFTS[box[0] > 30]
    if _goes_round(source, target, axis, direction, sizes):
        across = across if direction > 0 else (-across[0], -across[1])
        aside = _bend(sizes, box) + shift * (2 if direction > 0 else 0)
        middle = ((a[0] + b[0]) / 2 + across[0] * aside * 2, (a[1] + b[1]) / 2 + across[1] * aside * 2)
    else:  # a straight one, moved aside as a whole
        a, b = ((p[0] + across[0] * shift, p[1] + across[1] * shift) for p in (a, b))
        middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    return _edge(a, middle, box), middle, _edge(b, middle, box)


def _goes_round(source: int, target: int, axis: int, direction: int, sizes: list[int]) -> bool:
    """Whether a wire joins the two ends of an axis; on a circle it is like any other."""
    if sum(size > 1 for size in sizes) < 2 and sizes[axis] > 2:
        return False
    stride = math.prod(sizes[axis + 1 :])
    at = [device // stride % sizes[axis] for device in (source, target)]
    return at[1] - at[0] != direction


def _bend(sizes: list[int], box: Point) -> float:
    """How far a wire that goes round the end lies from the straight way."""
    axes = sum(size > 1 for size in sizes)
    return {1: box[1] / 2 + 24, 2: box[1] / 2 + 10}.get(axes, box[1] / 2 + 2)


def _edge(point: Point, towards: Point, box: Point) -> Point:
    """Where the way from a device leaves its box, or a little within: devices are drawn over links."""
    within = SHIFTS[box[0] > 30] + 1
    reach, way = [side / 2 - within for side in box], (towards[0] - point[0], towards[1] - point[1])
    share = min([0.9, *(room / abs(far) for room, far in zip(reach, way, strict=True) if far)])
    return point[0] + way[0] * share, point[1] + way[1] * share
