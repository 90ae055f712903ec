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

from widgets.figures.attention_svg import PARTS, WORDS, cache_svg, context_svg, memory_svg, steps_svg, time_svg
from widgets.figures.bars_svg import legend
from widgets.figures.on_device import device_html, stamped
from widgets.figures.planner_svg import answers_html
from widgets.figures.svg import tag
from widgets.numbers import origin, quantity, tagged_html
from widgets.theme import GROUND, INK

Facts = dict[str, Any]
ON_A_DEVICE = "A decode step on a device"
HEAD = ("", "batch", "printed", "ours", "")


def attention_html(facts: Facts) -> str:
    """Answers above; two columns: what is held and how far it goes, what is sent and how long it takes."""
    marks = legend([(WORDS[part], colour) for part, colour in PARTS.items()])
    left = f"{cache_svg(facts)}{memory_svg(facts)}{marks}{table_1(facts)}{context_svg(facts)}"
    right = f"{steps_svg(facts)}{time_svg(facts)}{device_html(facts.get('device'), ON_A_DEVICE)}"
    slots = "".join(f'<div class="mw-slot">{each}</div>' for each in (left, right))
    return f'{answers_html(answers(facts))}<div class="mw-charts">{slots}</div>'


def charts(facts: Facts) -> list[str]:
    """The charts, in the order of reading."""
    return [cache_svg(facts), memory_svg(facts), steps_svg(facts), context_svg(facts), time_svg(facts)]


def attention_file(facts: Facts, width: float = 420.0) -> str:
    """The charts as one SVG file."""
    corners = ((0, 0), (0, 110), (width, 0), (0, 350), (width, 350))
    placed = [tag("g", chart, transform=f"translate({x:.0f} {y:.0f})")
              for (x, y), chart in zip(corners, charts(facts), strict=True)]  # fmt: skip
    size = {"width": 2 * width, "height": 660}
    drawn = tag("svg", tag("rect", **size, fill=GROUND), *placed, **size, color=INK,
                xmlns="http://www.w3.org/2000/svg")  # fmt: skip
    return stamped(drawn, facts.get("device"), ON_A_DEVICE)


def answers(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """(key, number with its origin, what it is)."""
    way = facts["ways"][facts["by"]]
    hold = "device holds" if way["copies"] == 1 else "devices hold"
    yield "copies", origin(f"{way['copies']:,}", "modelled"), f"{hold} each kept key and value"
    yield "cache", origin(quantity(way["cache"], "iB"), "modelled"), "of cache on a device"
    yield "longest", origin(f"{way['longest']:,}", "modelled"), f"tokens of context at most, batch {facts['batch']:,}"
    yield "most", origin(f"{way['most']:,}", "modelled"), f"sequences at most, context {facts['context']:,}"


def table_1(facts: Facts) -> str:
    """The paper's table, each row with ours; a row loads its settings."""
    head = "".join(f'<th scope="col">{html.escape(words)}</th>' for words in HEAD)
    rows = "".join(_row(n, row) for n, row in enumerate(facts["table_1"]))
    words = (
        "Table 1, tokens of context at most: PaLM 540B, 64 TPU v4, cache in 30 % of memory; printed [published], ours"
    )
    caption = tagged_html(f"{words} [modelled]")
    top = f"<caption>{caption}</caption><thead><tr>{head}</tr></thead>"
    return f'<div class="mw-list"><table>{top}<tbody>{rows}</tbody></table></div>'


def _row(n: int, row: Facts) -> str:
    numbers = (f"{row['batch']:,}", f"{row['value']:,.0f}", f"{row['ours']:,}")
    shown = "".join(f'<td class="mw-n">{number}</td>' for number in numbers)
    words = html.escape(f"show {row['name']}, batch {row['batch']}")
    button = f'<button class="mw-button" data-pick="table:{n}" aria-label="{words}">show</button>'
    return f'<tr data-row="{n}"><td>{html.escape(row["name"])}</td>{shown}<td>{button}</td></tr>'
