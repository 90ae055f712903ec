"""Named tensors and the graph that a named function records: operations on names and sizes, before any placement.

    >>> two_layers.trace("batch:64 io:512 hidden:2048").ops[3]
    Op(kind='einsum', inputs=(0, 1), dims=(Dim('batch', 64), Dim('hidden', 2048)), dtype='f32', ...)

A `Tensor` only knows names, sizes and dtype; each operation of `ops` and its kin appends an `Op`. The graph is what
all four ways to run share: `planning` turns it into steps, `whole` runs it on whole arrays (the oracle, and the
compiler's way). Next file to read: `functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mtfcore.dims import Dim
from mtfcore.errors import LayoutError, nearest, sure
from mtfcore.sharding import Sharding

LAYOUT = "layout"  # wanted where the layout says


@dataclass(frozen=True, eq=False)
class Like:
    """Wanted where another tensor lies: a cotangent where its primal does. `whole` says that sums are reduced too.

    If they may wait instead, `later` are the tensors of the graph whose cotangents would then be reduced.
    """

    graph: Graph
    number: int
    whole: bool = True
    later: tuple[int, ...] | None = None


Wanted = Sharding | str | Like | None  # an exact sharding, LAYOUT, as another, or whatever the operands give


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
        self.padded: dict[str, int] = {}  # dimension → how many of its elements are real, where some only pad
        self.again: list[range] = []  # operations that a backward computes again (mtf.recompute)
        self.depth: int = 0 if parent is None else parent.depth + 1

    def add(self, op: Op) -> Tensor:
        self.ops.append(op)
        return Tensor(self, len(self.ops) - 1)

    def input(self, name: str, dims: tuple[Dim, ...], dtype: str) -> Tensor:
        """A named input."""
        tensor = self.add(Op("input", (), dims, dtype, {"name": name}))
        self.inputs[name] = tensor.number
        return tensor

    def free_name(self, name: str) -> str:
        """A name that no input has yet."""
        while name in self.inputs:
            name += "_"
        return name

    def adopt(self, tensor: Tensor) -> int:
        """The number here of a tensor; one of an outer graph becomes an input that every turn of the loop reads."""
        if tensor.graph is self:
            return tensor.number
        if self.parent is None:
            raise LayoutError(f"{tensor} belongs to another call; a tensor cannot leave the function that made it")
        outer = self.parent.adopt(tensor)
        if outer not in self.captured:
            self.captured[outer] = self.input(self.free_name(f"outer_{outer}"), tensor.dims, tensor.dtype).number
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
        """One of its dimensions; refuses others, naming those it has.

        `name`: one of `names`.

        Raises `LayoutError` for another.

            >>> x.dim("io")
            Dim('io', 4)
        """
        for dim in self.dims:
            if isinstance(name, str) and dim.name == name:
                return dim
        raise LayoutError(f"{self} has no dimension {name!r}; {nearest(name, self.names)}")

    def size(self, name: str) -> int:
        """How many places one of its dimensions has; refuses names that it lacks.

        `name`: one of `names`.

        Raises `LayoutError` for another.

            >>> x.size("io")
            4
        """
        return sure(self.dim(name).size)

    def __repr__(self) -> str:
        return f"{self.graph.label(self.number)}[{', '.join(map(str, self.dims))}]"

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        from mtfcore.rendering import render_tensor

        return render_tensor(self, path, subtree_renderer)

    def __bool__(self) -> bool:
        raise LayoutError(f"{self} has no value while the function is being planned; use mtf.where to choose by values")

    def _binary(self, name: str, other: Any, swapped: bool = False) -> Tensor:
        from mtfcore import elementwise

        operation = getattr(elementwise, name)
        return operation(other, self) if swapped else operation(self, other)

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
