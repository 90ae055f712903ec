"""Permutes of a template: their ways over the grid, found for each wiring and put together as arrays.

    >>> wirings = [wire("rows:2 cols:2", "v4:2x2x1"), wire("rows:2 cols:2", "v4:4x4x4")]
    >>> routes = routes_on(wirings, which=np.array([0, 1, 1]))                # settings 1 and 2 lie on the second

`template.seconds(sizes, mesh, rates, legs, routes)` then asks `routes` where the blocks of each permute go.

A gather only asks what its group's legs are; a permute asks who holds what, on the real grid. There are few wirings,
so each is routed once (`permute_routes`). Next file to read: `learned`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mtfcore.costs.links.collectives import Load
from mtfcore.costs.links.permute_routes import route
from mtfcore.costs.links.wiring import Leg, Wiring
from mtfcore.costs.templates.rows import Row

Routes = Callable[[Row], tuple[Sequence[Leg], Sequence[Load]]]


def routes_on(wirings: Sequence[Wiring], which: Any = 0, way: str = "both") -> Routes:
    """What a permute puts on each axis of the grid, for settings of which each has one of these wirings."""

    def of(row: Row) -> tuple[list[Leg], list[Load]]:
        found = [dict(zip((leg.grid_axis for leg in legs), zip(legs, loads, strict=True), strict=True))
                 for legs, loads in (route(row.step, wired, way) for wired in wirings)]  # fmt: skip
        axes = sorted({axis for used in found for axis in used})
        pairs = [_together([used.get(axis) for used in found], which) for axis in axes]
        return [leg for leg, _ in pairs], [load for _, load in pairs]

    return of


def _together(used: Sequence[tuple[Leg, Load] | None], which: Any) -> tuple[Leg, Load]:
    """One axis of the grid in all wirings; a leg of one member where a wiring does not use it."""
    some = next(pair for pair in used if pair)[0]
    none = Leg(1, False, some.bytes_per_second, some.kind, 0.0), Load(0, 0)
    legs, loads = zip(*[pair or none for pair in used], strict=True)
    pick = lambda values: np.array(values)[which]  # noqa: E731
    leg = Leg(pick([leg.size for leg in legs]), pick([leg.wraps for leg in legs]),
              pick([leg.bytes_per_second for leg in legs]), some.kind, pick([leg.hop_seconds for leg in legs]),
              1, some.grid_axis)  # fmt: skip
    return leg, Load(pick([load.blocks for load in loads]), pick([load.hops for load in loads]))
