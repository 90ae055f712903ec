"""Constant efficiency: how far a layout stays good as the mesh grows, beside pure data parallelism.

A growth keeps what one processor has of a dimension and adds processors: rows times k and the batch times k, cols
times k and the hidden layer times k. Then every term of the ratio c/d_h + r/b stays, and so does the share of time
that computes, while the number of devices grows as k² (with planes and d_io, k³). Pure data parallelism on the same
network and devices has n/b = k²/(b k): its ratio grows with k.

    >>> points = grow(ROWS["batch:rows hidden:cols"], Sizes(batch=64, io=512, hidden=128), (1, 4, 16))
    >>> [float(printed_ratio(p.row, p.sizes, p.parts)) for p in points]
    [0.0234375, 0.0234375, 0.0234375]

Source: "Mesh-TensorFlow" (arXiv 1811.02084), section 8. Next file to read: `iteration_space`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mtfcore.costs.first_paper.two_layers import DIMS, ROWS, Parts, Row, Sizes

DATA_PARALLEL = ROWS["batch:all"]


@dataclass(frozen=True)
class Point:
    """One size of the network on one number of devices."""

    row: Row
    sizes: Sizes
    parts: Parts

    @property
    def devices(self) -> int:
        """How many processors share it."""
        return self.parts.devices


def grow(row: Row, one: Sizes, factors: Iterable[int]) -> list[Point]:
    """Every dimension that the layout cuts k times as large, on as many parts; `one` is what one processor has."""
    return [Point(row, _times(one, row.splits, k), Parts(**dict.fromkeys(row.splits, k))) for k in factors]


def data_parallel(points: Iterable[Point]) -> list[Point]:
    """The same networks on the same numbers of devices with the batch cut alone, where the batch suffices."""
    moved = (Point(DATA_PARALLEL, point.sizes, Parts(batch=point.devices)) for point in points)
    return [point for point in moved if point.sizes.batch % point.devices == 0]


def _times(one: Sizes, dims: Iterable[str], k: int) -> Sizes:
    return Sizes(**{dim: getattr(one, dim) * (k if dim in dims else 1) for dim in DIMS})
