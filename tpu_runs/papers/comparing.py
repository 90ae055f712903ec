"""Published latencies beside compiled schedules: errors row by row, how far off each table is, and what choices gain.

    >>> for table in tables(): print(table)

All from committed records; nothing is compiled. What is judged takes the compiler's cycles and the links at their
published rates: no constant in it is fitted. The summary has beside it what the link constants of the calibrated model
would give, which were fitted to some of these rows by another way of counting (`costs.calibration`).
Next file to read: `effects`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

import mtfcore as mtf
from mtfcore.compiling.timing import ORIGIN
from mtfcore.costs.pricing.rates import rates
from mtfcore.errors import sure
from mtfcore.numbers import format_seconds
from mtfcore.tables import Column, Table
from mtfcore.tables import Row as Line
from tpu_runs.papers.explained import FAR, cycles_alone, why
from tpu_runs.papers.kept import kept
from tpu_runs.papers.rows import PASSES, Row, as_one, rows
from tpu_runs.records import Record


def signed(error: float) -> str:
    """`+1.4%`"""
    return f"{error:+.1%}"


COLUMNS = (
    Column("table", "table"),
    Column("name", "row", wraps=True),
    Column("published", "published", format_seconds, is_number=True),
    Column("cycles", "cycles", format_seconds, is_number=True),
    Column("links", "and links", format_seconds, is_number=True),
    Column("seconds", "together", format_seconds, is_number=True),
    Column("error", "error", signed, is_number=True),
    Column("looped_error", "looped", signed, is_number=True),
    Column("compile_seconds", "compiled in", format_seconds, is_number=True),
    Column("program", "the fastest program", wraps=True),
    Column("why", "why", wraps=True, below=True),
)


def line(row: Row, records: Mapping[str, Record]) -> Line:
    """One published latency beside ours, with exact numbers."""
    printed = row.published.seconds
    found = {"table": row.published.table, "name": row.published.name, "published": printed,
             "quantity": row.published.quantity, "phases": [part.phase for part in row.parts]}  # fmt: skip
    if (seconds := row.seconds(records)) is None:
        return found | {"why": _missing(row, records)}
    best, alone = [sure(part.best(records)) for part in row.parts], cycles_alone(row, records)
    other, looped = sure(row.seconds(records, "calibrated")), sure(row.seconds(records, looped=True))
    return found | {
        "cycles": alone, "links": seconds - alone, "seconds": seconds, "error": seconds / printed - 1,
        "calibrated_error": other / printed - 1, "looped_error": looped / printed - 1,
        "slowest_error": sure(row.seconds(records, slowest=True)) / printed - 1,
        "machines": tuple(one.name for part in row.parts for one in part.machines),
        "compile_seconds": max(sure(record.compile_seconds) for record in best),
        "program": " and ".join(f"{part.times} x {_short(one)}" for part, one in zip(row.parts, best, strict=True)),
        "why": why(row, records),
    }  # fmt: skip


def _short(record: Record) -> str:
    """What a row's title does not say: the phase, how attention is cut, the mesh."""
    params = record.params["params"]
    return f"{params['phase']} of {params['batch']}, {params['attention']}, {params['mesh']}"


def _missing(row: Row, records: Mapping[str, Record]) -> str:
    there = [records[one.name] for part in row.parts for one in part.machines if one.name in records]
    return "; ".join(dict.fromkeys(record.reason for record in there if record.reason)) or "no record: --make compiles"


def published_table(records: Mapping[str, Record]) -> Table:
    """Every latency that a TPU was published for."""
    title = f"The second paper's latencies (published) beside what a compiler of today makes of them ({ORIGIN})"
    return Table(COLUMNS, [line(row, records) for row in rows()], title, notes=tuple(_notes(records)))


