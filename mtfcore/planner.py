"""The planner: one walk over a function's graph, operation by operation, that writes the steps.

For each tensor it keeps every sharding in which the tensor already lies somewhere: those are free sources when it is
needed again. The rules decide; this class resolves what they ask for and notes what they make. Mesh axes of size 1
are dropped on entry. Next file to read: `execute`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtfcore.dtypes import DTYPES
from mtfcore.errors import LayoutError, refuse, sure
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.rules.choosing import choose
from mtfcore.rules.moved_or_made import made_at
from mtfcore.rules.moves import State
from mtfcore.rules.moving import reshard_steps
from mtfcore.rules.operations import PLANNERS
from mtfcore.rules.pruning import needed
from mtfcore.rules.questions import Question
from mtfcore.rules.resharding import shortest
from mtfcore.rules.wanted import exact, summable
from mtfcore.sharding import Axes, Sharding
from mtfcore.steps import Port, Program, Step, held_bytes
from mtfcore.tensor import Graph, Like, Op
from mtfcore.traffic import COLLECTIVES


class Planner:
    """The state of one walk over a graph."""

    explains = True  # whether steps say why; a search over thousands of plans needs no words

    def __init__(self, graph: Graph, mesh: Mesh, layout: Layout, search: bool = False) -> None:
        self.graph, self.mesh, self.layout, self.search = graph, mesh, layout, search
        self.ones: Axes = tuple(name for name, size in mesh.axes if size == 1)
        self.items = tuple((name, size) for name, size in mesh.axes if size > 1)
        self.sizes = dict(self.items)
        self.steps: list[Step] = []
        self.shardings: list[Sharding] = []  # of each value
        self.dtypes: list[str] = []
        self.placed: dict[int, Sharding] = {}  # tensor → where it lies when made
        self.forms: dict[int, dict[Sharding, int]] = {}  # tensor → every sharding it lies in, and that value
        self.exchanged: dict[tuple, int] = {}  # what neighbours have sent each other already: step → its value
        self.loops: dict[int, dict[int, list[tuple[Sharding, int]]]] = {}  # loop → what it makes, place by place
        self.by_place: list[tuple[int, Port]] = []  # of a loop's body: outputs, each in every form
        self.homes: dict[int, Sharding] = {}  # tensor → where its cotangent belongs, if not where it is placed
        self.planners: dict[int, Any] = {id(graph): self}  # graph → its planner, those around and inside loops included

    # ---- the walk

    def program(self, places: Sequence[Sequence[Sharding]], carries: Sequence[Sharding] | None = None) -> Program:
        """Plan every operation. Of a loop's body, `carries` says where what is carried must lie after a turn."""
        inputs = []
        for (name, number), forms in zip(self.graph.inputs.items(), places, strict=True):
            self.forms[number], self.placed[number] = {}, forms[0]
            for k, s in enumerate(forms):
                value = self.forms[number][s] = self.new_value(s, self.graph.ops[number].dtype)
                inputs.append(Port(name if k == 0 else f"{name}_{k}", value, s, self.dtypes[value]))
        for number, op in enumerate(self.graph.ops):
            if op.kind != "input":
                self.operation(number, op)
        outputs = self.outputs() if carries is None else self.body_outputs(carries)
        steps = needed(self.steps, {port.value for port in outputs})
        values = [*[port.value for port in inputs], *[value for step in steps for value in step.outputs]]
        dtypes = {value: self.dtypes[value] for value in values}
        shardings = {value: self.shardings[value] for value in values}
        return Program(
            self.graph.name, self.mesh, tuple(inputs), tuple(outputs), steps, self.graph, self.placed,
            dtypes, shardings, self.layout,
        )  # fmt: skip

    def operation(self, number: int, op: Op) -> None:
        """Plan one operation; a search over layouts does it once from the same start (`costs.search.walk`)."""
        PLANNERS[op.kind](self, number, op)

    def outputs(self) -> list[Port]:
        return [self.port(name, self.forms[n][self.placed[n]]) for name, n in self.graph.outputs.items()]

    def body_outputs(self, carries: Sequence[Sharding]) -> list[Port]:
        """Of a loop's body: each carry where the next turn takes it, each further output in every form it has."""
        self.by_place = []
        for place, (name, number) in enumerate(self.graph.outputs.items()):
            if place < len(carries):
                values = [self.need(number, carries[place], "the next turn takes it as")]
            else:
                usual = self.forms[number][self.placed[number]]
                values = [usual, *[value for value in self.forms[number].values() if value != usual]]
            self.by_place += [(place, self.port(name, value)) for value in values]
        return [port for _, port in self.by_place]

    def port(self, name: str, value: int) -> Port:
        return Port(name, value, self.shardings[value], self.dtypes[value])

    def inner(self, body: Graph) -> Planner:
        """A planner for the body of a loop."""
        sub = Planner(body, self.mesh, self.layout, self.search)
        self.planners[id(body)] = sub
        sub.planners = self.planners
        return sub

    def input_places(self, place: Mapping[str, str | Sharding]) -> list[Sharding]:
        """Where each input lies: as `place` says, else as the layout says."""
        found, faults = [], []
        for name, number in self.graph.inputs.items():
            dims, given = self.graph.ops[number].dims, place.get(name)
            try:
                s = self.layout.place(dims, self.mesh) if given is None else exact(dims, given)
                found.append(summable(s.check(self.mesh).without(self.ones), self.graph.ops[number].dtype))
            except LayoutError as error:
                faults.append(f"input {name}: {error}")
        refuse(faults)
        return found

    # ---- what the rules ask for

    def resolve(self, op: Op) -> Sharding | None:
        """Where an operation's result is wanted, if anything says so."""
        if op.out is None:
            return None
        if isinstance(op.out, Like):
            return self.like(op, op.out)
        try:
            s = op.out.check(self.mesh) if isinstance(op.out, Sharding) else self.layout.place(op.dims, self.mesh)
            summable(s, op.dtype)
        except LayoutError as error:
            raise LayoutError(f"result of {op.params.get('fn', op.kind)}: {error}") from None
        return s.without(self.ones)

    def like(self, op: Op, like: Like) -> Sharding | None:
        """Where a cotangent is wanted; a primal that still is a sum says nothing about it."""
        s = self.home(like.graph, like.number)
        return None if s.partial else Sharding.of(op.dims, tuple(s.on.get(name, ()) for name in op.names))

    def home(self, graph: Graph, number: int) -> Sharding:
        """Where the cotangent of a tensor of this graph, or of one around it, belongs."""
        planner = self.planners[id(graph)]
        return planner.homes.get(number, planner.placed[number])

    def other_forms(self, number: int) -> tuple[Sharding, ...]:
        """Where else a tensor lies already, so that it need not be moved there."""
        forms = self.forms[number]
        return tuple(s for s in forms if s != self.placed[number]) if len(forms) > 1 else ()

    def need(self, number: int, goal: Sharding, why: str) -> int:
        """A value of this tensor lying at `goal`, moved there from the nearest form in which it already lies."""
        forms = self.forms[number]
        whole_sum = Sharding.of(goal.dims, goal.axes)
        if self.graph.ops[number].kind == "random" and whole_sum not in forms:  # made again is never sent
            forms[whole_sum] = made_at(self, number, whole_sum)
        if goal in forms:
            return forms[goal]
        start = min(forms, key=lambda form: self.distance(form, goal, forms[form]))
        return reshard_steps(self, forms[start], start, goal, why, number)

    def distance(self, start: Sharding, goal: Sharding, value: int) -> float:
        size = self.bytes_of(self.dtypes[value])
        return shortest(
            State(start.axes, start.partial), State(goal.axes, goal.partial), start.shape, self.items, size
        ).cost

    def finish(self, number: int, value: int, want: Sharding | None) -> int:
        """Note a tensor that has been made, and move it where it is wanted."""
        made = self.shardings[value]
        self.forms[number] = {made: value}
        self.placed[number] = made
        if want is not None and want != made:
            value = self.need(number, want, "the result is wanted as")
            self.placed[number] = want
            self.keep_home(number, made)
        return value

    def keep_home(self, number: int, before: Sharding) -> None:
        """A tensor that was gathered: its cotangent is scattered to where it was gathered from."""
        if not before.partial and before.used_size(self.mesh) > self.placed[number].used_size(self.mesh):
            self.homes[number] = before

    def settled(self, number: int) -> Sharding:
        """Where a tensor lies once its partial sums are reduced in the cheapest way."""
        s, op = self.placed[number], self.graph.ops[number]
        if not s.partial:
            return s
        size = self.bytes_of(op.dtype)
        return choose(Question((s,), s.dims, "none"), self.items, (size, size)).needs[0]

    # ---- values and steps

    def new_value(self, s: Sharding, dtype: str) -> int:
        self.shardings.append(s)
        self.dtypes.append(dtype)
        return len(self.shardings) - 1

    def emit(self, kind: str, values: Sequence[int], after: Sharding, dtype: str, **more: Any) -> int:
        """Append a step; returns the value that it makes."""
        output = self.new_value(after, dtype)
        before = tuple(self.shardings[value] for value in values)
        self.steps.append(Step(kind, tuple(values), output, before, after, dtype, **more))
        return output

    def emit_loop(
        self, values: Sequence[int], outputs: Sequence[int], params: dict[str, Any], tensor: int, body: Program, n: int
    ) -> None:
        """Append a loop, which makes several values."""
        before, first = tuple(self.shardings[value] for value in values), outputs[0]
        self.steps.append(Step(
            "repeat", tuple(values), first, before, self.shardings[first], self.dtypes[first],
            params={**params, "n": n}, why=f"one turn is planned; {n} turns run as one loop", tensor=tensor, body=body,
            times=n, more=tuple(outputs[1:]),
        ))  # fmt: skip

    def collective(
        self, kind: str, value: int, after: Sharding, axes: Axes, params: dict[str, Any], why: str, tensor: int
    ) -> int:
        """Append a move of one value; the new form of the tensor is kept as a source."""
        group, held = 1, 0
        if kind in COLLECTIVES:
            group = self.mesh.group_size(axes)
            held = held_bytes(self.shardings[value], self.mesh, self.dtypes[value])
        moved = self.emit(
            kind, [value], after, self.dtypes[value], params=params, axes=axes, group=group, n_bytes=held, why=why,
            tensor=tensor,
        )  # fmt: skip
        if params.get("fn", "sum") == "sum":
            self.forms.setdefault(tensor, {}).setdefault(after, moved)
        return moved

    def sharding_of(self, value: int) -> Sharding:
        return self.shardings[value]

    def dtype_of(self, value: int) -> str:
        return self.dtypes[value]

    def bytes_of(self, dtype: str) -> int:
        return DTYPES[dtype][1]

    def item_bytes(self, op: Op) -> tuple[int, ...]:
        """Bytes an element of each operand, then of the result."""
        return (*[self.bytes_of(self.graph.ops[i].dtype) for i in op.inputs], self.bytes_of(op.dtype))

    def local_shape(self, s: Sharding) -> list[int]:
        return [sure(dim.size) // self.mesh.group_size(on) for dim, on in zip(s.dims, s.axes, strict=True)]
