"""Two fully connected layers under the five layouts of Table 1: what one processor computes, sends and holds.

    y = relu(x w) v            x: batch io     w: io hidden     v: hidden io

Forward and backward there are six einsums over the same three dimensions; each keeps two and sums over the third. A
layout cuts batch into r parts, hidden into c and io into p, so an einsum's result is a tile of the two kept
dimensions, and the devices along the cut of the third all-reduce it. All five rows follow from that sentence:

    >>> row = ROWS["batch:rows hidden:cols"]
    >>> cost(row, Sizes(64, 512, 2048), Parts(batch=4, hidden=2)).allreduced      # values, forward and backward
    1064960

`two_layers_printed` has the table's own entries: one einsum's work, one tile of each kind, no factor (g-1)/g. What the
table drops, `cost` keeps: there are two einsums forward and four backward, each 2 FLOPs a multiply-add; each kind of
tile is all-reduced twice a step (y and dx, h and dh, dw and dv); and in a group of g a device sends 2(g-1)/g of what
is all-reduced. Both drop the bias (hidden values), relu and the loss. dx is needed because the two layers stand inside
a larger network; without it the model-parallel row would all-reduce once, not twice. b is the batch of all
processors together: n/b with b the batch of one processor is a common slip.

Source: "Mesh-TensorFlow" (arXiv 1811.02084), section 8 and Table 1. Lesson 05 uses it. Next file to read:
`two_layers_printed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from mtfcore.dtypes import itemsize
from mtfcore.errors import LayoutError, refuse
from mtfcore.traffic import link_bytes

DIMS = ("batch", "hidden", "io")
PASSES = {"forward": ("forward",), "training": ("forward", "backward")}


@dataclass(frozen=True)
class Sizes:
    """The network: the global batch b, d_io and d_h."""

    batch: int
    io: int
    hidden: int

    def __str__(self) -> str:
        return f"batch:{self.batch} io:{self.io} hidden:{self.hidden}"


@dataclass(frozen=True)
class Parts:
    """Into how many parts a layout cuts each dimension: r, c and p of the table."""

    batch: int = 1
    hidden: int = 1
    io: int = 1

    @property
    def devices(self) -> int:
        """Processors that share the work."""
        return self.batch * self.hidden * self.io


@dataclass(frozen=True)
class Printed:
    """A row's entries as formulas: the table's words."""

    computation: str
    communication: str
    ratio: str
    memory: str


@dataclass(frozen=True)
class Row:
    """One layout of the table. `published`: its entries are printed in texts about the paper; else derived here."""

    layout: str
    splits: tuple[str, ...]
    printed: Printed
    published: bool

    @property
    def origin(self) -> str:
        """How we know the row's printed entries: read, or computed from the others."""
        return "published" if self.published else "computed"

    def parts(self, rows: int, cols: int = 1, planes: int = 1) -> Parts:
        """The cuts on rows·cols·planes devices: one dimension takes all, a 2D layout takes planes as more cols."""
        n = rows * cols * planes
        if len(self.splits) == 1:
            return Parts(**{self.splits[0]: n})
        if len(self.splits) == 2:
            return Parts(batch=rows, hidden=cols * planes)
        return Parts(rows, cols, planes) if self.splits else Parts()

    def mesh(self, rows: int, cols: int = 1, planes: int = 1) -> str:
        """The mesh that this row's layout names, with as many devices."""
        if len(self.splits) < 2:
            return f"all:{rows * cols * planes}"
        if len(self.splits) == 2:
            return f"rows:{rows} cols:{cols * planes}"
        return f"rows:{rows} cols:{cols} planes:{planes}"


