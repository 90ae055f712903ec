"""How the three mesh axes may lie on a slice: which of its grid axes is x, which y and which z.

    >>> [(found.mesh, found.text()) for found in orientations(mtf.topology("v4:4x4x8"), "ws2d")]
    [(Mesh('x:4 y:4 z:8'), 'x→0, y→1, z→2'), (Mesh('x:8 y:4 z:4'), 'x→2, y→0, z→1')]

The second paper's partitions give x, y and z different parts, so the way round matters: for ws2d only which axis is
x, for wg_xy only which is z, for ws1d and wg_xyz none. Only ways that differ in this are tried. Where a grid has more
than three axes, such as the cores of a chip, z takes the surplus; a switch may be cut in two. Source: arXiv 2211.05102,
section 3.1. Next file to read: `structures`.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

from mtfcore.costs.links.wiring import Wiring, wire
from mtfcore.mesh import Mesh
from mtfcore.topologies import Topology

AXES = "xyz"
SINGLED_OUT = {"ws1d": "", "ws2d": "x", "wg_x": "x", "wg_xy": "z", "wg_xyz": ""}  # the axis whose part differs


@lru_cache(maxsize=4096)
def orientations(topology: Topology, ffn: str) -> tuple[Wiring, ...]:
    """Every way round that differs for this partition, each laid on the grid by the best guess."""
    found: dict[tuple, tuple[int, ...]] = {}
    for sizes in _grids(topology):
        for order in sorted(set(itertools.permutations(sizes))):
            found.setdefault(_differs(order, ffn), order)
    return tuple(_wired(topology, grid) for grid in found.values())


@lru_cache(maxsize=4096)
def _wired(topology: Topology, grid: tuple[int, ...]) -> Wiring:
    return wire(Mesh(dict(zip(AXES, grid, strict=True))), topology)


def _differs(order: tuple[int, ...], ffn: str) -> tuple:
    """What of a way round a partition can tell: the axis that it singles out, the others in any order."""
    axis = SINGLED_OUT[ffn]
    if not axis:
        return tuple(sorted(order))
    own = order[AXES.index(axis)]
    rest = sorted(order)
    rest.remove(own)
    return own, tuple(rest)


def _grids(topology: Topology) -> list[tuple[int, int, int]]:
    """Three sizes that make up the grid of devices."""
    sizes = sorted((axis.size for axis in topology.axes if axis.size > 1), reverse=True)
    while len(sizes) > 3:  # the cores of a chip go with the axis that is shortest
        *sizes, a, b = sizes
        sizes = sorted([*sizes, a * b], reverse=True)
    x, y, z = [*sizes, 1, 1, 1][:3]
    return [(x, y, z), *_cut_switch(topology, sizes)]


def _cut_switch(topology: Topology, sizes: list[int]) -> list[tuple[int, int, int]]:
    """A switch serves any two factors of its size equally well."""
    switch = next((axis.size for axis in topology.axes if axis.kind == "switch"), 1)
    if switch == 1 or len(sizes) > 2:
        return []
    rest = list(sizes)
    rest.remove(switch)
    pairs = [(a, switch // a) for a in range(2, switch) if switch % a == 0 and a * a <= switch]
    (other,) = rest or [1]
    return [(other, a, b) if rest else (a, b, other) for a, b in pairs]
