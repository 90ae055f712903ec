"""How far off each table is: median, nine rows in ten, and the worst; latencies of fitted and of checked rows apart.

    >>> [(line["group"], line["n"]) for line in summary(["Figure 3", "Table 1"]).rows]
    [('Figure 3', 56), ('Table 1', 12)]

Where a table has latencies, they alone are summed up, one of each setup: MFU and cost say the same once more. A row on
which constants were fitted says less than one that only checks them. Next file to read: `__main__`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mtfcore.costs.against_published.comparing import Comparison, compare
from mtfcore.costs.pricing.rates import fitted
from mtfcore.errors import sure
from mtfcore.reference import Published, latency_rows
from mtfcore.tables import Column, Row, Table


@dataclass(frozen=True)
class Errors:
    """How far a group of rows is off: sizes of the relative errors."""

    n: int
    agreeing: int  # that round to what is printed
    median: float
    ninth_tenth: float  # nine rows in ten are no further off
    worst: float
    worst_row: str


def errors(comparisons: Iterable[Comparison]) -> Errors | None:
    """The errors of rows with numbers; None where there are none."""
    numbers = [each for each in comparisons if each.error is not None]
    if not numbers:
        return None
    numbers.sort(key=lambda each: abs(sure(each.error)))
    sizes = [abs(sure(each.error)) for each in numbers]
    ninth = sizes[-(-9 * len(sizes) // 10) - 1]
    agreeing = sum(each.agrees for each in numbers)
    return Errors(len(sizes), agreeing, statistics.median(sizes), ninth, sizes[-1], numbers[-1].row.key)


def latencies(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Those that compare a latency, one of each setup."""
    one_each = {row.key for row in latency_rows()}
    return [each for each in comparisons if each.row.key in one_each]


def chip_of(row: Published) -> str:
    """The chip on which a row was measured."""
    return row.setup["topology"].partition(":")[0]


def is_fitted(row: Published) -> bool:
    """Whether its chip's constants were fitted on it."""
    return row.key.startswith(tuple(fitted().get(chip_of(row), {}).get("fitted", ())))


# ---- for people

COLUMNS = (
    Column("group", "rows of"),
    Column("n", "rows", is_number=True),
    Column("agreeing", "as printed", is_number=True),
    Column("median", "median error", "{:.2%}".format, is_number=True),
    Column("ninth_tenth", "nine in ten within", "{:.2%}".format, is_number=True),
    Column("worst", "worst", "{:.2%}".format, is_number=True),
    Column("worst_row", "which", wraps=True),
)


def summary(tables: Sequence[str]) -> Table:
    """One line a table; then all latencies together, and those that were fitted and that check apart, chip by chip."""
    found = {table: compare(table) for table in tables}
    groups = [(table, errors(latencies(rows) or rows)) for table, rows in found.items()]
    timed = [each for rows in found.values() for each in latencies(rows)]
    if timed:
        groups += [("all latencies", errors(timed)), *_apart(timed)]
    lines: list[Row] = [{"group": name, **vars(each)} for name, each in groups if each]
    return Table(COLUMNS, lines, "Published figures beside ours (published; modelled): relative errors")


def _apart(timed: Sequence[Comparison]) -> Iterator[tuple[str, Errors | None]]:
    for chip in sorted({chip_of(each.row) for each in timed}):
        here = [each for each in timed if chip_of(each.row) == chip]
        yield f"latencies, {chip}, fitted on", errors(each for each in here if is_fitted(each.row))
        yield f"latencies, {chip}, checking", errors(each for each in here if not is_fitted(each.row))
