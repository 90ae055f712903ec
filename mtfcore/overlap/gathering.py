"""all-gather → einsum as rings: what arrives is multiplied while the next block travels.

    x gathered over z, y of E (contracted), weights E x F:    h = Σ over rounds of block · matching rows of the weights
    weights gathered over a kept dimension:                   each block's columns go to their place in the result

Gathers that follow each other, of one dimension or several, become one nest of rings, an axis each: every block that
arrives on an outer ring goes round the inner ones. Where blocks would be too small for the matrix unit, innermost axes
are gathered before, by rings without products, which leaves larger contiguous blocks. The gathered whole never exists,
only the block at hand and the one that travels. Casts are done block by block, so int8 weights travel as int8. Source:
Wang et al. (ASPLOS 2023); arXiv 2211.05102, section 3.5. Next file to read: `scattering`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from mtfcore.errors import sure
from mtfcore.overlap.chains import Chain
from mtfcore.overlap.rewriting import Half, Writer, halves, resized, rows_of
from mtfcore.overlap.rings import rounds
from mtfcore.overlap.spots import Spot
from mtfcore.sharding import Axes, Sharding
from mtfcore.steps import Step

# ---- the nest of rings ------------------------------------------------------------------------------------------


@dataclass
class _Product:
    """One product that is done block by block: its result so far."""

    step: Step
    operand: int
    casts: tuple[Step, ...]
    other: int
    sums: dict[tuple, int] = field(default_factory=dict)  # place in the kept dimensions → sum so far
    due: dict[tuple, int] = field(default_factory=dict)  # and how many addends are missing
    whole: int | None = None


class Gathering:
    """The rings of one chain, and the products beside them."""

    def __init__(self, writer: Writer, chain: Chain) -> None:
        self.writer, self.chain, self.mesh = writer, chain, writer.mesh
        self.why = f"instead of {' and '.join(step.label() for step in chain.gathers)}"
        self.axes: dict[str, Axes] = {}  # gathered dimension → axes of its rings beside products
        self.apart: dict[str, Axes] = {}  # and those that are gathered before
        self.blocks: dict[str, int] = {}  # and the rows of a block
        source = writer.shardings[chain.source]
        for dim, axes in chain.dims.items():
            rows, beside = rows_of(source, dim, self.mesh), self._beside(dim)
            self.axes[dim], self.apart[dim], found = writer.how.rings(axes, rows * beside, self.mesh)
            self.blocks[dim] = found // beside
        self.split = max(self.blocks, key=lambda dim: (self.blocks[dim] > 1, list(self.blocks).index(dim)))
        every = [axis for axes in self.axes.values() for axis in axes]
        self.halves = halves(self.blocks[self.split], every, self.mesh, writer.how)
        kept = set(chain.readers[0][0].after.names)
        dims = sorted(self.axes, key=lambda dim: dim not in kept)  # sums innermost: one is finished before the next
        self.nest = [(dim, axis) for dim in dims for axis in self.axes[dim]]
        self.products: list[_Product] = []

    def _beside(self, dim: str) -> int:
        """How many rows or columns of a product each row of a dimension is: H beside D is as good as H·D."""
        step, here = self.chain.readers[0][0], self.writer.shardings[self.chain.source]
        is_kept = {name: name in step.after.names for name in here.names}
        sizes = zip(here.names, here.local_shape(self.mesh), strict=True)
        others = [n for name, n in sizes if name not in self.chain.dims and is_kept[name] == is_kept[dim]]
        return math.prod(others)

    def write(self) -> None:
        """Everything, and every product's result in the place of the old one."""
        writer = self.writer
        source = writer.ensure(self.chain.source)
        for step, operand, casts in self.chain.readers:
            self.products.append(_Product(step, operand, casts, writer.ensure(step.inputs[1 - operand])))
        for dim, axes in self.apart.items():
            for axis in reversed(axes):
                source = self._collected(source, dim, axis)
        running = [self._round(0, self._half(source, half, self.split), {}, half) for half in self.halves]
        while running:  # by turns, so that both directions travel at the same time
            running = [one for one in running if next(one, self) is not self]
        for product in self.products:
            writer.instead(product.step.output, sure(product.whole))

    def _half(self, block: int, half: Half, dim: str) -> int:
        return self.writer.part(block, [Spot(dim, (), (), 0, half.start, half.size)], "one half of the block")

    def _collected(self, value: int, dim: str, axis: str) -> int:
        """A value gathered over one axis by a ring of its own: each block is put in its place."""
        writer, here = self.writer, self.writer.shardings[value]
        rows = rows_of(here, dim, self.mesh)
        after = Sharding.of(here.dims, tuple(on[:-1] if name == dim else on for name, on in here.on.items()))
        whole = None
        for half in halves(rows, [axis], self.mesh, writer.how):
            held = {0: self._half(value, half, dim)}
            for hops in ((), *rounds(self.mesh[axis], writer.how.ways, writer.how.form, half.turn)):
                for hop in hops:
                    back = (hop.back + hop.distance) % self.mesh[axis]
                    held[back] = self._sent(held[hop.back], axis, hop.distance)
            for back, block in held.items():
                spot = Spot(dim, (axis,), (back,), rows, half.start, half.size)
                whole = writer.put(whole, block, [spot], after, "blocks side by side")
        return sure(whole)

    def _round(self, level: int, block: int, backs: dict[str, int], half: Half) -> Iterator[None]:
        """Pass a block round one ring, and each that arrives round those inside it."""
        if level == len(self.nest):
            self._multiply(block, backs, half)
            yield
            return
        _, axis = self.nest[level]
        held, ready = {0: block}, [0]
        for hops in rounds(self.mesh[axis], self.writer.how.ways, self.writer.how.form, half.turn):
            arriving = {(hop.back + hop.distance) % self.mesh[axis]: self._sent(held[hop.back], axis, hop.distance)
                        for hop in hops}  # fmt: skip
            for back in ready:
                yield from self._round(level + 1, held[back], {**backs, axis: back}, half)
            held, ready = {**held, **arriving}, [*arriving]
        for back in ready:
            yield from self._round(level + 1, held[back], {**backs, axis: back}, half)

    def _sent(self, block: int, axis: str, distance: int) -> int:
        return self.writer.permute(block, axis, distance, self.why, self.chain.gathers[0].tensor)

    # ---- what is done with a block

    def _multiply(self, block: int, backs: dict[str, int], half: Half) -> None:
        for cast in self.chain.casts:
            block = self._cast(cast, block)
        spots = {dim: self._spot(dim, backs, half) for dim in self.axes}
        for product in self.products:
            self._one(product, block, spots)

    def _cast(self, step: Step, value: int) -> int:
        here = self.writer.shardings[value]
        return self.writer.emit("pointwise", [value], here, step.dtype, params={"fn": "cast"}, why=step.why)

    def _spot(self, dim: str, backs: dict[str, int], half: Half) -> Spot:
        axes, block = self.axes[dim], self.blocks[dim]
        rows = half[1:] if dim == self.split else (0, block)
        return Spot(dim, axes, tuple(backs[axis] for axis in axes), block, *rows)

    def _one(self, product: _Product, block: int, spots: dict[str, Spot]) -> None:
        writer, step = self.writer, product.step
        for cast in product.casts:
            block = self._cast(cast, block)
        matching = [spots[dim] for dim in spots if dim in writer.shardings[product.other].names]
        other = writer.part(product.other, matching, "the rows that go with this block") if matching else product.other
        values = [block, other] if product.operand == 0 else [other, block]
        kept = [spots[dim] for dim in spots if dim in step.after.names]
        after = resized(step.after, {spot.dim: spot.size for spot in kept}, self.mesh)
        made = writer.again(step, values, after)
        place = tuple(kept)
        if place in product.sums:
            made = writer.add(product.sums[place], made, "blocks so far")
        product.sums[place] = made
        product.due[place] = product.due.get(place, self._addends(step)) - 1
        if product.due[place] == 0:
            self._finish(product, place, product.sums.pop(place))

    def _addends(self, step: Step) -> int:
        """How many blocks are added up for one place of the result."""
        summed = [axis for dim, axis in self.nest if dim not in step.after.names]
        halves = 1 if self.split in step.after.names else len(self.halves)
        return halves * math.prod(self.mesh[axis] for axis in summed)

    def _finish(self, product: _Product, place: tuple[Spot, ...], made: int) -> None:
        if not place:
            product.whole = made
            return
        product.whole = self.writer.put(product.whole, made, place, product.step.after, "at its place in the result")
