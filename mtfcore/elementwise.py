"""The elementwise operations, and how a partial sum may pass through each.

`linear` in the table says what a partial sum may do: "sum" in all operands at once (a + b), "product" in exactly one
(a · b), "first" in the first only (a / b), "none" (relu: sums are reduced before). Numbers are constants; a missing
dimension broadcasts. Source: Mesh-TensorFlow's component-wise operations (arXiv 1811.02084, section 6).
Next file to read: `reductions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mtfcore.dims import Dim
from mtfcore.dtypes import cannot_hold, canonical, is_float
from mtfcore.errors import LayoutError, refuse
from mtfcore.ops import (
    apply,
    apply_out,
    common_graph,
    expect_tensor,
    out_dims,
    plain_number,
    same_dtype,
    same_sizes,
    wanted,
)  # fmt: skip
from mtfcore.tensor import Graph, Op, Tensor, Wanted


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
    "stop_gradient": Elementwise(1, "product"),
    "barrier": Elementwise(1, "product"),  # computed again, not shared with an equal operation elsewhere
    **{name: Elementwise(2, "none") for name in ("maximum", "minimum", "power", "fold_in")},
    **{name: Elementwise(1, "none") for name in ("relu", "square", "absolute", "cast", "sort_key")},
    **_smooth("gelu", "silu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "sin", "cos"),
    **{name: Elementwise(2, "none", True) for name in ("equal", "less", "greater", "logical_and", "logical_or")},
    "logical_not": Elementwise(1, "none", True),
    "where": Elementwise(3, "none"),
}


ON_BOOL = ("identity", "barrier", "cast", "where", "equal", "logical_and", "logical_or", "logical_not")


def elementwise(fn: str, *operands: Any, out: str | None = None) -> Tensor:
    """Apply an elementwise function by name; numbers are constants, a missing dimension broadcasts.

    The result has the dimensions of the operand that has them all; where none has, `out` must name them.
    """
    tensors = [t for t in operands if isinstance(t, Tensor)]
    if not tensors:
        raise LayoutError(f"{fn} needs at least one tensor of a named function, got {operands!r}")
    graph = common_graph(tensors)
    dtype = _value_dtype(graph, fn, operands)
    if dtype == "bool" and fn not in ON_BOOL:
        raise LayoutError(f"{fn} of {tensors[0]!r}: dtype is bool; use mtf.cast(t, 'f32') first")
    if ELEMENTWISE[fn].floats_only and not is_float(dtype):
        raise LayoutError(f"{fn} of {tensors[0]!r}: dtype is {dtype}, expected a float; use mtf.cast(t, 'f32')")
    exponent = plain_number(operands[-1]) if fn == "power" else None
    if exponent is not None and exponent < 0 and not is_float(dtype):
        raise LayoutError(f"power of {tensors[0]!r}: {dtype} to the power of {exponent!r} is no whole number; use "
                          "mtf.cast(t, 'f32')")  # fmt: skip
    all_tensors = [_of_dtype(graph, fn, t, dtype, n) for n, t in enumerate(operands)]
    known = same_sizes(all_tensors, fn)
    dims = _broadcast(graph, fn, all_tensors, known, out)
    result = "bool" if ELEMENTWISE[fn].gives_bool else dtype
    return _pointwise(fn, all_tensors, dims, result, wanted(out, dims, fn))


def _value_dtype(graph: Graph, fn: str, operands: Sequence[Any]) -> str:
    """The dtype of what is computed with: that of the tensors; truth values join in as 0 and 1."""
    if fn == "where":
        if not isinstance(operands[0], Tensor) or operands[0].dtype != "bool":
            raise LayoutError(f"where: the first operand is {operands[0]!r:.200}; expected a bool tensor")
        operands = operands[1:]
    tensors = [t for t in operands if isinstance(t, Tensor)]
    if not tensors:  # where(c, 1.0, 0.0)
        return "bool" if all(isinstance(plain_number(value), bool) for value in operands) else graph.dtype
    return same_dtype([t for t in tensors if t.dtype != "bool"] or tensors, fn)


def _of_dtype(graph: Graph, fn: str, operand: Any, dtype: str, place: int) -> Tensor:
    if not isinstance(operand, Tensor):
        return constant(graph, operand, dtype)
    as_it_is = operand.dtype == dtype or fn.startswith("logical") or (fn == "where" and place == 0)
    return operand if as_it_is else cast(operand, dtype)


def _broadcast(
    graph: Graph, fn: str, tensors: Sequence[Tensor], known: Mapping[str, Dim], out: str | None
) -> tuple[Dim, ...]:
    if out is not None:
        dims = out_dims(graph, out, known, fn)
        lost = [name for name in known if name not in [dim.name for dim in dims]]
        refuse([f"out='{out}' leaves out {name!r}; use mtf.sum or mtf.einsum to sum over it" for name in lost], fn)
        return dims
    for tensor in tensors:
        if set(tensor.names) == set(known):
            return tensor.dims
    raise LayoutError(
        f"{fn} of {', '.join(map(repr, tensors))}: no operand has all the dimensions {', '.join(known)}, so the result "
        f"would be larger than each; if that is meant, give it: out='{' '.join(known)}'"
    )


def _pointwise(
    fn: str, tensors: Sequence[Tensor], dims: tuple[Dim, ...], dtype: str, out: Wanted, **params: Any
) -> Tensor:
    return apply("pointwise", tensors, dims, dtype, out, fn=fn, **params)


def constant(graph: Graph, value: float | bool, dtype: str) -> Tensor:
    """A number as a tensor without dimensions."""
    number = plain_number(value)
    if number is None:
        raise LayoutError(f"expected a tensor or a number, got {type(value).__name__}: {value!r:.200}")
    if dtype == "bool" and not isinstance(number, bool):
        raise LayoutError(f"{number!r:.200} beside tensors of bool only; use mtf.cast(t, 'f32') first")
    if why := cannot_hold(dtype, number):
        raise LayoutError(f"{number!r:.200} beside a tensor of {dtype} {why}; use mtf.cast(t, 'f32')")
    return graph.add(Op("constant", (), (), dtype, {"value": number}))


_OPERANDS = """`operands`: tensors of one function, and numbers; one counts everywhere along what it lacks.
`out`: its dimensions, and where it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

