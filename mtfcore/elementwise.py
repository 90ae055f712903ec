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
    floats_only: bool = False  # a whole number's result would be cut to a whole number again


def _smooth(*names: str) -> dict[str, Elementwise]:
    return {name: Elementwise(1, "none", floats_only=True) for name in names}


ELEMENTWISE: dict[str, Elementwise] = {
    "add": Elementwise(2, "sum"),
    "subtract": Elementwise(2, "sum"),
    "multiply": Elementwise(2, "product"),
    "divide": Elementwise(2, "first", floats_only=True),
    "identity": Elementwise(1, "product"),
    **{name: Elementwise(2, "none") for name in ("maximum", "minimum", "power")},
    **{name: Elementwise(1, "none") for name in ("relu", "square", "absolute", "cast")},
    **_smooth("gelu", "silu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt"),
    **{name: Elementwise(2, "none", True) for name in ("equal", "less", "greater", "logical_and", "logical_or")},
    "logical_not": Elementwise(1, "none", True),
    "where": Elementwise(3, "none"),
}
