"""What a schedule's steps and bytes come to, as formulas. The schedules are counted; tests hold the two together.

With `n_bytes` held by one device before, on one axis of g devices (bytes over the busiest directed link):

    kind              one-way ring      two-way ring                          line
    all_gather        n_bytes·(g−1)     half of it                            n_bytes·(g−1)
    reduce_scatter    n_bytes·(g−1)/g   half of it                            n_bytes·(g−1)/g
    all_reduce        2·n_bytes·(g−1)/g half of it                            n_bytes (every link)
    all_to_all        n_bytes·(g−1)/2   n_bytes·g/8, g odd: n_bytes·(g²−1)/8g n_bytes·⌊g²/4⌋/g

The time is that many bytes at one link's one-way rate, except for an all-reduce on a line: its two halves load
different ends, and one after the other they take 2·n_bytes·(g−1)/g. On a line the devices do not all send the same:
`line_sent_bytes`. On k axes of the same size s at once, a gather and the sums take 1/k of the time of one ring of
g = s^k, and an all-to-all as long as one axis alone would.

Sources: arXiv 2211.05102, appendix A.1 (rings, with (g−1)/g exact). Lines: a cut between positions i and i+1 is
crossed by all that the i+1 devices on one side have for the other side. Next file to read: `mtfcore.steps`, whose
`link_bytes` prices a plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from mtfcore.errors import LayoutError
from mtfcore.schedules.hops import Bytes, plain

LINE, TWO_WAY = "line", "two_way"


def steps(kind: str, group: int, way: str) -> int:
    """How many steps a collective takes on one axis."""
    if kind == "all_to_all" and way == LINE and group > 1:  # at most group/4 blocks in a message
        return math.ceil(Fraction(group**2 // 4, max(1, group // 4)))
    return hops(kind, group, way)


def hops(kind: str, group: Any, way: str) -> Any:
    """How many hops follow one another at least: to the farthest device; arrays of groups give arrays."""
    farthest = group // 2 if way == TWO_WAY else group - 1
    return 2 * farthest if kind == "all_reduce" else farthest


def ratio(kind: str, group: Any, way: str) -> tuple[Any, Any]:
    """Time in link units over `n_bytes`, on one axis: numerator and denominator, whole numbers or arrays of them."""
    if kind == "all_to_all":
        return _crossing_blocks(group, way)
    once, both_ways = group - 1, 2 if way == TWO_WAY else 1
    return {
        "all_gather": (once, both_ways),
        "reduce_scatter": (once, both_ways * group),
        "all_reduce": (2 * once, both_ways * group),
    }[kind]


def busiest_link_bytes(kind: str, n_bytes: int, group: int, way: str) -> Bytes:
    """Bytes over the directed link that carries most, on one axis."""
    if kind == "all_reduce" and way == LINE:
        return n_bytes if group > 1 else 0
    return time_bytes(kind, n_bytes, group, way)


def time_bytes(kind: str, n_bytes: int, sizes: int | Sequence[int], way: str) -> Bytes:
    """Time in link units: over one link's one-way rate, the time that a collective's bytes take."""
    sizes = [sizes] if isinstance(sizes, int) else [size for size in sizes if size > 1]
    if len(set(sizes)) > 1:
        raise LayoutError(f"no closed form for axes of different sizes {tuple(sizes)}: ask the schedule's time_bytes")
    group, axes = math.prod(sizes), max(1, len(sizes))
    if kind == "all_to_all":
        group, axes = sizes[0] if sizes else 1, 1
    above, below = ratio(kind, group, way)
    return plain(Fraction(n_bytes * above, below * axes))


def line_sent_bytes(kind: str, n_bytes: int, group: int, position: int) -> Bytes:
    """Bytes that the device at a position of a line sends: up to the next and down to the one before."""
    above, below = group - 1 - position, position
    up, down = above > 0, below > 0
    gathers = (below + 1) * up + (above + 1) * down  # the blocks from one side, and its own, go to the other side
    blocks = {
        "all_gather": gathers * group,
        "reduce_scatter": above + below,  # one sum for each device above, and below
        "all_reduce": above + below + gathers,
        "all_to_all": (below + 1) * above + (above + 1) * below,
    }
    return plain(Fraction(n_bytes * blocks[kind], group))


def _crossing_blocks(group: Any, way: str) -> tuple[Any, Any]:
    """All-to-all: how many of the blocks cross the busiest link in its direction, over how many there are.

    A line is cut in the middle: each of ⌊g/2⌋ devices has a block for each of the others. On a two-way ring a block
    goes g/4 hops on average, over two links a device: g²/8 blocks a link; on a one-way ring (g−1)/2 hops, over one.
    """
    if way == LINE:
        return group**2 // 4, group
    return (group**2 - group % 2, 8 * group) if way == TWO_WAY else (group - 1, 2)