ROWS: Mapping[str, Row] = {
    row.layout: row
    for row in (
        Row("", (), Printed("b d_io d_h", "0", "0", "b d_io + b d_h + d_io d_h"), False),
        Row(
            "batch:all", ("batch",),
            Printed("b d_io d_h / n", "d_io d_h", "n/b", "b d_io/n + b d_h/n + d_io d_h"), True,
        ),
        Row(
            "hidden:all", ("hidden",),
            Printed("b d_io d_h / n", "b d_io", "n/d_h", "b d_io + b d_h/n + d_io d_h/n"), True,
        ),
        Row(
            "batch:rows hidden:cols", ("batch", "hidden"),
            Printed(
                "b d_io d_h / rc", "b d_io/r + d_io d_h/c", "c/d_h + r/b", "b d_io/r + b d_h/rc + d_io d_h/c"
            ), True,
        ),
        Row(
            "batch:rows hidden:cols io:planes", ("batch", "hidden", "io"),
            Printed(
                "b d_io d_h / rcp", "b d_io/rp + b d_h/rc + d_io d_h/cp", "c/d_h + p/d_io + r/b",
                "b d_io/rp + b d_h/rc + d_io d_h/cp",
            ), False,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Einsum:
    """One einsum of the network: its result's dimensions, the one it sums over, and in which pass it stands."""

    result: str
    keeps: tuple[str, str]
    contracts: str
    when: str


EINSUMS = (
    Einsum("h", ("batch", "hidden"), "io", "forward"),
    Einsum("y", ("batch", "io"), "hidden", "forward"),
    Einsum("dv", ("hidden", "io"), "batch", "backward"),
    Einsum("dh", ("batch", "hidden"), "io", "backward"),
    Einsum("dw", ("io", "hidden"), "batch", "backward"),
    Einsum("dx", ("batch", "io"), "hidden", "backward"),
)


def tile(sizes: Sizes, parts: Parts, dims: tuple[str, ...]) -> int:
    """Values that one processor holds of a tensor with these dimensions."""
    return math.prod(getattr(sizes, dim) // getattr(parts, dim) for dim in dims)


# ---- the table as printed: constants dropped


# ---- the same, exact


@dataclass(frozen=True)
class AllReduce:
    """One all-reduce: which einsum's result, in a group of how many, and the values of one device's tile."""

    result: str
    contracts: str
    group: int
    values: int


@dataclass(frozen=True)
class Cost:
    """What one processor does in a pass, every factor kept."""

    multiply_adds: int
    allreduces: tuple[AllReduce, ...]
    itemsize: int

    @property
    def flops(self) -> int:
        """Two a multiply-add."""
        return 2 * self.multiply_adds

    @property
    def allreduced(self) -> int:
        """Values all-reduced: the paper's measure, without its dropped constants."""
        return sum(each.values for each in self.allreduces)

    @property
    def sent_bytes(self) -> int | Fraction:
        """Bytes that one device sends, in rings: 2(g-1)/g of what it all-reduces."""
        return sum(link_bytes("all_reduce", each.values * self.itemsize, each.group) for each in self.allreduces)

    @property
    def ratio(self) -> Fraction:
        """Values sent for each multiply-add: Table 1's ratio with every factor."""
        return Fraction(self.sent_bytes) / self.itemsize / self.multiply_adds


def cost(row: Row, sizes: Sizes, parts: Parts, dtype: str = "bf16", passes: str = "training") -> Cost:
    """What one processor computes and sends; refuses sizes that the layout does not cut evenly."""
    refuse(uneven(row, sizes, parts), f"layout '{row.layout}'")
    einsums = einsums_of(passes)
    allreduces = (_allreduce(einsum, sizes, parts) for einsum in einsums)
    return Cost(
        len(einsums) * tile(sizes, parts, DIMS), tuple(each for each in allreduces if each.group > 1), itemsize(dtype)
    )


def einsums_of(passes: str) -> tuple[Einsum, ...]:
    """The einsums of 'forward' or of 'training' (forward and backward)."""
    if passes not in PASSES:
        raise LayoutError(f"no pass {passes!r}; legal here: {', '.join(map(repr, PASSES))}")
    return tuple(einsum for einsum in EINSUMS if einsum.when in PASSES[passes])


def _allreduce(einsum: Einsum, sizes: Sizes, parts: Parts) -> AllReduce:
    group = getattr(parts, einsum.contracts)
    return AllReduce(einsum.result, einsum.contracts, group, tile(sizes, parts, einsum.keeps))


def uneven(row: Row, sizes: Sizes, parts: Parts) -> list[str]:
    """One sentence for each dimension that its parts do not divide."""
    return [
        f"{dim} {getattr(sizes, dim):,} does not divide into {getattr(parts, dim):,} parts"
        for dim in row.splits
        if getattr(sizes, dim) % getattr(parts, dim)
    ]
