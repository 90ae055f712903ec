"""`mtf.gradients(loss, params)`: the backward, as named operations of the same function.

    @mtf.function
    def slopes(x: "batch io", w: "io hidden", v: "hidden io"):
        y = mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")
        return mtf.gradients(mtf.mean(mtf.square(y - x)), {"w": w, "v": v})

So it is planned, drawn, priced and counted like the forward. Each cotangent is wanted where its primal lies; where
several meet in a sum, each may stay a partial sum until they are added up. A tensor that lies in another form already
is a free source, which is why the backward gathers nothing twice. Loops are in `loops_backward`.
Source: reverse accumulation; its placement is arXiv 1811.02084, section 8 (the gradients' all-reduce), made general.
Next file to read: `backward_rules`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtfcore.backward_rules import RULES, laid_out
from mtfcore.dtypes import is_float
from mtfcore.elementwise import add, constant
from mtfcore.errors import LayoutError, refuse
from mtfcore.ops import apply, expect_tensor
from mtfcore.recomputing import Primals
from mtfcore.tensor import Graph, Like, Tensor

Params = Tensor | Sequence[Tensor] | Mapping[str, Tensor]
FOLLOWS = ("pointwise", "repeat", "repeated")  # operations whose result lies where their operands give it


def gradients(loss: Tensor, params: Params) -> Any:
    """The derivative of `loss` (one number) for each of `params`, in the form in which they are given.

    Each has the dimensions, dtype and placement of its parameter; one that the loss does not depend on gives zeros.
    Raises `LayoutError` for a loss with dimensions, integers, and tensors of another function.
    """
    single = isinstance(params, Tensor)
    if not single and not isinstance(params, (Mapping, list, tuple)):
        raise LayoutError(f"gradients: params is {type(params).__name__} {params!r:.200}; expected tensors of this "
                          "function: one, a sequence or a mapping")  # fmt: skip
    named = dict(params) if isinstance(params, Mapping) else dict(enumerate([params] if single else params))
    graph = _check(loss, named)
    numbers = {name: graph.adopt(t) for name, t in named.items()}
    walk = Walk(graph, list(numbers.values()), graph, Primals(graph, graph))
    walk.receive(graph.adopt(loss), constant(graph, 1.0, loss.dtype))
    walk.run()
    found = {name: walk.result(number) for name, number in numbers.items()}
    if single:
        return found[0]
    return found if isinstance(params, Mapping) else tuple(found.values())


def _check(loss: Tensor, params: Mapping[Any, Tensor]) -> Graph:
    expect_tensor(loss)
    if loss.dims:
        raise LayoutError(f"gradients: the loss {loss!r} has dimensions; use mtf.sum(t) or mtf.mean(t) to make it one "
                          "number")  # fmt: skip
    faults = [f"{name} is {type(t).__name__} {t!r:.200}, expected a tensor of this function"
              for name, t in params.items() if not isinstance(t, Tensor)]  # fmt: skip
    floats = {"the loss": loss, **{f"param {k}": t for k, t in params.items() if isinstance(t, Tensor)}}
    faults += [f"{name} {t!r} is {t.dtype}; only floats have gradients" for name, t in floats.items()
               if not is_float(t.dtype)]  # fmt: skip
    refuse(faults, "gradients")
    return loss.graph


class Walk:
    """One walk over a graph from its results back to `wanted`, adding operations to the graph `into`."""

    def __init__(
        self, graph: Graph, wanted: Sequence[int], into: Graph, primal: Callable[[int], Tensor],
        added: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.graph, self.into, self.primal = graph, into, primal
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
            from mtfcore.loops_backward import pull_loop

            found = self.loops.get(number, {}) | ({0: self.total(number)} if self.received.get(number) else {})
            pull_loop(self, number, found)
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
            like = Like(self.graph, i, whole=self.uses.get(i, 1) == 1)
            self.into.ops[found.number] = dataclasses.replace(op, out=like)
        return found

    def total(self, number: int) -> Tensor:
        """All that a tensor received, added up once, where the tensor lies."""
        first, *others = self.received[number]
        for count, d in enumerate(others, 1):
            first = add(first, d)
            like = Like(self.graph, number, whole=count == len(others) and number not in self.added)
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
