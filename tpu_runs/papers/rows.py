"""The published latencies, each with the programs that are compiled for it.

    >>> row = rows()[1]
    >>> row.published.key, [(part.times, len(part.machines)) for part in row.parts]
    ('Table 2: low latency, decode: latency', [(64, 1)])

A phase runs so many times: a prefill once, a decode step once for each token of the output. Of the programs of a phase
the fastest counts. Rows measured on GPUs have no compiler here. Next file to read: `making`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import mtfcore as mtf
from mtfcore.compiling.slices import NAMES
from mtfcore.reference import Published, latency_rows
from tpu_runs.papers.inference import choices, looping
from tpu_runs.papers.machine import Machine
from tpu_runs.records import Record

PASSES = {
    "Figure 7: 2D weight-stationary, 256 sequences: latency": 2,
    "Figure 7: 2D weight-stationary, 512 sequences: latency": 4,
}  # in one pass the compiler refuses them: its record says by how much

LOOPED_TOKENS = 512  # of a phase: with fewer, a ring's blocks are too small to gain anything


@dataclass(frozen=True)
class Part:
    """One phase: how often it runs, and the programs that it may be."""

    phase: str
    times: int
    machines: tuple[Machine, ...]
    loops: tuple[Machine, ...] = ()  # the same with the feedforward's collectives over x as rings

    def best(
        self, records: Mapping[str, Record], model: str = "physical", looped: bool = False, slowest: bool = False
    ) -> Record | None:
        """The fastest that is kept and fits, or the slowest; with loops among them if wanted."""
        found = [records[one.name] for one in self.machines + self.loops * looped if one.name in records]
        fits = [record for record in found if record.status == "ok"]
        return (max if slowest else min)(fits, key=lambda record: seconds_of(record, model), default=None)


@dataclass(frozen=True)
class Row:
    """A published latency and its phases."""

    published: Published
    parts: tuple[Part, ...]

    def seconds(
        self, records: Mapping[str, Record], model: str = "physical", looped: bool = False, slowest: bool = False
    ) -> float | None:
        """Modelled from compiled schedules; None where a phase has no program that fits."""
        best = [part.best(records, model, looped, slowest) for part in self.parts]
        fits = [one for one in best if one is not None]
        if len(fits) < len(best):
            return None
        return sum(part.times * seconds_of(one, model) for part, one in zip(self.parts, fits, strict=True))


def seconds_of(record: Record, model: str = "physical") -> float:
    """Of one run of a compiled program: cycles, and links at their published rates or with the calibrated constants."""
    return record.facts["seconds"] if model == "physical" else record.facts[model]["seconds"]


@cache
def rows() -> tuple[Row, ...]:
    """Every published latency on chips that there is a compiler for."""
    return tuple(_row(row) for row in latency_rows() if mtf.topology(row.setup["topology"]).chip.name in NAMES)


def _row(row: Published) -> Row:
    setup, passes, parts = row.setup, PASSES.get(row.key, 1), []
    for phase in ("prefill", "decode") if setup["phase"] == "total" else (setup["phase"],):
        steps = setup["output_tokens"] if phase == "decode" and row.quantity == "latency" else 1
        found = choices(setup, phase, passes)
        parts.append(Part(phase, steps * passes, found, _loops(found)))
    return Row(row, tuple(parts))


def _loops(found: tuple[Machine, ...]) -> tuple[Machine, ...]:
    """Section 3.5's loops around the feedforward's two products, where each block still fills the matrix unit."""
    one = next(one for one in found if one.params["attention"] == found[-1].params["attention"])
    tokens = one.params["batch"] * one.params["new_tokens"]
    theirs = one.params["model"].startswith("palm") and one.params["ffn"] == "ws2d"
    return (looping(one, "latency", 2, "x"),) if theirs and tokens >= LOOPED_TOKENS else ()


def as_one(row: Row) -> Machine:
    """A whole batch that runs in passes: compiled too, so that its refusal is on record."""
    setup = row.published.setup
    return choices(setup, setup["phase"])[0]


def machines() -> dict[str, Machine]:
    """Every machine by name; those of the rows first, those of effects as they have them."""
    from tpu_runs.papers import effects, training_rows

    found = [one for row in rows() for part in row.parts for one in (*part.machines, *part.loops)]
    found += [as_one(row) for row in rows() if row.published.key in PASSES]
    found += [*effects.machines(), *training_rows.machines()]
    return {one.name: one for one in found}
