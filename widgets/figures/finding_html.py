"""The list of slices that meet a limit, as HTML: one row a slice, and a button that loads it.

    >>> finding_html(facts)[:10]
    '<div class'

Its height does not change with its length: it scrolls. Next file to read: `finding_words`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator

from widgets.figures.finding import Facts
from widgets.numbers import origin, quantity, tagged_html

HEAD = ("", "slice", "chips", "batch", "a token [modelled]", "prefill [modelled]", "costs a token [modelled]",
        "prefill lies as", "decode lies as", "memory [modelled]", "a token waits for")  # fmt: skip


def finding_html(facts: Facts) -> str:
    """The list, best first."""
    head = "".join(f'<th scope="col">{tagged_html(words)}</th>' for words in HEAD)
    body = "".join(_row(row, n) for n, row in enumerate(facts["rows"]))
    body += "".join(_missed(chip, row, facts["limit"]) for chip, row in facts["nearest"].items())
    return (
        f'<div class="mw-list" style="height:300px" data-scrolls="1" data-found="{facts["n_met"]}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: Facts, n: int) -> str:
    button = (
        f'<button type="button" class="mw-button" data-pick="load:{n}" aria-label="load {html.escape(row["topology"])}'
        f', batch {row["batch"]}">load</button>'
    )
    cells = "".join(f'<td class="{cls}">{tagged_html(words)}</td>' for cls, words in _cells(row))
    return f'<tr data-row="{n}" data-topology="{html.escape(row["topology"])}"><td>{button}</td>{cells}</tr>'


def _cells(row: Facts) -> Iterator[tuple[str, str]]:
    for number, words in enumerate(cells(row)):
        yield ("" if number in (0, 6, 7, 9) else "mw-n"), words


def cells(row: Facts) -> tuple[str, ...]:
    """One row's texts, without its button."""
    cost = quantity(row["chip_seconds"], "s").replace(" ", " chip-")
    if row["million"] is not None:
        cost += f", {row['million']:,.3g} a million"
    return (
        row["topology"], f"{row['chips']:,}", f"{row['batch']:,}", quantity(row["step"], "s"),
        quantity(row["prefill_seconds"], "s"), cost, row["layouts"]["prefill"], row["layouts"]["decode"],
        f"{100 * row['held']:.0f} %", row["bottleneck"]["decode"],
    )  # fmt: skip


def _missed(chip: str, row: Facts | None, limit: float) -> str:
    if row is None:
        words = "nothing fits in memory on as many chips as are allowed"
    else:
        took = origin(quantity(row["step"], "s"), "modelled")
        words = (
            f"none within {quantity(limit, 's')}; the fastest takes {took}: {row['topology']}, batch {row['batch']}, "
            f"waiting for {row['bottleneck']['decode']}"
        )
    return f'<tr data-missed="{chip}"><td></td><td>{chip}</td><td colspan="9">{tagged_html(words)}</td></tr>'
