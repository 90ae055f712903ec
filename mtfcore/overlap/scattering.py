"""einsum → reduce-scatter as rings: the block that somebody else sums up is computed while another travels.

    h = partial sums, scattered over x into F:    for each device's block of F: product of those columns, plus what has
    arrived of that block, and on; the last block is the device's own and is complete

Between product and reduce-scatter may stand anything that is done element by element, such as int8 scales and the sum
of attention and feedforward of a parallel block: a block of the result needs that block of every operand. Over several
axes, what goes round an outer ring has been summed on the inner rings before; or, where blocks would be too small for
the matrix unit, the innermost axes come last, by rings without products. Source: Wang et al. (ASPLOS 2023);
arXiv 2211.05102, section 3.5. Next file to read: `looping`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator

from mtfcore.overlap.rewriting import Half, Writer, halves, resized, rows_of
from mtfcore.overlap.rings import rounds
from mtfcore.overlap.spots import Spot
from mtfcore.sharding import Axes, Sharding
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
        self.tree = {inner.output for inner in _tree(writer, step.inputs[0], self.dim)}

    def write(self) -> None:
        """All rings; the sums of the device's own block take the place of the old result."""
        step, mesh = self.step, self.mesh
        axes, apart, block = self.writer.how.rings(step.axes, rows_of(step.after, self.dim, mesh), mesh)
        value = self._rings(axes, block, self._placed(apart), lambda spot: self._at(step.inputs[0], spot))
        for place, axis in enumerate(apart):
            block //= mesh[axis]
            value = self._rings((axis,), block, self._placed(apart[place + 1 :]), functools.partial(self._cut, value))
        self.writer.instead(step.output, value)

    def _rings(self, axes: Axes, block: int, after: Sharding, product: Callable[[Spot], int]) -> int:
        """The sums of the device's own block over some axes; `product` makes this device's addend at a spot."""
        writer = self.writer
        rings = [_Ring(self, axes, half, block, product) for half in halves(block, axes, self.mesh, writer.how)]
        running = [ring.summed() for ring in rings]
        while running:  # by turns, so that both directions travel at the same time
            running = [one for one in running if next(one, self) is not self]
        for ring in rings:
            writer.complete(ring.result, resized(after, {self.dim: ring.half.size}, self.mesh))
        made = [ring.result for ring in rings]
        if len(made) == 1:
            return made[0]
        return writer.emit("concat", made, after, self.step.dtype, params={"dim": self.dim}, why="both halves")

    def _placed(self, due: Axes) -> Sharding:
        """Where the value lies while it still has to be scattered over some axes, innermost ones."""
        after = self.step.after
        on = [on[: len(on) - len(due)] if name == self.dim else on for name, on in after.on.items()]
        partial = [axis for axis in self.mesh.names if axis in (*after.partial, *due)]
        return Sharding.of(after.dims, tuple(on), tuple(partial)) if due else after

    # ---- one block of the summands

    def _cut(self, value: int, spot: Spot) -> int:
        return self.writer.part(value, [spot], "the rows that go with this block")

    def _at(self, value: int, spot: Spot) -> int:
        """The rows of a value at a spot: computed alone where it is part of the tree, else taken out of it."""
        if value not in self.tree:
            return self._cut(self.writer.ensure(value), spot)
        step = self.writer.made_by[value]
        after = resized(step.after, {self.dim: spot.size}, self.mesh)
        values = [
            self._operand(step, operand, spot) if self.dim in s.names else self.writer.ensure(operand)
            for operand, s in zip(step.inputs, step.before, strict=True)
        ]
        return self.writer.again(step, values, after)

    def _operand(self, step: Step, value: int, spot: Spot) -> int:
        return self._cut(self.writer.ensure(value), spot) if step.kind == "einsum" else self._at(value, spot)


class _Ring:
    """One half of a block on its way through all devices, summed up as it goes."""

    def __init__(self, whole: Scattering, axes: Axes, half: Half, block: int, product: Callable[[Spot], int]) -> None:
        self.writer, self.whole, self.axes, self.half, self.block = whole.writer, whole, axes, half, block
        self.product = product
        self.result = -1

    def summed(self) -> Iterator[None]:
        """All rounds; yields at each product, so that halves can take turns."""
        self.result = yield from self._from(0, {})

    def _from(self, level: int, backs: dict[str, int]) -> Generator[None, None, int]:
        """The sum over the axes from this level on: the rounds of a gather in reverse."""
        if level == len(self.axes):
            yield
            places = tuple(backs[axis] for axis in self.axes)
            return self.product(Spot(self.whole.dim, self.axes, places, self.block, self.half.start, self.half.size))
        axis, how = self.axes[level], self.writer.how
        size = self.writer.mesh[axis]
        sums: dict[int, int] = {}
        for hops in reversed(rounds(size, how.ways, how.form, self.half.turn)):
            arrived = []
            for hop in hops:
                back = (hop.back + hop.distance) % size
                if back not in sums:
                    sums[back] = yield from self._from(level + 1, {**backs, axis: back})
                arrived.append((hop.back, self._sent(sums.pop(back), axis, -hop.distance)))
            for back, value in arrived:
                if back not in sums:
                    sums[back] = yield from self._from(level + 1, {**backs, axis: back})
                sums[back] = self.writer.add(value, sums[back], "with what has arrived of this block")
        return sums[0]

    def _sent(self, value: int, axis: str, distance: int) -> int:
        step = self.whole.step
        return self.writer.permute(value, axis, distance, f"instead of {step.label()}", step.tensor)
