"""All that the fitted constants of a chip act on: what a program asks of one device, at published rates.

    >>> found = demands(prog, wire(prog.mesh, "v4:2x2x2"), rates("v4", "physical"))       # prog: two layers
    >>> found.messages, found.times.sum().item()          # one all-reduce of two devices; three local steps
    (2.0, 3.0)

Both fits take it from here: `costs.calibration` (to published latencies) and `measuring.calibrating` (to measurements).
Next file to read: `calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtfcore.costs.links.wiring import Wiring
from mtfcore.costs.pricing.asking import asks, seconds
from mtfcore.costs.pricing.rates import Rates
from mtfcore.costs.pricing.step_time import messages
from mtfcore.steps import Program


@dataclass(frozen=True)
class Demands:
    """Seconds at published rates: each local step's two, and those of all collectives with their messages."""

    compute: np.ndarray  # of each local step, once
    hbm: np.ndarray
    times: np.ndarray  # how often each runs
    link: float  # all collectives' bytes
    messages: float


def demands(program: Program, wired: Wiring, at: Rates, links: bool = True) -> Demands:
    """Of a program on one wiring; without `links` of its local steps alone."""
    local, link, sent = [(0.0, 0.0, 0)], 0.0, 0.0
    for ask in asks(program, at):
        step, took = ask.step, seconds(ask, wired, at)
        if not step.is_collective:
            local.append((took.compute, took.hbm, step.times))
        elif step.group > 1 and links:
            link += step.times * took.link
            sent += step.times * messages(step.kind, wired.legs(step.axes))
    compute, hbm, times = np.array(local, float).T
    return Demands(compute, hbm, times, float(link), float(sent))
