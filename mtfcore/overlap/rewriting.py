"""A program being written anew: its steps in order, some replaced by many; values keep their numbers where they stay.

`Writer.emit` appends a step and returns the value that it makes, `Writer.instead` says which new value stands for an
old one, `Writer.ensure` brings the steps forward that make a value. Next file to read: `chains`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from mtfcore.dims import Dim
from mtfcore.mesh import Mesh
from mtfcore.overlap.rings import turns
from mtfcore.overlap.spots import Spot
from mtfcore.rules.pruning import needed
from mtfcore.sharding import Axes, Sharding
from mtfcore.steps import Program, Step, held_bytes

TILE = 128  # columns of a matrix unit, and of what memory holds side by side


class How(NamedTuple):
    """What was asked for: directions of a ring, form, and how many rows a block that is multiplied should have."""

    ways: int = 2
    form: str = "throughput"
    rows: int = 512

    def rings(self, axes: Axes, rows: int, mesh: Mesh) -> tuple[Axes, Axes, int]:
        """Axes beside whose rings products run, the innermost ones that are done apart, and the rows of a block then.

        Blocks of few rows waste the matrix unit's tiles, so innermost axes are gathered before, or scattered after.
        """
        apart = len(axes)
        while apart > 1 and rows < self.rows:
            apart -= 1
            rows *= mesh[axes[apart]]
        return axes[:apart], axes[apart:], rows


def halves(rows: int, axes: Iterable[str], mesh: Mesh, how: How) -> tuple[Half, ...]:
    """The parts of a block that go round apart: two in opposite directions where that gains anything."""
    both = turns(how.ways, how.form)
    if len(both) == 1 or rows == 1 or max(mesh[axis] for axis in axes) < 3:
        return (Half(1, 0, rows),)
    first = rows - rows // 2
    if rows >= 2 * TILE:  # a half that ends within a tile is slow to read: compilers turn the whole matrix round
        first = -(-first // TILE) * TILE
    return (Half(both[0], 0, first), Half(both[1], first, rows - first))


class Half(NamedTuple):
    """Part of a block: the direction in which it goes round, and which rows."""

    turn: int
    start: int
    size: int


class Writer:
    """The steps of one program, or of one loop's body, while some are replaced."""

    def __init__(self, program: Program, how: How) -> None:
        self.program, self.mesh, self.how = program, program.mesh, how
        self.steps: list[Step] = []
        self.shardings, self.dtypes = dict(program.shardings), dict(program.dtypes)
        self.made_by = {value: step for step in program.steps for value in step.outputs}
        self.readers = readers(program)
        self.written: set[int] = set()  # first outputs of the old steps that stand in the new program
        self.stands_for: dict[int, int] = {}
        self.planned: dict[int, Callable[[], None]] = {}  # old value → what writes the many steps instead of its step
        self._next = max(self.shardings, default=-1) + 1

    def now(self, value: int) -> int:
        """The value of the new program that an old one has become."""
        return self.stands_for.get(value, value)

    def instead(self, old: int, new: int) -> None:
        assert self.shardings[new] == self.shardings[old], (self.shardings[new], self.shardings[old])
        self.stands_for[old] = new

    def ensure(self, value: int) -> int:
        """Write the step that makes a value, and all that it needs, unless they stand there already."""
        step = self.made_by.get(value)
        if step is not None and value not in self.stands_for:
            self.keep(step)
        return self.now(value)

    def keep(self, step: Step) -> None:
        """An old step as it was, reading what its operands have become."""
        if step.output in self.written or step.output in self.stands_for:
            return
        if step.output in self.planned:
            self.planned[step.output]()
            return
        inputs = tuple(self.ensure(value) for value in step.inputs)
        self.written.add(step.output)
        self.steps.append(step if inputs == step.inputs else dataclasses.replace(step, inputs=inputs))

    def emit(self, kind: str, values: Sequence[int], after: Sharding, dtype: str, **more: Any) -> int:
        """Append a new step of values of the new program."""
        output, self._next = self._next, self._next + 1
        self.shardings[output], self.dtypes[output] = after, dtype
        more.setdefault("params", {})
        self.steps.append(Step(kind, tuple(values), output, self._lying(values), after, dtype, **more))
        return output

    def again(self, step: Step, values: Sequence[int], after: Sharding) -> int:
        """A local step once more, on smaller parts: its FLOPs shrink with them."""
        whole, part = (_places(step.before, step.after, self.mesh), _places(self._lying(values), after, self.mesh))
        flops = Fraction(step.flops * part, whole) if step.flops else Fraction(0)
        assert flops.denominator == 1, f"{step!r} cannot be divided into {part} of {whole}"
        return self.emit(
            step.kind, values, after, step.dtype, params=dict(step.params), flops=int(flops), why=step.why,
            tensor=step.tensor,
        )  # fmt: skip

    def add(self, so_far: int, product: int, why: str) -> int:
        """Both together, element by element; `loop` marks that the product is added where the sum lies."""
        after, params = self.shardings[so_far], {"fn": "add", "loop": True}
        return self.emit("pointwise", [so_far, product], after, self.dtypes[so_far], params=params, why=why)

    def part(self, value: int, spots: Iterable[Spot], why: str) -> int:
        """Of each spot's dimension, the rows there."""
        spots = tuple(spots)
        after = resized(self.shardings[value], {spot.dim: spot.size for spot in spots}, self.mesh)
        if after == self.shardings[value]:
            return value
        return self.emit("part", [value], after, self.dtypes[value], params={"spots": spots}, why=why)

    def put(self, whole: int | None, value: int, spots: Iterable[Spot], after: Sharding, why: str) -> int:
        """A value with rows of another at the spots; without one to begin with, there are zeros around them."""
        values = [value] if whole is None else [whole, value]
        return self.emit("put", values, after, self.dtypes[value], params={"spots": tuple(spots)}, why=why)

    def permute(self, value: int, axis: str, distance: int, why: str, tensor: int) -> int:
        """What each device holds goes so many places on along a ring: `loop` marks that others need not wait."""
        here, dtype = self.shardings[value], self.dtypes[value]
        return self.emit(
            "permute", [value], here, dtype, axes=(axis,), group=self.mesh[axis], why=why, tensor=tensor,
            n_bytes=held_bytes(here, self.mesh, dtype), params={"distance": distance, "wrap": True, "loop": True},
        )  # fmt: skip

    def complete(self, value: int, after: Sharding) -> None:
        """A sum that is now complete: it lies where the result does."""
        number = next(n for n in reversed(range(len(self.steps))) if self.steps[n].output == value)
        self.steps[number] = dataclasses.replace(self.steps[number], after=after)
        self.shardings[value] = after

    def finished(self) -> Program:
        """The new program, without the steps that nothing reads any more."""
        outputs = tuple(dataclasses.replace(port, value=self.now(port.value)) for port in self.program.outputs)
        steps = needed(self.steps, {port.value for port in outputs})
        values = {port.value for port in self.program.inputs} | {value for step in steps for value in step.outputs}
        dtypes = {v: dtype for v, dtype in self.dtypes.items() if v in values}
        shardings = {v: s for v, s in self.shardings.items() if v in values}
        return dataclasses.replace(self.program, outputs=outputs, steps=steps, dtypes=dtypes, shardings=shardings)

    def _lying(self, values: Sequence[int]) -> tuple[Sharding, ...]:
        return tuple(self.shardings[value] for value in values)


