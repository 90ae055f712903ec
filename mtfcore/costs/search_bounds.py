"""A lower bound of a layout's time that needs no plan: the work its axes can share at the best, and the sums it owes.

A mesh axis takes part in a product only if it lies on a dimension of a tensor that the product is made from, back to
the last tensors that the layout itself placed (the planner's rule: an axis without conflict keeps its role; what a
layout wants is where a result then lies). Those dimensions are the product's *scope*. So

    FLOPs of one device   ≥  Σ over products: all its FLOPs / (sizes of the axes on its scope)
    bytes it sends        ≥  Σ over products that contract a split dimension: (g-1)/g of what it holds of the result
                           + Σ over stacks of a loop that are split turn by turn: (g-1)/g of what it holds of the stack

the second because each device then has an addend only, and at least a reduce-scatter over those g devices is due where
the result is wanted reduced; the third because each turn needs its entry on every device. A dimension that is not
placed yet counts with all axes left to it for what helps, and with none for what hurts. The search checks the bound on
every layout that it plans, and claims no proof if it was ever too high. Source: arXiv 1811.02084, section 6 (which
einsum needs which all-reduce). Next file to read: `search_walk`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mtfcore.dims import volume
from mtfcore.dtypes import itemsize
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.planning import Planner
from mtfcore.steps import Program
from mtfcore.tensor import LAYOUT, Graph, Like, Op

Dims = frozenset[str]


@dataclass
class Scopes:
    """The dimensions on which the place of each tensor depends."""

    graph: Graph
    place: Mapping[str, object] = field(default_factory=dict)
    known: dict[tuple[int, int], Dims] = field(default_factory=dict)
    around: dict[int, tuple[Graph, Op]] = field(default_factory=dict)  # body → the graph and operation it stands in

    def __post_init__(self) -> None:
        self._look_inside(self.graph)

    def _look_inside(self, graph: Graph) -> None:
        for op in graph.ops:
            if "body" in op.params:
                self.around[id(op.params["body"])] = (graph, op)
                self._look_inside(op.params["body"])

    def of(self, graph: Graph, number: int) -> Dims:
        """Scope of one tensor."""
        key = (id(graph), number)
        if key not in self.known:
            self.known[key] = frozenset()  # what a loop carries may depend on itself
            self.known[key] = self._find(graph, number)
        return self.known[key]

    def _find(self, graph: Graph, number: int) -> Dims:
        op = graph.ops[number]
        if op.kind == "input":
            return self._input(graph, number, op)
        if op.out == LAYOUT:
            return frozenset(op.names)
        if isinstance(op.out, Like):
            return self.of(op.out.graph, op.out.number)
        if op.kind == "repeat":
            return self._handed_out(graph, op, 0)
        if op.kind == "repeated":
            return self._handed_out(graph, graph.ops[op.inputs[0]], op.params["place"])
        return frozenset().union(*(self.of(graph, i) for i in op.inputs))

    def _input(self, graph: Graph, number: int, op: Op) -> Dims:
        if id(graph) not in self.around:
            return frozenset(op.names) if op.params["name"] not in self.place else frozenset()
        outer, loop = self.around[id(graph)]
        return self.of(outer, loop.inputs[list(graph.inputs.values()).index(number)])

    def _handed_out(self, graph: Graph, loop: Op, place: int) -> Dims:
        """A carry lies as it did before the loop; what a turn hands out lies as the turn made it."""
        if place < loop.params.get("n_carry", 1):
            return self.of(graph, loop.inputs[place])
        body = loop.params["body"]
        return self.of(body, list(body.outputs.values())[place])

    def of_work(self, graph: Graph, number: int) -> Dims:
        """Scope of an operation: of its operands, and of where its result is wanted."""
        op = graph.ops[number]
        return self.of(graph, number).union(*(self.of(graph, i) for i in op.inputs))


@dataclass(frozen=True)
class Product:
    """One product of a function, as if a single device did it all: FLOPs, and the bytes of its result.

    A loop's stack stands here too, without FLOPs: the dimension of its turns is `contracted`.
    """

    scope: Dims
    dtype: str
    flops: int
    contracted: Dims  # that its two operands share and its result lacks
    result: Dims
    n_bytes: int  # 0 where the result may stay a sum of addends


def products(graph: Graph, place: Mapping[str, object]) -> list[Product]:
    """Every product of a function, loops multiplied, read from its plan on one device."""
    planner = Planner(graph, Mesh("all:1"), Layout())
    program = planner.program([[s] for s in planner.input_places({})])
    return list(_products(Scopes(graph, place), program, 1))


def _products(scopes: Scopes, program: Program, times: int) -> list[Product]:
    found = []
    for step in program.steps:
        if step.body is not None:
            found += _products(scopes, step.body, times * step.times)
            found += _stacks(scopes, program.graph, program.graph.ops[step.tensor])
        if step.flops:
            op = program.graph.ops[step.tensor]
            is_whole = op.out == LAYOUT or (isinstance(op.out, Like) and op.out.whole)
            shared = frozenset.intersection(*(frozenset(s.names) for s in step.before)) - {*op.names}
            n_bytes = volume(op.dims) * itemsize(op.dtype) * times if is_whole else 0
            scope = scopes.of_work(program.graph, step.tensor)
            found.append(Product(scope, step.dtype, step.flops * times, shared, frozenset(op.names), n_bytes))
    return found


def _stacks(scopes: Scopes, graph: Graph, loop: Op) -> list[Product]:
    """The stacks of a loop that the layout places, each to be brought together along its turns."""
    first = loop.params["n_carry"]
    stacked = [graph.ops[i] for i in dict.fromkeys(loop.inputs[first : first + loop.params["n_stacked"]])]
    placed = [op for op in stacked if op.out == LAYOUT or (op.kind == "input" and id(graph) not in scopes.around)]
    return [
        Product(
            frozenset(), op.dtype, 0, frozenset(op.names[:1]), frozenset(op.names), volume(op.dims) * itemsize(op.dtype)
        )
        for op in placed
        if op.params.get("name") not in scopes.place
    ]


@dataclass(frozen=True)
class Rates:
    """What the first paper's model of time knows of a device: peak by dtype, and one link one way."""

    peak: Callable[[str], float]
    link_bytes_per_second: float


