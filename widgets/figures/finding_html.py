"""The list of slices that meet a limit, as HTML: one row a slice, and a button that loads it.

    >>> finding_html(facts)[:10]
    '<div class'

Its height does not change with its length: it scrolls. Next file to read: `finding_words`.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from widgets.figures.finding import Facts
from widgets.figures.plans import waits_for
from widgets.numbers import origin, quantity, tagged_html

HEAD = ("slice", "chips", "batch", "a token", "prefill", "prefill lies as", "decode lies as", "costs a token",
        "a million", "memory", "waits for")  # fmt: skip
NUMBERS = (1, 2, 3, 4, 7, 8, 9)  # columns that stand to the right
MONEY = 8


def finding_html(facts: Facts) -> str:
    """The list, best first."""
    has_prices = any(row["million"] is not None for row in facts["rows"])
    shown = [n for n in range(len(HEAD)) if n != MONEY or has_prices]
    head = "".join(f'<th scope="col">{html.escape(HEAD[n])}</th>' for n in shown)
    body = "".join(_row(row, n, shown) for n, row in enumerate(facts["rows"]))
    body += "".join(_missed(chip, row, facts["limit"], len(shown)) for chip, row in facts["nearest"].items())
    bounds = f"; {', '.join(facts['uncalibrated'])}: no fitted constants, so bounds" if facts["uncalibrated"] else ""
    caption = tagged_html(f"times, costs and memory [modelled]{bounds}")
    return (
        f'<div class="mw-list" style="height:300px" data-scrolls="1" data-found="{facts["n_met"]}"><table>'
        f"<caption>{caption}</caption><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: Facts, n: int, shown: Sequence[int]) -> str:
    button = (
        f'<button type="button" class="mw-button" data-pick="load:{n}" aria-label="load {html.escape(row["topology"])}'
        f', batch {row["batch"]}">load</button>'
    )
    texts = cells(row)
    drawn = "".join(f"<td{_right(at)}>{html.escape(texts[at])}</td>" for at in shown)
    return f'<tr data-row="{n}" data-topology="{html.escape(row["topology"])}"><td>{button}</td>{drawn}</tr>'


def _right(column: int) -> str:
    return ' class="mw-n"' if column in NUMBERS else ""


def cells(row: Facts) -> tuple[str, ...]:
    """One row's texts, without its button."""
    money = "-" if row["million"] is None else format(row["million"], ",.3g")
    return (
        row["topology"], f"{row['chips']:,}", f"{row['batch']:,}", quantity(row["step"], "s"),
        quantity(row["prefill_seconds"], "s"), row["layouts"]["prefill"], row["layouts"]["decode"],
        quantity(row["chip_seconds"], "s").replace(" ", " chip-"), money, f"{100 * row['held']:.0f} %",
        waits_for(row["bottleneck"]["decode"]),
    )  # fmt: skip


def _missed(chip: str, row: Facts | None, limit: float, columns: int) -> str:
    if row is None:
        words = "nothing fits in memory on as many chips as are allowed"
    else:
        took = origin(quantity(row["step"], "s"), "modelled")
        words = (
            f"none within {quantity(limit, 's')}; the fastest takes {took}: {row['topology']}, batch {row['batch']}, "
            f"waiting for {waits_for(row['bottleneck']['decode'])}"
        )
    cell = f'<td colspan="{columns - 1}">{tagged_html(words)}</td>'
    return f'<tr data-missed="{chip}"><td></td><td>{chip}</td>{cell}</tr>'
