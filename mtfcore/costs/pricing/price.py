"""`price`: the steps of a program, one by one, as seconds on a slice of chips.

    >>> cost = mtf.price(prog, "v4:2x2x2")
    >>> cost                                   # print(cost) says it step by step, and what would help
    <Cost two_layers on v4:2x2x2: 3.76 µs, 53% hops, MFU 3.2%, fits (modelled)>
    >>> cost.bottleneck, cost.fits
    ('hops', True)

One walk over the steps that also run: what a step asks of a device is in `step_work`, what that takes in `step_time`
and `collectives`, on the links that `wiring` gives it. The mesh is laid over the grid in each sensible way, and the
cheapest is kept. Loops are planned once and multiplied. Modelled: what a compiler overlaps, fuses or moves otherwise
is not in it. Next file to read: `step_cost`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Real

from mtfcore.costs.links.collectives import WAYS
from mtfcore.costs.links.wiring import Wiring, wire, wirings
from mtfcore.costs.links.wiring_choices import Given
from mtfcore.costs.pricing.asking import ROUTED, Ask, asks, seconds
from mtfcore.costs.pricing.constants import Constants
from mtfcore.costs.pricing.cost import Cost
from mtfcore.costs.pricing.rates import Rates, rates
from mtfcore.costs.pricing.step_cost import StepCost
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.steps import Program
from mtfcore.topologies import Topology
from mtfcore.topologies import topology as as_topology


def price(
    program: Program, topology: str | Topology, model: str | Constants = "physical", wiring: Given | Wiring = None, *,
    way: str = "both", overlap: float = 0.0, exact: bool | None = None, at_once: bool = True, reserve: float = 0.1,
) -> Cost:  # fmt: skip
    """What a program costs on a slice: seconds by part and step, bottleneck, MFU, memory.

    `model`: "physical", "calibrated", "paper", or measured constants (see `step_time`). `wiring` says how the mesh
    lies on the grid, "x→0, y→1"; by default the cheapest way. Links are used both ways or one `way`; `exact` keeps
    (K−1)/K (all models but the second paper's do); several grid axes carry a collective `at_once` or in turn.
    `overlap` is the share of the shorter of computing and sending that the longer hides: 0 adds both up, 1 hides
    all. `reserve` is the share of memory that is left free.

    `program`: what `mtf.plan` gave; `topology`: "v4:4x4x4", or the slice itself. Seconds, bytes and FLOPs are those
    of one device (modelled).

    Raises `LayoutError` for a slice that is none, a mesh that does not fit it, or options that cannot be.

    Source: arXiv 2211.05102, section 2 and appendix A.1.

        >>> mtf.price(prog, "v4:2x2x2").bottleneck
        'hops'
    """
    if not isinstance(program, Program):
        raise LayoutError(f"price: expected a program, as mtf.plan makes it, got {type(program).__name__}")
    refuse(_faults(way, {"overlap": overlap, "reserve": reserve}, {"exact": exact, "at_once": at_once}), "price")
    slice_ = as_topology(topology)
    at = rates(slice_.chip, model)
    at = replace(at, how=replace(at.how, way=way, at_once=at_once, exact=at.how.exact if exact is None else exact))
    asked = asks(program, at)
    refuse(_without_peak(asked, at), f"price of {program.name} on {slice_}")
    wired = _cheapest(asked, program, slice_, at) if wiring is None else wire(program.mesh, slice_, wiring)
    steps = tuple(StepCost(ask, seconds(ask, wired, at)) for ask in asked)
    return Cost(program, slice_, wired, at, steps, float(overlap), float(reserve))


def _cheapest(asked: Iterable[Ask], program: Program, slice_: Topology, at: Rates) -> Wiring:
    """The wiring on which the collectives take least; the first of those that take as long."""
    tries = wirings(program.mesh, slice_)
    if len(tries) == 1 or at.is_paper:
        return tries[0]
    sent: dict[tuple, tuple[Ask, int]] = {}
    for ask in asked:
        step = ask.step
        if step.is_collective:
            key = (step.kind, step.n_bytes, step.axes, *((step.before, step.after) if step.kind in ROUTED else ()))
            sent[key] = (ask, step.times + sent.get(key, (ask, 0))[1])
    totals = [sum(times * seconds(ask, wired, at).total for ask, times in sent.values()) for wired in tries]
    return tries[min(range(len(tries)), key=lambda number: round(totals[number], 15))]


# ---- what was asked ---------------------------------------------------------------------------------------------


def _faults(way: object, shares: Mapping[str, object], flags: Mapping[str, object]) -> list[str]:
    faults = [] if isinstance(way, str) and way in WAYS else [f"way is {way!r:.100}; {nearest(way, WAYS)}"]
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, Real) or share < 0 or not share <= 1:
            faults.append(f"{name} is {share!r:.100}; it is a share, 0 to 1")
    unsaid = {name for name, flag in flags.items() if flag is None and name == "exact"}
    wrong = [name for name, flag in flags.items() if not isinstance(flag, bool) and name not in unsaid]
    return faults + [f"{name} is {flags[name]!r:.100}; expected True or False" for name in wrong]


def _without_peak(asked: Iterable[Ask], at: Rates) -> list[str]:
    """One sentence for each type in which the program computes and the chip has no published peak."""
    faults = []
    for dtype in dict.fromkeys(ask.step.dtype for ask in asked if ask.step.flops):
        try:
            at.peak(dtype)
        except LayoutError as error:
            faults.append(str(error))
    return faults
