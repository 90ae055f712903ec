"""Fitting a chip's few constants to one's own measurements, with confidence, and saying what could not be told.

    found = calibrate(records, program_of)          # records of measured products and collectives; how to plan them
    print(found)                                    # each constant with its interval; what is missing; every point
    mtf.price(prog, "h200:8", model=found.constants)

A record's time is taken as the cost model has it: each local step the longer of computing (at a share of the peak) and
of reading memory (at a share of its rate), each collective its bytes (at a share of the links' rate) and its messages
(at so much each), all one after the other, and besides what starting any program takes, which is no constant of the
chip. Least squares of the logarithms, in which errors beyond 30 % pull no harder; the intervals hold 90 % of fits to
records drawn anew. A constant is fitted only if at least three records spend a tenth of their time on it and its
interval is no wider than from a value to its double; else it keeps its value, and the words say what to measure. So
it does where another rules the same parts of all times, and where no value that a chip could have fits.

Times of simulated devices are those of this computer's cores, which many devices share: no constants of any chip, nor
of a chip of their own, so they are refused. `costs.calibration` fits the same constants to published latencies.
Next file to read: `mtfcore.costs.pricing.constants`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtfcore.costs.pricing.constants import NEUTRAL, Constants
from mtfcore.costs.pricing.demands import demands
from mtfcore.costs.pricing.price import price
from mtfcore.costs.pricing.rates import rates
from mtfcore.errors import LayoutError, sure
from mtfcore.measuring import places
from mtfcore.measuring.fitting import START, Asked, at_an_end, fit, intervals, mixed, sensitivities
from mtfcore.measuring.usable import ENOUGH, NEEDED, get, needs, nothing, usable
from mtfcore.numbers import count, format_seconds
from mtfcore.steps import Program
from mtfcore.topologies import topology as as_topology

MUCH = 0.1  # of a record's time: what a constant must rule to be told by it
WIDEST = 2.0  # high / low of an interval that still tells something
BEGIN = {"compute_share": 0.7, "hbm_share": 0.8, "link_share": 0.6, "launch_seconds": 5e-6, START: 3e-5}


@dataclass(frozen=True)
class Point:
    """One record against what the constants say of it."""

    record: Any
    name: str
    measured_seconds: float
    predicted_seconds: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted_seconds / self.measured_seconds - 1


@dataclass(frozen=True, eq=False)
class Calibration:
    """Constants, and how well they say what was measured."""

    constants: Constants
    points: tuple[Point, ...]
    start_seconds: float | None  # what starting a program took besides; None if no record tells
    missing: Mapping[str, str]  # constant → which measurements would tell it
    left_out: tuple[tuple[str, str], ...]  # (record, why)

    @property
    def median_error(self) -> float:
        """The middle of the errors, without their signs."""
        return float(np.median([abs(point.error) for point in self.points]))

    def __str__(self) -> str:
        lines = [self.constants.words, f"median error {self.median_error:.1%} of {count(len(self.points), 'record')}"]
        if self.start_seconds is not None:
            lines.append(f"starting a program took {format_seconds(self.start_seconds)}, in every time besides")
        lines += [f"not told: {name}; measure {needed}" for name, needed in self.missing.items()]
        lines += [f"left out: {name}: {why}" for name, why in self.left_out]
        lines += [f"{p.name}: measured {format_seconds(p.measured_seconds)}, modelled "
                  f"{format_seconds(p.predicted_seconds)} ({p.error:+.0%})" for p in self.points]  # fmt: skip
        return "\n  ".join(lines)


def calibrate(
    records: Iterable[Any], program_of: Callable[[Any], Program | None], *, chip: str | None = None, seed: int = 0
) -> Calibration:
    """Fit the constants of one chip to its records.

    `records`: objects or mappings with case, params, status, seconds, where, when, versions, share (as `tpu_runs`
    keeps them). `program_of` plans what a record ran; None leaves it out. `LayoutError`: no record of a chip, several
    chips and none named, or too few records to tell any constant, with what to measure.
    """
    used, left_out = usable(records, chip)
    points = []
    for record, name in used:
        try:
            program = program_of(record)
            asked = None if program is None else asked_of(program, record)
        except LayoutError as fault:  # a case that is planned otherwise today, or does not fit its slice
            left_out.append((name, str(fault).splitlines()[0]))
            continue
        left_out += [(name, "no program is known for it")] if asked is None else []
        points += [] if asked is None else [(record, name, asked)]
    return _fitted(points, left_out, seed)


def asked_of(program: Program, record: Any) -> Asked:
    """What a record's program asks of a device, at the chip's published rates; of a share the local steps alone."""
    where, alone = get(record, "where"), bool(get(record, "share"))
    ran = sure(places.chip_of(where["device_kind"]))
    of = as_topology(where.get("topology") or f"{ran.name}:1")
    if of.chip.name != ran.name:
        raise LayoutError(f"it ran on {ran.name}, and its slice {of} has other chips")
    at = rates(of.chip, "physical")
    at = replace(at, how=replace(at.how, busy_axes=rates(of.chip, "calibrated").how.busy_axes))
    wired = price(program, _any_slice(program, of) if alone else of).wiring
    return Asked(**vars(demands(program, wired, at, links=not alone)),
                 measured_seconds=float(np.median(get(record, "seconds"))))  # fmt: skip


def _any_slice(program: Program, of: Any) -> Any:
    """A slice of these chips on which the mesh fits: local steps cost the same on any."""
    from mtfcore.measuring.share import slice_for_chip

    found = slice_for_chip(program.mesh, of.chip)
    if found is None:
        raise LayoutError(f"no slice of {of.chip.name} has {program.mesh.size} devices")
    return found


# ---- the fit ----------------------------------------------------------------------------------------------------


def _fitted(points: Sequence[tuple[Any, str, Asked]], left_out: list[tuple[str, str]], seed: int) -> Calibration:
    asked = [each for _, _, each in points]
    if not points:
        raise LayoutError(nothing(None, (), left_out))
    of = sure(places.chip_of(get(points[0][0], "where")["device_kind"]))
    now = rates(of, "calibrated")
    prior = {"compute_share": now.compute_share, "hbm_share": now.hbm_share,
             "link_share": now.how.link_share, "launch_seconds": now.launch_seconds, START: 0.0}  # fmt: skip
    free, values, between = _settled(asked, prior, seed)
    told = [name for name in free if name in NEUTRAL]
    if not told:
        raise LayoutError(f"calibrate: {count(len(points), 'record')} of {of.name} tell no constant; measure "
                          f"{needs(NEEDED)}")  # fmt: skip
    constants = Constants(
        of.name, **{name: values[name] for name in NEUTRAL}, busy_axes=now.how.busy_axes,
        intervals=tuple((name, *between[name]) for name in told), n=len(points),
        **_provenance([record for record, _, _ in points]),
    )  # fmt: skip
    said = tuple(Point(record, name, each.measured_seconds, each.seconds(values)) for record, name, each in points)
    missing = {name: NEEDED[name] for name in NEUTRAL if name not in told}
    return Calibration(constants, said, values[START] if START in free else None, missing, tuple(left_out))


def _settled(asked: Sequence[Asked], prior: Mapping[str, float], seed: int) -> tuple[list[str], dict, dict]:
    """What can be told, all values, and the intervals: fitted again without each that turns out not to be told."""
    free, values = _told(asked, BEGIN), {**prior}
    while free:
        values = fit(asked, {**prior, **{name: BEGIN[name] for name in free}}, free)
        if alike := mixed(asked, values, free):
            free.remove(max(alike, key=list(BEGIN).index))  # what starting takes first: then it stays in the others
            values = {**prior}
            continue
        between = intervals(asked, values, free, seed)
        ruled = _told(asked, values)
        loose = {name: high / low for name, (low, high) in between.items() if high > WIDEST * low or name not in ruled}
        loose |= {name: np.inf for name in free if at_an_end(values[name])}
        if not loose:
            return free, values, between
        free.remove(max(loose, key=loose.__getitem__))
        values = {**prior}
    return [], values, {}


def _told(asked: Sequence[Asked], values: Mapping[str, float]) -> list[str]:
    """The constants that enough records spend much of their time on."""
    parts = sensitivities(asked, values)
    return [name for name in BEGIN if np.sum(parts[name] >= MUCH) >= ENOUGH]


def _provenance(records: Sequence[Any]) -> dict[str, Any]:
    """When, on what, and by which JAX."""
    dates = sorted(str(get(record, "when") or "")[:10] for record in records)
    jax = sorted({f"jax {v['jax']}" for record in records if (v := get(record, "versions") or {}).get("jax")})
    kind = get(records[0], "where")["device_kind"]
    return {"first": dates[0], "last": dates[-1], "device_kind": kind, "versions": tuple(jax)}
