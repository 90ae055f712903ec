"""The traffic of a running program as plain JSON: by axis, by pair of devices, by step, so far and as planned.

    >>> f = live_facts(program, events.tallies(watch.events, program))
    >>> f["axes"][1]
    {'axis': 'cols', 'sent': 32768, 'planned': 32768}

What was sent is summed up from the events of one run; `planned` is the same program's closed form. Who needs whose
bytes is `mtfcore.events.sent_to`'s convention. Next file to read: `live_traffic_html`.
"""

from __future__ import annotations

import functools
from typing import Any

import mtfcore as mtf
from mtfcore.events import Tally, expected_events, sent_to
from mtfcore.traffic import plain_bytes
from widgets.figures.program import walk
from widgets.figures.words import label
from widgets.numbers import count, origin, quantity

Facts = dict[str, Any]


def live_facts(program: mtf.Program, tally: Tally) -> Facts:
    """What has happened so far beside what will have happened."""
    planned, so_far = program.link_bytes().by_axis, tally.by_axis
    return {
        "name": program.name,
        "mesh": [[axis, size] for axis, size in program.mesh.axes],
        "n_devices": program.mesh.size,
        "axes": [
            {"axis": axis, "sent": plain_bytes(so_far[axis]), "planned": planned[axis]} for axis in program.mesh.names
        ],
        "steps": [_step(row, tally) for row in collectives(program)],
        "pairs": {pair: plain_bytes(sent) for pair, sent in list(tally.by_pair.items())},
        "peak": peak(program),
        "events": tally.n_events,
        "expected": expected_events(program),
    }


def _step(row: Facts, tally: Tally) -> Facts:
    path = row["path"]
    return {**row, "sent": plain_bytes(tally.by_step.get(path, 0)), "events": tally.events_by_step.get(path, 0)}


@functools.lru_cache(maxsize=16)
def collectives(program: mtf.Program) -> tuple[Facts, ...]:
    """Every collective in order, with what it will have sent in all its turns."""
    return tuple(
        {
            "path": path,
            "label": label(step),
            "axes": list(step.axes),
            "times": times,
            "planned": plain_bytes(step.link_bytes * times),
            "expected": times * program.mesh.size,
        }
        for path, step, _, times in walk(program)
        if step.is_collective
    )


@functools.lru_cache(maxsize=16)
def peak(program: mtf.Program) -> float:
    """Bytes of the busiest pair of devices after a whole run: the strongest colour."""
    pairs: dict[tuple[int, int], float] = {}
    for step in program.collectives():
        for device in range(program.mesh.size):
            for other, sent in sent_to(step, program.mesh, device):
                pairs[device, other] = pairs.get((device, other), 0) + float(sent) * step.times
    return max(pairs.values(), default=0)


def differ_on(mesh: mtf.Mesh, one: int, other: int) -> str:
    """The axis along which two devices differ; nothing if on more than one."""
    here, there = mesh.coordinates(one), mesh.coordinates(other)
    apart = [axis for axis in mesh.names if here[axis] != there[axis]]
    return apart[0] if len(apart) == 1 else ""


def plan_words(facts: Facts, state: str = "") -> str:
    """What a run of this program will show, or what a run that came to an end has counted."""
    planned = sum(row["planned"] for row in facts["axes"])
    if not facts["steps"]:
        return f"{facts['name']} has no collective here: every device has what it needs, and nothing is sent."
    times = sum(row["times"] for row in facts["steps"])
    whole = f"One device sends {_over_axes(facts, 'planned', 'modelled')}" if planned else "Nothing is sent"
    often = f", run {times:,} times in all" if times > len(facts["steps"]) else ""
    return (
        f"{facts['name']} on {count(facts['n_devices'], 'device')} has "
        f"{count(len(facts['steps']), 'collective')}{often}. "
        f"{whole}. {_counted_words(facts, state)}"
    )


def _counted_words(facts: Facts, state: str) -> str:
    """What was counted; before a run, how it will be."""
    if state not in ("finished", "stopped"):
        return "Run it, and each collective of each device is counted as it happens."
    events = f"{facts['events']:,} of {count(facts['expected'], 'event')}"
    sent = _over_axes(facts, "sent", "counted") or origin("nothing", "counted")
    verdict = f", {_verdict(facts)}" if state == "finished" else ""
    return f"{'This run' if state == 'finished' else 'A stopped run'}: {events}; one device sent {sent}{verdict}."


def _over_axes(facts: Facts, key: str, tag: str) -> str:
    """Bytes over each axis that has any."""
    sent = {row["axis"]: origin(quantity(row[key], "iB"), tag) for row in facts["axes"] if row[key]}
    return " and ".join(f"{n_bytes} over {axis}" for axis, n_bytes in sent.items())


def _verdict(facts: Facts) -> str:
    same = all(row["sent"] == row["planned"] for row in facts["axes"])
    return "as planned" if same else "which is not as planned"


def run_words(facts: Facts, state: str) -> str:
    """What the run has shown so far; never a time, since simulated devices share this computer."""
    sent = sum(row["sent"] for row in facts["axes"])
    so_far = f"{facts['events']:,} of {count(facts['expected'], 'event')}"
    words = f"{so_far}; one device sent {origin(quantity(sent, 'iB'), 'counted')}"
    if state == "finished":
        return f"This run: {words}, {_verdict(facts)}."
    return f"{'Running' if state == 'running' else 'Stopped'}: {words}."


def pair_words(facts: Facts, one: int, other: int) -> str:
    """What one device sent to another."""
    sent = facts["pairs"].get((one, other), 0)
    return f"device {one} → device {other}: {origin(quantity(sent, 'iB'), 'counted')}"


def table(facts: Facts) -> list[tuple[str, ...]]:
    """The same, row by row: axes, then steps."""
    rows: list[tuple[str, ...]] = [("what", "sent by one device in this run", "planned", "events")]
    rows += [(f"axis {row['axis']}", *_both(row), "") for row in facts["axes"]]
    rows += [
        (f"step {'.'.join(str(n + 1) for n in row['path'])} {row['label']}", *_both(row),
         f"{row['events']:,} of {row['expected']:,}")
        for row in facts["steps"]
    ]  # fmt: skip
    return rows


def _both(row: Facts) -> tuple[str, str]:
    return origin(quantity(row["sent"], "iB"), "counted"), origin(quantity(row["planned"], "iB"), "modelled")
