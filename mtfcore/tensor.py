"""Named tensors and the graph a named function records: operations on names and sizes, before any placement.

    @mtf.function
    def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
        h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
        return mtf.einsum(h, v, out="batch io")

Calling `two_layers.trace(sizes)` runs the Python once with `Tensor`s, which only know names, sizes and dtype; each
operation of `ops` appends an `Op`. The graph is what all four ways to run share: `planning` turns it into steps,
`whole` runs it on whole arrays (the oracle, and the compiler's way). Next file to read: `ops`.
"""

from __future__ import annotations
import __future__

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mtfcore.dims import Dim, DimsLike, parse_dims
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.sharding import Sharding

LAYOUT = "layout"  # wanted where the layout says
Wanted = Sharding | str | None  # an exact sharding, LAYOUT, or whatever the operands give


@dataclass(frozen=True, eq=False)
class Op:
    """One operation of a named function; its number in the graph names the tensor that it makes."""

    kind: str
    inputs: tuple[int, ...]
    dims: tuple[Dim, ...]
    dtype: str
    params: Mapping[str, Any] = field(default_factory=dict)
    out: Wanted = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dim.name for dim in self.dims)


class Graph:
    """The operations of one function call, in order; `parent` is the graph that a repeated block may read from."""

    def __init__(self, name: str, sizes: Mapping[str, int], dtype: str, parent: Graph | None = None) -> None:
        self.name, self.sizes, self.dtype, self.parent = name, dict(sizes), dtype, parent
        self.ops: list[Op] = []
        self.inputs: dict[str, int] = {}
        self.outputs: dict[str, int] = {}
        self.returns = "one"  # or "tuple", "dict": the form in which the function hands its outputs back
        self.captured: dict[int, int] = {}  # tensor of the parent → input here

    def add(self, op: Op) -> Tensor:
        self.ops.append(op)
        return Tensor(self, len(self.ops) - 1)

    def input(self, name: str, dims: tuple[Dim, ...], dtype: str) -> Tensor:
        """A named input."""
        tensor = self.add(Op("input", (), dims, dtype, {"name": name}))
        self.inputs[name] = tensor.number
        return tensor

    def adopt(self, tensor: Tensor) -> int:
        """The number here of a tensor; one of an outer graph becomes an input that every turn of the loop reads."""
        if tensor.graph is self:
            return tensor.number
        if self.parent is None:
            raise LayoutError(f"{tensor} belongs to another call; a tensor cannot leave the function that made it")
        outer = self.parent.adopt(tensor)
        if outer not in self.captured:
            self.captured[outer] = self.input(f"outer_{outer}", tensor.dims, tensor.dtype).number
        return self.captured[outer]

    def size(self, dim: Dim) -> Dim:
        """A dimension with its size, from the text or from `sizes=`."""
        known = self.sizes.get(dim.name)
        return dim if dim.size is not None or known is None else Dim(dim.name, known)

    def label(self, number: int) -> str:
        """A short name for a tensor in sentences: its input name, or the operation that made it."""
        op = self.ops[number]
        if op.kind == "input":
            return op.params["name"]
        inner = [self.ops[i].params["name"] if self.ops[i].kind == "input" else "…" for i in op.inputs]
        return f"{op.params.get('fn', op.kind)}({', '.join(inner)})"

    def dim_names(self) -> list[str]:
        """Every dimension name that a tensor has, those inside repeated blocks included."""
        bodies = [op.params["body"] for op in self.ops if op.kind == "repeat"]
        own = [name for op in self.ops for name in op.names]
        return list(dict.fromkeys(own + [name for body in bodies for name in body.dim_names()]))


