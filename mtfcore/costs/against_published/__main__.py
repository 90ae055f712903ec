"""The command: every row of a table, or of all, beside ours, and at the end how far off each table is.

    python -m mtfcore.costs.against_published                      # all tables
    python -m mtfcore.costs.against_published "Table 2" "Figure 6"
    python -m mtfcore.costs.against_published --summary

Next file to read: `reference/artefacts`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from mtfcore.costs.against_published.comparing import compare, left_out, table_of
from mtfcore.costs.against_published.summing import summary
from mtfcore.errors import LayoutError, nearest
from mtfcore.reference import tables


def named(wanted: Sequence[str]) -> list[str]:
    """The tables by their names, however these are capitalised; all where none is named."""
    known = {name.casefold(): name for name in tables()}
    unknown = [name for name in wanted if name.casefold() not in known]
    if unknown:
        raise LayoutError("; ".join(f"no table {name!r:.60}, {nearest(name, known.values())}" for name in unknown))
    return [known[name.casefold()] for name in wanted] or list(tables())


def show(table: str) -> None:
    """One table: what it shows, its rows, and what is left out."""
    print(f"\n{table}: {tables()[table]}")
    if found := compare(table):
        print(table_of(found))
    reasons = Counter(row.left_out for row in left_out(table))
    for why, n in reasons.items():
        print(f"  not predicted, {n} of its figures: {why}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was asked for."""
    about = "Every published figure that can be computed, beside what this library says of it."
    parser = argparse.ArgumentParser(prog="python -m mtfcore.costs.against_published", description=about)
    parser.add_argument("tables", nargs="*", help="e.g. 'Table D.2'; none: all")
    parser.add_argument("--summary", action="store_true", help="only how far off each table is")
    asked = parser.parse_args(arguments)
    try:
        wanted = named(asked.tables)
    except LayoutError as error:
        parser.error(str(error))
    if not asked.summary:
        for table in wanted:
            show(table)
    print(f"\n{summary(wanted)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
