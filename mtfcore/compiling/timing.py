"""Seconds of a compiled schedule: the compiler's cycles at the chip's clock, and our links for what is sent.

    >>> took = timed(schedule, collectives, wired)
    >>> took.seconds, took.compute_seconds, took.link_seconds, took.exposed_link_seconds

The schedule is walked once, in its order. A fusion takes its cycles. A collective that is not asynchronous is waited
for; one that starts and is done later takes its links meanwhile, and only what is left at its `-done` is waited for:
that is the exposed link time. Two that run at once along the same axis take it in turn, but for permutes that go round
it in opposite directions. Every event of the walk is kept, so that what `timeline` draws is what is summed here.
Origin: modelled from compiled schedule; the cycles are the compiler's, for the links see `costs.links.collectives`.
Next file to read: `timeline`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mtfcore.compiling.collectives import Sent
from mtfcore.compiling.schedule import Schedule, Slot
from mtfcore.costs.links.permute_routes import route_pairs
from mtfcore.costs.links.wiring import Wiring
from mtfcore.costs.pricing.rates import Rates, rates
from mtfcore.costs.pricing.step_time import collective_time

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


@dataclass(frozen=True, eq=False)
class Event:
    """One thing that the walk saw; times are from the start of the entry, or of one turn of the loop around it."""

    kind: str  # "computes", "sends", "waits", "turns"
    slot: Slot  # what waits: the collective that is waited for
    start: float
    seconds: float
    sent: Sent | None = None  # of what sends, and of waiting for it
    links: tuple[Link, ...] = ()  # of what sends: the links that it keeps busy
    turn: Walk | None = None  # of a loop: one turn; `seconds` are those of all


@dataclass(frozen=True, eq=False)
class Walk:
    """A schedule in time: what it took, and every event."""

    took: Took
    events: tuple[Event, ...]


@dataclass
class _Clock:
    """Where the walk is: the time, when each mesh axis is free again, what is in flight and when it ends."""

    now: float = 0.0
    compute: float = 0.0
    links: float = 0.0
    exposed: float = 0.0
    free: dict[Link, float] = field(default_factory=dict)
    flying: dict[str, Event] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def walk(self) -> Walk:
        return Walk(Took(self.compute, self.links, self.exposed), tuple(self.events))


@dataclass(frozen=True)
class _Sends:
    """What a collective takes, and the links that it keeps busy."""

    sent: Sent
    seconds: float
    busy: tuple[Link, ...]


def timed(schedule: Schedule, sent: Sequence[Sent], wired: Wiring, model: str = "physical") -> Took:
    """Seconds of a schedule whose collectives run on these links."""
    return walked(schedule, sent, wired, model).took


def walked(schedule: Schedule, sent: Sequence[Sent], wired: Wiring, model: str = "physical") -> Walk:
    """The same, with every event."""
    at = rates(wired.topology.chip, model)
    took = {one.name: _Sends(one, link_seconds(one, wired, at), links(one)) for one in sent}
    clock = _Clock()
    _run(schedule.order, took, wired.topology.chip.value("clock_hz"), clock)
    return clock.walk()


def link_seconds(one: Sent, wired: Wiring, at: Rates) -> float:
    """What one collective takes each time, by itself."""
    if one.kind == "permute":
        legs, loads = route_pairs(tuple((start, end) for start, end in one.groups), wired, at.how.way)
        return float(collective_time("permute", one.n_bytes, legs, at, loads).total) if legs else 0.0
    kind = "all_gather" if one.kind == "broadcast" else one.kind
    return float(collective_time(kind, one.n_bytes, wired.legs(one.axes), at).total)


def links(one: Sent) -> tuple[Link, ...]:
    """What a collective keeps busy: both directions of its axes, or where all permute the same way round, one."""
    ups = [there > here for here, there in one.groups] if one.kind == "permute" else []
    more = 2 * sum(ups) - len(ups)
    directions = (1, -1) if not ups or more == 0 else (1,) if more > 0 else (-1,)
    return tuple((axis, direction) for axis in one.axes for direction in directions)


def _run(order: Sequence[Slot], took: dict[str, _Sends], hertz: float, clock: _Clock) -> None:
    for slot in order:
        name = slot.instruction.name
        if slot.opcode == "while":
            _loop(slot, took, hertz, clock)
        elif name in took:
            _send(slot, took[name], clock)
        elif slot.ends:
            _wait(slot.ends, clock)
        if slot.cycles:
            seconds = slot.cycles / hertz
            clock.events.append(Event("computes", slot, clock.now, seconds))
            clock.now += seconds
            clock.compute += seconds


def _loop(slot: Slot, took: dict[str, _Sends], hertz: float, clock: _Clock) -> None:
    """One turn, so many times: what is in flight when it starts or ends is waited for at its `-done` outside."""
    turn, turns = _Clock(), slot.turns if slot.turns is not None else 1
    _run(slot.body, took, hertz, turn)
    clock.events.append(Event("turns", slot, clock.now, turns * turn.now, turn=turn.walk()))
    clock.now += turns * turn.now
    clock.compute += turns * turn.compute
    clock.links += turns * turn.links
    clock.exposed += turns * turn.exposed


def _send(slot: Slot, what: _Sends, clock: _Clock) -> None:
    start = max([clock.now, *(clock.free.get(link, 0.0) for link in what.busy)])
    event = Event("sends", slot, start, what.seconds, what.sent, what.busy)
    clock.free |= dict.fromkeys(what.busy, start + what.seconds)
    clock.links += what.seconds
    clock.events.append(event)
    name = slot.flight or (slot.inside or slot.instruction).name
    clock.flying[name] = event
    if not slot.is_async:
        _wait(name, clock)


def _wait(name: str, clock: _Clock) -> None:
    flying = clock.flying.pop(name, None)
    if flying is None:
        return
    waits = max(0.0, flying.start + flying.seconds - clock.now)
    if waits:
        clock.events.append(Event("waits", flying.slot, clock.now, waits, flying.sent))
    clock.now += waits
    clock.exposed += waits
