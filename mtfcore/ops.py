"""Einsum, and what all named operations share: each checks names and sizes, then appends `Op`s to the graph.

Dimensions are named, so there are no axis numbers and no broadcasting by position: a missing dimension broadcasts.
`out` says where the result shall lie: a text that names an axis or `partialsum` is exact (`"B L E:x"`), one with
names only takes the layout's sharding, none leaves it to the operands. Source: Mesh-TensorFlow's operations (arXiv
1811.02084, section 6). Next files to read: `elementwise`, `reductions`, `reshapes`, then `planning`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from mtfcore.dims import Dim, parse_dims, repeated_names, volume
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.notation import PARTIAL, as_whole, parse
from mtfcore.sharding import Sharding
from mtfcore.tensor import LAYOUT, Graph, Op, Tensor, Wanted

At = Mapping[str | int, str] | Sequence[str | None] | None


# ---- helpers that every operation uses --------------------------------------------------------------------------


def apply(
    kind: str, inputs: Sequence[Tensor], dims: tuple[Dim, ...], dtype: str, out: Wanted = None, **params: Any
) -> Tensor:
    """Append an operation to the graph of its inputs."""
    graph = common_graph(inputs)
    return graph.add(Op(kind, tuple(graph.adopt(t) for t in inputs), dims, dtype, params, out))


def common_graph(tensors: Sequence[Tensor]) -> Graph:
    """The innermost graph among the tensors' graphs (a block of a repeat may read outer tensors)."""
    for tensor in tensors:
        expect_tensor(tensor)
    return max((t.graph for t in tensors), key=lambda graph: graph.depth)


def expect_tensor(t: object) -> Tensor:
    """Refuse what is not a tensor of a named function, such as an array."""
    if not isinstance(t, Tensor):
        raise LayoutError(
            f"expected a tensor of a named function, got {type(t).__name__}; operations such as mtf.einsum "
            "stand inside a function made with @mtf.function, which is called on arrays or planned"
        )
    return t


def wanted(out: str | None, dims: tuple[Dim, ...], about: str) -> Wanted:
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


def apply_out(
    kind: str, inputs: Sequence[Tensor], dims: tuple[Dim, ...], dtype: str, out: str | None, about: str, **params: Any
) -> Tensor:
    """Append an operation whose result has its dimensions in the order in which `out` names them."""
    goal = wanted(out, dims, about)
    known = {dim.name: dim for dim in dims}
    order = dims if out is None else tuple(known[item.name] for item in parse(out) if item.name != PARTIAL)
    if order == dims:
        return apply(kind, inputs, dims, dtype, goal, **params)
    made = apply(kind, inputs, dims, dtype, None, **params)
    return apply("pointwise", [made], order, dtype, wanted(out, order, about), fn="identity")


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
    """Name → dimension over all operands; refuses one name with two sizes."""
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
    if (number := as_whole(value)) is None:
        raise LayoutError(f"{about} is {value!r:.200}; expected a whole number")
    return number


def flag(value: object, about: str) -> bool:
    """True or False (numpy's too); refuses what has no one truth value, such as an array."""
    if (number := plain_number(value)) is None and value is not None:
        raise LayoutError(f"{about} is {value!r:.200}; expected True or False")
    return bool(number)


def plain_number(value: object) -> int | float | bool | None:
    """Python's form of a number (numpy's too, and of arrays that hold just one); None for all else."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, (int, float)) else None


def names_of(text: str | Sequence[str]) -> list[str]:
    """Dimension names from a text or a sequence."""
    return [dim.name for dim in parse_dims(text)]


# ---- einsum -----------------------------------------------------------------------------------------------------


def einsum(*operands: Tensor, out: str, at: At = None, search: bool = False, follow: bool = False) -> Tensor:
    """Multiply operands and sum over every dimension that `out` does not name; dimensions new in `out` broadcast.

    `at` fixes where operands lie during the product, by name, number or in order: `at={"x": "B L E:x"}`.
    `search=True` lets the planner move every axis, not only those in conflict. `follow=True` leaves
    the result where the operands put it, partial sums and all, instead of where the layout says (unless `out` is
    exact): so the addends of several products are reduced together.

    Raises `LayoutError` for no operands, sizes that differ under one name, and operands of `at` that do not fit
    together.

    Source: arXiv 1811.02084, section 6; arXiv 2211.05102, section 3.2.

        >>> mtf.einsum(x, w, out="batch hidden")
        einsum(x, w)[batch:8, hidden:6]
    """
    if not operands:
        raise LayoutError("einsum needs at least one operand, e.g. mtf.einsum(x, w, out='batch hidden')")
    graph = common_graph(operands)
    known = same_sizes(operands, "einsum")
    dims = out_dims(graph, out, known, f"einsum of {', '.join(map(repr, operands))}")
    goal = wanted(out, dims, "einsum")
    goal = None if follow and goal == LAYOUT else goal
    dtype = same_dtype(operands, "einsum")
    if dtype == "bool":
        raise LayoutError(f"einsum of {operands[0]!r}: dtype is bool, which has no sums; use mtf.cast(t, 'f32')")
    left, pins = list(operands), _pins(operands, at)
    while len(left) > 2:
        left, pins = _contract_smallest(left, pins, dims, search)
    inner = tuple(dim for dim in dims if dim.name in known)
    only = inner == dims
    search = flag(search, "einsum: search")
    product = apply("einsum", left, inner, dtype, goal if only else None, at=pins, search=search)
    return product if only else apply("pointwise", [product], dims, dtype, goal, fn="identity")


Pins = tuple[Sharding | None, ...] | None


def _contract_smallest(
    operands: list[Tensor], pins: Pins, dims: tuple[Dim, ...], search: bool
) -> tuple[list[Tensor], Pins]:
    """Multiply the two operands whose product is smallest, so that FLOPs are those of a chain of pairs."""

    def kept(i: int, j: int) -> tuple[Dim, ...]:
        others = {name for n, t in enumerate(operands) if n not in (i, j) for name in t.names}
        others |= {dim.name for dim in dims}
        pair = dict.fromkeys(operands[i].dims + operands[j].dims)
        return tuple(dim for dim in pair if dim.name in others)

    i, j = min(itertools.combinations(range(len(operands)), 2), key=lambda pair: volume(kept(*pair)))
    at = pins and (pins[i], pins[j])
    product = apply("einsum", [operands[i], operands[j]], kept(i, j), operands[i].dtype, None, at=at, search=search)
    rest = [n for n in range(len(operands)) if n not in (i, j)]
    return [*[operands[n] for n in rest], product], pins and (*[pins[n] for n in rest], None)


def _pins(operands: Sequence[Tensor], at: At) -> Pins:
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
