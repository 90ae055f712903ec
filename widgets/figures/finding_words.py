"""What the planner says when it looks for slices: the answer in one sentence, what is missed, and the table.

    >>> sentence(facts)[:60]
    'Cheapest under 30 ms a token: v5p:2x2x4, 16 chips, batch 32,'

Next file to read: `frontier`.
"""

from __future__ import annotations

from widgets.figures.finding import Facts, cheapest_of_each, smallest
from widgets.figures.finding_html import HEAD, NUMBERS, cells
from widgets.numbers import count, origin, quantity

MODELLED = tuple(n for n in NUMBERS if n > 2)  # chips and batch were asked


def sentence(facts: Facts) -> str:
    """The cheapest, the smallest, and the chips that miss the limit."""
    limit, rows = quantity(facts["limit"], "s"), facts["rows"]
    looked = f"Looked at {count(facts['n_trials'], 'plan')} on {count(facts['n_slices'] - facts['n_waiting'], 'slice')}"
    looked += f", {facts['n_waiting']} to go." if facts["n_waiting"] else "."
    if not rows:
        nothing = f"Nothing{' yet' if facts['n_waiting'] else ''} meets {limit} a token."
        return " ".join([nothing, *_missed(facts), looked])
    small = smallest(rows)
    words = [f"Fewest chips under {limit} a token: {_one(small)}."]
    if rows[0]["million"] is not None and rows[0] is not small:
        words.append(f"Least money: {_one(rows[0])}.")
    elif rows[0]["million"] is None:
        words.append(_chip_seconds(rows))
    return " ".join([*words, *_missed(facts), looked])


def _chip_seconds(rows: list[Facts]) -> str:
    """Those of different chips cost different money, so each chip has its own."""
    each = (f"{row['topology']} at batch {row['batch']:,}: {quantity(row['chip_seconds'], 's').replace(' ', ' chip-')}"
            for row in cheapest_of_each(rows))  # fmt: skip
    return f"Fewest chip-seconds a token: {origin('; '.join(each), 'modelled')}."


def _one(row: Facts) -> str:
    times = origin(f"{quantity(row['step'], 's')} a token, prefill {quantity(row['prefill_seconds'], 's')}", "modelled")
    lies = f"{row['layouts']['prefill']} for prefill, {row['layouts']['decode']} for decode"
    return f"{row['topology']} ({count(row['chips'], 'chip')}), batch {row['batch']:,}, {lies}: {times}"


def _missed(facts: Facts) -> list[str]:
    said = []
    for chip, row in facts["nearest"].items():
        near = "nothing fits" if row is None else f"at best {quantity(row['step'], 's')} with {row['topology']}"
        said.append(f"{chip}: {near}")
    return [f"Not met by {origin('; '.join(said), 'modelled')}."] if said else []


def table(facts: Facts) -> list[tuple[str, ...]]:
    """All rows."""
    return [HEAD, *(_tagged(cells(row)) for row in facts["rows"])]


def _tagged(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        origin(words, "modelled") if n in MODELLED and words != "-" else words for n, words in enumerate(texts)
    )
