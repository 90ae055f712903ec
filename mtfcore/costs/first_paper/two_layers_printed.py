"""Table 1 as it is printed: one einsum's work, one tile of each kind, and no factor (g-1)/g.

    >>> printed_communication(ROWS["batch:rows hidden:cols"], Sizes(64, 512, 2048), Parts(batch=4, hidden=2))
    532480

Source: "Mesh-TensorFlow" (arXiv 1811.02084), Table 1. Next file to read: `memory`.
"""

from __future__ import annotations

from fractions import Fraction

from mtfcore.costs.first_paper.two_layers import DIMS, Parts, Row, Sizes, tile


def printed_computation(row: Row, sizes: Sizes, parts: Parts) -> int:
    """Multiply-adds of one einsum on one processor: b·d_io·d_h over the parts. Table 1, column 'computation'."""
    return tile(sizes, parts, DIMS)


def printed_communication(row: Row, sizes: Sizes, parts: Parts) -> int:
    """Values all-reduced, each kind of tile once: for each cut dimension the tile of the other two. Table 1."""
    return sum(tile(sizes, parts, _others(dim)) for dim in row.splits)


def printed_ratio(row: Row, sizes: Sizes, parts: Parts) -> Fraction:
    """Communication over computation: 1 / (the part of it on a processor) for each cut dimension. Table 1."""
    return sum((Fraction(getattr(parts, dim), getattr(sizes, dim)) for dim in row.splits), Fraction(0))


def printed_memory(row: Row, sizes: Sizes, parts: Parts) -> int:
    """Values held: one tile each of an input, of the hidden layer and of a weight. Table 1, column 'memory'."""
    return sum(tile(sizes, parts, _others(dim)) for dim in DIMS)


def _others(dim: str) -> tuple[str, ...]:
    return tuple(other for other in DIMS if other != dim)
