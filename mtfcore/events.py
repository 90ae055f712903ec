"""Events of a running program: each collective of each device, told to a listener as it happens in that run.

    watch = events.watch(program, listener=print)
    y = watch(x, w, v)                           # runs as `mtf.simulate(program)` does, in slow motion
    tally = events.tallies(watch.events, program)
    tally.by_axis, tally.by_pair, tally.by_step  # bytes; by_axis equals program.link_bytes()

Behind each collective stands a mark, a callback that receives two scalars: the device's number and one number out of
the collective's result, so that it cannot come before it. Real are the kind, the device, how often, and the order in
which marks arrive (a device's turns of a loop in order, others as the threads of this computer happen to run). Bytes
and groups come from the step's shape and axes; a test lays kinds, groups and counts beside XLA's own trace. Time is
not real: a mark costs about a millisecond, so nothing here is ever shown as speed. Nothing here reads `schedules`.
Next file to read: `execute`.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mtfcore.errors import LayoutError, sure
from mtfcore.mesh import Mesh
from mtfcore.permuting import halo_pairs, permute_axes, permute_pairs
from mtfcore.sharding import Axes
from mtfcore.steps import Program, Step
from mtfcore.traffic import split_by_axis

Number = int | Fraction
Path = tuple[int, ...]  # a step's place: its number, and within a repeat the number there


@dataclass(frozen=True)
class Event:
    """One collective of one device in one run."""

    number: int  # order of arrival
    step: Path
    turn: int  # how often this device had come to this step before
    device: int
    kind: str
    axes: Axes
    group: tuple[int, ...]
    to: tuple[tuple[int, Number], ...]  # (device, bytes) for whom this device's data is

    @property
    def sent_bytes(self) -> Number:
        """Bytes that this device sends, from the step's shape."""
        return sum(sent for _, sent in self.to)


Listener = Callable[[Event], None]


_PAIRED = {"permute": permute_pairs, "halo_exchange": halo_pairs}

# ---- who needs whose bytes --------------------------------------------------------------------------------------


def members(mesh: Mesh, axes: Axes, device: int) -> tuple[int, ...]:
    """The devices that differ from this one only along `axes`, the first axis counting slowest."""
    place, found = mesh.coordinates(device), list[dict[str, int]]([{}])
    for axis in axes:
        found = [{**one, axis: n} for one in found for n in range(mesh[axis])]
    return tuple(mesh.device({**place, **one}) for one in found)


def sent_to(step: Step, mesh: Mesh, device: int) -> tuple[tuple[int, Number], ...]:
    """(device, bytes) of what one device's data is worth to the others of its group, each time the step runs.

    Exact for all-to-all, permute and halo exchange, whose pieces have one reader. In the others every member's
    contribution goes to each other member in equal shares of `link_bytes`: who needs whose data, on whatever way.
    """
    if step.kind in _PAIRED:
        group = members(mesh, permute_axes(step, mesh), device)
        pairs = {group[a]: group[b] for a, b in _PAIRED[step.kind](step, mesh)}
        other = pairs.get(device, device)
        return ((other, step.n_bytes),) if other != device else ()
    others = [other for other in members(mesh, step.axes, device) if other != device]
    share = Fraction(step.link_bytes, len(others)) if others else Fraction(0)
    return tuple((other, _plain(share)) for other in others)


def _plain(number: Fraction) -> Number:
    return int(number) if number.denominator == 1 else number


