"""A lower bound of a layout's time that needs no plan: the work its axes can share at the best, and the sums it owes.

A mesh axis takes part in a product only if it lies on a dimension of a tensor that the product is made from, back to
the last tensors that the layout itself placed (the planner's rule: an axis without conflict keeps its role; what a
layout wants is where a result then lies). Those dimensions are the product's *scope*. So

    FLOPs of one device   ≥  Σ over products: all its FLOPs / (sizes of the axes on its scope)
    bytes it sends        ≥  Σ over products that contract a split dimension: (g-1)/g of what it holds of the result
                           + Σ over stacks of a loop that are split turn by turn: (g-1)/g of what it holds of the stack

the second because each device then has an addend only, and at least a reduce-scatter over those g devices is due where
the result is wanted reduced; the third because each turn needs its entry on every device. A dimension that is not
placed yet counts with all axes left to it for what helps, and with none for what hurts.

And the search learns: what an operation asked for in one plan, computing and sending, it asks for again wherever the
dimensions on which its operands' places depend lie alike (`Group`). The search checks the bound on every layout that it
plans, and claims no proof if it was ever too high. Source: arXiv 1811.02084, section 6 (which
einsum needs which all-reduce). Next file to read: `search_walk`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mtfcore.costs.search_space import by_layout, graphs
from mtfcore.costs.search_times import Rates
from mtfcore.dims import volume
from mtfcore.dtypes import itemsize
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.planning import Planner
from mtfcore.sharding import Axes
from mtfcore.steps import Program
from mtfcore.tensor import Graph, Like, Op

Dims = frozenset[str]


@dataclass
class Scopes:
    """The dimensions on which the place of each tensor depends."""

    graph: Graph
    place: Mapping[str, object] = field(default_factory=dict)
    known: dict[tuple[int, int], Dims] = field(default_factory=dict)
    around: dict[int, tuple[Graph, Op]] = field(default_factory=dict)  # body → the graph and operation it stands in
    readers: dict[int, dict[int, list[int]]] = field(default_factory=dict)

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
        if by_layout(op):
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

    def reach(self, graph: Graph, number: int) -> Dims:
        """Scope of all that decides what an operation asks for: also of what else moved its operands before."""
        op = graph.ops[number]
        found = self.of_work(graph, number)
        for i in op.inputs:
            found |= self._made(graph, i)
            found = found.union(*(self.of_work(graph, k) for k in self._readers(graph)[i] if k < number))
        if isinstance(op.out, Like):
            found |= self._made(op.out.graph, op.out.number)
        return found

    def _readers(self, graph: Graph) -> dict[int, list[int]]:
        if id(graph) not in self.readers:
            found: dict[int, list[int]] = {number: [] for number in range(len(graph.ops))}
            for number, op in enumerate(graph.ops):
                for i in op.inputs:
                    found[i].append(number)
            self.readers[id(graph)] = found
        return self.readers[id(graph)]

    def _made(self, graph: Graph, number: int) -> Dims:
        """Scope of the operation that made a tensor; of an input of a loop's body, of the tensor outside."""
        op = graph.ops[number]
        if op.kind == "input" and id(graph) in self.around:
            outer, loop = self.around[id(graph)]
            return self._made(outer, loop.inputs[list(graph.inputs.values()).index(number)])
        loop = graph.ops[op.inputs[0]] if op.kind == "repeated" else op
        place = op.params["place"] if op.kind == "repeated" else 0
        if loop.kind == "repeat" and place >= loop.params["n_carry"]:
            body = loop.params["body"]
            return self._made(body, list(body.outputs.values())[place])
        return self.of_work(graph, number)


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
    reach: Dims = frozenset()


@dataclass(frozen=True)
class Work:
    """What a function asks of one device, as far as bounds need it: products, and the reach of every operation."""

    products: tuple[Product, ...]
    reaches: Mapping[tuple[int, int], Dims]  # (graph, number of the operation) → reach

    @classmethod
    def of(cls, graph: Graph, place: Mapping[str, object]) -> Work:
        """Read from the plan on one device, loops multiplied."""
        planner, scopes = Planner(graph, Mesh("all:1"), Layout()), Scopes(graph, place)
        program = planner.program([[s] for s in planner.input_places({})])
        reaches = {
            (id(part), number): scopes.reach(part, number)
            for part in graphs(graph)
            for number, op in enumerate(part.ops)
            if op.kind != "input"
        }
        return cls(tuple(_products(scopes, program, 1)), reaches)


def _products(scopes: Scopes, program: Program, times: int) -> list[Product]:
    found = []
    for step in program.steps:
        if step.body is not None:
            found += _products(scopes, step.body, times * step.times)
            found += _stacks(scopes, program.graph, step.tensor)
        if step.flops:
            op = program.graph.ops[step.tensor]
            is_whole = by_layout(op) or (isinstance(op.out, Like) and op.out.whole)
            shared = frozenset.intersection(*(frozenset(s.names) for s in step.before)) - {*op.names}
            n_bytes = bytes_of(op) * times if is_whole else 0
            scope = scopes.of_work(program.graph, step.tensor)
            reach = scopes.reach(program.graph, step.tensor)
            found.append(Product(scope, step.dtype, step.flops * times, shared, frozenset(op.names), n_bytes, reach))
    return found


