"""A compiled report as a table: what was planned, what was compiled, and every difference in words.

Next file to read: `programs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtfcore.compiling.collectives import Sent
from mtfcore.compiling.differences import Difference, sent_bytes
from mtfcore.compiling.matching import Match
from mtfcore.compiling.timing import ORIGIN
from mtfcore.errors import sure
from mtfcore.notation import format_axes
from mtfcore.numbers import format_bytes, format_seconds
from mtfcore.tables import Column, Row, Table

if TYPE_CHECKING:
    from mtfcore.compiling.report import CompiledReport

COLUMNS = (
    Column("number", "step"),
    Column("planned", "planned"),
    Column("planned_bytes", "sends", format_bytes, is_number=True),
    Column("compiled", "compiled", wraps=True),
    Column("compiled_bytes", "sends", format_bytes, is_number=True),
    Column("groups", "groups"),
    Column("is_async", "async", lambda yes: "yes" if yes else ""),
    Column("times", "times", is_number=True),
    Column("why", "why", wraps=True, below=True),
)


def report_table(report: CompiledReport) -> Table:
    """Every collective, planned beside compiled; rows that are not as planned stand out."""
    rows = [match_row(match, how) for match, how in report.matches]
    total = {
        "number": "total", "planned_bytes": sum(row["planned_bytes"] for row in rows),
        "compiled_bytes": report.link_bytes,
    }  # fmt: skip
    notes = [*_notes(report)]
    return Table(COLUMNS, rows, report.headline(), total if rows else None, tuple(notes), "differs")


def match_row(match: Match, how: Difference) -> Row:
    """One match; bytes are those of one device in all, loops multiplied."""
    plan, made = sent_bytes(match)
    names = [f"{sent.kind} over {sent.where}" for sent in match.compiled]
    times = {sent.times for sent in match.compiled} or {p.times for p in match.planned}
    return {
        "number": ", ".join(p.number for p in match.planned),
        "planned": " and ".join(f"{p.kind} over {format_axes(p.axes)}" for p in match.planned),
        "planned_bytes": plan,
        "compiled": ", ".join(dict.fromkeys(names)),
        "groups": ", ".join(dict.fromkeys(filter(None, map(_groups, match.compiled)))),
        "sent": [sent_row(sent) for sent in match.compiled],
        "compiled_bytes": made,
        "is_async": any(sent.is_async for sent in match.compiled),
        "times": max(times),
        "words": how.words,
        "why": how.why,
        "differs": bool(how.words),
    }


def sent_row(sent: Sent) -> Row:
    """One compiled collective, exactly: bytes are those that one device holds before, and that it sends each time."""
    return {
        "name": sent.name, "kind": sent.kind, "axes": sent.axes, "whole": sent.whole, "group": sent.group,
        "groups": sent.groups, "n_bytes": sent.n_bytes, "parts": sent.parts, "dtypes": sent.dtypes,
        "link_bytes": sent.link_bytes, "times": sent.times, "is_async": sent.is_async,
    }  # fmt: skip


def _groups(sent: Sent) -> str:
    """How many groups of how many devices; a permute has pairs instead."""
    return "" if sent.kind == "permute" else f"{len(sent.groups)} of {sent.group}"


def _notes(report: CompiledReport) -> list[str]:
    notes = [f"{report.compiler}; the mesh lies {report.wiring.text()}. sends: bytes of one device in one run."]
    if report.refusal:
        return [*notes, f"the compiler: {report.refusal.message}"]
    memory = sure(report.memory)
    notes.append(f"memory of one device (compiled): {memory}; in all {format_bytes(memory.total)}")
    parts = (
        f"{report.cycles:,} cycles are {format_seconds(report.compute_seconds)}",
        f"links {format_seconds(report.link_seconds)}",
        f"of which {format_seconds(report.exposed_link_seconds)} are not hidden",
    )
    return [*notes, f"{', '.join(parts)} ({ORIGIN})", *report.schedule.notes]
