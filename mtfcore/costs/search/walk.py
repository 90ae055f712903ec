"""Planning the same function under many layouts: what an operation became from the same start is kept and used again.

    walk = Walk(graph, mesh)
    program = walk.program(layout)          # the steps that mtf.plan gives, many times as fast

An operation's steps follow from where its operands lie (in every form), where its result is wanted, and the mesh; most
layouts of a search agree on most of that. So each operation is planned once by the real rule, its steps recorded with
their values numbered from the operation's own start, and then copied. Nothing here decides anything, so there is no
second description of the planner; tests compare programs step by step. Next file to read: `times`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtfcore.costs.search.space import by_layout, graphs
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.planner import Planner
from mtfcore.sharding import Sharding
from mtfcore.steps import Program, Step
from mtfcore.tensor import Graph, Like, Op

# A value made by the operation is its number from the operation's start; an older one is (tensor, form).
Ref = int | tuple[int, Sharding]


MOST_LOOPS = 1_000  # loops kept; each holds the plan of a whole turn


@dataclass(slots=True)
class Kept:
    """What planning one operation added: steps and values, and the forms of tensors."""

    steps: list[tuple[Step, tuple[Ref, ...], tuple[int, ...]]]
    shardings: list[Sharding]
    dtypes: list[str]
    forms: list[tuple[int, Sharding, Ref]]
    placed: Sharding
    home: Sharding | None
    loop: dict[int, list[tuple[Sharding, Ref]]] | None = None
    inside: dict[int, Inside] | None = None  # of loops: where their bodies' tensors lie, by graph


@dataclass(slots=True)
class Inside:
    """What cotangents outside ask of a loop's body: where its tensors lie, and where their cotangents belong."""

    placed: dict[int, Sharding]
    homes: dict[int, Sharding]


class Walk:
    """All plans of one function on one mesh."""

    def __init__(self, graph: Graph, mesh: Mesh, place: Mapping[str, Any] | None = None) -> None:
        self.graph, self.mesh, self.place = graph, mesh, place or {}
        self.kept: dict[tuple, Kept] = {}
        self.loops: dict[tuple, Kept] = {}
        self.asked: dict[int, tuple[int, int] | None] = {}  # step → the operation that asked for it (graph, number)
        self.inputs: dict[tuple, Sharding] = {}
        self.looks = {id(body): _looks(body) for body in graphs(graph) if body is not graph}

    def program(self, layout: Layout) -> Program:
        """The program under a layout; refuses what the planner refuses."""
        planner = _Planner(self.graph, layout, self)
        try:
            return planner.program([[s] for s in planner.input_places(self.place)])
        finally:
            planner.planners.clear()  # planners know each other: a circle that would outlive the plan


