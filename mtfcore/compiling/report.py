"""What a compiler made of a program: texts, what is sent beside what was planned, memory, cycles and seconds.

    >>> report = mtf.compile(prog, "v4:4x4x4")
    >>> report
    <CompiledReport decode for v4:4x4x4: 16 collectives, 4 not as planned, 8.44 GiB a device, 28.5 ms (modelled …)>
    >>> print(report)                          # the table
    >>> print(report.fusion_table())           # FLOPs, bytes and cycles of each fusion
    >>> report.text, report.stablehlo          # the scheduled HLO; what was handed to the compiler

Nothing ran: times are modelled from compiled schedule, everything else is compiled. Next file to read: `programs`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mtfcore.compiling.collectives import Sent, collectives, total_link_bytes
from mtfcore.compiling.differences import Difference, difference
from mtfcore.compiling.fusions import Fusion, fusion_table, fusions
from mtfcore.compiling.matching import Match, Planned, matches, planned
from mtfcore.compiling.memory import Compiled, Refusal
from mtfcore.compiling.schedule import Schedule, read
from mtfcore.compiling.timing import ORIGIN, Took, timed
from mtfcore.costs.links.wiring import Wiring
from mtfcore.counting.facts import Bytes
from mtfcore.errors import LayoutError
from mtfcore.numbers import count, format_bytes, format_seconds
from mtfcore.steps import Program
from mtfcore.topologies import Topology

if TYPE_CHECKING:
    from mtfcore.counting import Counts
    from mtfcore.tables import Row, Table


@dataclass(frozen=True, eq=False)
class CompiledReport:
    """One program, compiled for one slice. Made by `mtf.compile`."""

    program: Program
    topology: Topology
    wiring: Wiring  # how the mesh lies on the slice
    partitioned: bool  # whole arrays for the compiler's partitioner, instead of the plan's steps
    compiler: str
    text: str  # scheduled HLO; empty where the compiler refused
    stablehlo: str
    memory: Compiled | None
    refusal: Refusal | None
    compile_seconds: float  # of this computer

    origin = "compiled"
    seconds_origin = ORIGIN

    @property
    def fits(self) -> bool:
        """Whether the compiler found room for it on each device."""
        return self.refusal is None

    @cached_property
    def schedule(self) -> Schedule:
        """The text as it runs. `LayoutError` where there is none."""
        return read(self._read_text())

    def _read_text(self) -> str:
        if not self.text:
            raise LayoutError(f"{self.program.name} was refused for {self.topology}: {self.refusal}; no text to read")
        return self.text

    # ---- what is sent ----------------------------------------------------------------------------------------------

    @cached_property
    def planned(self) -> list[Planned]:
        """The plan's collectives."""
        return list(planned(self.program))

    @cached_property
    def collectives(self) -> list[Sent]:
        """The compiler's, in the order of its schedule; none where it refused."""
        return collectives(self.schedule, self.program.mesh) if self.text else []

    @cached_property
    def matches(self) -> list[tuple[Match, Difference]]:
        """Planned beside compiled, each with how they differ."""
        found = matches(self.planned, self.collectives) if self.text else []
        return [(match, difference(match)) for match in found]

    @property
    def differences(self) -> list[tuple[Match, Difference]]:
        """Those of `matches` that are not as planned."""
        return [(match, how) for match, how in self.matches if how.words]

    @property
    def link_bytes(self) -> Bytes:
        """Bytes that one device sends, compiled; `program.link_bytes()` has the plan's."""
        return total_link_bytes(self.collectives)

    @cached_property
    def counts(self) -> Counts:
        """The compiled text, counted without knowing the plan."""
        from mtfcore.counting import count_hlo_text

        return count_hlo_text(self._read_text())

    @cached_property
    def lowered_counts(self) -> Counts:
        """What was handed to the compiler, counted in the same way."""
        from mtfcore.counting import count_stablehlo

        return count_stablehlo(self.stablehlo)

    # ---- time ------------------------------------------------------------------------------------------------------

    @property
    def cycles(self) -> int:
        """The compiler's estimates for everything that computes or moves within a device, loops multiplied."""
        return self.schedule.cycles

    @cached_property
    def took(self) -> Took:
        """Seconds, by what: see `timing`."""
        return timed(self.schedule, self.collectives, self.wiring)

    @property
    def seconds(self) -> float:
        """One run: cycles at the chip's clock and the links that nothing hides (modelled from compiled schedule)."""
        return self.took.seconds

    @property
    def compute_seconds(self) -> float:
        """The cycles alone (modelled from compiled schedule)."""
        return self.took.compute_seconds

    @property
    def link_seconds(self) -> float:
        """Every collective by itself, by our links (modelled)."""
        return self.took.link_seconds

    @property
    def exposed_link_seconds(self) -> float:
        """Of those, what no computing hides (modelled from compiled schedule)."""
        return self.took.exposed_link_seconds

    @cached_property
    def cycles_by_step(self) -> Mapping[str, int]:
        """The plan's steps, by number, and the cycles of what was lowered from them; "" for what names none."""
        found: dict[str, int] = {}
        for slot in self.schedule.slots:
            if slot.cycles:
                found[slot.step] = found.get(slot.step, 0) + slot.times * slot.cycles
        return found

    @cached_property
    def fusions(self) -> list[Fusion]:
        """What takes cycles or multiplies: cycles, FLOPs, bytes in and out, and the share, in the schedule's order."""
        return fusions(self.schedule)

    # ---- for people ------------------------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        """`libtpu 0.0.52`."""
        found = re.match(r"libtpu [\w.]+", self.compiler)
        return found[0] if found else ""

    def table(self) -> Table:
        """Planned and compiled side by side, memory and times below."""
        from mtfcore.compiling.report_table import report_table

        return report_table(self)

    def fusion_table(self, most: int = 20) -> Table:
        """The fusions that take most cycles, the dearest first."""
        return fusion_table(self, most)

    @property
    def rows(self) -> list[Row]:
        """The table's rows, with exact numbers."""
        return self.table().rows

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def headline(self) -> str:
        """All of it in one line."""
        what = f"{self.program.name}{' (partitioned by the compiler)' if self.partitioned else ''} for {self.topology}"
        if self.refusal or self.memory is None:
            return f"{what}: does not fit, {self.refusal} (compiled)"
        other = f", {len(self.differences)} not as planned" if not self.partitioned else ""
        size = format_bytes(self.memory.total)
        time = f"{format_seconds(self.seconds)} ({ORIGIN})"
        return f"{what}: {count(len(self.collectives), 'collective')}{other}, {size} a device, {time}"

    def __repr__(self) -> str:
        return f"<CompiledReport {self.headline()}>"
