"""all-gather → einsum as rings: what arrives is multiplied while the next block travels.

    x gathered over z, y of E (contracted), weights E x F:    h = Σ over rounds of block · matching rows of the weights
    weights gathered over a kept dimension:                   each block's columns go to their place in the result

Gathers that follow each other, of one dimension or several, become one nest of rings, an axis each: every block that
arrives on an outer ring goes round the inner ones. The gathered whole never exists, only the block at hand and the one
that travels. Casts are done block by block, so int8 weights travel as int8. Source: Wang et al. (ASPLOS 2023); arXiv
2211.05102, section 3.5. Next file to read: `scattering`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mtfcore.overlap.rewriting import Writer, resized, rows_of
from mtfcore.overlap.rings import rounds, turns
from mtfcore.overlap.spots import Spot
from mtfcore.sharding import Axes
from mtfcore.steps import Step

Where = Callable[[Step], bool]


@dataclass
class Chain:
    """Gathers, and casts between and behind them, from a value to the products that read it."""

    source: int
    steps: list[Step]  # in order; those that move and those that cast
    readers: list[tuple[Step, int, tuple[Step, ...]]]  # product, which operand, the casts only for it

    @property
    def dims(self) -> dict[str, Axes]:
        """Gathered dimension → its axes, outermost first: a later gather takes the next outer ones."""
        found: dict[str, Axes] = {}
        for step in self.gathers:
            (dim,) = step.params["dims"]
            found[dim] = (*step.axes, *found.get(dim, ()))
        return found

    @property
    def gathers(self) -> list[Step]:
        return [step for step in self.steps if step.kind == "all_gather"]

    @property
    def casts(self) -> list[Step]:
        return [step for step in self.steps if step.kind != "all_gather"]


def is_cast(step: Step | None) -> bool:
    return step is not None and step.kind == "pointwise" and step.params["fn"] == "cast"


def chain_of(writer: Writer, last: Step, where: Where) -> Chain | str:
    """The chain that ends with a gather, or in words why there is none."""
    found = _products(writer, last)
    if isinstance(found, str):
        return found
    if not any(step.flops for step, _, _ in found):
        return "nothing is multiplied by it"
    steps = [last]
    while (before := writer.made_by.get(steps[0].inputs[0])) is not None and _continues(writer, before, where):
        steps.insert(0, before)
    while is_cast(steps[0]):
        steps.pop(0)
    chain = Chain(steps[0].inputs[0], steps, found)
    return _why_not(writer, chain) or chain


def _products(writer: Writer, last: Step) -> list[tuple[Step, int, tuple[Step, ...]]] | str:
    """Every product that reads what a gather made, directly or behind a cast."""
    found = []
    pending = [(step, last.output, ()) for step in writer.readers[last.output]]
    for step, value, casts in pending:
        if step is None:
            return "it is returned whole"
        if is_cast(step):
            pending += [(after, step.output, (*casts, step)) for after in writer.readers[step.output]]
        elif step.kind != "einsum" or len(step.inputs) != 2:
            return f"{step.label()} reads it whole" if step.kind != "einsum" else "it is summed, not multiplied"
        elif step.inputs[0] == step.inputs[1]:
            return "it is multiplied by itself"
        else:
            found.append((step, step.inputs.index(value), casts))
    return found


def _continues(writer: Writer, step: Step, where: Where) -> bool:
    if len(writer.readers[step.output]) > 1:
        return False
    return is_cast(step) or (step.kind == "all_gather" and where(step))


def _why_not(writer: Writer, chain: Chain) -> str:
    """Products that need each other cannot share one ring."""
    made = {step.output for step, _, _ in chain.readers}
    for step, operand, _ in chain.readers:
        if made & _ancestors(writer, step.inputs[1 - operand]):
            return "of the products that read it one needs the other's result"
    return ""


def _ancestors(writer: Writer, value: int) -> set[int]:
    found, pending = set(), [value]
    while pending:
        if (now := pending.pop()) not in found:
            found.add(now)
            step = writer.made_by.get(now)
            pending += step.inputs if step is not None else ()
    return found


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
        source = writer.shardings[chain.source]
        self.blocks = {dim: rows_of(source, dim, self.mesh) for dim in chain.dims}
        self.split = next((dim for dim, n in reversed(self.blocks.items()) if n > 1), None)
        parts = turns(writer.ways, writer.form)
        largest = max(self.mesh[axis] for axes in chain.dims.values() for axis in axes)
        self.parts = parts if self.split and largest > 2 else parts[:1]
        kept = set(chain.readers[0][0].after.names)
        dims = sorted(chain.dims, key=lambda dim: dim not in kept)  # sums innermost: one is finished before the next
        self.nest = [(dim, axis) for dim in dims for axis in chain.dims[dim]]
        self.products: list[_Product] = []

    def write(self) -> None:
        """Everything, and every product's result in the place of the old one."""
        writer = self.writer
        source = writer.ensure(self.chain.source)
        for step, operand, casts in self.chain.readers:
            self.products.append(_Product(step, operand, casts, writer.ensure(step.inputs[1 - operand])))
        halves = [self._round(0, self._half(source, number), {}, number) for number in range(len(self.parts))]
        while halves:  # by turns, so that both directions travel at the same time
            halves = [half for half in halves if next(half, self) is not self]
        for product in self.products:
            writer.instead(product.step.output, product.whole)

    def _half(self, source: int, number: int) -> int:
        if len(self.parts) == 1:
            return source
        return self.writer.part(source, [Spot(self.split, (), (), 0, *self._rows(number))], "one half of the block")

    def _rows(self, number: int) -> tuple[int, int]:
        """Start and size, in a block, of the rows of a half."""
        n = self.blocks[self.split]
        return (0, n) if len(self.parts) == 1 else ((0, n - n // 2), (n - n // 2, n // 2))[number]

    def _round(self, level: int, block: int, backs: dict[str, int], number: int) -> Iterator[None]:
        """Pass a block round one ring, and each that arrives round those inside it."""
        if level == len(self.nest):
            self._multiply(block, backs, number)
            yield
            return
        _, axis = self.nest[level]
        held, ready = {0: block}, [0]
        for hops in rounds(self.mesh[axis], self.writer.ways, self.writer.form, self.parts[number]):
            arriving = {(hop.back + hop.distance) % self.mesh[axis]: self._sent(held[hop.back], axis, hop.distance)
                        for hop in hops}  # fmt: skip
            for back in ready:
                yield from self._round(level + 1, held[back], {**backs, axis: back}, number)
            held, ready = {**held, **arriving}, [*arriving]
        for back in ready:
            yield from self._round(level + 1, held[back], {**backs, axis: back}, number)

    def _sent(self, block: int, axis: str, distance: int) -> int:
        return self.writer.permute(block, axis, distance, self.why, self.chain.gathers[0].tensor)

    # ---- what is done with a block

    def _multiply(self, block: int, backs: dict[str, int], number: int) -> None:
        for cast in self.chain.casts:
            block = self._cast(cast, block)
        spots = {dim: self._spot(dim, backs, number) for dim in self.chain.dims}
        for product in self.products:
            self._one(product, block, spots)

    def _cast(self, step: Step, value: int) -> int:
        here = self.writer.shardings[value]
        return self.writer.emit("pointwise", [value], here, step.dtype, params={"fn": "cast"}, why=step.why)

    def _spot(self, dim: str, backs: dict[str, int], number: int) -> Spot:
        axes, block = self.chain.dims[dim], self.blocks[dim]
        rows = self._rows(number) if dim == self.split else (0, block)
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
        halves = len(self.parts) if self.split not in step.after.names else 1
        return halves * math.prod(self.mesh[axis] for axis in summed)

    def _finish(self, product: _Product, place: tuple[Spot, ...], made: int) -> None:
        if not place:
            product.whole = made
            return
        product.whole = self.writer.put(product.whole, made, place, product.step.after, "at its place in the result")
