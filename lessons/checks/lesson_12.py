"""Checks of lesson 12: waiting in a schedule, a schedule in which nobody waits for long, where a number comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from widgets.learning.exercises import Case, at_most, equal, holds
from widgets.numbers import count

from .book import exercise

Event = tuple[Any, ...]
Pair = tuple[str, str | int]
Works = Sequence[tuple[int, str]]

# ---- exercise 1: what is waited for --------------------------------------------------------------------------------


@exercise(
    "12 waited",
    task="Say how long a schedule takes, and how much of that is waiting.",
    hint="Keep three things: the time now, when the link is free again, and when each message ends. A start moves the "
    "last two, never the time now.",
    gives="two numbers: seconds in all, seconds of waiting",
    bigger_hint="start: ends[name] = free = max(now, free) + seconds. done: waits += max(0, ends[name] - now), then "
    "now = max(now, ends[name]).",
)
def waited(answer: Callable[..., tuple[float, float]], rng: Random) -> Iterator[Case]:
    for kind in ("one", "hidden", "two", "queued"):
        events = _events(kind, rng)
        total, waits = _walk(events)
        given = answer(list(events))
        what = "; ".join(" ".join(map(str, event)) for event in events)
        yield equal(f"{what}: in all", total, given[0], "s")
        yield equal(f"{what}: waiting", waits, given[1], "s of waiting")


def _events(kind: str, rng: Random) -> list[Event]:
    """One that is partly hidden, one all hidden, two apart, and two at once, which share the link."""
    work = lambda low, high: ("work", rng.randint(low, high))  # noqa: E731
    one = [work(1, 9), ("start", "a", rng.randint(12, 20)), work(2, 9), ("done", "a")]
    if kind == "one":
        return [*one, work(1, 9)]
    if kind == "hidden":
        return [("start", "a", rng.randint(2, 6)), work(9, 14), ("done", "a"), work(1, 9)]
    second = [("start", "b", rng.randint(12, 20)), work(2, 9), ("done", "b")]
    if kind == "two":
        return [*one, *second]
    starts = [("start", "a", rng.randint(5, 9)), ("start", "b", rng.randint(12, 20))]
    return [*starts, work(6, 12), ("done", "a"), work(2, 5), ("done", "b"), work(1, 9)]


def _walk(events: Sequence[Event]) -> tuple[int, int]:
    """Seconds in all, and those of waiting."""
    now = free = waits = 0
    ends: dict[str, int] = {}
    for kind, *rest in events:
        if kind == "work":
            now += rest[0]
        elif kind == "start":
            ends[rest[0]] = free = max(now, free) + rest[1]
        else:
            late = max(0, ends[rest[0]] - now)
            now, waits = now + late, waits + late
    return now, waits


# ---- exercise 2: work between start and done -----------------------------------------------------------------------


@exercise(
    "12 schedule",
    task="Order messages and work so that as little as possible is waited for.",
    hint="Start everything at once. Which work needs no message? Put it before the first `done`.",
    gives='a list of pairs: ("start", name), ("done", name), ("work", number)',
    bigger_hint="All starts; the work that needs nothing; then for each message its done and the work that needs it.",
)
def schedule(answer: Callable[..., list[Pair]], rng: Random) -> Iterator[Case]:
    for n_messages in (1, 2, rng.choice((2, 3)), 3):
        messages, works = _task(n_messages, rng)
        what = f"messages {messages}, works {works}"
        given = answer(dict(messages), list(works))
        why = _fault(given, messages, works)
        yield holds(f"{what}: the schedule", not why, "each once, work behind the done it needs", why)
        sizes = [_with_seconds(event, messages, works) for event in given]
        yield at_most(f"{what}: takes", _budget(messages, works), _walk(sizes)[0], "s")


def _with_seconds(event: Pair, messages: Mapping[str, int], works: Works) -> Event:
    """An event of an answer as `_walk` reads it."""
    kind, which = event
    if kind == "start" and isinstance(which, str):
        return kind, which, messages[which]
    if kind == "work" and isinstance(which, int):
        return kind, works[which][0]
    return event


def _task(n_messages: int, rng: Random) -> tuple[dict[str, int], Works]:
    """Messages, work that needs one, and work that needs none, in any order."""
    messages = {name: rng.randint(8, 15) for name in "abc"[:n_messages]}
    needing = [(rng.randint(2, 6), name) for name in messages]
    works = [*needing, *((rng.randint(5, 9), "") for _ in range(2))]
    return messages, rng.sample(works, len(works))


def _budget(messages: Mapping[str, int], works: Works) -> int:
    """What starting all at once and doing free work first takes."""
    events: list[Event] = [("start", name, seconds) for name, seconds in messages.items()]
    for name in ("", *messages):
        events += [("done", name)] if name else []
        events += [("work", seconds) for seconds, needs in works if needs == name]
    return _walk(events)[0]


def _fault(given: list[Pair], messages: Mapping[str, int], works: Works) -> str:
    """Why it is no schedule; empty if it is one."""
    wanted: list[Pair] = [(kind, name) for kind in ("start", "done") for name in messages]
    wanted += [("work", n) for n in range(len(works))]
    if wrong := [event for event in wanted if given.count(event) != 1]:
        return f"{wrong[0]} {count(given.count(wrong[0]), 'time')}"
    if len(given) != len(wanted):
        return f"{next(event for event in given if event not in wanted)!r:.60} is no part of the task"
    place = {event: n for n, event in enumerate(given)}
    early = [f"done {name} before its start" for name in messages if place["done", name] < place["start", name]]
    early += [
        f"work {n} before the done it needs"
        for n, (_, needs) in enumerate(works)
        if needs and place["work", n] < place["done", needs]
    ]
    return early[0] if early else ""


# ---- exercise 3: where a number comes from -------------------------------------------------------------------------

LABELS: dict[tuple[str, str, str], str] = {
    ("seconds", "plan", ""): "modelled",
    ("bytes", "plan", ""): "modelled",
    ("bytes", "jaxpr", ""): "counted",
    ("bytes", "compiler", ""): "compiled",
    ("seconds", "compiler", ""): "modelled from compiled schedule",
    ("seconds", "clock", "TPU v4"): "measured",
    ("seconds", "clock", "NVIDIA GPU"): "measured",
    ("seconds", "clock", "simulated"): "no hardware time",
    ("seconds", "paper", ""): "published",
}


@exercise(
    "12 label",
    task="Say of a number where it comes from.",
    hint="Most sources have one word. Look twice at a compiler's seconds, and at a clock beside simulated devices.",
    bigger_hint="plan modelled, jaxpr counted, paper published, clock measured (simulated: no hardware time), compiler "
    "compiled (seconds: modelled from compiled schedule).",
)
def label(answer: Callable[[dict[str, str]], str], rng: Random) -> Iterator[Case]:
    for (what, source, device), words in rng.sample(list(LABELS.items()), len(LABELS)):
        number = {"what": what, "source": source, **({"device": device} if device else {})}
        yield equal(f"{what} from {source}{f' beside {device}' if device else ''}", words, answer(dict(number)))
