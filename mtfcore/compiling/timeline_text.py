"""A timeline in 8 kB of plain data, for a record: small neighbours become one bar; all is checked on reading.

    >>> Timeline.from_json(json.loads(json.dumps(line.to_json()))).whole == line.whole
    True

Totals are kept to the last digit, places of bars to a tenth of a nanosecond. Next file to read: `report`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from mtfcore.compiling.timeline import COMPUTE, VIEWS, Bar, Timeline
from mtfcore.compiling.timing import ORIGIN, Took
from mtfcore.counting.facts import KINDS
from mtfcore.errors import refuse

SCHEMA = 1
LONGEST_WORDS, MOST_BARS = 120, 4_000
CLOSE = 1e-3  # how far sums of rounded bars may be from the totals
FIELDS = ("kind", "name", "step", "lanes", "start", "end", "busy", "exposed", "cycles", "parts")


# ---- writing


def written(line: Timeline, most_bytes: int) -> dict[str, object]:
    """Plain data of at most so many bytes as JSON; the smallest that can be where that is too few."""
    limit, data = 0.0, _data(line)
    while len(json.dumps(data, ensure_ascii=False).encode()) > most_bytes and limit <= line.seconds:
        limit = max(2 * limit, line.seconds / 4_096)
        data = _data(replace(line, bars=tuple(thinned(line.bars, limit))))
    return data


def thinned(bars: Sequence[Bar], limit: float) -> list[Bar]:
    """Bars shorter than `limit` seconds, and no further apart, drawn as one; in the order in which they start."""
    rows: dict[object, list[Bar]] = {}
    for bar in sorted(bars, key=lambda bar: bar.start_seconds):
        rows.setdefault((bar.lanes, "wait" if bar.kind == "wait" else bar.is_link), []).append(bar)
    found = [_together(run) for row in rows.values() for run in _runs(row, limit)]
    return sorted(found, key=lambda bar: bar.start_seconds)


def _runs(row: Sequence[Bar], limit: float) -> Iterator[list[Bar]]:
    run: list[Bar] = []
    for bar in row:
        small = bar.end_seconds - bar.start_seconds < limit
        if run and not (small and bar.start_seconds - run[-1].end_seconds <= limit):
            yield run
            run = []
        run.append(bar)
        if not small:
            yield run
            run = []
    if run:
        yield run


def _together(run: Sequence[Bar]) -> Bar:
    if len(run) == 1:
        return run[0]
    longest = max(run, key=lambda bar: bar.seconds)
    sums = {name: sum(getattr(bar, name) for bar in run) for name in ("seconds", "exposed_seconds", "cycles", "parts")}
    end = max(bar.end_seconds for bar in run)
    return replace(longest, start_seconds=run[0].start_seconds, end_seconds=end, **sums)


def _data(line: Timeline) -> dict[str, object]:
    steps = {number: line.steps[number] for bar in line.bars for number in bar.steps if number in line.steps}
    return {
        "timeline": SCHEMA, "origin": ORIGIN, "which": line.which, "program": line.program, "topology": line.topology,
        "lanes": list(line.lanes), "turns": line.turns, "clock_hz": line.clock_hz, "took": _parts(line.took),
        "whole": _parts(line.whole), "steps": {n: words[:LONGEST_WORDS] for n, words in steps.items()},
        "fields": "kind name step lanes start_us end_us busy_us exposed_us cycles parts",
        "bars": [_row(bar, line.lanes) for bar in line.bars],
    }  # fmt: skip


def _row(bar: Bar, lanes: Sequence[str]) -> list[object]:
    times = (bar.start_seconds, bar.end_seconds, bar.seconds, bar.exposed_seconds)
    micro = [round(1e6 * seconds, 4) for seconds in times]
    return [bar.kind, bar.name, bar.step, [lanes.index(lane) for lane in bar.lanes], *micro, bar.cycles, bar.parts]


def _parts(took: Took) -> list[float]:
    return list(asdict(took).values())


# ---- reading


def read(data: Any) -> Timeline:
    """The timeline of plain data; every fault at once."""
    faults = list(_faults(data))
    refuse(faults, "a timeline's data")
    lanes, bars = data["lanes"], []
    for kind, name, step, on, *times, cycles, parts in data["bars"]:
        start, end, busy, exposed = (1e-6 * micro for micro in times)
        bars.append(Bar(kind, name, step, tuple(lanes[n] for n in on), start, end, busy, exposed, cycles, parts))
    line = Timeline(
        data["which"], data["program"], data["topology"], tuple(lanes), tuple(bars), Took(*data["took"]),
        data["turns"], Took(*data["whole"]), data["clock_hz"], dict(data["steps"]),
    )  # fmt: skip
    refuse(list(_sums(line)), "a timeline's data")
    return line


def _faults(data: object) -> Iterator[str]:
    if not isinstance(data, Mapping) or data.get("timeline") != SCHEMA:
        yield f'it is an object with "timeline": {SCHEMA}, not {data!r:.60}'
        return
    tests = {
        "which": lambda v: v in VIEWS, "program": _is_text, "topology": _is_text,
        "lanes": lambda v: _is_list(v, _is_text) and len(v) > 0 and v[0] == COMPUTE and len(set(v)) == len(v),
        "turns": lambda v: _is_count(v) and v > 0, "clock_hz": lambda v: _is_time(v) and v > 0,
        "took": lambda v: _is_list(v, _is_time) and len(v) == 3,
        "whole": lambda v: _is_list(v, _is_time) and len(v) == 3,
        "steps": lambda v: isinstance(v, Mapping) and all(_is_text(x) for x in (*v, *v.values())),
        "bars": lambda v: isinstance(v, list) and len(v) <= MOST_BARS,
    }  # fmt: skip
    wrong = [name for name, test in tests.items() if not test(data.get(name))]
    yield from (f"{name} cannot be {data.get(name)!r:.60}" for name in wrong)
    if not {"lanes", "bars"} & set(wrong):
        yield from (f"bar {n} cannot be {row!r:.80}" for n, row in enumerate(data["bars"])
                    if not _is_bar(row, len(data["lanes"])))  # fmt: skip


def _is_bar(row: object, n_lanes: int) -> bool:
    if not isinstance(row, list) or len(row) != len(FIELDS):
        return False
    kind, name, step, on, start, end, busy, exposed, cycles, parts = row
    known = isinstance(kind, str) and kind in (COMPUTE, "wait", "loop", *KINDS)
    placed = _is_list(on, lambda n: _is_count(n) and n < n_lanes) and len(set(on)) == len(on)
    timed = all(_is_time(v) for v in (start, end, busy, exposed)) and start <= end and busy <= (end - start) * 1.01 + 1
    return known and placed and timed and all(map(_is_text, (name, step))) and all(map(_is_count, (cycles, parts)))


def _sums(line: Timeline) -> Iterator[str]:
    """Whether bars add up to what the totals say."""
    own = [bar for bar in line.bars if not bar.is_link]
    sums = {
        "compute_seconds": (bar.seconds for bar in own if bar.kind != "wait"),
        "exposed_link_seconds": (bar.seconds for bar in own if bar.kind == "wait"),
        "link_seconds": (bar.seconds for bar in line.bars if bar.is_link),
    }
    for name, parts in sums.items():
        total, said = math.fsum(parts), getattr(line.took, name)
        if not math.isclose(total, said, rel_tol=CLOSE, abs_tol=1e-9 * max(len(line.bars), 1)):
            yield f"its bars add up to {total:.6g} s where {name} says {said:.6g} s"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= 400


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 60


def _is_list(value: object, test: Any) -> bool:
    return isinstance(value, list) and all(map(test, value))
