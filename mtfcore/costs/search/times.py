"""The first paper's time of a plan, step by step: FLOPs at the peak, then bytes sent over one link, added.

    compute, send = time_of(program, Rates(chip.peak_flops_per_device, chip.link_bytes_per_second))

Sums over the steps of `mtf.plan`, with loops multiplied: `program.flops()` and `program.link_bytes()` over the same
rates. Source: arXiv 1811.02084, section 8; see `costs/first_paper/paper_time`. Next file to read: `problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mtfcore.steps import Program, Step
from mtfcore.traffic import link_bytes


@dataclass(frozen=True)
class Rates:
    """What the first paper's model of time knows of a device: peak by dtype, and one link one way."""

    peak: Callable[[str], float]
    link_bytes_per_second: float


def seconds_of(step: Step, rates: Rates) -> tuple[float, float]:
    """Seconds of computing and of sending of one step, once."""
    if step.flops:
        return step.flops / rates.peak(step.dtype), 0.0
    if step.group > 1:
        return 0.0, float(link_bytes(step.kind, step.n_bytes, step.group)) / rates.link_bytes_per_second
    return 0.0, 0.0


def time_of(program: Program, rates: Rates, times: int = 1) -> tuple[float, float]:
    """Seconds of computing and of sending on one device, repeats multiplied."""
    work = sent = 0.0
    for step in program.steps:
        computing, sending = seconds_of(step, rates)
        work, sent = work + times * step.times * computing, sent + times * step.times * sending
        if step.body is not None:
            more = time_of(step.body, rates, times * step.times)
            work, sent = work + more[0], sent + more[1]
    return work, sent


At = tuple[int, int]  # an operation: (graph, number)


def time_by_operation(
    program: Program, rates: Rates, asked: Mapping[int, At | None], times: int = 1, found: dict[At, float] | None = None
) -> dict[At, float]:
    """Seconds of each operation, with the moves that it asked for; `asked` says which operation asked for a step."""
    found = {} if found is None else found
    for step in program.steps:
        spent, at = sum(seconds_of(step, rates)), asked.get(id(step))
        if spent and at is not None:
            found[at] = found.get(at, 0.0) + times * step.times * spent
        if step.body is not None:
            time_by_operation(step.body, rates, asked, times * step.times, found)
    return found
