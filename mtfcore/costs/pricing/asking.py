"""Each step of a program with what it asks of a device, and the seconds of that on a wiring: all that `price` sums up.

    >>> [ask.flops for ask in asks(prog, rates("v4"))]           # prog: two layers, tables of `prog.table()`
    [16777216, 0, 16777216, 0]
    >>> seconds(asks(prog, rates("v4"))[0], wire(prog.mesh, "v4:2x2x2"), rates("v4")).bound
    'hbm'

Next file to read: `price`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from mtfcore.costs.links.permute_routes import route
from mtfcore.costs.links.wiring import Leg, Wiring
from mtfcore.costs.pricing.rates import Rates
from mtfcore.costs.pricing.step_time import Seconds, collective_label, collective_time, local_time, padded_flops
from mtfcore.costs.pricing.step_work import hbm_bytes, works
from mtfcore.costs.pricing.work import Work, local_size
from mtfcore.mesh import Mesh
from mtfcore.steps import Program, Step

ROUTED = ("permute", "halo_exchange")


@dataclass(frozen=True, eq=False)
class Ask:
    """What one step asks of a device each time; nothing here depends on where the mesh lies."""

    number: str  # as in the program's table
    work: Work
    flops: int  # with the padding of the matrix unit
    hbm_bytes: int
    split: int  # over how many devices the work is split; the others repeat it

    @property
    def step(self) -> Step:
        """The step, its `times` multiplied by those of the loops around it."""
        return self.work.step


def asks(program: Program, at: Rates) -> tuple[Ask, ...]:
    """Every step but the loops themselves, in the order in which they run."""
    return _asks(program, at.tile, at.fast_memory_bytes)


def seconds(ask: Ask, wired: Wiring, at: Rates, alone: bool = False) -> Seconds:
    """The time of one step, once. `alone`: as if no other group used the links of this one."""
    step = ask.step
    if not step.is_collective:
        return local_time(ask.flops, ask.hbm_bytes, step.dtype, at)
    if step.group == 1 or (ask.work.joins and at.joins_gathers):
        return Seconds()
    legs, loads = _legs(step, wired, at)
    if alone:
        legs = tuple(replace(leg, bytes_per_second=leg.bytes_per_second * leg.shared, shared=1) for leg in legs)
    return collective_time(step.kind, step.n_bytes, legs, at, loads)


def hbm_by_name(ask: Ask, mesh: Mesh, at: Rates) -> Iterator[tuple[str, int]]:
    """Bytes between HBM and device by what they are: the program's input, or "" for values between."""
    for access in (*ask.work.reads, *ask.work.writes):
        yield access.name, hbm_bytes(ask.work._replace(reads=(access,), writes=()), mesh, at.fast_memory_bytes)


def label(ask: Ask, wired: Wiring, at: Rates) -> str:
    """How a collective runs; of a product, which part of its FLOPs is padding."""
    step = ask.step
    if step.is_collective:
        legs, loads = _legs(step, wired, at)
        return collective_label(step.kind, legs, at, loads)
    return f"{1 - step.flops / ask.flops:.0%} of the FLOPs pad tiles" if ask.flops > step.flops else ""


def _legs(step: Step, wired: Wiring, at: Rates) -> tuple[tuple[Leg, ...], tuple | None]:
    """What a collective runs along; of a permute, where it goes on the grid as well."""
    if step.kind in ROUTED and not at.is_paper:
        return route(step, wired, at.how.way)
    return wired.legs(step.axes), None


@lru_cache(maxsize=64)
def _asks(program: Program, tile: tuple[int, int, int], fast_memory_bytes: float) -> tuple[Ask, ...]:
    mesh = program.mesh
    return tuple(
        Ask(
            number, work, _flops(work, mesh, tile), hbm_bytes(work, mesh, fast_memory_bytes), _split(work.step, mesh),
        )
        for number, work in zip(_numbers(program), _works(program), strict=True)
    )  # fmt: skip


@lru_cache(maxsize=64)
def _works(program: Program) -> tuple[Work, ...]:
    return works(program)


def _flops(work: Work, mesh: Mesh, tile: tuple[int, int, int]) -> int:
    """FLOPs of one device with whole tiles; what is no product of two operands has no padding."""
    if work.product is None or not work.step.flops:
        return work.step.flops
    m, k, n, copies = (local_size(part, mesh) for part in work.product)
    return padded_flops(m, k, n, copies, tile)


def _split(step: Step, mesh: Mesh) -> int:
    """Devices among which a step's work is divided: all that differ along an axis of an operand or of the result."""
    used = {axis for s in (*step.before, step.after) for axis in (*s.used(), *s.partial)} if step.flops else ()
    return mesh.group_size(used)


def _numbers(program: Program, prefix: str = "") -> Iterator[str]:
    """Numbers of the steps as in the program's table: 3, 4.0, 4.1, 5."""
    for number, step in enumerate(program.steps):
        if step.body is None:
            yield f"{prefix}{number}"
        else:
            yield from _numbers(step.body, f"{prefix}{number}.")