def readers(program: Program) -> dict[int, list[Step | None]]:
    """Value → the steps that read it, once for each time; None stands for the caller, who gets it as an output."""
    found: dict[int, list[Step | None]] = {value: [] for value in program.shardings}
    for step in program.steps:
        for value in step.inputs:
            found[value].append(step)
    for port in program.outputs:
        found[port.value].append(None)
    return found


def resized(s: Sharding, rows: dict[str, int], mesh: Mesh) -> Sharding:
    """The same placement with other sizes: `rows` says how many one device holds."""
    dims = [Dim(d.name, rows[d.name] * mesh.group_size(on)) if d.name in rows else d
            for d, on in zip(s.dims, s.axes, strict=True)]  # fmt: skip
    return Sharding.of(tuple(dims), s.axes, s.partial)


def rows_of(s: Sharding, dim: str, mesh: Mesh) -> int:
    """How many of a dimension one device holds."""
    return s.local_shape(mesh)[s.names.index(dim)]


def _places(before: Sequence[Sharding], after: Sharding, mesh: Mesh) -> int:
    """The number of places along all dimensions of an operation on one device: what its FLOPs are proportional to."""
    sizes = {name: n for s in (*before, after) for name, n in zip(s.names, s.local_shape(mesh), strict=True)}
    return math.prod(sizes.values())
