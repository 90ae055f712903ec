"""Arithmetic as it is printed: the derivations of computed figures, and formulas with letters.

    >>> evaluate("2*540e9*512*2048/(64*275e12*85.2)*100")
    75.52...
    >>> evaluate("b*d_io/r + d_io*d_h/c", {"b": 64, "d_io": 512, "d_h": 2048, "r": 4, "c": 2})
    Fraction(532480, 1)

Numbers, names, brackets and + - * / ** alone; names may be given as fractions, and then the result is exact. Words
are no arithmetic: `is_arithmetic` tells a derivation from a sentence. Next file to read:
`against_published/prediction`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from fractions import Fraction

from mtfcore.errors import LayoutError

Number = int | float | Fraction
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
              ast.Pow: operator.pow}  # fmt: skip


def evaluate(text: str, names: Mapping[str, int] | None = None) -> Number:
    """The value of an expression; names stand for whole numbers and are taken exactly."""
    exact = {name: Fraction(value) for name, value in (names or {}).items()}
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, exact)
    except SyntaxError:
        raise LayoutError(f"{text!r:.100} is no arithmetic") from None


def is_arithmetic(text: str) -> bool:
    """Whether a text is an expression of numbers alone."""
    try:
        evaluate(text)
    except LayoutError:
        return False
    return True


def _value(node: ast.expr, names: Mapping[str, Fraction]) -> Number:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        return OPERATIONS[type(node.op)](_value(node.left, names), _value(node.right, names))
    raise LayoutError(f"{ast.unparse(node)!r:.100} is no number, and not among {', '.join(names) or 'any names'}")
