"""Why a compiled row is off its published value: a sentence for each that differs by more than is asked of the median.

    >>> why(row, records)[:24]
    'Links that nothing hides'

A reason says what would explain the difference; it is given only where the numbers allow it, and a test refuses a row
that is far off without one. Nobody measured the parts on those chips. Next file to read: `remaking`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mtfcore as mtf
from mtfcore.errors import sure
from mtfcore.numbers import format_bytes, format_seconds
from tpu_runs.papers.rows import Row, rows
from tpu_runs.records import Record

FAR = 0.08  # what the median is to stay within; rows beyond it are explained
TILE = 8  # rows of a tile of the compiler, T(8,128) in its texts: a sequence's tokens are padded to it


def why(row: Row, records: Mapping[str, Record]) -> str:
    """The reason for a row's difference; empty where it is near, or where no reason holds."""
    ours, printed = row.seconds(records), row.published.seconds
    if ours is None or abs(ours / printed - 1) <= FAR:
        return ""
    if printed < ours:
        return _hidden(row, records)
    return _one_ring(row, records) if row.published.setup["ffn"] == "wg_xyz" else _more_chips(row, records)


def cycles_alone(row: Row, records: Mapping[str, Record]) -> float:
    """Seconds of the same schedules if links took no time at all."""
    return _sum(row, records, lambda record: record.facts["compute_seconds"])


def of_links(row: Row, records: Mapping[str, Record]) -> float:
    """What was measured beyond cycles alone, over our time of the links: 1 where both are the same."""
    alone = cycles_alone(row, records)
    return (row.published.seconds - alone) / (sure(row.seconds(records)) - alone)


def _sum(row: Row, records: Mapping[str, Record], value: Callable[[Record], float]) -> float:
    return sum(part.times * value(sure(part.best(records))) for part in row.parts)


def _hidden(row: Row, records: Mapping[str, Record]) -> str:
    if (left := of_links(row, records)) < 0:
        return ""
    words = (
        f"Links that nothing hides here may have been hidden there: {1 - left:.0%} of their time would do, as cycles "
        f"alone take {format_seconds(cycles_alone(row, records))}. The paper's loops hide links (section 3.5); this "
        "compiler leaves gathers and sums synchronous."
    )
    looped = sure(row.seconds(records, looped=True))
    if looped < sure(row.seconds(records)):
        words += f" With loops it takes {format_seconds(looped)} here, {looped / row.published.seconds - 1:+.1%}."
    elif any(part.loops for part in row.parts):
        words += " Loops as compiled here cost more than they hide."
    tokens = row.published.setup["input_tokens"]
    if row.parts[0].phase == "prefill" and tokens % TILE:
        words += f" And each sequence's {tokens} tokens fill {-(-tokens // TILE) * TILE} rows of its tiles."
    return words


def _one_ring(row: Row, records: Mapping[str, Record]) -> str:
    n_bytes = _sum(row, records, lambda record: record.counts["link_bytes"])
    links = _sum(row, records, lambda record: record.facts["link_seconds"])
    alone = n_bytes / mtf.chip(row.published.setup["topology"].partition(":")[0]).value("link_bytes_per_second")
    if alone > row.published.seconds:
        return ""
    return (
        f"Gathering the weights may bind there: each chip sends {format_bytes(n_bytes)}, which takes "
        f"{format_seconds(links)} over all its links at once, as here, but {format_seconds(alone)} over one link one "
        f"way.{_twice(row)}"
    )


def _twice(row: Row) -> str:
    """How much longer twice the sequences took there, where that is published."""
    batch = row.published.setup["batch"]
    alike = (one.published for one in rows() if _but_batch(one) == _but_batch(row))
    more = next((one.seconds for one in alike if one.setup["batch"] == 2 * batch), None)
    if more is None:
        return ""
    return f" Twice the sequences took only {more / row.published.seconds - 1:.0%} longer: what binds is no product."


def _more_chips(row: Row, records: Mapping[str, Record]) -> str:
    alike = [other for other in rows() if _but_chips(other) == _but_chips(row) and other.seconds(records)]
    fewest = min(alike, key=_chips)
    few, many = of_links(fewest, records), of_links(row, records)
    if _chips(fewest) == _chips(row) or many <= few:
        return ""
    return (
        f"More chips gained less there: beyond cycles alone {few:.2f} times our links' time was measured on "
        f"{_chips(fewest)} chips, {many:.2f} times on {_chips(row)}. What a layer costs however little it sends, such "
        "as starting messages and waiting for neighbours, is not in the links' published rates."
    )


def _but_chips(row: Row) -> tuple:
    setup = row.published.setup
    return row.published.table, *(setup[name] for name in ("model", "phase", "ffn", "batch", "weights"))


def _but_batch(row: Row) -> tuple:
    setup = row.published.setup
    return row.published.table, *(setup[name] for name in ("model", "phase", "ffn", "topology", "weights"))


def _chips(row: Row) -> int:
    return mtf.topology(row.published.setup["topology"]).chips
