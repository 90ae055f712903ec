"""Seconds of a compiled schedule: the compiler's cycles at the chip's clock, and our links for what is sent.

    >>> took = timed(schedule, collectives, wired)
    >>> took.seconds, took.compute_seconds, took.link_seconds, took.exposed_link_seconds

The schedule is walked once, in its order. A fusion takes its cycles. A collective that is not asynchronous is waited
for; one that starts and is done later takes its links meanwhile, and only what is left at its `-done` is waited for:
that is the exposed link time. Two that run at once along the same axis take it in turn, but for permutes that go round
it in opposite directions. Origin: modelled from compiled schedule; the cycles are the compiler's, for the links see
`costs.links.collectives`. Next file to read: `report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mtfcore.compiling.collectives import Sent
from mtfcore.compiling.schedule import Schedule, Slot
from mtfcore.costs.links.permute_routes import route_pairs
from mtfcore.costs.links.wiring import Wiring
from mtfcore.costs.pricing.step_time import Rates, collective_time, rates

ORIGIN = "modelled from compiled schedule"
Link = tuple[str, int]  # an axis and a direction along it


@dataclass(frozen=True)
class Took:
    """Seconds of one run."""

    compute_seconds: float  # the compiler's cycles at the chip's clock
    link_seconds: float  # of every collective by itself
    exposed_link_seconds: float  # of those, what nothing hides

    @property
    def seconds(self) -> float:
        """The whole run: computing, and waiting for links."""
        return self.compute_seconds + self.exposed_link_seconds


@dataclass
class _Clock:
    """Where the walk is: the time, when each mesh axis is free again, when each collective in flight ends."""

    now: float = 0.0
    compute: float = 0.0
    links: float = 0.0
    exposed: float = 0.0
    free: dict[Link, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)


def timed(schedule: Schedule, sent: Sequence[Sent], wired: Wiring, model: str = "physical") -> Took:
    """Seconds of a schedule whose collectives run on these links."""
    at = rates(wired.topology.chip, model)
    took = {one.name: (link_seconds(one, wired, at), links(one)) for one in sent}
    clock = _Clock()
    _run(schedule.order, took, wired.topology.chip.value("clock_hz"), clock)
    return Took(clock.compute, clock.links, clock.exposed)


def link_seconds(one: Sent, wired: Wiring, at: Rates) -> float:
    """What one collective takes each time, by itself."""
    if one.kind == "permute":
        legs, loads = route_pairs(one.groups, wired, at.how.way)
        return float(collective_time("permute", one.n_bytes, legs, at, loads).total) if legs else 0.0
    kind = "all_gather" if one.kind == "broadcast" else one.kind
    return float(collective_time(kind, one.n_bytes, wired.legs(one.axes), at).total)


def links(one: Sent) -> tuple[Link, ...]:
    """What a collective keeps busy: both directions of its axes, or where all permute the same way round, one."""
    ups = [there > here for here, there in one.groups] if one.kind == "permute" else []
    more = 2 * sum(ups) - len(ups)
    directions = (1, -1) if not ups or more == 0 else (1,) if more > 0 else (-1,)
    return tuple((axis, direction) for axis in one.axes for direction in directions)


def _run(order: Sequence[Slot], took: dict[str, tuple[float, tuple[Link, ...]]], hertz: float, clock: _Clock) -> None:
    for slot in order:
        name = slot.instruction.name
        if slot.opcode == "while":
            _loop(slot, took, hertz, clock)
        elif name in took:
            _send(slot, *took[name], clock)
        elif slot.ends:
            _wait(slot.ends, clock)
        seconds = slot.cycles / hertz
        clock.now += seconds
        clock.compute += seconds


def _loop(slot: Slot, took: dict[str, tuple[float, tuple[Link, ...]]], hertz: float, clock: _Clock) -> None:
    """One turn, so many times: what is in flight when it starts or ends is waited for at its `-done` outside."""
    turn, turns = _Clock(), slot.turns if slot.turns is not None else 1
    _run(slot.body, took, hertz, turn)
    clock.now += turns * turn.now
    clock.compute += turns * turn.compute
    clock.links += turns * turn.links
    clock.exposed += turns * turn.exposed


def _send(slot: Slot, seconds: float, busy: tuple[Link, ...], clock: _Clock) -> None:
    start = max([clock.now, *(clock.free.get(link, 0.0) for link in busy)])
    end = start + seconds
    clock.free |= dict.fromkeys(busy, end)
    clock.links += seconds
    name = slot.flight or (slot.inside or slot.instruction).name
    clock.ends[name] = end
    if not slot.is_async:
        _wait(name, clock)


def _wait(name: str, clock: _Clock) -> None:
    waits = max(0.0, clock.ends.pop(name, clock.now) - clock.now)
    clock.now += waits
    clock.exposed += waits
