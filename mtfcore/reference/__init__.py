"""Published figures as data, each with its public source.

    >>> [row.printed for row in rows(table="Table 2", quantity="latency")]
    ['0.29', '1.82', '85.2', '6.0']

`chips.json` is read by `mtfcore.chips`, `second_paper.json` and `first_paper.json` by `figures`, `errata.json` by
`mtfcore.costs.second_paper.wrong_claims`. First file to read: `figures`.
"""

from mtfcore.reference.figures import Published, latency_rows, rows, sources, tables

__all__ = ["Published", "latency_rows", "rows", "sources", "tables"]
