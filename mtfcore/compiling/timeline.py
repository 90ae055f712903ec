"""A compiled schedule as bars in lanes: what computes, what each mesh axis's links carry meanwhile, what is waited for.

    >>> line = timeline(report)                        # one turn of the loop over layers
    >>> line = timeline(report, "step")                # all of it; a loop is one bar in each lane
    >>> line.seconds, line.turns, line.whole.seconds
    >>> [bar for bar in line.bars if bar.kind == "wait"][0].name
    'all-reduce.8'

It is the walk of `timing`, event by event: the bars that compute and the waits add up to its `Took`. A bar may be
busy for a part of its length only: a loop seen from outside, or small neighbours drawn as one. Two axes, or both
directions of one, that a collective keeps busy are several lanes of one bar. Origin: modelled from compiled schedule.
Next file to read: `step_words`, then `timeline_text`, which keeps it in 8 kB.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mtfcore.compiling.step_words import step_words
from mtfcore.compiling.timing import ORIGIN, Event, Link, Took, Walk, walked
from mtfcore.errors import LayoutError, nearest, sure

if TYPE_CHECKING:
    from mtfcore.compiling.report import CompiledReport

VIEWS = ("layer", "step")
COMPUTE = "compute"  # the lane of what computes or moves within a device; the others are named after mesh axes
ARROWS = {1: "→", -1: "←"}


@dataclass(frozen=True)
class Bar:
    """Something that goes on from `start_seconds` to `end_seconds`."""

    kind: str  # "compute", "wait" (nothing computes until a collective ends), "loop", or the collective's kind
    name: str  # the instruction in the text; of several, the longest one's
    step: str  # of the plan, numbered as in the program's table: "17.36"; several that travel together: "17.36, 17.87"
    lanes: tuple[str, ...]
    start_seconds: float
    end_seconds: float
    seconds: float  # how long it is busy: less than its length for loops and for several together
    exposed_seconds: float = 0.0  # of them, those that nothing hides
    cycles: int = 0  # the compiler's, of what computes
    parts: int = 1  # how many instructions it stands for; of a loop, its turns

    @property
    def is_link(self) -> bool:
        """Whether it is something that links carry."""
        return COMPUTE not in self.lanes

    @property
    def steps(self) -> list[str]:
        """The numbers of the plan's steps that it came from; none where the compiler dropped that."""
        return self.step.split(", ") if self.step else []

    @property
    def hidden_seconds(self) -> float:
        """How long something computes while links carry it."""
        return max(self.seconds - self.exposed_seconds, 0.0) if self.is_link else 0.0

    @property
    def share(self) -> float:
        """Which share of its length it is busy."""
        length = self.end_seconds - self.start_seconds
        return min(self.seconds / length, 1.0) if length > 0 else 1.0


@dataclass(frozen=True)
class Timeline:
    """A layer or a whole step of one compiled program."""

    which: str
    program: str
    topology: str
    lanes: tuple[str, ...]  # compute first
    bars: tuple[Bar, ...]
    took: Took  # of what is drawn
    turns: int  # how often a step does what is drawn
    whole: Took  # of the whole step
    clock_hz: float
    steps: Mapping[str, str]  # number → words, of the steps that bars came from

    origin = ORIGIN

    @property
    def seconds(self) -> float:
        """How long what is drawn takes."""
        return self.took.seconds

    def hidden_by(self, bar: Bar) -> list[Bar]:
        """What computes while links carry this, longest common time first; nothing for other bars."""
        beside = [(_common(bar, other), n) for n, other in enumerate(self.bars) if other.kind in ("compute", "loop")
                  and not other.is_link] if bar.is_link else []  # fmt: skip
        return [self.bars[n] for common, n in sorted(beside, key=lambda pair: -pair[0]) if common > 0]

    def words(self, bar: Bar) -> str:
        """The plan's steps that a bar came from, in words; empty where that is not known."""
        return " and ".join(dict.fromkeys(self.steps[number] for number in bar.steps if number in self.steps))

    def to_json(self, most_bytes: int = 8_000) -> dict[str, object]:
        """Plain data for a record; small neighbours become one bar until it is small enough."""
        from mtfcore.compiling.timeline_text import written

        return written(self, most_bytes)

    @staticmethod
    def from_json(data: object) -> Timeline:
        """What `to_json` wrote; `LayoutError` for anything else, every fault at once."""
        from mtfcore.compiling.timeline_text import read

        return read(data)

    def __repr__(self) -> str:
        from mtfcore.numbers import count, format_seconds

        what = f"one turn of {self.turns:,}" if self.which == "layer" else "the step"
        waits = f"{format_seconds(self.took.exposed_link_seconds)} of it waiting for links"
        return (f"<Timeline {self.program} for {self.topology}, {what}: {format_seconds(self.seconds)}, {waits}, "
                f"{count(len(self.bars), 'bar')} ({ORIGIN})>")  # fmt: skip