class Tensor:
    """A tensor inside a named function: names, sizes and dtype, no values."""

    __slots__ = ("graph", "number")

    def __init__(self, graph: Graph, number: int) -> None:
        self.graph, self.number = graph, number

    @property
    def op(self) -> Op:
        return self.graph.ops[self.number]

    @property
    def dims(self) -> tuple[Dim, ...]:
        return self.op.dims

    @property
    def names(self) -> tuple[str, ...]:
        return self.op.names

    @property
    def dtype(self) -> str:
        return self.op.dtype

    def dim(self, name: str) -> Dim:
        """One of its dimensions; refuses others, naming those it has."""
        for dim in self.dims:
            if dim.name == name:
                return dim
        raise LayoutError(f"{self} has no dimension {name!r}; {nearest(name, self.names)}")

    def __repr__(self) -> str:
        return f"{self.graph.label(self.number)}[{', '.join(map(str, self.dims))}]"

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        from mtfcore.rendering import render_tensor

        return render_tensor(self, path, subtree_renderer)

    def __bool__(self) -> bool:
        raise LayoutError(f"{self} has no value while the function is being planned; use mtf.where to choose by values")

    def _binary(self, name: str, other: Any, swapped: bool = False) -> Tensor:
        from mtfcore import ops

        return getattr(ops, name)(other, self) if swapped else getattr(ops, name)(self, other)

    def __add__(self, other: Any) -> Tensor:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> Tensor:
        return self._binary("add", other, True)

    def __sub__(self, other: Any) -> Tensor:
        return self._binary("subtract", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._binary("subtract", other, True)

    def __mul__(self, other: Any) -> Tensor:
        return self._binary("multiply", other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._binary("multiply", other, True)

    def __truediv__(self, other: Any) -> Tensor:
        return self._binary("divide", other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._binary("divide", other, True)

    def __neg__(self) -> Tensor:
        return self._binary("multiply", -1)

    __hash__ = object.__hash__
    __array_ufunc__ = None  # so that `np.float32(2) * t` asks the tensor, not numpy


def _refusal(sign: str, instead: str) -> Callable:
    """A method for a sign of Python's that tensors lack: without it `a == b` would silently be False."""

    def refused(self: Tensor, *others: Any) -> Any:
        raise LayoutError(f"{self!r}: tensors have no {sign}; use {instead}")

    return refused


for _method, _sign, _instead in (
    ("__eq__", "==", "mtf.equal(a, b)"), ("__ne__", "!=", "mtf.logical_not(mtf.equal(a, b))"),
    ("__lt__", "<", "mtf.less(a, b)"), ("__gt__", ">", "mtf.greater(a, b)"),
    ("__le__", "<=", "mtf.logical_not(mtf.greater(a, b))"), ("__ge__", ">=", "mtf.logical_not(mtf.less(a, b))"),
    ("__pow__", "**", "mtf.power(t, 2)"), ("__abs__", "abs", "mtf.absolute(t)"),
    ("__matmul__", "@", "mtf.einsum(x, w, out='batch hidden')"), ("__getitem__", "[]", "mtf.slice(t, 'batch', 0, 8)"),
    ("__and__", "&", "mtf.logical_and(a, b)"), ("__or__", "|", "mtf.logical_or(a, b)"),
    ("__invert__", "~", "mtf.logical_not(t)"), ("__len__", "len", "t.dim('batch').size"),
):  # fmt: skip
    setattr(Tensor, _method, _refusal(_sign, _instead))


class Function:
    """A named function: Python whose arguments say their dimensions. Made by `mtf.function`."""

    def __init__(self, call: Callable, dtypes: Mapping[str, str] | None = None) -> None:
        self.call, self.__name__, self.__doc__ = call, call.__name__, call.__doc__
        self.__wrapped__ = call
        self.dtypes = {name: canonical(dtype) for name, dtype in (dtypes or {}).items()}
        self.arguments = {name: parse_dims(text) for name, text in _annotations(call).items()}
        unknown = [name for name in self.dtypes if name not in self.arguments]
        faults = [f"no argument {name!r}; {nearest(name, self.arguments)}" for name in unknown]
        refuse(faults, f"dtypes of {call.__name__}")

    def trace(self, sizes: DimsLike = "", dtype: object = "f32", **options: Any) -> Graph:
        """Run the Python once on tensors without values; refuses missing sizes, all at once."""
        known = {dim.name: dim.size for dim in parse_dims(sizes) if dim.size is not None}
        graph = Graph(self.__name__, known, canonical(dtype))
        placed = {name: tuple(map(graph.size, dims)) for name, dims in self.arguments.items()}
        missing = dict.fromkeys(d.name for dims in placed.values() for d in dims if d.size is None)
        hints = {name: nearest(name, known) for name in missing}
        refuse([f"no size for dimension {n!r} ({hint})" for n, hint in hints.items()], f"sizes of {self.__name__}")
        refuse(self._clashes(known), f"sizes of {self.__name__}")
        tensors = {n: graph.input(n, dims, self.dtypes.get(n, graph.dtype)) for n, dims in placed.items()}
        record_outputs(graph, self.call(**tensors, **options))
        return graph

    def _clashes(self, known: Mapping[str, int]) -> list[str]:
        return [
            f"argument {argument} says {dim}, sizes say {dim.name}:{known[dim.name]}"
            for argument, dims in self.arguments.items()
            for dim in dims
            if dim.size is not None and known.get(dim.name, dim.size) != dim.size
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """On tensors: part of a larger function. On arrays: one run on whole arrays, without mesh (the oracle)."""
        bound = inspect.signature(self.call).bind(*args, **kwargs)
        if any(isinstance(value, Tensor) for value in bound.arguments.values()):
            self._check_names(bound.arguments)
            return self.call(*bound.args, **bound.kwargs)
        from mtfcore.whole import call_on_arrays

        return call_on_arrays(self, bound.arguments)

    def _check_names(self, arguments: Mapping[str, Any]) -> None:
        """A tensor handed to a function inside a function must have the names that the argument says."""
        faults = []
        for name, dims in self.arguments.items():
            said, given = [dim.name for dim in dims], arguments.get(name)
            if isinstance(given, Tensor) and list(given.names) != said:
                what = f"argument {name} says '{' '.join(said)}', got {given!r}"
                faults.append(f"{what}; use mtf.rename or mtf.transpose")
        refuse(faults, f"call of {self.__name__}")

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}: {' '.join(map(str, dims))!r}" for name, dims in self.arguments.items())
        return f"<mtf.function {self.__name__}({inside})>"


def function(call: Callable | None = None, *, dtypes: Mapping[str, str] | None = None) -> Any:
    """Make a named function: each argument's annotation is its dimensions, e.g. `x: "batch io"`.

    An argument with a default and no such annotation is an ordinary Python value, e.g. `eps=1e-6`.
    `dtypes` gives arguments that are not of the program's dtype: `@mtf.function(dtypes={"tokens": "i32"})`.
    """
    return Function(call, dtypes) if call is not None else lambda later: Function(later, dtypes)


def _meant(call: Callable, annotation: Any) -> Any:
    """What an annotation says; under `from __future__ import annotations` Python keeps its source text instead."""
    code = getattr(call, "__code__", None)
    if code is None or not code.co_flags & __future__.annotations.compiler_flag or not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, call.__globals__)
    except (NameError, SyntaxError):  # `x: B`, which linters make of `x: "B"`; dimensions set without their quotes
        return annotation


def _annotations(call: Callable) -> dict[str, str]:
    found, faults = {}, []
    for name, parameter in inspect.signature(call).parameters.items():
        text = _meant(call, parameter.annotation)
        if parameter.default is not parameter.empty and not isinstance(text, str):
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or not isinstance(text, str):
            faults.append(f"argument {name} does not say its dimensions; write e.g. {name}: 'batch io'")
        found[name] = text
    refuse(faults, f"function {call.__name__}")
    return found


def record_outputs(graph: Graph, result: Any) -> None:
    """Note what the function returned: a tensor, a tuple, or a dictionary of them."""
    named: Iterable[tuple[str, Any]]
    if isinstance(result, Mapping):
        named, graph.returns = result.items(), "dict"
    elif isinstance(result, (tuple, list)):
        named, graph.returns = ((f"out{number}", value) for number, value in enumerate(result)), "tuple"
    else:
        named = [("out", result)]
    for name, value in named:
        if not isinstance(value, Tensor):
            what = f"{type(value).__name__} {value!r:.200}"
            raise LayoutError(f"{graph.name} returns {what}; expected tensors (is a return missing?)")
        graph.outputs[name] = graph.adopt(value)
