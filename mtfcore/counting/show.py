"""Counts as a table: plain text for terminals and screen readers, HTML for notebooks.

Exact bytes stand in the text; the HTML shows KiB, MiB and so on with the exact bytes on hover.

    >>> print(Counts(flops=1024, scope="per device"))
    counted from the jaxpr, per device: 0 collectives, 0 B sent by one device, 1,024 FLOPs, 0 elementwise

The last file of the counters: facts.py has the Counts that are shown here.
"""

from html import escape
from typing import Any

from mtfcore.counting.facts import Bytes, Collective, Counts
from mtfcore.numbers import format_bytes

HEADINGS = ("kind", "axes", "group", "times", "dtype", "holds", "sends each time", "sends in all", "where")
_LANGUAGES = {"jaxpr": "the jaxpr", "stablehlo": "the StableHLO", "hlo text": "HLO text"}


def exact(number: Bytes) -> str:
    """All digits of a count; what does not divide stands as a fraction (Python 3.11 cannot format those)."""
    whole = f"{number.numerator:,}"
    return whole if number.denominator == 1 else f"{whole}/{number.denominator}"


def headline(counts: Counts) -> str:
    """One line: origin, scope, totals."""
    elementwise = counts.elementwise_flops
    rest = "" if elementwise is None else f", {elementwise:,} elementwise"
    number = len(counts.collectives)
    return (
        f"{counts.origin} from {_LANGUAGES[counts.language]}, {counts.scope}: {number} "
        f"collective{'' if number == 1 else 's'}, {exact(counts.link_bytes)} B sent by one device, "
        f"{counts.flops:,} FLOPs{rest}"
    )


def _cells(c: Collective) -> tuple:
    axes = " ".join(map(str, c.axes)) or "-"
    return c.kind, axes, c.group_size, c.times, c.dtype, c.n_bytes, c.link_bytes, c.times * c.link_bytes, c.where


def _remarks(counts: Counts) -> list[str]:
    free = [f"free (moves nothing): {c.kind} {c.where}".rstrip() for c in counts.free]
    return free + [f"note: {n}" for n in counts.notes]


def text_table(counts: Counts) -> str:
    cells = [[v if isinstance(v, str) else exact(v) for v in _cells(c)] for c in counts.collectives]
    rows = [HEADINGS, *cells]
    widths = [max(map(len, column)) for column in zip(*rows)]
    number = [False, False, True, True, False, True, True, True, False]
    lines = [
        "  ".join(v.rjust(w) if right else v.ljust(w) for v, w, right in zip(row, widths, number)).rstrip()
        for row in rows
    ]
    return "\n".join([headline(counts), *(lines if counts.collectives else ()), *_remarks(counts)])


def html_table(counts: Counts) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in HEADINGS)
    body = "".join("<tr>" + "".join(map(_html_cell, HEADINGS, _cells(c))) + "</tr>" for c in counts.collectives)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    remarks = "".join(f"<div>{escape(r)}</div>" for r in _remarks(counts))
    return f"<div><b>{escape(headline(counts))}</b>{table}{remarks}</div>"


def _html_cell(heading: str, value: Any) -> str:
    if heading in ("holds", "sends each time", "sends in all"):
        return f'<td style="text-align:right" title="{exact(value)} B">{escape(format_bytes(value))}</td>'
    return f"<td>{escape(str(value))}</td>"