def timeline(report: CompiledReport, which: str = "layer") -> Timeline:
    """The bars of one turn of the loop in which most time goes, or of the whole step.

    `LayoutError` where the compiler refused the program, or where there is no loop to show a turn of.
    """
    if which not in VIEWS:
        raise LayoutError(f"no timeline of {which!r:.40}; {nearest(str(which), VIEWS)}")
    walk = walked(report.schedule, report.collectives, report.wiring)
    drawn, turns = (walk, 1) if which == "step" else layer(walk)
    axes = [axis for axis, size in report.program.mesh.axes if size > 1]
    lanes = _lanes(drawn, axes)
    bars = tuple(_bars(drawn, lanes, _planned(report)))
    used = {number for bar in bars for number in bar.steps}
    named = {number: words for number, words in step_words(report.program) if number in used}
    return Timeline(
        which, report.program.name, str(report.topology), (COMPUTE, *dict.fromkeys(lanes.values())), bars, drawn.took,
        turns, walk.took, float(report.topology.chip.value("clock_hz")), named,
    )  # fmt: skip


def _planned(report: CompiledReport) -> dict[str, str]:
    """The collectives of the text and the plan's steps that they carry."""
    found = {sent.name: sent.step for sent in report.collectives}
    if not report.partitioned:
        found |= {sent.name: ", ".join(plan.number for plan in match.planned)
                  for match, _ in report.matches if match.planned for sent in match.compiled}  # fmt: skip
    return found


def layer(walk: Walk) -> tuple[Walk, int]:
    """One turn of the loop whose own turns, loops in them left out, take longest; and how many there are in all."""
    found = [(sure(event.turn), event.slot.times * _turns(event)) for event in _loops(walk)]
    if not found:
        raise LayoutError("this program has no loop, so there is no layer to show; which='step' shows all of it")
    return max(found, key=lambda pair: pair[1] * (pair[0].took.seconds - _in_loops(pair[0])))


def _in_loops(walk: Walk) -> float:
    return math.fsum(event.seconds for event in _own_loops(walk))


def _own_loops(walk: Walk) -> list[Event]:
    return [event for event in walk.events if event.turn is not None]


def _loops(walk: Walk) -> Iterator[Event]:
    for event in _own_loops(walk):
        yield event
        yield from _loops(sure(event.turn))


def _turns(event: Event) -> int:
    return event.slot.turns if event.slot.turns is not None else 1


# ---- lanes and bars


def _sends(walk: Walk) -> Iterator[Event]:
    for event in walk.events:
        if event.kind == "sends":
            yield event
        elif event.turn is not None:
            yield from _sends(event.turn)


def _lanes(walk: Walk, axes: Iterable[str]) -> dict[Link, str]:
    """Each link's lane: one for both directions of an axis, but where something goes one way only."""
    one_way = {axis for event in _sends(walk) for axis, way in event.links if (axis, -way) not in event.links}
    return {(axis, way): f"{axis} {ARROWS[way]}" if axis in one_way else axis for axis in axes for way in (1, -1)}


def _bars(walk: Walk, lanes: Mapping[Link, str], planned: Mapping[str, str]) -> Iterator[Bar]:
    waits = [(event.start, event.start + event.seconds) for event in walk.events if event.kind == "waits"]
    for event in walk.events:
        if event.turn is not None:
            yield from _loop(event, lanes, planned)
            continue
        name, end = event.slot.instruction.name, event.start + event.seconds
        step = planned[event.sent.name] if event.sent else event.slot.step
        if event.kind == "computes":
            yield Bar(COMPUTE, name, step, (COMPUTE,), event.start, end, event.seconds, cycles=event.slot.cycles)
        elif event.kind == "waits":
            yield Bar("wait", name, step, (COMPUTE,), event.start, end, event.seconds, event.seconds)
        else:
            exposed = sum(max(min(end, b) - max(event.start, a), 0.0) for a, b in waits)
            on = tuple(dict.fromkeys(lanes[link] for link in event.links if link in lanes))
            yield Bar(sure(event.sent).kind, name, step, on, event.start, end, event.seconds, exposed)


def _loop(event: Event, lanes: Mapping[Link, str], planned: Mapping[str, str]) -> Iterator[Bar]:
    """All turns at once: what they compute, what they wait for, and each group of lanes that they keep busy."""
    turn = sure(event.turn)
    turns, took, inner = _turns(event), turn.took, list(_bars(turn, lanes, planned))
    whole = Bar("loop", event.slot.instruction.name, event.slot.step, (COMPUTE,), event.start,
                event.start + event.seconds, turns * took.compute_seconds, parts=turns,
                cycles=turns * sum(bar.cycles for bar in inner))  # fmt: skip
    yield whole
    if waits := turns * took.exposed_link_seconds:
        yield replace(whole, kind="wait", seconds=waits, exposed_seconds=waits, cycles=0)
    for on in dict.fromkeys(bar.lanes for bar in inner if bar.is_link):
        same = [bar for bar in inner if bar.lanes == on]
        yield replace(whole, lanes=on, seconds=turns * sum(bar.seconds for bar in same), cycles=0,
                      exposed_seconds=turns * sum(bar.exposed_seconds for bar in same))  # fmt: skip


def _common(bar: Bar, other: Bar) -> float:
    return min(bar.end_seconds, other.end_seconds) - max(bar.start_seconds, other.start_seconds)


# ---- the plan's steps in words
