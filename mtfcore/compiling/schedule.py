"""The compiled text in the order in which it runs: one slot for each instruction, loops opened and multiplied.

    >>> schedule = read(report.text)
    >>> [slot.cycles for slot in schedule.slots if slot.cycles][:3]

A TPU's text is scheduled: what stands first starts first. `-start` begins something that goes on until its `-done`; in
between other instructions run. Each fusion carries the compiler's own estimate of its cycles, for one run. Nothing
here knows a plan. Next file to read: `collectives`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from mtfcore.counting.hlo_module import DAMAGED, Computation, Instruction, Module, Unreadable, split
from mtfcore.counting.hlo_parse import parse
from mtfcore.counting.hlo_text import ASYNC_DONE, COLLECTIVES, chain, goes_on
from mtfcore.counting.hlo_values import while_runs

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_SCOPE = re.compile(r'op_name="([^"]*)"')
_STEP = re.compile(r"step(\d+)")
PRODUCTS = ("convolution", "dot")


def _step(i: Instruction) -> str:
    found = _SCOPE.search(i.rest)
    return ".".join(_STEP.findall(found[1])) if found else ""


@dataclass(frozen=True, eq=False)
class Slot:
    """One instruction at its place in the schedule."""

    instruction: Instruction
    home: Computation
    times: int = 1  # how often it runs: the turns of the loops around it, multiplied
    inside: Instruction | None = None  # the fusion or asynchronous wrapper that it is a part of
    fused: Computation | None = None  # of a fusion: what it does
    body: tuple[Slot, ...] = ()  # of a loop: one turn
    turns: int | None = None  # of a loop; None where its text does not say

    @property
    def opcode(self) -> str:
        return self.instruction.opcode

    @property
    def kind(self) -> str | None:
        """The collective that it is, or starts."""
        return None if self.goes_on else COLLECTIVES.get(self.opcode.removesuffix("-start"))

    @cached_property
    def goes_on(self) -> bool:
        """Whether it carries on, or ends, a collective that another fusion started."""
        return self.opcode in COLLECTIVES and goes_on(self.instruction, self.home)

    @property
    def is_async(self) -> bool:
        """Whether a collective only starts here, and ends at a later instruction."""
        wrapped = self.inside is not None and self.inside.opcode == "async-start"
        return self.opcode.endswith("-start") or wrapped or bool(self.flight)

    @property
    def flight(self) -> str:
        """Of what starts and ends apart: the name that both ends share."""
        number = chain(self.instruction) if self.opcode in COLLECTIVES else None
        return f"chain {number}" if number else ""

    @property
    def ends(self) -> str:
        """The flight that ends here; empty if none does."""
        if self.goes_on:
            target = self.home.result.attributes.get("custom_call_target", "").strip('"')
            return self.flight if target == ASYNC_DONE else ""
        return self._started() if self.opcode.endswith("-done") else ""

    def _started(self) -> str:
        """What a `-done` ends, seen through the updates in between."""
        made = self.home.operand(self.instruction, 0)
        while made.opcode.endswith("-update"):
            made = self.home.operand(made, 0)
        return made.name

    @cached_property
    def cycles(self) -> int:
        """What the compiler thinks that one run takes; 0 where it says nothing."""
        found = None if self.inside else _CYCLES.search(self.instruction.rest)
        return int(found[1]) if found else 0

    @cached_property
    def step(self) -> str:
        """The step of the plan it was lowered from, numbered as in the program's table (3, 17.4); empty if unknown.

        A fusion without a name of its own has that of its product, or else of the last thing it does.
        """
        inner = list(self.fused.instructions.values()) if self.fused else []
        inner.sort(key=lambda i: i.opcode in PRODUCTS)
        names = (_step(i) for i in (self.instruction, *reversed(inner)))
        return next(filter(None, names), "")


@dataclass(frozen=True, eq=False)
class Schedule:
    """All of a module."""

    module: Module
    order: tuple[Slot, ...]  # of the entry; loops hold their bodies

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Every slot, loop bodies after their loop, what fusions wrap after the fusion."""
        return tuple(_opened(self.order))

    @cached_property
    def cycles(self) -> int:
        """The compiler's cycles, loops multiplied."""
        return sum(slot.times * slot.cycles for slot in self.slots)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be known."""
        unknown = [slot.instruction.name for slot in self.slots if slot.opcode == "while" and slot.turns is None]
        return tuple(f"%{name}: number of turns unknown; its body counts once" for name in unknown)


def read(text: str) -> Schedule:
    """Read the text of one compiled module."""
    module = parse(text)
    try:
        return Schedule(module, tuple(_slots(module, module.start, 1)))
    except Unreadable:
        raise
    except DAMAGED as fault:
        what = "call themselves" if isinstance(fault, RecursionError) else "do not fit together"
        raise Unreadable(f"HLO line {module.start.line}: computations that {what}") from fault


def _opened(order: tuple[Slot, ...]) -> Iterator[Slot]:
    for slot in order:
        yield slot
        yield from _opened(slot.body)


def _slots(module: Module, home: Computation, times: int, inside: Instruction | None = None) -> Iterator[Slot]:
    for i in home.instructions.values():
        if i.opcode == "while":
            yield _loop(module, i, home, times)
        elif i.opcode == "conditional":
            yield Slot(i, home, times)
            for name in split(i.attributes.get("branch_computations", "").strip("{}")):
                yield from _slots(module, module.called(name, i), times) if name else ()
        else:
            fused = module.called(i.attribute("calls"), i) if i.opcode == "fusion" else None
            yield Slot(i, home, times, inside, fused)
            if (begun := _begins(i, home)) is not None:
                yield from _wrapped(module, begun, times, inside)


def _loop(module: Module, i: Instruction, home: Computation, times: int) -> Slot:
    test, body = (module.called(i.attribute(key), i) for key in ("condition", "body"))
    turns = while_runs(i, home, test, body, module)
    inner = tuple(_slots(module, body, times * (turns if turns is not None else 1)))
    return Slot(i, home, times, body=inner, turns=turns)


def _begins(i: Instruction, home: Computation) -> Instruction | None:
    """What begins to run here: mostly the instruction; an `async-start` without arrays waits for an update's."""
    if i.opcode == "async-start" and not i.operands:
        return None
    if i.opcode == "async-update" and i.operands:
        start = home.operand(i, 0)
        return start if start.opcode == "async-start" and not start.operands else None
    return i


def _wrapped(module: Module, i: Instruction, times: int, inside: Instruction | None) -> Iterator[Slot]:
    """What a call runs; of fusions and asynchronous wrappers, the collectives alone: their cycles are the wrapper's.

    A newer TPU gives collectives to cores of their own: an asynchronous wrapper around a custom call around them.
    """
    names = [i.attributes[key] for key in ("calls", "to_apply", "called_computation") if key in i.attributes]
    if i.opcode == "custom-call":
        names = split(i.attributes.get("called_computations", "").strip("{}"))
    if i.opcode not in ("fusion", "call", "async-start", "custom-call"):
        return
    by = inside if i.opcode == "call" or (i.opcode == "custom-call" and inside) else i
    for name in filter(None, names):
        inner = _slots(module, module.called(name, i), times, by)
        yield from inner if i.opcode == "call" else (slot for slot in inner if slot.kind or slot.goes_on)