class Bounds:
    """Lower bounds for the layouts of one mesh. Places are masks of axes, dimensions numbers, for speed."""

    def __init__(
        self, mesh: Mesh, dims: Sequence[str], work: Sequence[Product], rates: Rates, inputs: Sequence[tuple[Dims, int]]
    ) -> None:
        self.parts = [
            math.prod(s for k, (_, s) in enumerate(mesh.axes) if m >> k & 1) for m in range(1 << len(mesh.axes))
        ]
        number = {dim: k for k, dim in enumerate(dims)}

        def numbers(names: Dims) -> tuple[int, ...]:
            return tuple(sorted(number[name] for name in names if name in number))

        seconds: dict[tuple[int, ...], float] = {}
        sums: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        for p in work:
            if p.flops:
                scope = numbers(p.scope)
                seconds[scope] = seconds.get(scope, 0.0) + p.flops / rates.peak(p.dtype)
            key = numbers(p.contracted), numbers(p.result)
            sums[key] = sums.get(key, 0.0) + p.n_bytes / rates.link_bytes_per_second
        self.seconds = list(seconds.items())
        self.sums = [(contracted, result, s) for (contracted, result), s in sums.items() if contracted and s]
        self.inputs = [(numbers(names), n_bytes) for names, n_bytes in inputs]

    def time(self, least: Sequence[int], most: Sequence[int], helping: int = 0) -> float:
        """Seconds at the least: `least` are the axes surely on each dimension, `most` those that may be."""
        total, parts = 0.0, self.parts
        for scope, seconds in self.seconds:
            mask = helping
            for dim in scope:
                mask |= most[dim]
            total += seconds / parts[mask]
        for contracted, result, seconds in self.sums:
            split = cut = 0
            for dim in contracted:
                split |= least[dim]
            if split:
                for dim in result:
                    cut |= most[dim]
                total += seconds / parts[cut | helping] * (1 - 1 / parts[split & ~helping])
        return total

    def memory(self, most: Sequence[int]) -> float:
        """Bytes of inputs on one device at the least."""
        total = 0.0
        for dims, n_bytes in self.inputs:
            mask = 0
            for dim in dims:
                mask |= most[dim]
            total += n_bytes / self.parts[mask]
        return total


def placed_inputs(graph: Graph, place: Mapping[str, object]) -> list[tuple[Dims, int]]:
    """Dimensions and bytes of the inputs that a layout places."""
    ops = [graph.ops[number] for name, number in graph.inputs.items() if name not in place]
    return [(frozenset(op.names), volume(op.dims) * itemsize(op.dtype)) for op in ops]
