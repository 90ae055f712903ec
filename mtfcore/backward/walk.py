"""The walk from results back to what is wanted: every operation hands on what its result received.

Each cotangent is wanted where its primal lies; where several meet in a sum, each may stay where it is made until they
are added up. Next file to read: `rules`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from mtfcore.backward.rules import RULES, laid_out
from mtfcore.dtypes import is_float
from mtfcore.elementwise import add, constant
from mtfcore.ops import apply
from mtfcore.tensor import Graph, Like, Tensor

FOLLOWS = ("pointwise", "repeat", "repeated")  # operations whose result lies where their operands give it
LINEAR = ("reshape", "reshard", "settle", "window", "pad", "concat", "identity", "barrier", "cast", "add", "subtract")


class Walk:
    """One walk over a graph from its results back to `wanted`, adding operations to the graph `into`."""

    def __init__(
        self, graph: Graph, wanted: Sequence[int], into: Graph, primal: Callable[[int], Tensor],
        pull_loop: Callable[[Walk, int, dict[int, Tensor]], None], added: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.graph, self.into, self.primal, self.pull_loop = graph, into, primal, pull_loop
        self.added = added  # tensors whose cotangent is one addend of a sum elsewhere
        self.depends = depending(graph, wanted)
        self.received: dict[int, list[Tensor]] = {}
        self.loops: dict[int, dict[int, Tensor]] = {}  # loop → cotangents of its results, by place
        self.uses: dict[int, int] = {}

    def receive(self, number: int, d: Tensor | None) -> None:
        """One more cotangent of a tensor of the graph."""
        if d is not None:
            self.received.setdefault(number, []).append(d)

    def run(self) -> None:
        """Every operation from the last back to the first; what the results do not depend on is left out."""
        self.uses = self._uses()
        for number in range(len(self.graph.ops) - 1, -1, -1):
            if number in self.depends and (self.received.get(number) or number in self.loops):
                self.pull(number)

    def _uses(self) -> dict[int, int]:
        """How many cotangents each tensor will receive."""
        uses = {number: len(found) for number, found in self.received.items()} | dict.fromkeys(self.added, 1)
        for number in range(len(self.graph.ops) - 1, -1, -1):
            if uses.get(number) and number in self.depends:
                for i in self.graph.ops[number].inputs:
                    uses[i] = uses.get(i, 0) + 1
        return uses

    def pull(self, number: int) -> None:
        """Hand the cotangent of one operation's result on to its operands."""
        op = self.graph.ops[number]
        if op.kind == "repeated":
            found = self.loops.setdefault(op.inputs[0], {})
            d, place = self.total(number), op.params["place"]
            found[place] = add(found[place], d) if place in found else d  # read twice: by the function and a backward
        elif op.kind == "repeat":
            found = self.loops.get(number, {}) | ({0: self.total(number)} if self.received.get(number) else {})
            self.pull_loop(self, number, found)
        elif op.kind in RULES:
            d, made = self.total(number), self.primal(number)
            operands = [self.primal(i) for i in op.inputs]
            for place, i in enumerate(op.inputs):
                if i in self.depends:
                    self.receive(i, self.pulled(made, operands, d, place, i))

    def pulled(self, made: Tensor, operands: list[Tensor], d: Tensor, place: int, i: int) -> Tensor | None:
        """What one operand receives, wanted where that operand lies."""
        mark = len(self.into.ops)
        found = RULES[made.op.kind](made, operands, d, place)
        if found is None or found.number < mark:
            return found
        op = self.into.ops[found.number]
        fills = op.kind == "pointwise" and any(dim not in self.into.ops[op.inputs[0]].dims for dim in op.dims)
        if op.out is None and (op.kind not in FOLLOWS or fills):
            like = Like(self.graph, i, self.uses.get(i, 1) == 1, self.later(i))
            self.into.ops[found.number] = dataclasses.replace(op, out=like)
        return found

    def later(self, number: int) -> tuple[int, ...] | None:
        """Of the products from which a tensor came by linear operations, the operands that receive nothing else.

        Its cotangent may wait as a partial sum until theirs are reduced. None where something else is on the way.
        """
        if number in self.added:
            return None
        op = self.graph.ops[number]
        operands = [i for i in op.inputs if i in self.depends]
        if op.kind == "einsum":
            return tuple(i for i in operands if self.uses.get(i) == 1)
        fn = op.params["fn"] if op.kind == "pointwise" else op.kind
        scaled = {"multiply": len(operands) == 1, "divide": operands == [*op.inputs[:1]]}
        if fn not in LINEAR and not scaled.get(fn):
            return None
        found = [self.later(i) for i in operands]
        parts = [part for part in found if part is not None]
        return tuple(dict.fromkeys(n for part in parts for n in part)) if len(parts) == len(found) else None

    def total(self, number: int) -> Tensor:
        """All that a tensor received, added up once, where the tensor lies."""
        first, *others = self.received[number]
        for count, d in enumerate(others, 1):
            first = add(first, d)
            is_last = count == len(others) and number not in self.added
            like = Like(self.graph, number, is_last, self.later(number) if is_last else None)
            self.into.ops[first.number] = dataclasses.replace(first.op, out=like)
        self.received[number] = [first]
        return first

    def result(self, number: int) -> Tensor:
        """The whole cotangent of a wanted tensor, in its order and place; zeros where it received none."""
        dims = self.graph.ops[number].dims
        if not self.received.get(number):
            return zeros_like(self.into, self.graph, number)
        found = laid_out(self.total(number), dims)
        return apply("reshard", [found], dims, found.dtype, Like(self.graph, number))


def zeros_like(into: Graph, graph: Graph, number: int) -> Tensor:
    """Zeros in the shape and place of a tensor."""
    op = graph.ops[number]
    return apply("pointwise", [constant(into, 0.0, op.dtype)], op.dims, op.dtype, Like(graph, number), fn="identity")


def depending(graph: Graph, wanted: Sequence[int]) -> set[int]:
    """Every float tensor that depends on one of `wanted`; of a loop, what depends counts for all its results."""
    found = set(wanted)
    for number, op in enumerate(graph.ops):
        if found.intersection(op.inputs) and (is_float(op.dtype) or op.kind == "repeat"):
            found.add(number)
    return found
