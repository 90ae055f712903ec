"""The elementwise functions: how many operands, and how a partial sum may pass through each.

`linear` says what a partial sum may do: "sum" in all operands at once (a + b), "product" in exactly one (a · b),
"first" in the first only (a / b), "none" (relu: sums are reduced before). Next file to read: `ops`.
"""

from __future__ import annotations

from typing import NamedTuple


class Elementwise(NamedTuple):
    operands: int
    linear: str
    gives_bool: bool = False


ELEMENTWISE: dict[str, Elementwise] = {
    "add": Elementwise(2, "sum"),
    "subtract": Elementwise(2, "sum"),
    "multiply": Elementwise(2, "product"),
    "divide": Elementwise(2, "first"),
    "identity": Elementwise(1, "product"),
    **{name: Elementwise(2, "none") for name in ("maximum", "minimum", "power")},
    **{name: Elementwise(1, "none") for name in ("relu", "gelu", "silu", "sigmoid", "tanh", "exp", "log", "sqrt")},
    **{name: Elementwise(1, "none") for name in ("rsqrt", "square", "absolute", "cast")},
    **{name: Elementwise(2, "none", True) for name in ("equal", "less", "greater", "logical_and", "logical_or")},
    "logical_not": Elementwise(1, "none", True),
    "where": Elementwise(3, "none"),
}
