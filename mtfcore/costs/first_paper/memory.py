"""What one device must hold to train two layers: parameters, gradients, optimizer state, activations apart.

    >>> held = memory(ROWS["batch:all"], Sizes(512, 1024, 4096), Parts(batch=8), optimizer="adam")
    >>> held.parameters, held.gradients, held.optimizer, held.activations
    (16777216, 16777216, 67108864, 1310720)

The table's memory column counts one tile each of an input, the hidden layer and a weight. Kept here: both weights;
their gradients; what the optimizer keeps, in float32 and cut as the parameters are (two moments for Adam; for
Adafactor, arXiv 1804.04235, one row and one column a matrix; nothing for SGD); and the activations alive at the
fullest moment. That is, forward, x, h and y; in training the moment between dv and dw, when x and h wait and their
gradients dy and dh have been made. relu may work in place: its result tells where it let pass. Left out: the bias,
temporary copies, and what a compiler keeps besides. Next file to read: `paper_time`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mtfcore.costs.first_paper.two_layers import DIMS, Parts, Row, Sizes, einsums_of, tile, uneven
from mtfcore.dtypes import itemsize
from mtfcore.errors import LayoutError, nearest, refuse

F32 = 4
PARTS = ("parameters", "gradients", "optimizer", "activations")
OPTIMIZERS = ("sgd", "adam", "adafactor")


@dataclass(frozen=True)
class Memory:
    """Bytes on one device, by what they are for."""

    parameters: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(getattr(self, part) for part in PARTS)

    def fits(self, hbm_bytes: float) -> bool:
        """Whether a device with so much memory can hold it."""
        return self.total <= hbm_bytes


def memory(
    row: Row, sizes: Sizes, parts: Parts, dtype: str = "bf16", optimizer: str = "adam", passes: str = "training"
) -> Memory:
    """Bytes on one device; a forward pass alone needs neither gradients nor optimizer state."""
    refuse(uneven(row, sizes, parts), f"layout '{row.layout}'")
    n, weights = itemsize(dtype), 2 * tile(sizes, parts, ("io", "hidden"))
    trains = any(einsum.when == "backward" for einsum in einsums_of(passes))
    inside, outside = tile(sizes, parts, ("batch", "hidden")), tile(sizes, parts, ("batch", "io"))
    return Memory(
        parameters=n * weights,
        gradients=n * weights if trains else 0,
        optimizer=optimizer_bytes(optimizer, sizes, parts) if trains else 0,
        activations=n * (2 * outside + (2 if trains else 1) * inside),
    )


def optimizer_bytes(optimizer: str, sizes: Sizes, parts: Parts) -> int:
    """What the optimizer keeps of both matrices, in float32."""
    if optimizer not in OPTIMIZERS:
        raise LayoutError(f"no optimizer {optimizer!r}; {nearest(optimizer, OPTIMIZERS)}")
    whole = 2 * tile(sizes, parts, ("io", "hidden"))
    factored = 2 * (tile(sizes, parts, ("io",)) + tile(sizes, parts, ("hidden",)))
    return F32 * {"sgd": 0, "adam": 2 * whole, "adafactor": factored}[optimizer]


def largest(row: Row, sizes: Sizes, parts: Parts, dim: str, hbm_bytes: float, **how: str) -> int:
    """The largest size of one dimension, the others as given, with which training still fits; 0 if none does.

    Memory grows by the same amount with each further part of the dimension, so two sizes say everything.
    """
    if dim not in DIMS:
        raise LayoutError(f"no dimension {dim!r}; {nearest(dim, DIMS)}")
    unit = getattr(parts, dim)
    one, two = (memory(row, _with(sizes, dim, n * unit), parts, **how).total for n in (1, 2))
    more = (hbm_bytes - one) // (two - one)
    return int(more + 1) * unit if more >= 0 else 0


def _with(sizes: Sizes, dim: str, size: int) -> Sizes:
    return Sizes(**{**vars(sizes), dim: size})
