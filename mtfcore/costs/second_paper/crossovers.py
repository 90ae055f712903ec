"""Which layout wins where: every layout's bytes grow in a straight line with the tokens of a pass.

    >>> best_layout(512, 18432, 73728, "4x4x4").layout, best_layout(512 * 2048, 18432, 73728, "4x4x4").layout
    ('ws2d', 'wg_xyz')
    >>> [(str(part.tokens), part.layout) for part in winners(18432, 73728, "4x4x4")]
    [('0', 'ws2d'), ('18432', 'wg_x'), ('73728', 'wg_xy'), ('884736', 'wg_xyz')]

A weight-gathered layout begins with the weights that it gathers and then rises less steeply; so the envelope of the
lines runs from weight-stationary through wg_x and wg_xy to wg_xyz, and two lines meet at one number of tokens, a
fraction. On 4x4x4 with F = 4E that is BL = E, F and 12F, and 2F for 2D weight-stationary against wg_xyz at once. The
circulating "gather once BL > F" is but one of the four.

All of it counts bytes. On wires with unequal axes, or where weights are int8, time decides: `mtf.price`.

Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), section 3.2.3, A.2.2 and Figure 3.
Next file to read: `attention`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mtfcore.costs.second_paper.collectives import Number, positive
from mtfcore.costs.second_paper.feedforward import LAYOUTS, layout_bytes
from mtfcore.costs.second_paper.splits import Grid, meshes
from mtfcore.errors import LayoutError, sure

Mesh3 = tuple[int, int, int]


@dataclass(frozen=True)
class Line:
    """Bytes of a layout as a line over tokens: what it moves anyway, and what each token adds."""

    layout: str
    mesh: Mesh3
    fixed: Fraction
    per_token: Fraction

    def n_bytes(self, tokens: Number) -> Number:
        """Bytes that one device moves in a pass of so many tokens."""
        return self.fixed + self.per_token * tokens

    def meets(self, other: Line) -> Fraction | None:
        """The tokens at which both move the same; None where the lines are parallel."""
        rises = self.per_token - other.per_token
        return (other.fixed - self.fixed) / rises if rises else None


@dataclass(frozen=True)
class Best:
    """The layout that moves least, its mesh, and what each layout moves at its own best mesh."""

    layout: str
    mesh: Mesh3
    n_bytes: float
    candidates: Mapping[str, float]


@dataclass(frozen=True)
class Part:
    """From so many tokens on, this layout on this mesh moves least."""

    tokens: Fraction
    layout: str
    mesh: Mesh3


def line(layout: str, d_model: int, d_ff: int, mesh: Mesh3, **how: Any) -> Line:
    """A layout's line, exactly; `how` as in `feedforward.layout_bytes`."""

    x, y, z = (Fraction(size) for size in mesh)
    one, two = (layout_bytes(layout, Fraction(t), Fraction(d_model), Fraction(d_ff), x, y, z, **how)
                for t in (1, 2))  # fmt: skip
    return Line(layout, mesh, Fraction(2 * one - two), Fraction(two - one))


def crossover(first: str, second: str, d_model: int, d_ff: int, mesh: Mesh3, **how: Any) -> Fraction:
    """Tokens at which two layouts on one mesh move the same; refuses two that never do."""
    lines = [line(layout, d_model, d_ff, mesh, **how) for layout in (first, second)]
    tokens = lines[0].meets(lines[1])
    if tokens is None or tokens <= 0:
        where = "x".join(map(str, mesh))
        raise LayoutError(f"{first} and {second} never move the same on {where}: one is always ahead or both are equal")
    return tokens


def best_layout(tokens: Number, d_model: int, d_ff: int, grid: Grid, **how: Any) -> Best:
    """The layout that moves least for so many tokens, each layout on its best mesh that the grid offers.

    `how`: `pinned=(x, y, z)` for weights that lie so already, and the options of `feedforward.layout_bytes`.
    """
    positive(tokens=tokens, d_model=d_model, d_ff=d_ff)
    if np.ndim(tokens):
        raise LayoutError("best_layout answers for one number of tokens; for many ask layouts_at, or winners")
    lines = _lines(d_model, d_ff, grid, **how)
    least: dict[str, Line] = {}
    for each in sorted(lines, key=lambda each: (LAYOUTS.index(each.layout), each.n_bytes(tokens))):
        least.setdefault(each.layout, each)
    best = min(least.values(), key=lambda each: each.n_bytes(tokens))
    candidates = {layout: float(each.n_bytes(tokens)) for layout, each in least.items()}
    return Best(best.layout, best.mesh, candidates[best.layout], candidates)


def winners(d_model: int, d_ff: int, grid: Grid, **how: Any) -> list[Part]:
    """The lower envelope: which layout moves least from how many tokens on."""
    positive(d_model=d_model, d_ff=d_ff)
    lines = _lines(d_model, d_ff, grid, **how)
    now = min(lines, key=lambda each: (each.fixed, each.per_token, LAYOUTS.index(each.layout)))
    parts = [Part(Fraction(0), now.layout, now.mesh)]
    while later := [(now.meets(each), each) for each in lines if each.per_token < now.per_token]:
        tokens, now = min(later, key=lambda pair: (pair[0], pair[1].per_token, LAYOUTS.index(pair[1].layout)))
        parts.append(Part(sure(tokens), now.layout, now.mesh))
    return parts


def layouts_at(tokens: Number, d_model: int, d_ff: int, grid: Grid, **how: Any) -> Number:
    """The name of the layout that moves least, for one number of tokens or an array of them."""
    positive(tokens=tokens)
    parts = winners(d_model, d_ff, grid, **how)
    found = np.searchsorted([float(part.tokens) for part in parts], tokens, side="right") - 1
    names = np.array([part.layout for part in parts])[found]
    return names if np.ndim(tokens) else str(names)


def _lines(d_model: int, d_ff: int, grid: Grid, pinned: Mesh3 | None = None, **how: Any) -> list[Line]:
    """Every layout on every mesh where it is itself; of a layout's equal lines the first."""
    lines: dict[tuple[Fraction, Fraction, str], Line] = {}
    for mesh in [pinned] if pinned else meshes(grid):
        for layout in filter(_distinct(mesh), LAYOUTS):
            each = line(layout, d_model, d_ff, mesh, **how)
            lines.setdefault((each.fixed, each.per_token, layout), each)
    return list(lines.values())


def _distinct(mesh: Mesh3) -> Callable[[str], bool]:
    """Which layouts differ on a mesh: with x of 1, ws2d and wg_x are ws1d; over all devices, any gather is wg_xyz."""
    x, y, z = mesh
    same = {"ws2d": x == 1, "wg_x": x == 1 or y * z == 1, "wg_xy": y == 1 or z == 1}
    return lambda layout: not same.get(layout, False)
