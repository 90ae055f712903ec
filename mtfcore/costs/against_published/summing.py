"""How far off each table is: median, nine rows in ten, and the worst; latencies of fitted and of checked rows apart.

    >>> [(line["group"], line["n"]) for line in summary(["Figure 3", "Table 1"]).rows]
    [('Figure 3', 56), ('Table 1', 12)]

A row on which constants were fitted says less than one that only checks them. Next file to read: `__main__`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mtfcore.costs.against_published.comparing import Comparison, compare
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
    numbers.sort(key=lambda each: abs(each.error))
    sizes = [abs(each.error) for each in numbers]
    ninth = sizes[-(-9 * len(sizes) // 10) - 1]
    agreeing = sum(each.agrees for each in numbers)
    return Errors(len(sizes), agreeing, statistics.median(sizes), ninth, sizes[-1], numbers[-1].row.key)


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
    """One line a table."""
    groups = [(table, errors(compare(table))) for table in tables]
    lines: list[Row] = [{"group": name, **vars(found)} for name, found in groups if found]
    return Table(COLUMNS, lines, "Published figures beside ours (published; modelled): relative errors")
