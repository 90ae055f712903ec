"""The slices that meet a limit: of many estimates, the cheapest for each slice, and what comes nearest where none does.

    >>> found = find(trials, limit=0.030, prices={})
    >>> [(row["topology"], row["batch"], row["step"]) for row in found["rows"]][:1]
    [('v5e:4x8', 16, 0.0262)]

A trial is one slice at one batch: its time a token, its prefill, whether it fits. For each slice the batch is taken
that costs least and still meets the limit. Chip-seconds of different chips are not comparable, so without the reader's
prices the list goes by the number of chips; with them it goes by money. Next file to read: `finding_html`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Facts = dict[str, Any]
MOST_ROWS = 40


def find(trials: Sequence[Facts], limit: float, prices: Mapping[str, float]) -> Facts:
    """Rows that meet the limit, least money or fewest chips first; for each chip that misses it the fastest."""
    met = [trial for trial in trials if trial["fits"] and trial["step"] <= limit]
    rows = [_priced(row, prices) for row in _cheapest(met)]
    by_money = all(row["million"] is not None for row in rows)
    rows.sort(key=lambda row: (row["million"] if by_money else row["chips"], row["chip_seconds"], row["topology"]))
    return {"rows": rows[:MOST_ROWS], "n_met": len(rows), "n_trials": len(trials), "limit": limit,
            "nearest": _nearest(trials, {row["chip"] for row in rows})}  # fmt: skip


def _cheapest(met: Iterable[Facts]) -> list[Facts]:
    best: dict[str, Facts] = {}
    for trial in met:
        own = best.get(trial["topology"])
        if own is None or (trial["chip_seconds"], trial["step"]) < (own["chip_seconds"], own["step"]):
            best[trial["topology"]] = trial
    return _without_longer(best.values())


def _without_longer(rows: Iterable[Facts]) -> list[Facts]:
    """Of slices of one chip with as many chips, the one that is cheapest: 4x8x2 beside 4x4x4 teaches nothing here."""
    best: dict[tuple[str, int], Facts] = {}
    for row in rows:
        key = row["chip"], row["chips"]
        if key not in best or (row["chip_seconds"], row["step"]) < (best[key]["chip_seconds"], best[key]["step"]):
            best[key] = row
    return list(best.values())


def _priced(row: Facts, prices: Mapping[str, float]) -> Facts:
    price = prices.get(row["chip"])
    return {**row, "million": None if price is None else 1e6 * row["chip_seconds"] * price / 3600}


def _nearest(trials: Iterable[Facts], met: set[str]) -> dict[str, Facts | None]:
    """For each chip without an answer, the fastest that fits; None where nothing fits."""
    found: dict[str, Facts | None] = {}
    for trial in trials:
        chip = trial["chip"]
        if chip in met:
            continue
        own = found.setdefault(chip, None)
        if trial["fits"] and (own is None or trial["step"] < own["step"]):
            found[chip] = trial
    return found


def smallest(rows: Sequence[Facts]) -> Facts:
    """The row with the fewest chips."""
    return min(rows, key=lambda row: (row["chips"], row["chip_seconds"]))


def cheapest_of_each(rows: Sequence[Facts]) -> list[Facts]:
    """Of each chip, the row with the fewest chip-seconds a token."""
    best: dict[str, Facts] = {}
    for row in rows:
        own = best.get(row["chip"], row)
        best[row["chip"]] = min(own, row, key=lambda each: each["chip_seconds"])
    return list(best.values())