def _stacks(scopes: Scopes, graph: Graph, number: int) -> list[Product]:
    """The stacks of a loop that the layout places, each to be brought together along its turns."""
    loop, reach = graph.ops[number], scopes.reach(graph, number)
    first = loop.params["n_carry"]
    stacked = [graph.ops[i] for i in dict.fromkeys(loop.inputs[first : first + loop.params["n_stacked"]])]
    return [
        Product(frozenset(), op.dtype, 0, frozenset(op.names[:1]), frozenset(op.names), bytes_of(op), reach)
        for op in stacked
        if by_layout(op) or (id(graph) not in scopes.around and op.params.get("name", "") not in ("", *scopes.place))
    ]


def bytes_of(op: Op) -> int:
    return volume(op.dims) * itemsize(op.dtype)


@dataclass
class Group:
    """Operations of one reach: what bounds say of them, and what they were seen to take, place by place."""

    dims: tuple[int, ...]
    seconds: dict[tuple[int, ...], float] = field(default_factory=dict)  # scope → seconds if one device did it all
    sums: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = field(default_factory=dict)
    seen: dict[tuple[Axes, ...], float] = field(default_factory=dict)

    def key(self, chosen: Sequence[tuple[int, Axes]]) -> tuple[Axes, ...]:
        return tuple(chosen[dim][1] for dim in self.dims)


class Bounds:
    """Lower bounds for the layouts of one mesh. Places are masks of axes, dimensions numbers, for speed."""

    def __init__(
        self, mesh: Mesh, dims: Sequence[str], work: Work, rates: Rates, inputs: Sequence[tuple[Dims, int]]
    ) -> None:
        sizes, n = list(mesh.shape.values()), len(mesh.axes)
        self.parts = [math.prod(sizes[k] for k in range(n) if mask >> k & 1) for mask in range(1 << n)]
        number = {dim: k for k, dim in enumerate(dims)}

        def numbers(names: Dims) -> tuple[int, ...]:
            return tuple(sorted(number[name] for name in names if name in number))

        groups: dict[tuple[int, ...], Group] = {}
        for reach in work.reaches.values():
            groups.setdefault(numbers(reach), Group(numbers(reach)))
        self.group_of = {at: groups[numbers(reach)] for at, reach in work.reaches.items()}
        for p in work.products:
            group, key = groups[numbers(p.reach)], (numbers(p.contracted), numbers(p.result))
            if p.flops:
                scope = numbers(p.scope)
                group.seconds[scope] = group.seconds.get(scope, 0.0) + p.flops / rates.peak(p.dtype)
            if p.n_bytes and key[0]:
                group.sums[key] = group.sums.get(key, 0.0) + p.n_bytes / rates.link_bytes_per_second
        self.groups = list(groups.values())
        self.inputs = [(numbers(names), n_bytes) for names, n_bytes in inputs]

    def time(self, least: Sequence[int], most: Sequence[int], helping: int = 0) -> float:
        """Seconds at the least: `least` are the axes surely on each dimension, `most` those that may be."""
        return sum(
            self._group_time(group, least, most, helping) for group in self.groups if group.seconds or group.sums
        )

    def time_seen(
        self, chosen: Sequence[tuple[int, Axes]], least: Sequence[int], most: Sequence[int], helping: int = 0
    ) -> float:
        """The same, with what groups were seen to take where all their dimensions are chosen."""
        total, depth = 0.0, len(chosen)
        for group in self.groups:
            seen = group.seen.get(group.key(chosen)) if not group.dims or group.dims[-1] < depth else None
            if seen is not None:
                total += seen
            elif group.seconds or group.sums:
                total += self._group_time(group, least, most, helping)
        return total

    def _group_time(self, group: Group, least: Sequence[int], most: Sequence[int], helping: int) -> float:
        total, parts = 0.0, self.parts
        for scope, seconds in group.seconds.items():
            mask = helping
            for dim in scope:
                mask |= most[dim]
            total += seconds / parts[mask]
        for (contracted, result), seconds in group.sums.items():
            split, cut = 0, helping
            for dim in contracted:
                split |= least[dim]
            if split & ~helping:
                for dim in result:
                    cut |= most[dim]
                total += seconds / parts[cut] * (1 - 1 / parts[split & ~helping])
        return total

    def learn(self, chosen: Sequence[tuple[int, Axes]], seconds: Mapping[tuple[int, int], float]) -> None:
        """Note what each group took in a plan: (graph, number of the operation) → seconds."""
        taken = {id(group): 0.0 for group in self.groups}
        for at, spent in seconds.items():
            taken[id(self.group_of[at])] += spent
        for group in self.groups:
            key = group.key(chosen)
            group.seen[key] = min(taken[id(group)], group.seen.get(key, math.inf))

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
    return [(frozenset(op.names), bytes_of(op)) for op in ops]
