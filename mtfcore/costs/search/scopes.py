"""On which dimensions it depends where a tensor lies: its *scope*, read from the function's graph alone.

    Scopes(graph).of(graph, number)           # e.g. {"batch", "heads", "d_k"}

A result that the layout places depends on its own dimensions; any other lies where its operands let it, so on theirs,
back to the last tensors that the layout placed. What an operation asks for may depend on more, its *reach*: on what
else moved its operands before it. A search bounds costs with these sets before it plans anything. Next file to read:
`work`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mtfcore.costs.search.space import by_layout
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
            return self._as_another(graph, op, op.out)
        if op.kind == "repeat":
            return self._handed_out(graph, op, 0)
        if op.kind == "repeated":
            return self._handed_out(graph, graph.ops[op.inputs[0]], op.params["place"])
        return frozenset().union(*(self.of(graph, i) for i in op.inputs))

    def _as_another(self, graph: Graph, op: Op, like: Like) -> Dims:
        """Of a cotangent: where its primal lies, and what decides whether its sums wait."""
        found = self.of(like.graph, like.number)
        if like.later is None:
            return found
        found = found.union(*(self.of(like.graph, n) for n in like.later))
        return found.union(*(self.of(graph, i) for i in op.inputs))

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
