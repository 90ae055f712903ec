"""The named operations. Each checks names and sizes, and appends one `Op` (or a few) to the function's graph.

Dimensions are named, so there are no axis numbers and no broadcasting by position: a missing dimension broadcasts.
`out` says where the result shall lie: a text that names an axis or `partialsum` is exact (`"B L E:x"`), one with
names only takes the layout's sharding, none leaves it to the operands. Source: Mesh-TensorFlow's operations (arXiv
1811.02084, section 5). Next files to read: `reductions`, `reshapes`, then `planning`.
"""

from __future__ import annotations

import itertools
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtfcore.dims import Dim, parse_dims, repeated_names, volume
from mtfcore.dtypes import canonical, is_float
from mtfcore.elementwise import ELEMENTWISE
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.notation import PARTIAL, parse
from mtfcore.sharding import Sharding
from mtfcore.tensor import LAYOUT, Graph, Op, Tensor, Wanted

At = Mapping[str | int, str] | Sequence[str | None] | None


# ---- helpers that every operation uses --------------------------------------------------------------------------


def apply(kind: str, inputs: Sequence[Tensor], dims: tuple[Dim, ...], dtype: str, out: Wanted = None, **params: Any):
    """Append an operation to the graph of its inputs."""
    graph = common_graph(inputs)
    return graph.add(Op(kind, tuple(graph.adopt(t) for t in inputs), dims, dtype, params, out))


def common_graph(tensors: Sequence[Tensor]) -> Graph:
    """The innermost graph among the tensors' graphs (a block of a repeat may read outer tensors)."""
    for tensor in tensors:
        expect_tensor(tensor)
    depth = {id(t.graph): _depth(t.graph) for t in tensors}
    return max((t.graph for t in tensors), key=lambda graph: depth[id(graph)])


def expect_tensor(t: object) -> Tensor:
    """Refuse what is not a tensor of a named function, such as an array."""
    if not isinstance(t, Tensor):
        raise LayoutError(
            f"expected a tensor of a named function, got {type(t).__name__}; operations such as mtf.einsum "
            "stand inside a function made with @mtf.function, which is called on arrays or planned"
        )
    return t


def _depth(graph: Graph) -> int:
    return 0 if graph.parent is None else 1 + _depth(graph.parent)


def wanted(graph: Graph, out: str | None, dims: tuple[Dim, ...], about: str) -> Wanted:
    """Read `out`: exact where it names an axis or partialsum, else the layout's; its names must be those of `dims`."""
    if out is None:
        return None
    items = parse(out)
    names = [item.name for item in items if item.name != PARTIAL]
    here = [dim.name for dim in dims]
    extra = [name for name in names if name not in here]
    faults = [f"out names {name!r}, which the result does not have; {nearest(name, here)}" for name in extra]
    faults += [f"out leaves out {name!r}" for name in here if name not in names]
    refuse(faults, f"{about}, out='{out}'")
    exact = Sharding(dims, out)
    return exact if any(item.axes for item in items) else LAYOUT


def out_dims(graph: Graph, out: str, known: Mapping[str, Dim], about: str) -> tuple[Dim, ...]:
    """The dimensions that `out` names, in its order; sizes from the operands, the text or `sizes=`."""
    faults, dims = [], []
    for item in parse(out):
        if item.name == PARTIAL:
            continue
        dim = known.get(item.name) or graph.size(Dim(item.name, item.size))
        if dim.size is None:
            faults.append(f"{item.name!r} is in no operand and has no size; {nearest(item.name, known)}")
        elif item.size not in (None, dim.size):
            faults.append(f"{item.name} has sizes {dim.size} and {item.size}")
        dims.append(dim)
    refuse(faults + repeated_names([dim.name for dim in dims]), f"{about}, out='{out}'")
    return tuple(dims)


def same_sizes(tensors: Sequence[Tensor], about: str, skip: str = "") -> dict[str, Dim]:
    """Name → dimension over all operands; refuses one name with two sizes (case S09)."""
    found: dict[str, Dim] = {}
    faults = []
    for dim in itertools.chain(*[t.dims for t in tensors]):
        other = found.setdefault(dim.name, dim)
        if other.size != dim.size and dim.name != skip:
            broadcast = 1 in (dim.size, other.size)
            hint = "drop the dim to broadcast" if broadcast else "one name has one size; rename one of them"
            faults.append(f"{dim.name} has sizes {other.size} and {dim.size}; {hint}")
    refuse(faults, f"{about} of {', '.join(map(repr, tensors))}")
    return found


