"""Compiling a committed record's program again: all that a compiler decides must come out as it is kept.

    >>> differences(kept_record, make(machine_of(kept_record.params)))
    []

The same program, compiler and slice give the same schedule, so whatever differs is a change of ours: of a plan, of what
is handed to the compiler, of how its text is read or timed. Last file of this package.
"""

from __future__ import annotations

import importlib.metadata
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

from mtfcore.errors import sure
from tpu_runs.entries import TIMES
from tpu_runs.records import Record

EXACT = ("cycles", "memory", "collectives", "planned_link_bytes", "differences", "refusal")
CLOSE = 1e-9  # sums of the same numbers in another order


def differences(old: Record, new: Record) -> list[str]:
    """Each field that is not as it was, with both values; times of this computer, dates and versions may differ."""
    found = [*_exact({"status": old.status}, {"status": new.status}, ("status",))]
    found += _exact(old.facts, new.facts, EXACT)
    found += _exact(old.counts, new.counts, tuple(old.counts))
    times = ((name, old.facts.get(name), new.facts.get(name)) for name in TIMES)
    return found + [f"{name} was {was}, is {now}" for name, was, now in times if not _as_long(was, now)]


def _as_long(was: float | None, now: float | None) -> bool:
    """Whether two times are the same, up to rounding; of a program that was refused there is none."""
    return was is now if was is None or now is None else math.isclose(was, now, rel_tol=CLOSE)


def _exact(old: Mapping[str, Any], new: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        was, now = old.get(name), new.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            yield from (f"{name}: {each}" for each in _exact(was, now, tuple({**was, **now})))
        elif isinstance(was, list) and isinstance(now, list):
            yield from (f"{name}: {each} is gone" for each in was if each not in now)
            yield from (f"{name}: {each} is new" for each in now if each not in was)
        elif was != now:
            yield f"{name} was {was}, is {now}"


def other_compiler(record: Record) -> str:
    """Why a record cannot be made again here: no compiler, or another than the record's; empty if it can."""
    try:
        here = importlib.metadata.version("libtpu")
    except importlib.metadata.PackageNotFoundError:
        return "libtpu has no wheel for this computer"
    there = record.versions["libtpu"]
    return (
        "" if here == there else f"libtpu is {here} here; the records were made with {there} (--make makes them anew)"
    )


def quick(records: Mapping[str, Record], n: int, seed: int, limit: float = 10.0) -> list[Record]:
    """So many different records, by chance, quick ones much more often; none that took longer than `limit` seconds."""
    chance = random.Random(seed)
    left = [records[name] for name in sorted(records) if (records[name].compile_seconds or limit) < limit]
    found: list[Record] = []
    while left and len(found) < n:
        (one,) = chance.choices(left, [(0.5 + sure(record.compile_seconds)) ** -2 for record in left])
        left.remove(one)
        found.append(one)
    return found