class _Planner(Planner):
    """The planner, asking first whether an operation has been planned from the same start."""

    explains = False

    def __init__(self, graph: Graph, layout: Layout, walk: Walk) -> None:
        super().__init__(graph, walk.mesh, layout)
        self.walk, self.rules = walk, dict(layout.rules)
        self.now: tuple[int, int] | None = None  # the operation being planned

    def inner(self, body: Graph) -> Planner:
        sub = _Planner(body, self.layout, self.walk)
        self.planners[id(body)] = sub
        sub.planners = self.planners
        return sub

    def input_places(self, place: Mapping[str, Any]) -> list[Sharding]:
        keys = [self._input_key(name, number) for name, number in self.graph.inputs.items()]
        known = self.walk.inputs
        if any(key not in known for key in keys):
            known.update(zip(keys, super().input_places(place), strict=True))
        return [known[key] for key in keys]

    def _input_key(self, name: str, number: int) -> tuple:
        return (name, *[self.rules.get(dim, ()) for dim in self.graph.ops[number].names])

    def operation(self, number: int, op: Op) -> None:
        if op.kind == "repeated":  # only names what a loop has made
            super().operation(number, op)
            return
        self.now = (id(self.graph), number)
        known = self.walk.loops if "body" in op.params else self.walk.kept
        key, steps = self._key(number, op), len(self.steps)
        if (kept := known.get(key)) is not None:
            self._again(number, kept)
        else:
            values, forms = len(self.shardings), {i: len(self.forms[i]) for i in dict.fromkeys(op.inputs)}
            bodies = dict(self.planners)
            super().operation(number, op)
            if len(known) >= MOST_LOOPS and known is self.walk.loops:
                known.clear()
            known[key] = self._record(number, steps, values, forms, bodies)
        self.now = None

    def emit(self, kind: str, values: Sequence[int], after: Sharding, dtype: str, **more: Any) -> int:
        value = super().emit(kind, values, after, dtype, **more)
        self.walk.asked[id(self.steps[-1])] = self.now
        return value

    def _key(self, number: int, op: Op) -> tuple:
        """All that the rules look at: places and forms of the operands, and where the result is wanted."""
        forms = tuple((self.placed[i], self.homes.get(i), *self.forms[i]) for i in op.inputs)
        return (id(self.graph), number, forms, self._wanted(op))

    def _wanted(self, op: Op) -> Any:
        if by_layout(op):
            return tuple(self.rules.get(name, ()) for name in op.names)
        if isinstance(op.out, Like):
            return tuple(self._home(id(op.out.graph), n) for n in (op.out.number, *(op.out.later or ())))
        return self._inside(op.params["body"]) if "body" in op.params else None

    def _inside(self, body: Graph) -> tuple:
        """What a loop's body looks at besides its inputs: the layout, and where tensors of other loops lie."""
        names, likes = self.walk.looks[id(body)]
        return tuple(self.rules.get(name, ()) for name in names), tuple(self._home(at, n) for at, n in likes)

    def _home(self, at: int, number: int) -> Sharding:
        """Where the cotangent of a tensor belongs."""
        planner = self.planners[at]
        return planner.homes.get(number, planner.placed[number])

    def _record(
        self, number: int, steps: int, values: int, known: Mapping[int, int], bodies: Mapping[int, Any]
    ) -> Kept:
        """What the operation added, with values as references that hold in any plan."""
        old = {value: (i, s) for i in known for s, value in self.forms[i].items() if value < values}

        def ref(value: int) -> Ref:
            return value - values if value >= values else old[value]

        made = [
            (step, tuple(map(ref, step.inputs)), tuple(value - values for value in step.outputs))
            for step in self.steps[steps:]
        ]
        forms = [(i, s, ref(v)) for i, n in known.items() for s, v in list(self.forms[i].items())[n:]]
        forms += [(number, s, ref(value)) for s, value in self.forms[number].items()]
        loop = self.loops.get(number)
        new = {at: inside for at, inside in self.planners.items() if bodies.get(at) is not inside}
        return Kept(
            made,
            self.shardings[values:],
            self.dtypes[values:],
            forms,
            self.placed[number],
            self.homes.get(number),
            None if loop is None else {place: [(s, ref(v)) for s, v in found] for place, found in loop.items()},
            {at: Inside(inside.placed, inside.homes) for at, inside in new.items()} if loop else None,
        )

    def _again(self, number: int, kept: Kept) -> None:
        """Add the same steps to this plan."""
        base, forms, asked = len(self.shardings), self.forms, self.walk.asked

        def value(ref: Ref) -> int:
            return base + ref if isinstance(ref, int) else forms[ref[0]][ref[1]]

        self.shardings += kept.shardings
        self.dtypes += kept.dtypes
        for step, inputs, outputs in kept.steps:
            again = object.__new__(Step)  # all but the numbers was checked when the step was made
            own = again.__dict__
            own.update(step.__dict__)
            own["inputs"], own["output"] = tuple(map(value, inputs)), base + outputs[0]
            if len(outputs) > 1:
                own["more"] = tuple([base + k for k in outputs[1:]])
            asked[id(again)] = self.now
            self.steps.append(again)
        forms[number] = {}
        for tensor, s, ref in kept.forms:
            forms[tensor][s] = value(ref)
        self.placed[number] = kept.placed
        if kept.home is not None:
            self.homes[number] = kept.home
        if kept.loop is not None:
            self.loops[number] = {place: [(s, value(r)) for s, r in found] for place, found in kept.loop.items()}
            self.planners.update(kept.inside or {})


def _looks(body: Graph) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """Dimensions that the layout may place inside a loop, and tensors elsewhere that its cotangents lie like."""
    inside = list(graphs(body))
    own = {id(part) for part in inside}
    ops = [op for part in inside for op in part.ops]
    names = dict.fromkeys(name for op in ops if by_layout(op) for name in op.names)
    wanted = [op.out for op in ops if isinstance(op.out, Like)]
    likes = [(id(like.graph), n) for like in wanted for n in (like.number, *(like.later or ()))]
    return tuple(names), tuple(dict.fromkeys(like for like in likes if like[0] not in own))
