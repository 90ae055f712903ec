"""Compiling one of the papers' machines, and what of it is kept: a record of origin compiled.

    >>> record = make(machine)
    >>> record.facts["cycles"], record.facts["seconds"], record.facts["memory"]["total"]

Seconds stand in `facts`, since nothing ran: those of the compiler's cycles, and with them what no computing hides of
the links, at their published rates and again with the constants of the calibrated model. A program that the compiler
refuses is a record too. Next file to read: `kept`.
"""

from __future__ import annotations

from typing import Any

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.compiling.timing import timed
from mtfcore.errors import LayoutError
from mtfcore.measuring.places import versions
from tpu_runs.entries import TIMES, commit, compiled_fields, compiler_where
from tpu_runs.papers.machine import Machine
from tpu_runs.records import Record


def make(one: Machine, timeout: float = 600.0) -> Record:
    """Plan, compile, and say what came of it."""
    said: dict[str, Any] = {"case": "paper", "params": one.asked(), "commit": commit()}
    try:
        program = one.program()
    except LayoutError as error:
        where = compiler_where(mtf.topology(one.topology))
        return Record(**said, origin="compiled", status="refused", reason=str(error)[:300], where=where,
                      versions=versions())  # fmt: skip
    report = mtf.compile(program, one.topology, wiring=one.wiring or None, partitioned=one.partitioned, timeout=timeout)
    found = compiled_fields(report, picture=one.timeline)
    if report.fits:
        found["facts"] |= {"calibrated": calibrated(report)}
    return Record(**said, **found)


def calibrated(report: CompiledReport) -> dict[str, Any]:
    """The times again, with the link constants of the calibrated model."""
    took = timed(report.schedule, report.collectives, report.wiring, "calibrated")
    return {name: getattr(took, name) for name in TIMES if name != "compute_seconds"}
