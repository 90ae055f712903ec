"""Compiling one of the papers' machines, and what of it is kept: a record of origin compiled.

    >>> record = make(machine)
    >>> record.facts["cycles"], record.facts["seconds"], record.facts["memory"]["total"]

Seconds stand in `facts`, since nothing ran: those of the compiler's cycles, and with them what no computing hides of
the links, at their published rates and again with the constants of the calibrated model. A program that the compiler
refuses is a record too. Next file to read: `kept`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.compiling.timing import timed
from mtfcore.errors import LayoutError
from mtfcore.measuring.places import versions
from mtfcore.notation import format_axes
from tpu_runs.commits import commit
from tpu_runs.papers.machine import Machine
from tpu_runs.records import Record

TIMES = ("seconds", "compute_seconds", "link_seconds", "exposed_link_seconds")


def make(one: Machine, timeout: float = 600.0) -> Record:
    """Plan, compile, and say what came of it."""
    said = {"case": "paper", "origin": "compiled", "params": one.asked(), "versions": versions(), "where": where(one),
            "commit": commit()}  # fmt: skip
    try:
        program = one.program()
    except LayoutError as error:
        return Record(**said, status="refused", reason=str(error)[:300])
    report = mtf.compile(program, one.topology, wiring=one.wiring or None, partitioned=one.partitioned, timeout=timeout)
    said |= {"compile_seconds": round(report.compile_seconds, 2), "facts": facts(report, one)}
    if not report.fits:
        return Record(**said, status="refused", reason=f"the compiler finds no room: it {report.refusal}"[:300])
    counts = {"flops": report.counts.flops, "link_bytes": plain(report.link_bytes)}
    return Record(**said, counts=counts)


def facts(report: CompiledReport, one: Machine) -> dict[str, Any]:
    """What is kept of a report."""
    found: dict[str, Any] = {"planned_link_bytes": plain(report.program.link_bytes().total)}
    if report.refusal:
        needs = {"needed_bytes": report.refusal.needed_bytes, "available_bytes": report.refusal.available_bytes}
        return found | {"refusal": needs}
    found |= {name: getattr(report, name) for name in (*TIMES, "cycles")}
    took = timed(report.schedule, report.collectives, report.wiring, "calibrated")
    found["calibrated"] = {name: getattr(took, name) for name in TIMES if name != "compute_seconds"}
    found["memory"] = vars(report.memory) | {"total": report.memory.total}
    found["collectives"] = sent(report)
    if not one.partitioned:
        found["differences"] = tally(word for _, how in report.differences for word in how.words)
    return found | ({"timeline": picture(report)} if one.timeline else {})


def sent(report: CompiledReport) -> list[list[Any]]:
    """Collectives as compiled: kind, mesh axes, bytes that a device holds before, asynchronous or not; how often."""
    alike: dict[tuple, int] = {}
    for each in report.collectives:
        key = (each.kind, format_axes(each.axes), each.n_bytes, each.is_async)
        alike[key] = alike.get(key, 0) + each.times
    return [[*key, times] for key, times in alike.items()]


def tally(words: Iterable[str]) -> dict[str, int]:
    """How often each is there."""
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found


def picture(report: CompiledReport) -> Any:
    """One layer in time."""
    from mtfcore.compiling.timeline import timeline

    return timeline(report).to_json()


def plain(number: Any) -> int | float:
    """A whole number, or where bytes do not divide a fraction."""
    return int(number) if number == int(number) else float(number)


def where(one: Machine) -> Mapping[str, Any]:
    """The slice; no device of it was touched."""
    slice_ = mtf.topology(one.topology)
    return {"platform": "compiler", "device_kind": f"TPU {slice_.chip.name}", "devices": slice_.devices,
            "topology": one.topology}  # fmt: skip
