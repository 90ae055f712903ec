"""einsum → reduce-scatter as rings: the block that somebody else sums up is computed while another travels.

    h = partial sums, scattered over x into F:    for each device's block of F: product of those columns, plus what has
    arrived of that block, and on; the last block is the device's own and is complete

Between product and reduce-scatter may stand anything that is done element by element, such as int8 scales and the sum
of attention and feedforward of a parallel block: a block of the result needs that block of every operand. Over several
axes, what goes round an outer ring has been summed on the inner rings before. Source: Wang et al. (ASPLOS 2023);
arXiv 2211.05102, section 3.5. Next file to read: `looping`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtfcore.overlap.rewriting import Writer, resized, rows_of
from mtfcore.overlap.rings import rounds, turns
from mtfcore.overlap.spots import Spot
from mtfcore.steps import Step


def why_not(writer: Writer, step: Step) -> str:
    """In words why a reduce-scatter cannot be looped, or nothing."""
    (dim,) = step.params["dims"]
    if any(inner.flops for inner in _tree(writer, step.inputs[0], dim)):
        return ""
    made = writer.made_by.get(step.inputs[0])
    what = "an input" if made is None else made.label()
    return f"what it adds up comes from {what}, not from a product of its own"


def _tree(writer: Writer, value: int, dim: str) -> Iterator[Step]:
    """The steps of which each block can be made by itself: products, and element by element steps behind them."""
    step = writer.made_by.get(value)
    if step is None or len(writer.readers[value]) > 1 or not _divides(step, dim):
        return
    yield step
    if step.kind == "pointwise":
        for operand, s in zip(step.inputs, step.before, strict=True):
            if dim in s.names:
                yield from _tree(writer, operand, dim)


def _divides(step: Step, dim: str) -> bool:
    if step.kind == "pointwise":
        return step.params["fn"] not in ("barrier", "stop_gradient", "fold_in")
    return step.kind == "einsum" and any(dim in s.names for s in step.before)


class Scattering:
    """The rings of one reduce-scatter, and the products beside them."""

    def __init__(self, writer: Writer, step: Step) -> None:
        self.writer, self.step, self.mesh = writer, step, writer.mesh
        (self.dim,) = step.params["dims"]
        self.whole = writer.shardings[step.inputs[0]]
        self.block = rows_of(self.whole, self.dim, self.mesh) // step.group
        self.tree = {inner.output for inner in _tree(writer, step.inputs[0], self.dim)}
        parts = turns(writer.ways, writer.form)
        halves = self.block > 1 and max(self.mesh[axis] for axis in step.axes) > 2
        self.parts = parts if halves else parts[:1]
        self.why = f"instead of {step.label()}"

    def write(self) -> None:
        """All rings; the sums of the device's own block take the place of the old result."""
        made: list[int | None] = [None] * len(self.parts)
        running = [self._run(made, number) for number in range(len(self.parts))]
        while running:  # by turns, so that both directions travel at the same time
            running = [half for half in running if next(half, self) is not self]
        for number, value in enumerate(made):
            rows = {self.dim: self._rows(number)[1]}
            self.writer.complete(value, resized(self.step.after, rows, self.mesh))
        whole = made[0]
        if len(made) > 1:
            params = {"dim": self.dim}
            whole = self.writer.emit("concat", made, self.step.after, self.step.dtype, params=params, why="both halves")
        self.writer.instead(self.step.output, whole)

    def _run(self, made: list[int | None], number: int) -> Iterator[None]:
        made[number] = yield from self._summed(0, {}, number)

    def _summed(self, level: int, backs: dict[str, int], number: int) -> Iterator[None]:
        """The sum, over the axes from this level on, of one device's block: the rounds of a gather in reverse."""
        if level == len(self.step.axes):
            yield
            return self._product(backs, number)
        axis = self.step.axes[level]
        size, turn = self.mesh[axis], self.parts[number]
        sums: dict[int, int] = {}
        for hops in reversed(rounds(size, self.writer.ways, self.writer.form, turn)):
            arrived = []
            for hop in hops:
                back = (hop.back + hop.distance) % size
                if back not in sums:
                    sums[back] = yield from self._summed(level + 1, {**backs, axis: back}, number)
                arrived.append((hop.back, self._sent(sums.pop(back), axis, -hop.distance)))
            for back, value in arrived:
                if back not in sums:
                    sums[back] = yield from self._summed(level + 1, {**backs, axis: back}, number)
                sums[back] = self.writer.add(sums[back], value, "with what has arrived of this block")
        return sums[0] if sums else (yield from self._summed(level + 1, {**backs, axis: 0}, number))

    def _sent(self, value: int, axis: str, distance: int) -> int:
        return self.writer.permute(value, axis, distance, self.why, self.step.tensor)

    def _rows(self, number: int) -> tuple[int, int]:
        """Start and size, in a block, of the rows of a half."""
        n = self.block
        return (0, n) if len(self.parts) == 1 else ((0, n - n // 2), (n - n // 2, n // 2))[number]

    # ---- one block of the summands

    def _product(self, backs: dict[str, int], number: int) -> int:
        places = tuple(backs[axis] for axis in self.step.axes)
        return self._at(self.step.inputs[0], Spot(self.dim, self.step.axes, places, self.block, *self._rows(number)))

    def _at(self, value: int, spot: Spot) -> int:
        """The rows of a value at a spot: computed alone where it is part of the tree, else taken out of it."""
        if value not in self.tree:
            return self.writer.part(self.writer.ensure(value), [spot], "the rows that go with this block")
        step = self.writer.made_by[value]
        after = resized(step.after, {self.dim: spot.size}, self.mesh)
        values = [
            self._operand(step, operand, spot) if self.dim in s.names else self.writer.ensure(operand)
            for operand, s in zip(step.inputs, step.before, strict=True)
        ]
        return self.writer.again(step, values, after)

    def _operand(self, step: Step, value: int, spot: Spot) -> int:
        if step.kind == "einsum":
            return self.writer.part(self.writer.ensure(value), [spot], "the rows that go with this block")
        return self._at(value, spot)
