"""One step of a priced program: what it asks of a device, and how long that takes.

    >>> first = mtf.price(prog, "v4:2x2x2").steps[0]
    >>> first.bound, round(first.intensity, 1)                     # FLOPs a byte: where it lies along a roofline
    ('hbm', 15.8)

Next file to read: `looped_time`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mtfcore.costs.pricing.asking import Ask
from mtfcore.costs.pricing.step_time import Seconds
from mtfcore.steps import Step


@dataclass(frozen=True, eq=False)
class StepCost:
    """One step, what it asks of a device, and its time, once."""

    ask: Ask
    once: Seconds

    @property
    def step(self) -> Step:
        """The step, its `times` multiplied by those of the loops around it."""
        return self.ask.step

    @property
    def seconds(self) -> float:
        """All its turns together."""
        return self.step.times * self.once.total

    @property
    def bound(self) -> str:
        """What decides how long it takes."""
        return self.once.bound

    @property
    def intensity(self) -> float:
        """FLOPs for each byte that it reads from HBM or writes there: where it lies along a roofline."""
        return self.step.flops / self.ask.hbm_bytes if self.ask.hbm_bytes else float("inf")
