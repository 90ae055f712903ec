"""The backward of a loop: a loop over the same turns the other way round.

It carries the cotangents of what the forward carried, and the sums for what every turn reads from outside; each turn
takes its entry of the stacked weights and of what the forward keeps for it, and gives out the cotangent of its
entry of the stack. The forward keeps only what this one reads: more outputs of its body, stacked turn by turn, or
only its carries where the block is recomputed. Next file to read: `rules/looping`.
"""

from __future__ import annotations

from mtfcore.backward.recomputing import ALWAYS_AGAIN, Primals
from mtfcore.backward.rules import laid_out, renamed
from mtfcore.backward.walk import Walk, depending, zeros_like
from mtfcore.dims import Dim
from mtfcore.dtypes import is_float
from mtfcore.elementwise import add
from mtfcore.loops import close_loop, loop_output
from mtfcore.tensor import Graph, Op, Tensor


def pull_loop(walk: Walk, number: int, received: dict[int, Tensor]) -> None:
    """Hand the cotangents of a loop's results (by place) on to what it carried, stacked and read from outside."""
    _LoopBackward(walk, number, received).run()


class _LoopBackward:
    def __init__(self, walk: Walk, number: int, received: dict[int, Tensor]) -> None:
        self.walk, self.number, self.received = walk, number, received
        self.op: Op = walk.graph.ops[number]
        self.body: Graph = self.op.params["body"]
        self.n_carry, self.over = self.op.params["n_carry"], self.op.params["over"]
        self.first_outside = self.n_carry + self.op.params["n_stacked"]
        self.inputs = list(self.body.inputs.values())
        self.results = list(self.body.outputs.values())
        self.back = Graph(f"{self.body.name}_backward", self.body.sizes, self.body.dtype, parent=walk.into)
        self.active = self._active()
        self.carry: dict[int, tuple[Tensor, Tensor]] = {}  # place of an input → its start outside, and inside
        self.stack: dict[int, tuple[Tensor, Tensor]] = {}  # number outside → the tensor outside, and inside

    def run(self) -> None:
        wanted = [self.inputs[place] for place in self.active]
        shared = [self.inputs[place] for place in self.active if place >= self.first_outside]
        inner = Walk(self.body, wanted, self.back, _Kept(self), pull_loop, shared)
        for place in self.active:
            if place < self.n_carry:
                inner.receive(self.results[place], self._carried(place))
            elif place >= self.first_outside:
                self._summed(place)
        for place, d in self.received.items():
            if place >= self.n_carry:
                dims = (self.over, *self.body.ops[self.results[place]].dims)
                inner.receive(self.results[place], self.stacked(f"d_out{place}", laid_out(d, dims)))
        inner.run()
        self._close(inner)

    def _active(self) -> list[int]:
        """The inputs of the body on which a result depends and that depend on what is wanted, by place."""
        inputs = self.op.inputs
        floats = [place for place, n in enumerate(self.inputs) if is_float(self.body.ops[n].dtype)]
        active = {place for place in floats if inputs[place] in self.walk.depends}
        while True:
            reached = depending(self.body, [self.inputs[place] for place in active])
            more = {k for k in range(self.n_carry) if self.results[k] in reached and k in floats} - active
            if not more:
                return sorted(active)
            active |= more

    # ---- what goes in

    def _carried(self, place: int) -> Tensor:
        d = self.received.get(place)
        dims = self.body.ops[self.inputs[place]].dims
        outside = laid_out(d, dims) if d is not None else self._zeros(self.op.inputs[place])
        return self._enter(place, f"d_carry{place}", outside)

    def _summed(self, place: int) -> None:
        self._enter(place, f"d_outer{place}", self._zeros(self.op.inputs[place]))

    def _zeros(self, number: int) -> Tensor:
        return zeros_like(self.walk.into, self.walk.graph, number)

    def _enter(self, place: int, name: str, outside: Tensor) -> Tensor:
        inside = self.back.input(self.back.free_name(name), outside.dims, outside.dtype)
        self.carry[place] = outside, inside
        return inside

    def stacked(self, name: str, outside: Tensor) -> Tensor:
        """This turn's entry of a stacked tensor."""
        if outside.number not in self.stack:
            inside = self.back.input(self.back.free_name(name), outside.dims[1:], outside.dtype)
            self.stack[outside.number] = outside, inside
        return self.stack[outside.number][1]

    def kept(self, number: int) -> Tensor:
        """What the forward's turn made, as one more output of its body."""
        place = self.results.index(number, self.n_carry) if number in self.results[self.n_carry :] else None
        if place is None:
            place = len(self.results)
            self.body.outputs[f"kept{number}"] = number
            self.results.append(number)
        made = loop_output(Tensor(self.walk.graph, self.number), place)
        return self.stacked(f"kept{number}", self.walk.primal(made.number))

    # ---- what comes out

    def _close(self, inner: Walk) -> None:
        carried = list(self.carry)
        for place in carried:
            self.back.outputs[f"d{place}"] = self._after_turn(inner, place).number
        parts = [p for p in self.active if self.n_carry <= p < self.first_outside and self._received(inner, p)]
        for place in parts:
            self.back.outputs[f"d{place}"] = inner.result(self.inputs[place]).number
        if not self.back.outputs:  # what was received depends on nothing wanted
            return
        outside, inside = zip(*self.stack.values(), strict=True) if self.stack else ((), ())
        own = [*[t for _, t in self.carry.values()], *inside]
        names = {number: name for name, number in self.back.inputs.items()}
        first = [names[t.number] for t in own]
        self.back.inputs = {name: self.back.inputs[name] for name in [*first, *self._others(first)]}
        starts = [start for start, _ in self.carry.values()]
        over = Dim(self.over.name, self.op.params["n"])
        sums = [k for k, place in enumerate(carried) if place >= self.first_outside]
        made = close_loop(self.back, starts, [*outside], over, not self.op.params["reverse"], sums)
        results = dict(zip([*carried, *parts], made if isinstance(made, tuple) else (made,), strict=False))
        for place, d in results.items():
            if self.op.inputs[place] in self.walk.depends:
                self.walk.receive(self.op.inputs[place], self._as_stack(place, d) if place in parts else d)

    def _as_stack(self, place: int, d: Tensor) -> Tensor:
        """Each tensor of the stack has a name of its own for the turns."""
        (first, *_) = self.walk.graph.ops[self.op.inputs[place]].dims
        return d if d.dims[0] == first else renamed(d, d.names[0], first)

    def _others(self, first: list[str]) -> list[str]:
        return [name for name in self.back.inputs if name not in first]

    def _received(self, inner: Walk, place: int) -> bool:
        return bool(inner.received.get(self.inputs[place]))

    def _after_turn(self, inner: Walk, place: int) -> Tensor:
        """What the next turn takes: the cotangent of the carry before this one, or the sum so far."""
        start, inside = self.carry[place]
        number = self.inputs[place]
        if place < self.n_carry:
            return inner.result(number)
        if not self._received(inner, place):
            return inside
        return add(inside, laid_out(inner.total(number), start.dims))


class _Kept(Primals):
    """The tensors of one turn of the forward, as the turn of the backward reads them."""

    def __init__(self, loop: _LoopBackward) -> None:
        super().__init__(loop.body, loop.back)
        self.loop = loop

    def fetched(self, number: int) -> int:
        loop, op = self.loop, self.graph.ops[number]
        if op.kind != "input":
            return self._free(number) if self._is_free(number) else loop.kept(number).number
        place = loop.inputs.index(number)
        if place < loop.n_carry:
            return loop.kept(number).number
        outside = loop.walk.primal(loop.op.inputs[place])
        if place < loop.first_outside:
            return loop.stacked(op.params["name"], outside).number
        return loop.back.adopt(outside)

    def _is_free(self, number: int) -> bool:
        """Whether it is made of indices and constants alone, so that it is cheaper to make again."""
        op = self.graph.ops[number]
        return op.kind in ALWAYS_AGAIN or (op.kind == "pointwise" and all(map(self._is_free, op.inputs)))

    def _free(self, number: int) -> int:
        op = self.graph.ops[number]
        inputs = tuple(self.number(i) for i in op.inputs)
        return self.into.add(Op(op.kind, inputs, op.dims, op.dtype, op.params, op.out)).number
