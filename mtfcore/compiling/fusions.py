"""What each fusion of a compiled text takes: the compiler's cycles, the FLOPs of the products in it, bytes in and out.

    >>> report.fusions[1]
    Fusion(name='fusion.4', opcode='fusion', step='1', times=1, cycles=10168, flops=536870912, bytes_in=…, share=0.55)
    >>> print(report.fusion_table())           # the dearest first

Cycles and FLOPs are those of one run; `times` says how often it runs, and the share is that of all cycles, loops
multiplied. Bytes are those of the arrays that it reads and writes, wherever they lie: of a stack that it takes one
layer of, that layer; of a cache that it writes a row into, that row. Cycles leave out links, which `timing`
adds. Next file to read: `timing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from mtfcore.compiling.schedule import Schedule, Slot
from mtfcore.counting.hlo_module import Computation, Instruction, Module
from mtfcore.counting.hlo_text import FLOPS
from mtfcore.numbers import count, format_bytes, format_flops, format_seconds
from mtfcore.tables import Column, Table

if TYPE_CHECKING:
    from mtfcore.compiling.report import CompiledReport

SAME = ("bitcast", "copy", "get-tuple-element", "tuple", "opt-barrier")  # other names for what stands before them
TAKES = ("dynamic-slice", "slice")


@dataclass(frozen=True)
class Fusion:
    """One instruction that takes cycles or multiplies."""

    name: str
    opcode: str  # mostly "fusion"; a copy or a product that stands alone too
    step: str  # of the plan; empty where the compiler dropped that
    times: int
    cycles: int
    flops: int
    bytes_in: int
    bytes_out: int
    share: float  # of all cycles, loops multiplied


def fusions(schedule: Schedule) -> list[Fusion]:
    """All that computes, in the order of the schedule."""
    total = schedule.cycles or 1
    found = [(slot, flops_of(slot, schedule.module)) for slot in schedule.slots if not slot.inside]
    return [_fusion(slot, flops, total, schedule.module) for slot, flops in found if slot.cycles or flops]


def _fusion(slot: Slot, flops: int, total: int, module: Module) -> Fusion:
    i = slot.instruction
    read = sum(_read(i, n, slot, module) for n in range(len(i.operands)))
    return Fusion(
        i.name, slot.opcode, slot.step, slot.times, slot.cycles, flops, read, _written(i, slot, module),
        slot.times * slot.cycles / total,
    )  # fmt: skip


def flops_of(slot: Slot, module: Module) -> int:
    """FLOPs of the products in one run; what a loop or a call does has slots of its own."""
    if slot.opcode in FLOPS:
        return FLOPS[slot.opcode](slot.instruction, slot.home)
    return _inner_flops(slot.fused, module) if slot.fused else 0


def _inner_flops(fused: Computation, module: Module) -> int:
    total = 0
    for i in fused.instructions.values():
        if i.opcode in FLOPS:
            total += FLOPS[i.opcode](i, fused)
        elif i.opcode == "fusion":
            total += _inner_flops(module.called(i.attribute("calls"), i), module)
    return total


# ---- bytes -------------------------------------------------------------------------------------------------------


def _read(i: Instruction, place: int, slot: Slot, module: Module) -> int:
    """Bytes of an operand that are read."""
    whole = _bytes(slot.home.operand(i, place))
    if i.opcode in TAKES or i.opcode == "dynamic-update-slice":
        return _part(i, place, whole)
    if not slot.fused:
        return whole
    return _used(slot.fused, slot.fused.parameters[place], whole, module, lambda: whole)


def _used(home: Computation, made: Instruction, whole: int, module: Module, passed_on: Callable[[], int]) -> int:
    """Bytes that the users of an array read of it: slices alone are less than the whole.

    `passed_on` says what is read of a result of these instructions, by whoever has them inside.
    """
    total = passed_on() if made is home.root else 0
    for user, place in _users(home, made.name):
        if user.opcode in SAME:
            total += _used(home, user, whole, module, passed_on)
        elif user.opcode == "fusion":
            inner = module.called(user.attribute("calls"), user)
            on = partial(_used, home, user, whole, module, passed_on)
            total += _used(inner, inner.parameters[place], whole, module, on)
        else:
            total += _part(user, place, whole)
    return min(total, whole)


def _part(user: Instruction, place: int, whole: int) -> int:
    """Bytes that one instruction reads of one operand."""
    if user.opcode in TAKES and place == 0:
        return _bytes(user)
    if user.opcode == "dynamic-update-slice" and place == 0:
        return 0  # it stays where it is
    return whole


def _users(home: Computation, name: str) -> Iterator[tuple[Instruction, int]]:
    for i in home.instructions.values():
        if i.opcode != "parameter":
            yield from ((i, place) for place, operand in enumerate(i.operands) if operand == name)


def _written(i: Instruction, slot: Slot, module: Module) -> int:
    """Bytes of the result that are written: of an array updated in place, the update alone."""
    if i.opcode == "dynamic-update-slice":
        return _bytes(slot.home.operand(i, 1))
    return _root_bytes(slot.fused, slot.fused.result, module) if slot.fused else _bytes(i)


def _root_bytes(home: Computation, made: Instruction, module: Module) -> int:
    if made.opcode == "dynamic-update-slice":
        return _bytes(home.operand(made, 1))
    if made.opcode == "tuple":
        return sum(_root_bytes(home, home.operand(made, n), module) for n in range(len(made.operands)))
    if made.opcode == "bitcast":
        return _root_bytes(home, home.operand(made, 0), module)
    if made.opcode == "fusion":
        inner = module.called(made.attribute("calls"), made)
        return _root_bytes(inner, inner.result, module)
    return _bytes(made)


def _bytes(i: Instruction) -> int:
    return int(sum(array.n_bytes for array in i.arrays))


# ---- for people --------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("name", "fusion"),
    Column("step", "step"),
    Column("times", "times", is_number=True),
    Column("cycles", "cycles", "{:,}".format, is_number=True),
    Column("seconds", "takes", format_seconds, is_number=True),
    Column("flops", "FLOPs", format_flops, is_number=True),
    Column("bytes_in", "reads", format_bytes, is_number=True),
    Column("bytes_out", "writes", format_bytes, is_number=True),
    Column("share", "of all cycles", "{:.1%}".format, is_number=True),
)


def fusion_table(report: CompiledReport, most: int = 20) -> Table:
    """The fusions that take most cycles, the dearest first; the total is that of all."""
    hertz = report.topology.chip.value("clock_hz")
    every = sorted(report.fusions, key=lambda one: -one.times * one.cycles)
    rows = [asdict(one) | {"seconds": one.times * one.cycles / hertz} for one in every]
    total = {
        "name": "total", "cycles": report.cycles, "seconds": report.compute_seconds,
        "flops": sum(one.times * one.flops for one in every), "share": 1.0,
    }  # fmt: skip
    rest = rows[most:]
    left = f"{count(len(rest), 'more fusion')} with {sum(row['share'] for row in rest):.1%} of the cycles"
    said = "cycles, FLOPs and bytes are those of one run of one device, compiled; takes: all runs at the chip's clock, "
    notes = [f"{said}{report.seconds_origin}", *([left] if rest else [])]
    return Table(COLUMNS, rows[:most], f"{report.program.name} for {report.topology}", total, tuple(notes))
