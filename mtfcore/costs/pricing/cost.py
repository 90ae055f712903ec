"""What a program costs on a slice: seconds by part and step, what binds, what would help, whether it fits.

    >>> cost = mtf.price(prog, "v4:2x2x2")
    >>> cost.parts                             # which resource binds for how long: adds up to additive_seconds
    {'compute': 0.0, 'hbm': 1.76...e-06, 'link': 0.0, 'hops': 2e-06, 'launch': 0.0}
    >>> cost.what_if["hbm"]                    # seconds gained if memory were twice as fast
    8.80...e-07

Every number is modelled and of one device; steps in loops are multiplied by their turns. A local step takes the longer
of computing and of reading HBM, a collective that of its bytes and of its hops; what takes longer *binds*, and gets the
whole of the step's time in `parts`. `busy` counts every resource by itself instead. Next file to read: `cost_table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mtfcore.costs.links.wiring import Wiring
from mtfcore.costs.pricing.asking import hbm_by_name, seconds
from mtfcore.costs.pricing.liveness import Memory, peak_memory
from mtfcore.costs.pricing.looped_time import hidden_seconds
from mtfcore.costs.pricing.rates import Rates
from mtfcore.costs.pricing.step_cost import StepCost
from mtfcore.notation import format_axes
from mtfcore.steps import Program
from mtfcore.topologies import Topology

if TYPE_CHECKING:
    from mtfcore.tables import Row, Table

LOCAL, SENT = ("compute", "hbm"), ("link", "hops", "launch")
PARTS = (*LOCAL, *SENT)
FASTER = ("compute", "hbm", "link", "latency")


@dataclass(frozen=True, eq=False)
class Cost:
    """The time and the memory of a program on a slice, modelled. Made by `mtf.price`."""

    program: Program
    topology: Topology
    wiring: Wiring
    rates: Rates
    steps: tuple[StepCost, ...]
    overlap: float
    reserve: float

    origin = "modelled"

    # ---- seconds -------------------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> dict[str, float]:
        """Seconds by what binds: they add up to `additive_seconds`."""
        found = dict.fromkeys(PARTS, 0.0)
        for step in self.steps:
            times, once = step.step.times, step.once
            found[once.bound] += times * (once.total - once.launch)
            found["launch"] += times * once.launch
        return found

    @cached_property
    def busy(self) -> dict[str, float]:
        """Seconds that each resource needs by itself, whatever binds."""
        return {part: sum(s.step.times * getattr(s.once, part) for s in self.steps) for part in PARTS}

    @property
    def compute_seconds(self) -> float:
        """Seconds that the FLOPs need, padding included."""
        return self.busy["compute"]

    @property
    def hbm_seconds(self) -> float:
        """Seconds that the bytes between HBM and device need."""
        return self.busy["hbm"]

    @property
    def link_seconds(self) -> float:
        """Seconds that the bytes over links need."""
        return self.busy["link"]

    @property
    def hop_seconds(self) -> float:
        """Seconds that the hops of all collectives need at least."""
        return self.busy["hops"]

    @property
    def local_seconds(self) -> float:
        """All steps that compute or read, one after the other."""
        return sum(self.parts[part] for part in LOCAL)

    @property
    def collective_seconds(self) -> float:
        """All collectives, one after the other."""
        return sum(self.parts[part] for part in SENT)

    @property
    def additive_seconds(self) -> float:
        """Every step after the other."""
        return self.local_seconds + self.collective_seconds

    @property
    def overlapped_seconds(self) -> float:
        """All sending behind all computing, or the other way round; collectives still follow one another."""
        return max(self.local_seconds, self.collective_seconds)

    @cached_property
    def hidden_seconds(self) -> float:
        """What rings beside products hide (`mtf.looped`), in the program's order: 0 in any other program."""
        return hidden_seconds(self.program, self.steps)

    @property
    def exposed_seconds(self) -> float:
        """What collectives add to the time: all they take, without what rings hide."""
        return max(0.0, self.collective_seconds - self.hidden_seconds)

    @property
    def seconds(self) -> float:
        """The step's time, with what rings hide and the overlap that was asked for; else `additive_seconds`."""
        left = min(self.local_seconds, self.exposed_seconds)
        return self.additive_seconds - self.hidden_seconds - self.overlap * left

    @cached_property
    def by_axes(self) -> dict[str, float]:
        """Seconds of collectives by the mesh axes that they run over."""
        found: dict[str, float] = {}
        for step in self.steps:
            if step.step.is_collective and step.once.total:
                axes = format_axes(step.step.axes)
                found[axes] = found.get(axes, 0.0) + step.seconds
        return found

    @cached_property
    def hbm_by_input(self) -> dict[str, int]:
        """Bytes between HBM and a device by the input that is read, most first; "" stands for values between."""
        found: dict[str, int] = {}
        for step in self.steps:
            for name, n_bytes in hbm_by_name(step.ask, self.program.mesh, self.rates):
                if n_bytes:
                    found[name] = found.get(name, 0) + step.step.times * n_bytes
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    # ---- what it says --------------------------------------------------------------------------------------------

    @property
    def bottleneck(self) -> str:
        """What most of the time goes to: compute, hbm, link, hops or launch; what is hidden does not count."""
        hidden = LOCAL if self.local_seconds <= self.collective_seconds else SENT
        shown = {p: took * (1 - self.overlap if p in hidden else 1.0) for p, took in self.parts.items()}
        return max(shown, key=shown.__getitem__)

    @property
    def slowest(self) -> StepCost | None:
        """The step that takes most of the bottleneck's time."""
        bound = [step for step in self.steps if step.bound == self.bottleneck or self.bottleneck == "launch"]
        return max(bound, key=lambda step: step.seconds, default=None)

    @cached_property
    def what_if(self) -> dict[str, float]:
        """Seconds gained if one resource were twice as fast: compute, hbm, link, latency (of hops and launches)."""
        return {name: self.seconds - self._repriced(self.rates.faster(name)) for name in FASTER}

    @cached_property
    def contention_seconds(self) -> float:
        """Seconds more than if every group of a collective had its links for itself (strided axes, cores of a chip)."""
        if all(leg.shared == 1 for axis in self.wiring.mesh.names for leg in self.wiring.legs(axis)):
            return 0.0
        return self.seconds - self._repriced(self.rates, alone=True)

    def _repriced(self, at: Rates, alone: bool = False) -> float:
        """The seconds of the same steps on other rates."""
        steps = tuple(StepCost(s.ask, seconds(s.ask, self.wiring, at, alone)) for s in self.steps)
        return Cost(self.program, self.topology, self.wiring, at, steps, self.overlap, self.reserve).seconds

    # ---- FLOPs ---------------------------------------------------------------------------------------------------

    @cached_property
    def flops(self) -> int:
        """FLOPs of one device, what tiles pad not counted."""
        return sum(step.step.times * step.step.flops for step in self.steps)

    @property
    def padded_share(self) -> float:
        """Which part of the FLOPs that the matrix units do only pads tiles."""
        done = sum(step.step.times * step.ask.flops for step in self.steps)
        return 1 - self.flops / done if done else 0.0

    @cached_property
    def model_flops(self) -> int:
        """FLOPs of the whole problem: work that several devices repeat counts once."""
        return sum(s.step.times * s.step.flops * s.ask.split for s in self.steps)

    @property
    def mfu(self) -> float:
        """Model FLOPs against what the whole slice could do at its peak in that time."""
        at_peak = sum(s.step.times * s.step.flops * s.ask.split / self.rates.peak(s.step.dtype)
                      for s in self.steps if s.step.flops)  # fmt: skip
        return at_peak / self.topology.devices / self.seconds if self.seconds else 0.0

    # ---- memory --------------------------------------------------------------------------------------------------

    @cached_property
    def memory(self) -> Memory:
        """Bytes of one device at the fullest moment."""
        return peak_memory(self.program)

    @property
    def capacity_bytes(self) -> int:
        """Bytes of memory that one device has."""
        return self.topology.hbm_bytes_per_device

    @property
    def fits_raw(self) -> bool:
        """Whether it fits if nothing is left free."""
        return self.memory.total <= self.capacity_bytes

    @property
    def fits(self) -> bool:
        """Whether it fits with the reserve left free."""
        return self.memory.total <= self.capacity_bytes * (1 - self.reserve)

    # ---- for people ----------------------------------------------------------------------------------------------

    def table(self) -> Table:
        """Every step that takes time, the totals, and in words what binds and what would help."""
        from mtfcore.costs.pricing.cost_table import cost_table

        return cost_table(self)

    @property
    def rows(self) -> list[Row]:
        """The table's rows, with exact numbers."""
        return self.table().rows

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __repr__(self) -> str:
        from mtfcore.costs.pricing.cost_table import headline

        return f"<Cost {headline(self)}>"
