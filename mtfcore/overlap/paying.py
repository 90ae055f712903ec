"""Which collectives are worth a ring on a slice: those whose loop makes the modelled time shorter.

    >>> mtf.looped(prog, form="latency", where=pays(prog, "v4:4x4x4", form="latency"))

Blocks are smaller than the whole: they fill the matrix unit less, pass memory more often, and each hop takes its time.
Where little is sent, that costs more than it hides. Collectives are tried one after the other, those that send most
first, and each is looped together with those chosen before; what makes the whole faster stays. Next file to read:
`mtfcore.costs.pricing.looped_time`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtfcore.costs.pricing.price import price
from mtfcore.errors import LayoutError
from mtfcore.overlap.chains import Where
from mtfcore.overlap.looping import KINDS, looped
from mtfcore.steps import Program, Step
from mtfcore.topologies import Topology


def pays(program: Program, topology: str | Topology, ways: int = 2, form: str = "throughput", rows: int = 512) -> Where:
    """For `looped(where=…)`: whether the loop of a collective shortens the program on this slice."""
    plain = price(program, topology)
    steps = [step for step in program.walk() if step.kind in KINDS]
    chosen: list[Step] = []
    best = plain.seconds
    for step in sorted(steps, key=lambda step: -step.link_bytes * step.times):
        try:
            found = looped(program, ways, form, among([*chosen, step]), rows)
        except LayoutError:  # nothing of these can be looped
            continue
        seconds = price(found, topology, wiring=plain.wiring).seconds
        if seconds < best:
            chosen, best = [*chosen, step], seconds
    return among(chosen)


def among(chosen: Sequence[Step]) -> Where:
    """Whether a step is one of these, or a copy of one."""
    return lambda step: any(step.params is one.params for one in chosen)
