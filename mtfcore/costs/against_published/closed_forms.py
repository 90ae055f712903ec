"""The papers' tables of formulas beside ours: layouts of two layers, blocks of a product, a feedforward's traffic.

    >>> row, = rows(table="Figure 3")[:1]
    >>> row.printed, communication(row).value
    ('0.06711', 0.067108864)

A printed formula agrees where it and our function give the same number, exactly, at sizes that are all different.
Source: arXiv 1811.02084, Table 1 and Appendix B; arXiv 2211.05102, section 3.2 and Figure 3. Next file to read:
`latencies`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from mtfcore.costs.against_published.prediction import Prediction, said
from mtfcore.costs.first_paper.iteration_space import Blocks
from mtfcore.costs.first_paper.two_layers import ROWS, Parts, Row, Sizes, cost
from mtfcore.costs.first_paper.two_layers_printed import (
    printed_communication,
    printed_computation,
    printed_memory,
    printed_ratio,
)
from mtfcore.costs.second_paper import crossover, layout_bytes
from mtfcore.mesh import Mesh
from mtfcore.reference import Published
from mtfcore.reference.arithmetic import evaluate

EXAMPLE = Sizes(batch=96, io=80, hidden=224)  # all different, so that no two tiles are alike
ROWS_COLS_PLANES = (4, 2, 8)


def _allreduced(row: Row, sizes: Sizes, parts: Parts) -> int:
    return cost(row, sizes, parts).allreduced


FORMULAS: Mapping[str, Callable[[Row, Sizes, Parts], float | Fraction]] = {
    "computation": printed_computation,
    "communication": printed_communication,
    "ratio": printed_ratio,
    "memory": printed_memory,
    "all-reduced with its constant": _allreduced,
}


def two_layers(row: Published) -> Prediction:
    """An entry of the first paper's Table 1: our formula, and whether both give the same number."""
    ours = ROWS[row.setup["layout"]]
    parts = ours.parts(*ROWS_COLS_PLANES[: max(len(ours.splits), 1)])
    value = FORMULAS[row.quantity](ours, EXAMPLE, parts)
    letters = {"b": EXAMPLE.batch, "d_io": EXAMPLE.io, "d_h": EXAMPLE.hidden, "n": parts.devices,
               "r": parts.batch, "c": parts.hidden, "p": parts.io}  # fmt: skip
    return Prediction(_words(ours, row.quantity, float(value)), agrees=evaluate(row.printed, letters) == value)


def _words(ours: Row, quantity: str, value: float) -> str:
    return getattr(ours.printed, quantity, "") or f"{value:,} of {EXAMPLE}"


def blocks(row: Published) -> Prediction:
    """Computation over communication of a product, or what one cut gains over another. Appendix B."""
    ratio = Blocks(*row.setup["blocks"]).ratio(1)
    if "against" not in row.setup:
        return said(row, float(ratio))
    gain = ratio / Blocks(*row.setup["against"]).ratio(1)
    return said(row, float(gain - 1 if row.unit == "%" else gain))


def _mesh(row: Published) -> tuple[int, int, int]:
    x, y, z = Mesh(row.setup["mesh"]).shape.values()
    return x, y, z


def communication(row: Published) -> Prediction:
    """Bytes that one device moves for a feedforward layer. Figure 3."""
    setup = row.setup
    x, y, z = _mesh(row)
    n_bytes = layout_bytes(setup["ffn"], setup["tokens"], setup["d_model"], setup["d_ff"], x, y, z)
    return said(row, n_bytes, "links")


def crossing(row: Published) -> Prediction:
    """Tokens at which two layouts move the same. Sections 3.2.2 and 3.2.3."""
    setup = row.setup
    one, other = setup["between"]
    return said(row, float(crossover(one, other, setup["d_model"], setup["d_ff"], _mesh(row))), "links")