def same_dtype(tensors: Sequence[Tensor], about: str) -> str:
    """The one dtype of the operands; refuses a mixture."""
    dtypes = list(dict.fromkeys(t.dtype for t in tensors))
    if len(dtypes) > 1:
        listed = ", ".join(f"{t!r} is {t.dtype}" for t in tensors)
        raise LayoutError(f"{about}: operands of different dtypes ({listed}); use mtf.cast(t, {dtypes[0]!r})")
    return dtypes[0]


def whole_number(value: object, about: str) -> int:
    """A whole number (numpy's too); refuses all else, so that no half element is asked for."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise LayoutError(f"{about} is {value!r:.200}; expected a whole number")
    return operator.index(value)


def names_of(text: str | Sequence[str]) -> list[str]:
    """Dimension names from a text or a sequence."""
    return [dim.name for dim in parse_dims(text)]


# ---- einsum -----------------------------------------------------------------------------------------------------


def einsum(*operands: Tensor, out: str, at: At = None, search: bool = False) -> Tensor:
    """Multiply operands and sum over every dimension that `out` does not name; dimensions new in `out` broadcast.

    `at` fixes where operands lie during the product, by name, number or in order: `at={"x": "B L E:x"}`.
    `search=True` lets the planner move every axis, not only those in conflict.
    """
    if not operands:
        raise LayoutError("einsum needs at least one operand, e.g. mtf.einsum(x, w, out='batch hidden')")
    graph = common_graph(operands)
    known = same_sizes(operands, "einsum")
    dims = out_dims(graph, out, known, f"einsum of {', '.join(map(repr, operands))}")
    goal = wanted(graph, out, dims, "einsum")
    dtype = same_dtype(operands, "einsum")
    if dtype == "bool":
        raise LayoutError(f"einsum of {operands[0]!r}: dtype is bool, which has no sums; use mtf.cast(t, 'f32')")
    pins = _pins(operands, at)
    left = list(operands)
    while len(left) > 2 and not pins:
        left = _contract_smallest(left, dims)
    inner = tuple(dim for dim in dims if dim.name in known)
    only = inner == dims
    product = apply("einsum", left, inner, dtype, goal if only else None, at=pins, search=search)
    return product if only else _pointwise("identity", [product], dims, dtype, goal)


def _contract_smallest(operands: list[Tensor], dims: tuple[Dim, ...]) -> list[Tensor]:
    """Multiply the two operands whose product is smallest, so that FLOPs are those of a chain of pairs."""

    def kept(i: int, j: int) -> tuple[Dim, ...]:
        others = {name for n, t in enumerate(operands) if n not in (i, j) for name in t.names}
        others |= {dim.name for dim in dims}
        pair = dict.fromkeys(operands[i].dims + operands[j].dims)
        return tuple(dim for dim in pair if dim.name in others)

    i, j = min(itertools.combinations(range(len(operands)), 2), key=lambda pair: volume(kept(*pair)))
    product = apply("einsum", [operands[i], operands[j]], kept(i, j), operands[i].dtype, None, at=None, search=False)
    return [t for n, t in enumerate(operands) if n not in (i, j)] + [product]


def _pins(operands: Sequence[Tensor], at: At) -> tuple[Sharding | None, ...] | None:
    if at is None:
        return None
    if not isinstance(at, (Mapping, list, tuple)):
        raise LayoutError(f"at: expected e.g. {{'x': 'B L E:x'}}, got {type(at).__name__}: {at!r:.200}")
    labels = [t.graph.label(t.number) for t in operands]
    by_number = dict(at) if isinstance(at, Mapping) else dict(enumerate(at))
    found: list[Sharding | None] = [None] * len(operands)
    for key, text in by_number.items():
        number = key if isinstance(key, int) else labels.index(key) if key in labels else -1
        if not 0 <= number < len(operands):
            legal = [*labels, *map(str, range(len(operands)))]
            raise LayoutError(f"at: no operand {key!r}; {nearest(str(key), legal)}")
        if text is not None:
            found[number] = Sharding(operands[number].dims, text.text() if isinstance(text, Sharding) else text)
    return tuple(found)


# ---- elementwise ------------------------------------------------------------------------------------------------


def elementwise(fn: str, *operands: Any, out: str | None = None) -> Tensor:
    """Apply an elementwise function by name; numbers are constants, a missing dimension broadcasts.

    The result has the dimensions of the operand that has them all; where none has, `out` must name them (case S09).
    """
    tensors = [t for t in operands if isinstance(t, Tensor)]
    if not tensors:
        raise LayoutError(f"{fn} needs at least one tensor of a named function, got {operands!r}")
    graph = common_graph(tensors)
    dtype = _value_dtype(graph, fn, operands)
    if ELEMENTWISE[fn].floats_only and not is_float(dtype):
        raise LayoutError(f"{fn} of {tensors[0]!r}: dtype is {dtype}, expected a float; use mtf.cast(t, 'f32')")
    all_tensors = [_of_dtype(graph, fn, t, dtype, n) for n, t in enumerate(operands)]
    known = same_sizes(all_tensors, fn)
    dims = _broadcast(graph, fn, all_tensors, known, out)
    result = "bool" if ELEMENTWISE[fn].gives_bool else dtype
    return _pointwise(fn, all_tensors, dims, result, wanted(graph, out, dims, fn))


def _value_dtype(graph: Graph, fn: str, operands: Sequence[Any]) -> str:
    """The dtype of what is computed with: that of the tensors; truth values join in as 0 and 1."""
    if fn == "where":
        if not isinstance(operands[0], Tensor) or operands[0].dtype != "bool":
            raise LayoutError(f"where: the first operand is {operands[0]!r:.200}; expected a bool tensor")
        operands = operands[1:]
    tensors = [t for t in operands if isinstance(t, Tensor)]
    if not tensors:  # where(c, 1.0, 0.0)
        return "bool" if all(isinstance(value, bool) for value in operands) else graph.dtype
    return same_dtype([t for t in tensors if t.dtype != "bool"] or tensors, fn)


def _of_dtype(graph: Graph, fn: str, operand: Any, dtype: str, place: int) -> Tensor:
    if not isinstance(operand, Tensor):
        return constant(graph, operand, dtype)
    as_it_is = operand.dtype == dtype or fn.startswith("logical") or (fn == "where" and place == 0)
    return operand if as_it_is else cast(operand, dtype)


def _broadcast(graph: Graph, fn: str, tensors: Sequence[Tensor], known: Mapping[str, Dim], out: str | None):
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


def _pointwise(fn: str, tensors: Sequence[Tensor], dims: tuple[Dim, ...], dtype: str, out: Wanted, **params: Any):
    return apply("pointwise", tensors, dims, dtype, out, fn=fn, **params)


def constant(graph: Graph, value: float | bool, dtype: str) -> Tensor:
    """A number as a tensor without dimensions."""
    if isinstance(value, numbers.Real) and hasattr(value, "item"):
        value = value.item()  # numpy's numbers
    if not isinstance(value, (int, float, bool)):
        raise LayoutError(f"expected a tensor or a number, got {type(value).__name__}: {value!r:.200}")
    if dtype == "bool" and not isinstance(value, bool):
        raise LayoutError(f"{value!r} beside tensors of bool only; use mtf.cast(t, 'f32') first")
    if not is_float(dtype) and value != value // 1:
        what = f"{value!r} beside a tensor of {dtype} would be cut to a whole number"
        raise LayoutError(f"{what}; use mtf.cast(t, 'f32')")
    return graph.add(Op("constant", (), (), dtype, {"value": value}))


def _named(fn: str, doc: str) -> Callable[..., Tensor]:
    def operation(*operands: Any, out: str | None = None) -> Tensor:
        expected = ELEMENTWISE[fn].operands
        if len(operands) != expected:
            raise LayoutError(f"{fn} takes {expected} operand{'s' * (expected > 1)}, got {len(operands)}")
        return elementwise(fn, *operands, out=out)

    operation.__name__ = operation.__qualname__ = fn
    operation.__doc__ = doc
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
square = _named("square", "t · t.")
absolute = _named("absolute", "|t|.")
equal = _named("equal", "Whether equal, elementwise: bool.")
less = _named("less", "Whether the first is less, elementwise: bool.")
greater = _named("greater", "Whether the first is greater, elementwise: bool.")
logical_and = _named("logical_and", "Both, elementwise: bool.")
logical_or = _named("logical_or", "Either, elementwise: bool.")
logical_not = _named("logical_not", "Not, elementwise: bool.")
where = _named("where", "Second where the first is true, else third, elementwise.")


def cast(t: Tensor, dtype: object, out: str | None = None) -> Tensor:
    """The same values in another dtype; partial sums are reduced first, in the dtype they have."""
    expect_tensor(t)
    return _pointwise("cast", [t], t.dims, canonical(dtype), wanted(t.graph, out, t.dims, "cast"))


def broadcast_equal(a: Tensor, b: Tensor) -> Tensor:
    """Where a equals b, over the dimensions of a, then those that only b has."""
    dims = a.dims + tuple(dim for dim in b.dims if dim.name not in a.names)
    return _pointwise("equal", [a, b], dims, "bool", None)
