"""Which gathers can be looped: chains of gathers and casts that only products read.

    E:x F:zy → E F:zy → E F → cast → einsum          one chain: the weights of the second paper's XYZ-gathered layout

Next file to read: `gathering`, which writes a chain's rings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mtfcore.overlap.rewriting import Writer
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
    def products(self) -> set[int]:
        """The values of the products."""
        return {step.output for step, _, _ in self.readers}

    def needs(self, writer: Writer) -> set[int]:
        """All values that must be there before the products can be made, besides those gathered."""
        found: set[int] = set()
        for step, operand, _ in self.readers:
            found |= _ancestors(writer, step.inputs[1 - operand])
        return found | _ancestors(writer, self.source)

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
    if chain.products & chain.needs(writer):  # they cannot share one ring
        return "of the products that read it one needs the other's result"
    return chain


def _products(writer: Writer, last: Step) -> list[tuple[Step, int, tuple[Step, ...]]] | str:
    """Every product that reads what a gather made, directly or behind a cast."""
    found: list[tuple[Step, int, tuple[Step, ...]]] = []
    pending: list[tuple[Step | None, int, tuple[Step, ...]]]
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


def _ancestors(writer: Writer, value: int) -> set[int]:
    found, pending = set(), [value]
    while pending:
        if (now := pending.pop()) not in found:
            found.add(now)
            step = writer.made_by.get(now)
            pending += step.inputs if step is not None else ()
    return found
