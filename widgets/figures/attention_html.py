"""The attention explorer's lower picture as HTML: answers in figures, four charts, and Table 1 beside ours.

    >>> attention_html(facts)[:12]
    '<div class="'

Rows of Table 1 can be picked: the settings become the paper's. The same text serves the live view and the still
picture. Next file to read: `attention_words`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from widgets.figures.attention_svg import PARTS, WORDS, context_svg, memory_svg, steps_svg, time_svg
from widgets.figures.bars_svg import legend
from widgets.figures.planner_svg import answers_html
from widgets.figures.svg import tag
from widgets.numbers import count, origin, quantity, tagged_html

Facts = dict[str, Any]
HEAD = ("", "batch", "longest context", "ours")


def attention_html(facts: Facts) -> str:
    """Answers above, charts and Table 1 below."""
    slots = "".join(f'<div class="mw-slot">{chart}</div>' for chart in charts(facts))
    marks = legend([(WORDS[part], colour) for part, colour in PARTS.items()])
    table = f'<div class="mw-slot">{table_1(facts)}</div>'
    return f'{answers_html(answers(facts))}{marks}<div class="mw-charts">{slots}{table}</div>'


def charts(facts: Facts) -> list[str]:
    """Memory, steps, context and time."""
    return [memory_svg(facts), steps_svg(facts), context_svg(facts), time_svg(facts)]


def attention_file(facts: Facts, width: float = 420.0, height: float = 340.0) -> str:
    """The charts as one SVG file, two in a row, dark on white."""
    placed = [tag("g", chart, transform=f"translate({n % 2 * width:.0f} {n // 2 * height:.0f})")
              for n, chart in enumerate(charts(facts))]  # fmt: skip
    size = {"width": 2 * width, "height": 2 * height}
    return tag("svg", tag("rect", **size, fill="#fff"), *placed, **size, color="#111",
               xmlns="http://www.w3.org/2000/svg")  # fmt: skip


def answers(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """(key, number with its origin, what it is)."""
    way = facts["ways"][facts["by"]]
    yield (
        "copies",
        origin(f"{way['copies']:,}", "modelled"),
        f"{'device holds' if way['copies'] == 1 else 'devices hold'} each kept key and value",
    )
    yield "cache", origin(quantity(way["cache"], "iB"), "modelled"), "of cache on a device"
    yield "once", origin(quantity(way["once"], "iB"), "modelled"), "if nothing were copied"
    yield "longest", origin(f"{way['longest']:,}", "modelled"), f"tokens of context at most, batch {facts['batch']:,}"
    yield "most", origin(f"{way['most']:,}", "modelled"), f"sequences at most, context {facts['context']:,}"
    sent = sum(step["bytes"] for step in facts["steps"] if step["moves"] != "x")
    yield "sent", origin(quantity(sent, "iB"), "modelled"), "of q, k, v and result sent, a layer and device"


def table_1(facts: Facts) -> str:
    """The paper's table, each row with ours; a row loads its settings."""
    head = "".join(f'<th scope="col">{html.escape(words)}</th>' for words in HEAD)
    rows = "".join(_row(n, row) for n, row in enumerate(facts["table_1"]))
    caption = "Longest context: PaLM 540B on 64 TPU v4, 30 % of memory for the cache (Table 1)"
    top = f"<caption>{caption}</caption><thead><tr>{head}<th></th></tr></thead>"
    return f'<div class="mw-list"><table>{top}<tbody>{rows}</tbody></table></div>'


def _row(n: int, row: Facts) -> str:
    cells = (
        row["name"],
        f"{row['batch']:,}",
        origin(row["printed"], "published"),
        origin(f"{row['ours']:,}", "modelled"),
    )
    shown = "".join(f"<td>{tagged_html(cell)}</td>" for cell in cells)
    words = html.escape(f"show {row['name']}, batch {row['batch']}")
    button = f'<button class="mw-button" data-pick="table:{n}" aria-label="{words}">show</button>'
    return f'<tr data-row="{n}">{shown}<td>{button}</td></tr>'


__all__ = ["answers", "attention_file", "attention_html", "count"]
