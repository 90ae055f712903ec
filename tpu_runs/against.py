"""What a measured run should have taken: by the cost model, and by the compiler's own schedule.

    beside = against(record, compiled_records)
    beside.modelled, beside.compiled, beside.words       # seconds, seconds, where they come from

The program is planned again from the record's parameters, so all three numbers are of one thing. Of one device's share
only the local steps are compared: its links were not run. Next file to read: `calibrate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import mtfcore as mtf
from mtfcore.errors import DeviceError, LayoutError
from mtfcore.measuring.places import chip_of
from mtfcore.steps import Program
from mtfcore.topologies import Topology
from mtfcore.topologies import topology as as_topology
from tpu_runs.cases import CASES, check
from tpu_runs.records import Record


@dataclass(frozen=True)
class Beside:
    """Predictions for one record; None with words that say why there is none."""

    modelled: float | None
    compiled: float | None
    words: str

    def row(self, measured: float) -> dict[str, Any]:
        """As a table's entries, with errors against what was measured."""
        predicted = {"modelled": self.modelled, "compiled": self.compiled}
        errors = {
            f"{name}_error": seconds / measured - 1 for name, seconds in predicted.items() if seconds and measured
        }
        return {**predicted, "words": self.words, **errors}


def against(
    record: Record, compiled: Iterable[Record] = (), topology: Any = None, model: Any = "calibrated", now: bool = False
) -> Beside:
    """Predict what a record measured; `now` compiles it where no compiled record has the same case and parameters."""
    program = program_of(record)
    if program is None:
        return Beside(None, None, f"{record.case} is not one planned program: no model of it")
    try:
        place = slice_of(record, topology)
    except LayoutError as fault:
        return Beside(None, None, str(fault))
    modelled, words = _modelled(program, place, model, record)
    took, compiled_words = _compiled(record, program, place, compiled, now)
    return Beside(modelled, took, "; ".join([*words, *compiled_words]))


def program_of(record: Record) -> Program | None:
    """The program that was measured, planned again; None where the case has none."""
    case = CASES.get(record.case)
    if case is None or case.program is None:
        return None
    try:
        return case.program(check(case, record.params))
    except LayoutError:  # of another version of the case, or not ours
        return None


def slice_of(record: Record, topology: Any = None) -> Topology:
    """The slice to model: that of the run (of a share: the one its links are modelled on), of the chip that ran."""
    named = topology or (record.share or {}).get("topology") or record.where.get("topology")
    if not named:
        raise LayoutError(f"no slice is known for {record.where.get('device_kind') or 'its device'}: name one with "
                          "--topology")  # fmt: skip
    found, ran = as_topology(named), chip_of(record.where.get("device_kind") or "")
    if ran is not None and ran.name != found.chip.name:
        raise LayoutError(f"it ran on {ran.title}, and {found} has other chips: no comparison")
    return found


def _modelled(program: Program, place: Topology, model: Any, record: Record) -> tuple[float | None, list[str]]:
    try:
        cost = mtf.price(program, place, model)
    except LayoutError as fault:
        return None, [f"not modelled: {fault}"]
    if record.share:
        return cost.local_seconds, [f"modelled on {place} ({model}): the local steps alone, as measured"]
    return cost.seconds, [f"modelled on {place} ({model})"]


def _compiled(
    record: Record, program: Program, place: Topology, compiled: Iterable[Record], now: bool
) -> tuple[float | None, list[str]]:
    """From a record of the same case and parameters, or compiled now; of a share nothing, since it has no links."""
    same = [r for r in compiled if r.asked == record.asked and r.where.get("topology") == str(place)]
    if same and not record.share:
        newest = max(same, key=lambda r: r.when)
        return newest.facts.get("seconds"), [f"modelled from compiled schedule: {newest.words()}"]
    if not now or record.share or place.chip.kind != "TPU":
        return None, []
    try:
        report = mtf.compile(program, str(place))
    except (LayoutError, DeviceError) as fault:
        return None, [f"not compiled: {fault}"]
    return (report.seconds if report.fits else None), [f"compiled now by {report.version}: {report.seconds_origin}"]