def _notes(records: Mapping[str, Record]) -> Iterator[str]:
    yield "Of the programs that a row may have run the fastest stands here, near to what is published or not: there are"
    yield "several where the paper leaves open how attention is cut, or the mesh can lie in more ways than one."
    yield "A step's time counts for each token of the output. What compiling took is this computer's time."
    yield "Figures 1, 6 and 7 are read off their lines, the seconds of 7 from its MFU; the grid of chips is ours."
    yield "Some rows publish one program's time again: the summary counts programs beside rows."
    yield "Cycles are the compiler's own; links that nothing hides have their published rates. Nothing is fitted."
    yield "looped: the error where the loops of section 3.5 around the feedforward's products count too, if faster."
    for row in rows():
        if row.published.key in PASSES and (whole := records.get(as_one(row).name)):
            yield f"{row.published.name}: in {PASSES[row.published.key]} passes, since as one {whole.reason}."


# ---- how far off ----------------------------------------------------------------------------------------------------


def notes() -> Iterator[str]:
    """What the columns of the summary are."""
    share = rates(mtf.chip("v4"), "calibrated").compute_share
    yield "slowest: if the slowest stood there of the programs that a row may have run."
    yield "median error: of plain programs, as planned; with loops: with section 3.5's where they are faster, as the"
    yield "paper ran; signed: with its sign, - where ours is faster."
    yield "calibrated links: if links had the calibrated model's constants. These were fitted beside products at"
    yield f"{share:.0%} of the peak, so they also stand for what products take beyond that, which is in a"
    yield "compiler's cycles already."


SUMMARY = (
    Column("group", "rows of"),
    Column("n", "rows", is_number=True),
    Column("programs", "programs", is_number=True),
    Column("median", "median error", "{:.1%}".format, is_number=True),
    Column("looped", "with loops", "{:.1%}".format, is_number=True),
    Column("signed", "signed", signed, is_number=True),
    Column("worst", "worst", "{:.1%}".format, is_number=True),
    Column("slowest", "slowest", "{:.1%}".format, is_number=True),
    Column("calibrated", "calibrated links", "{:.1%}".format, is_number=True),
    Column("within", f"within {FAR:.0%}", is_number=True),
)


def summary(records: Mapping[str, Record]) -> Table:
    """Medians of the errors' sizes: of each table, of prefill, of decode, of all."""
    lines = [line(row, records) for row in rows()]
    named = {name: [one for one in lines if one["table"] == name] for name in dict.fromkeys(o["table"] for o in lines)}
    for phase in ("prefill", "decode"):
        named[f"prefill and decode, {phase}"] = [one for one in lines if one["phases"] == [phase]]
    named["prefill and decode"] = [one for one in lines if len(one["phases"]) == 1]
    named["all, totals of both among them"] = lines
    title = f"How far off: sizes of the relative errors of {ORIGIN}, against published"
    found = [_off(name, some) for name, some in named.items()]
    return Table(SUMMARY, [each for each in found if each], title, notes=tuple(notes()))


def _off(name: str, lines: Sequence[Line]) -> Line | None:
    there = [one for one in lines if "error" in one]
    if not there:
        return None
    sizes = [abs(one["error"]) for one in there]
    return {
        "group": name, "n": len(sizes), "programs": len({one["machines"] for one in there}),
        "median": statistics.median(sizes), "worst": max(sizes),
        "signed": statistics.median(one["error"] for one in there),
        "slowest": statistics.median(abs(one["slowest_error"]) for one in there),
        "looped": statistics.median(abs(one["looped_error"]) for one in there),
        "calibrated": statistics.median(abs(one["calibrated_error"]) for one in there),
        "within": sum(size <= FAR for size in sizes),
    }  # fmt: skip


def tables() -> Iterable[Table]:
    """Everything that is shown: rows, how far off they are, what choices gain, and the first paper's machines."""
    from tpu_runs.papers import effects, training_tables

    records = kept()
    yield published_table(records)
    yield summary(records)
    yield effects.table(records)
    yield training_tables.published()
    yield from training_tables.tables()
