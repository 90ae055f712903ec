"""One rule an operation: from the cotangent of its result to that of one operand, as named operations again.

    rule(made, operands, d, place) → the cotangent of operands[place], or None where there is none

`d` may have its dimensions in any order; so may what a rule returns. Rules say nothing about placement: `walk` wants
every cotangent where its primal lies. An operation of your own needs an entry in RULES, or, if it is
elementwise, in POINTWISE. Next file to read: `backward/loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mtfcore.backward.spatial import SPATIAL
from mtfcore.dims import Dim
from mtfcore.elementwise import (
    add,
    cast,
    constant,
    cos,
    divide,
    equal,
    greater,
    less,
    log,
    logical_not,
    maximum,
    multiply,
    power,
    sigmoid,
    sin,
    square,
    subtract,
    tanh,
)  # fmt: skip
from mtfcore.errors import sure
from mtfcore.lookups import index
from mtfcore.ops import apply
from mtfcore.reductions import sum
from mtfcore.rules.reshaping import groups
from mtfcore.tensor import Tensor

Rule = Callable[[Tensor, Sequence[Tensor], Tensor, int], Tensor | None]
GELU_SCALE, GELU_CUBIC = 0.7978845608028654, 0.044715  # sqrt(2/π); both of the tanh form that the kernel computes


def laid_out(t: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    """The same tensor with its dimensions in this order; those that it lacks are filled with copies."""
    return t if t.dims == dims else apply("pointwise", [t], dims, t.dtype, None, fn="identity")


def contracted(operands: Sequence[Tensor], dims: tuple[Dim, ...], search: bool = False) -> Tensor:
    """The einsum of operands onto `dims`; those that no operand has are filled with copies."""
    known = {dim.name for t in operands for dim in t.dims}
    inner = tuple(dim for dim in dims if dim.name in known)
    if len(operands) == 1 and inner == operands[0].dims:  # nothing is summed
        return laid_out(operands[0], dims)
    return laid_out(apply("einsum", list(operands), inner, operands[0].dtype, None, at=None, search=search), dims)


def summed_to(d: Tensor, x: Tensor) -> Tensor:
    """A cotangent summed over the dimensions along which x was repeated."""
    return contracted([d], x.dims) if set(d.names) - set(x.names) else d


def _einsum(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    others = [x for n, x in enumerate(xs) if n != place]
    return contracted([d, *others], xs[place].dims, y.op.params["search"])


def _pointwise(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor | None:
    wide = xs
    if len(xs) > 1 and not any(len(x.dims) == len(y.dims) for x in xs):  # the result is larger than each
        wide = [laid_out(x, y.dims) if x.dims else x for x in xs]
    found = POINTWISE[y.op.params["fn"]](y, wide, d, place)
    return None if found is None else summed_to(found, xs[place])


def _mask(condition: Tensor, d: Tensor) -> Tensor:
    return multiply(d, cast(condition, d.dtype))  # a product, so that partial sums may wait


def _divide(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    return divide(d, xs[1]) if place == 0 else multiply(d, multiply(divide(y, xs[1]), -1))


def _larger(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    """Of two equal operands each has half of it, as in JAX."""
    mine, other = xs[place], xs[1 - place]
    wins = greater(mine, other) if y.op.params["fn"] == "maximum" else less(mine, other)
    return add(_mask(wins, d), multiply(_mask(equal(mine, other), d), 0.5))


def _power(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    base, exponent = xs
    if place == 0:
        return multiply(d, multiply(exponent, power(base, subtract(exponent, 1))))
    safe = maximum(base, 1e-30)  # 0 to any power has no slope there
    return multiply(d, multiply(y, log(safe)))


def _gelu(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    (x,) = xs
    t = tanh(multiply(x, add(multiply(square(x), GELU_SCALE * GELU_CUBIC), GELU_SCALE)))
    inner = add(multiply(square(x), 3 * GELU_SCALE * GELU_CUBIC), GELU_SCALE)
    rise = multiply(multiply(x, subtract(1.0, square(t))), inner)
    return multiply(d, multiply(add(add(t, 1.0), rise), 0.5))


def _silu(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    s = sigmoid(xs[0])
    return multiply(d, add(s, multiply(y, subtract(1.0, s))))


def _where(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor | None:
    return {1: lambda: _mask(xs[0], d), 2: lambda: _mask(logical_not(xs[0]), d)}.get(place, lambda: None)()


def _absolute(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    below = less(xs[0], 0)  # at 0 it rises, as in JAX
    return subtract(_mask(logical_not(below), d), _mask(below, d))


POINTWISE: dict[str, Rule] = {
    "add": lambda y, xs, d, place: d,
    "subtract": lambda y, xs, d, place: d if place == 0 else multiply(d, -1),
    "multiply": lambda y, xs, d, place: multiply(d, xs[1 - place]),
    "divide": _divide, "maximum": _larger, "minimum": _larger, "power": _power, "where": _where,
    "identity": lambda y, xs, d, place: d,
    "barrier": lambda y, xs, d, place: d,
    "stop_gradient": lambda y, xs, d, place: None,
    "fold_in": lambda y, xs, d, place: None, "sort_key": lambda y, xs, d, place: None,
    "cast": lambda y, xs, d, place: cast(d, xs[0].dtype),
    "relu": lambda y, xs, d, place: _mask(greater(xs[0], 0), d),
    "gelu": _gelu, "silu": _silu, "absolute": _absolute,
    "square": lambda y, xs, d, place: multiply(d, multiply(xs[0], 2)),
    "sigmoid": lambda y, xs, d, place: multiply(d, multiply(y, subtract(1.0, y))),
    "tanh": lambda y, xs, d, place: multiply(d, subtract(1.0, square(y))),
    "sin": lambda y, xs, d, place: multiply(d, cos(xs[0])),
    "cos": lambda y, xs, d, place: multiply(d, multiply(sin(xs[0]), -1)),
    "exp": lambda y, xs, d, place: multiply(d, y),
    "log": lambda y, xs, d, place: divide(d, xs[0]),
    "sqrt": lambda y, xs, d, place: multiply(d, divide(0.5, y)),
    "rsqrt": lambda y, xs, d, place: multiply(d, multiply(divide(y, xs[0]), -0.5)),
}  # fmt: skip


def _reduce(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor | None:
    """To the largest (or smallest); where several are equal, an equal share to each, as in JAX."""
    (x,) = xs
    if y.op.params.get("flat"):  # what softmax takes out before exp cancels
        return None
    hot = cast(equal(x, y), x.dtype)
    return multiply(hot, divide(d, contracted([hot], y.dims)))


def _gather(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor | None:
    ids, table = xs
    return apply("scatter", [ids, d], table.dims, d.dtype, None, dim=y.op.params["dim"]) if place == 1 else None


def _scatter(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor | None:
    ids, rows = xs
    return apply("gather", [ids, d], rows.dims, d.dtype, None, dim=y.op.params["dim"]) if place == 1 else None


def _write(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor | None:
    """Written rows come from the rows; what stands where they were written came from nowhere else."""
    t, rows, at = xs
    if place == 0:
        zeros = laid_out(constant(d.graph, 0.0, d.dtype), rows.dims)
        return apply("write", [laid_out(d, t.dims), zeros, at], t.dims, d.dtype, None, dim=y.op.params["dim"])
    return apply("gather", [at, d], rows.dims, d.dtype, None, dim=y.op.params["dim"]) if place == 1 else None


def _window(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    params = {"dim": y.op.params["dim"], "value": 0.0, "before": y.op.params["start"]}
    return apply("pad", [laid_out(d, y.dims)], xs[0].dims, d.dtype, None, **params)


def _pad(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    start = y.op.params.get("before", 0)
    return apply("window", [laid_out(d, y.dims)], xs[0].dims, d.dtype, None, dim=y.op.params["dim"], start=start)


def _concat(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    dim, start = y.op.params["dim"], 0
    for x in xs[:place]:
        start += sure(x.dim(dim).size)
    dims = tuple(xs[place].dim(name) for name in y.names)
    return apply("window", [laid_out(d, y.dims)], dims, d.dtype, None, dim=dim, start=start)


def _cumsum(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    """Each element is in its own sum and in all behind it."""
    dim = y.op.params["dim"]
    before = subtract(apply("cumsum", [d], d.dims, d.dtype, None, dim=dim), d)
    return subtract(sum(d, dim), before)


def _top_k(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor | None:
    """Back to where each of the k came from."""
    (x,), dim = xs, y.op.params["dim"]
    found = Dim(f"{dim}_found", y.op.params["k"])
    where = apply("top_k", [x], y.dims, "i32", None, **{**y.op.params, "part": 1})
    spots, rows = (renamed(t, dim, found) for t in (where, d))
    hot = apply("pointwise", [spots, index(x.dim(dim), x)], (*spots.dims, x.dim(dim)), "bool", None, fn="equal")
    return contracted([rows, cast(hot, d.dtype)], x.dims)


def renamed(t: Tensor, old: str, new: Dim) -> Tensor:
    """The same tensor with one dimension under another name; it lies where it lay."""
    dims = tuple(new if dim.name == old else dim for dim in t.dims)
    return apply("reshape", [t], dims, t.dtype, None, cut=groups(t.dims, dims))


def _dropout(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor | None:
    """The same elements again: they depend on the seed and the index only."""
    inputs = [laid_out(d, y.dims), xs[1]]
    return apply("dropout", inputs, y.dims, d.dtype, None, **y.op.params) if place == 0 else None


def _reshape(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    (x,) = xs
    return apply("reshape", [laid_out(d, y.dims)], x.dims, d.dtype, None, cut=groups(y.dims, x.dims))


def _as_it_is(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    return d


RULES: dict[str, Rule] = {
    "einsum": _einsum, "pointwise": _pointwise, "reduce": _reduce, "gather": _gather, "scatter": _scatter,
    "write": _write,
    "window": _window, "pad": _pad, "concat": _concat, "cumsum": _cumsum, "top_k": _top_k, "reshape": _reshape,
    "dropout": _dropout, "random": lambda y, xs, d, place: None,
    "settle": _as_it_is, "reshard": _as_it_is, **SPATIAL,
}  # fmt: skip
