"""What a layout search found: the layouts in order, how sure that is, and why the winner wins.

    >>> found.best.layout, found.gap, found.why()
    >>> found.compare("batch:rows d_ff:cols", "rows:16 cols:32")     # any other layout against the winner

Times, bytes and FLOPs are modelled, those of one device. Next file to read: `why`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mtfcore.costs.search.candidate import Candidate
from mtfcore.costs.search.problem import Problem
from mtfcore.costs.search.why import why
from mtfcore.errors import LayoutError
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.numbers import count, format_bytes, format_seconds
from mtfcore.tables import Column, Table

LARGE_GAP = 0.05


@dataclass(frozen=True)
class Search:
    """The layouts found, best first, and how far any other could be ahead of them."""

    problem: Problem
    meshes: tuple[Mesh, ...]
    found: tuple[Candidate, ...]
    bound: float  # no layout of the space that fits takes less: seconds
    n_planned: int
    n_opened: int  # partial layouts looked at
    n_unfit: int  # layouts, or partial layouts with all below them, that do not fit
    n_ties: int  # layouts alike one shown in time and memory, and no better
    are_next: bool  # whether the runners-up are proved to be the next best, likeness apart

    @property
    def best(self) -> Candidate:
        """The layout of least modelled time that fits."""
        return self.found[0]

    @property
    def gap(self) -> float:
        """How much of the best time could be saved at most, as far as is proved: 0 is a proof that it is optimal."""
        best = self.best.seconds.total
        return max(0.0, 1 - self.bound / best) if best else 0.0

    @property
    def is_optimal(self) -> bool:
        """Whether it is proved that no layout of the space which fits takes less modelled time."""
        return self.gap < 1e-6

    @cached_property
    def n_layouts(self) -> int:
        """How many legal layouts the space has, counted one by one (slow for many dimensions)."""
        return sum(1 for mesh in self.meshes for _ in self.problem.space.layouts(mesh))

    def proof(self) -> str:
        """How sure it is, in words."""
        done = f"{count(self.n_planned, 'layout')} planned, {count(self.n_opened, 'partial layout')} opened"
        over = f"over {count(len(self.meshes), 'mesh', 'meshes')} of {self.problem.slice.devices} devices"
        if self.is_optimal:
            return f"optimal: no legal layout {over} takes less modelled time and fits ({done})"
        gap = f"not proved optimal {over}: at most {self.gap:.1%} could be saved ({done})"
        return gap + (f"; that is over {LARGE_GAP:.0%}: search longer with seconds=" if self.gap > LARGE_GAP else "")

    def why(self, other: int | Candidate = 1) -> str:
        """Why the winner wins against a runner-up, by its place or one made by `compare`."""
        if isinstance(other, Candidate):
            return why(self.best, other)
        if len(self.found) == 1:
            return "there is no runner-up: every other layout was excluded or takes as long"
        if not isinstance(other, int) or not 0 < other < len(self.found):
            raise LayoutError(f"why: {other!r:.200} is no runner-up; legal here: 1 to {len(self.found) - 1}")
        return why(self.best, self.found[other])

    def compare(self, layout: Layout | str, mesh: Mesh | str | None = None) -> Candidate:
        """Any other layout, planned and priced alike; on the winner's mesh unless another is given."""
        return self.problem.candidate(self.best.mesh if mesh is None else Mesh(mesh), Layout(layout))

    def table(self) -> Table:
        """The layouts found, best first."""
        rows = [_row(place, one, "" if place == 0 else why(self.best, one)) for place, one in enumerate(self.found)]
        title = f"{self.problem.graph.name} on {self.problem.slice}: layouts by time (modelled, first paper's model)"
        ties = f"; {count(self.n_ties, 'other layout')} alike one of these in time and memory" if self.n_ties else ""
        ties += "" if self.are_next else "; the runners-up are the best of those planned"
        limit = f"memory: at most {format_bytes(self.problem.memory)} a device"
        return Table(COLUMNS, rows, title, notes=(self.proof() + ties, limit), marked="is_best")

    def __repr__(self) -> str:
        sure = "optimal" if self.is_optimal else f"gap {self.gap:.1%}"
        return f"<Search of {self.problem.graph.name} on {self.problem.slice}: best {self.best!r}, {sure}>"

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


COLUMNS = (
    Column("rank", ""),
    Column("mesh", "mesh"),
    Column("layout", "layout", wraps=True),
    Column("seconds", "time", format_seconds, is_number=True),
    Column("compute", "computing", format_seconds, is_number=True),
    Column("send", "sending", format_seconds, is_number=True),
    Column("memory", "memory", format_bytes, is_number=True),
    Column("why", "why", below=True),
)


def _row(place: int, one: Candidate, said: str) -> dict[str, Any]:
    return {
        "rank": place + 1, "mesh": str(one.mesh), "layout": str(one.layout) or "nothing split",
        "seconds": one.seconds.total, "compute": one.seconds.compute, "send": one.seconds.communicate,
        "memory": one.memory.total, "why": said, "is_best": place == 0,
    }  # fmt: skip
