"""One mesh and layout of a search, with its plan and what it costs.

Next file to read: `result`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mtfcore.costs.first_paper.paper_time import Seconds
from mtfcore.costs.pricing.liveness import Memory
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.numbers import format_bytes, format_seconds
from mtfcore.steps import Program


@dataclass(frozen=True)
class Candidate:
    """One mesh and layout with its plan and what it costs, modelled."""

    mesh: Mesh
    layout: Layout
    program: Program
    seconds: Seconds
    memory: Memory
    limit: float  # bytes a device may use

    @property
    def fits(self) -> bool:
        return self.memory.total <= self.limit

    def __repr__(self) -> str:
        time = format_seconds(self.seconds.total)
        return (
            f"<{self.layout or 'nothing split'} on {self.mesh}: {time}, {format_bytes(self.memory.total)} (modelled)>"
        )
