"""How n devices split into X for d_model and Y·Z for d_ff: the ideal, the best whole numbers, and what a grid offers.

    >>> ideal_split(32, 16384, 65536)                       # X·YZ = 32, but no such devices
    (2.828..., 11.313...)
    >>> best = best_split(32, 16384, 65536)
    >>> best.x, best.yz, best.n_bytes(256) / 2**20, least_bytes(256, 16384, 65536, 32) / 2**20
    (2, 16, 12.0, 11.313...)

The formulas' optimum is a bound. A plan needs whole numbers of devices, and on real wires axes of the grid: 4x4x8
gives X of 1, 4, 8, 16, 32 or 128, never 5.7. `best_split` answers only with splits that exist: a number of
devices may be cut at any of its divisors, a grid as "4x4x8" between whole axes.

1D beats 2D until n > 4 F/E, which agrees with the printed sqrt(n) > F/E only where F/E is 4: 4 sqrt(EF/n) < 2E.

Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), sections 3.2.2 and A.2.1; the general ratio and
the whole numbers are ours. Next file to read: `crossovers`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from mtfcore.costs.second_paper.collectives import Number, positive
from mtfcore.costs.second_paper.feedforward import ws1d, ws2d
from mtfcore.dims import divisors
from mtfcore.errors import LayoutError
from mtfcore.notation import as_size, read_whole

Grid = int | str | tuple[int, ...]  # a number of devices, or the axes of a physical grid


@dataclass(frozen=True)
class Split:
    """A split that exists: E in x parts, F in y·z, and the layer that it was chosen for."""

    x: int
    yz: int
    d_model: int
    d_ff: int

    @property
    def devices(self) -> int:
        """All of them."""
        return self.x * self.yz

    def n_bytes(self, tokens: Number, itemsize: Number = 2, gated: bool = False, exact: bool = False) -> Number:
        """Bytes that 2D weight-stationary moves on it."""
        return ws2d(tokens, self.d_model, self.d_ff, self.x, self.yz, itemsize, gated, exact)


def ideal_split(devices: Number, d_model: Number, d_ff: Number) -> tuple[Number, Number]:
    """X and YZ if they could be any numbers: sqrt(nE/F) and sqrt(nF/E); sqrt(n)/2 and 2 sqrt(n) at F = 4E. 3.2.2."""
    positive(devices=devices, d_model=d_model, d_ff=d_ff)
    x = (devices * d_model / d_ff) ** 0.5
    return x, devices / x


def least_bytes(tokens: Number, d_model: Number, d_ff: Number, devices: Number, itemsize: Number = 2) -> Number:
    """Bytes at the ideal split: 4 BL sqrt(EF/n), which is 8 BL E/sqrt(n) at F = 4E. 3.2.2. A bound, not a plan."""
    positive(tokens=tokens, d_model=d_model, d_ff=d_ff, devices=devices, itemsize=itemsize)
    return 4 * tokens * (d_model * d_ff / devices) ** 0.5 * itemsize


def devices_from_which_2d_wins(d_model: Number, d_ff: Number) -> Number:
    """2D at its ideal split beats 1D above so many devices: 4 F/E. The printed sqrt(n) > F/E holds at F = 4E only."""
    positive(d_model=d_model, d_ff=d_ff)
    return 4 * d_ff / d_model


def wins_2d(d_model: int, d_ff: int, grid: Grid) -> bool:
    """Whether a split that exists on these devices moves less than 1D."""
    best = best_split(grid, d_model, d_ff)
    return best.n_bytes(1) < ws1d(1, d_model, devices=best.devices)


def best_split(grid: Grid, d_model: int, d_ff: int, gated: bool = False, exact: bool = False) -> Split:
    """The split with the least bytes among those that exist; the smallest X of equals."""
    positive(d_model=d_model, d_ff=d_ff)
    splits = [Split(x, n // x, d_model, d_ff) for x, n in _cuts(grid)]
    return min(splits, key=lambda split: (split.n_bytes(1, gated=gated, exact=exact), split.x))


def x_choices(grid: Grid) -> list[int]:
    """Every X that the devices offer: divisors of a number, products of some axes of a grid."""
    return [x for x, _ in _cuts(grid)]


def _cuts(grid: Grid) -> tuple[tuple[int, int], ...]:
    axes = axes_of(grid)
    n = math.prod(axes)
    if as_size(grid) is not None:
        return tuple((x, n) for x in divisors(n))
    chosen = itertools.chain.from_iterable(itertools.combinations(axes, k) for k in range(len(axes) + 1))
    return tuple((x, n) for x in sorted({math.prod(some) for some in chosen}))


# ---- grids


def axes_of(grid: Grid) -> tuple[int, ...]:
    """The axes of a grid, `4x4x8` or (4, 4, 8), those of size 1 left out; a number of devices is one axis."""
    words = grid.casefold().split("x") if isinstance(grid, str) else grid if isinstance(grid, tuple) else (grid,)
    read = [as_size(read_whole(word) if isinstance(word, str) else word) for word in words]
    sizes = [size for size in read if size is not None]
    if len(sizes) < len(read):
        raise LayoutError(f"no grid {grid!r:.100}; write devices, 64, or the sizes of its axes, '4x4x4'")
    return tuple(size for size in sizes if size > 1) or (1,)


def meshes(grid: Grid) -> tuple[tuple[int, int, int], ...]:
    """Every x, y, z that the devices offer to a mesh of the paper's three axes.

    A number of devices: every way to write it as a product of three. A grid: its axes handed to x, y and z, each in
    use while there are as many.
    """
    return _meshes(axes_of(grid), whole_axes=as_size(grid) is None)


@cache
def _meshes(axes: tuple[int, ...], whole_axes: bool) -> tuple[tuple[int, int, int], ...]:
    return tuple(sorted(set(_handed_out(axes) if whole_axes else _factorings(math.prod(axes)))))


def _factorings(n: int) -> Iterator[tuple[int, int, int]]:
    return ((x, y, n // x // y) for x in divisors(n) for y in divisors(n // x))


def _handed_out(axes: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    for roles in itertools.product(range(3), repeat=len(axes)):
        if set(roles) >= set(range(min(3, len(axes)))):
            x, y, z = (math.prod(size for size, role in zip(axes, roles, strict=True) if role == of) for of in range(3))
            yield x, y, z