Raises `LayoutError` for other numbers of operands, for sizes or dtypes that do not go together, and for a result that
would be larger than each operand without a word of it in `out`."""


def _named(fn: str, doc: str) -> Callable[..., Tensor]:
    def operation(*operands: Any, out: str | None = None) -> Tensor:
        expected = ELEMENTWISE[fn].operands
        if len(operands) != expected:
            raise LayoutError(f"{fn} takes {expected} operand{'s' * (expected > 1)}, got {len(operands)}")
        return elementwise(fn, *operands, out=out)

    operation.__name__ = operation.__qualname__ = fn
    operation.__doc__ = f"{doc}\n\n{_OPERANDS}"
    return operation


add = _named("add", "Sum, elementwise; partial sums over the same axes stay partial.")
subtract = _named("subtract", "Difference, elementwise.")
multiply = _named("multiply", "Product, elementwise; a partial sum in one operand stays partial.")
divide = _named("divide", "Quotient, elementwise.")
maximum = _named("maximum", "Larger of two, elementwise.")
minimum = _named("minimum", "Smaller of two, elementwise.")
power = _named("power", "First to the power of the second, elementwise.")
relu = _named("relu", "max(t, 0); not linear, so incoming partial sums are reduced first.")
gelu = _named("gelu", "Gaussian error linear unit (tanh form).")
silu = _named("silu", "t · sigmoid(t), also called swish.")
sigmoid = _named("sigmoid", "1 / (1 + exp(-t)).")
tanh = _named("tanh", "Hyperbolic tangent.")
exp = _named("exp", "e to the power of t.")
log = _named("log", "Natural logarithm.")
sqrt = _named("sqrt", "Square root.")
rsqrt = _named("rsqrt", "1 / square root.")
sin = _named("sin", "Sine of an angle in radians.")
cos = _named("cos", "Cosine of an angle in radians.")
square = _named("square", "t · t.")
absolute = _named("absolute", "|t|.")
equal = _named("equal", "Whether equal, elementwise: bool.")
less = _named("less", "Whether the first is less, elementwise: bool.")
greater = _named("greater", "Whether the first is greater, elementwise: bool.")
logical_and = _named("logical_and", "Both, elementwise: bool.")
logical_or = _named("logical_or", "Either, elementwise: bool.")
logical_not = _named("logical_not", "Not, elementwise: bool.")
where = _named("where", "Second where the first is true, else third, elementwise.")


stop_gradient = _named("stop_gradient", "The same values, which `mtf.gradients` takes for constants.")


def cast(t: Tensor, dtype: object, out: str | None = None) -> Tensor:
    """The same values in another dtype; partial sums are reduced first, in the dtype they have.

    `t`: a tensor; `dtype`: "f32", "bf16", "i32", "bool", …, or a numpy or JAX type. `out`: its dimensions, and where
    it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

        >>> mtf.cast(x, "bf16").dtype
        'bf16'
    """
    expect_tensor(t)
    return apply_out("pointwise", [t], t.dims, canonical(dtype), out, "cast", fn="cast")


def sort_key(t: Tensor, out: str | None = None) -> Tensor:
    """Of f32 whole numbers, i32, in the same order: neighbours differ by 1, so a search by halving ends exactly.

    `t`: f32[...]; the result i32[...] of the same dimensions. `out`: its dimensions, and where it lies if that is
    said exactly ("batch:rows io"); otherwise the layout decides.

        >>> mtf.sort_key(x).dtype
        'i32'

    Raises `LayoutError` for another dtype than f32.
    """
    if expect_tensor(t).dtype != "f32":
        raise LayoutError(f"sort_key of {t!r}: dtype is {t.dtype}, expected f32; use mtf.cast(t, 'f32')")
    return apply_out("pointwise", [t], t.dims, "i32", out, "sort_key", fn="sort_key")


def broadcast_equal(a: Tensor, b: Tensor, out: Wanted = None) -> Tensor:
    """Where a equals b, over the dimensions of a, then those that only b has."""
    dims = a.dims + tuple(dim for dim in b.dims if dim.name not in a.names)
    return _pointwise("equal", [a, b], dims, "bool", out)