# ---- sums -------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Bytes so far. A step's are those of its busiest device, as in `program.link_bytes()`."""

    program: Program
    by_pair: dict[tuple[int, int], Number] = field(default_factory=dict)
    by_step: dict[Path, Number] = field(default_factory=dict)
    events_by_step: dict[Path, int] = field(default_factory=dict)
    n_events: int = 0
    _by_device: dict[tuple[Path, int], Number] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Count one more."""
        self.n_events += 1
        self.events_by_step[event.step] = self.events_by_step.get(event.step, 0) + 1
        for other, sent in event.to:
            self.by_pair[event.device, other] = self.by_pair.get((event.device, other), 0) + sent
        key = (event.step, event.device)
        self._by_device[key] = self._by_device.get(key, 0) + event.sent_bytes
        self.by_step[event.step] = max(self.by_step.get(event.step, 0), self._by_device[key])

    @property
    def by_axis(self) -> dict[str, Number]:
        """Bytes of one device by mesh axis."""
        found: dict[str, Number] = dict.fromkeys(self.program.mesh.names, 0)
        for path, sent in self.by_step.items():
            step = step_at(self.program, path)
            for axis, part in split_by_axis(step, self.program.mesh).items() if step.link_bytes else ():
                found[axis] += part * sent / Fraction(step.link_bytes)
        return {axis: _plain(Fraction(sent)) for axis, sent in found.items()}

    @property
    def total(self) -> Number:
        """Bytes of one device in all."""
        return sum(self.by_step.values())


def tallies(found: Iterable[Event], program: Program) -> Tally:
    """Bytes of these events by axis, by pair of devices and by step."""
    tally = Tally(program)
    for event in found:
        tally.add(event)
    return tally


def step_at(program: Program, path: Path) -> Step:
    """The step at a place."""
    *outer, last = path
    for number in outer:
        program = sure(program.steps[number].body)
    return program.steps[last]


def expected_events(program: Program) -> int:
    """How many events a whole run has."""
    return program.mesh.size * sum(step.times for step in program.collectives())


# ---- a program with marks ---------------------------------------------------------------------------------------


def marked(program: Program, tell: Callable[[Path, Any], None], before: Path = ()) -> Program:
    """The same program with a mark behind each collective: one more step, which hands the value on as it is."""
    return dataclasses.replace(program, steps=tuple(_with_marks(program, tell, before)))


def _with_marks(program: Program, tell: Callable, before: Path) -> Iterator[Step]:
    for number, step in enumerate(program.steps):
        path = (*before, number)
        yield dataclasses.replace(step, body=marked(step.body, tell, path)) if step.body is not None else step
        if step.is_collective:
            params = {"axes": program.mesh.names, "tell": functools.partial(tell, path)}
            yield Step("mark", (step.output,), step.output, (step.after,), step.after, step.dtype, params)


def _mark(call: Any, array: Any) -> Any:
    """The mark's kernel. Scalars only: an array handed to a callback within shard_map can wait for ever."""
    import jax

    device = jax.lax.axis_index(call.params["axes"])
    jax.debug.callback(lambda device, _: call.params["tell"](int(device)), device, array.reshape(-1)[0])
    return array


class Watch:
    """A program on devices whose run tells of each collective. Made by `watch`."""

    def __init__(self, program: Program, listener: Listener | None, pause_seconds: float, attached: bool) -> None:
        from mtfcore.kernels.basic import KERNELS
        from mtfcore.runs import attach, simulate

        KERNELS.setdefault("mark", _mark)
        self.listener, self.pause_seconds = listener, pause_seconds
        self.events: list[Event] = []
        self.run = (attach if attached else simulate)(program)
        self.program = program
        self.run.program = marked(program, self._tell)
        self._lock = threading.Lock()
        self._fault: Exception | None = None
        self._seen: dict[tuple[Path, int], int] = {}
        self._reach = functools.cache(self._reached)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on whole arrays, as `Run` is called; `events` then holds this run's alone."""
        import jax

        self.events, self._seen, self._fault = [], {}, None
        result = self.run(*args, **kwargs)
        jax.effects_barrier()
        if self._fault is not None:
            raise self._fault
        return result

    def _tell(self, path: Path, device: int) -> None:
        with self._lock:
            turn = self._seen.get((path, device), 0)
            self._seen[path, device] = turn + 1
            step = step_at(self.program, path)
            event = Event(len(self.events), path, turn, device, step.kind, step.axes, *self._reach(path, device))
            self.events.append(event)
            self._listen(event)
        if self.pause_seconds:
            time.sleep(self.pause_seconds)  # slow motion for eyes; the device really waits

    def _listen(self, event: Event) -> None:
        try:
            if self.listener is not None:
                self.listener(event)
        except Exception as fault:  # raised in XLA's thread it would end the run: it is raised after it
            self._fault = self._fault or fault

    def _reached(self, path: Path, device: int) -> tuple[tuple[int, ...], tuple[tuple[int, Number], ...]]:
        step, mesh = step_at(self.program, path), self.program.mesh
        return members(mesh, step.axes, device), sent_to(step, mesh, device)


def watch(
    program: Program, listener: Listener | None = None, pause_seconds: float = 0.0, attached: bool = False
) -> Watch:
    """A run that tells `listener` of each collective of each device while it runs.

    The listener is called on a thread of the device, one event at a time: it must be short and use no JAX. What it
    raises is raised when the run has ended. `pause_seconds` holds each device at each mark, so that eyes can follow.
    """
    if not isinstance(program, Program):
        what = f"{type(program).__name__} {program!r:.200}"
        raise LayoutError(f"events.watch: expected a program made by mtf.plan(function, mesh, layout, ...), got {what}")
    if not 0 <= pause_seconds <= 1:
        raise LayoutError(f"pause_seconds is {pause_seconds!r:.200}; between 0 and 1, since collectives wait for it")
    return Watch(program, listener, float(pause_seconds), attached)
