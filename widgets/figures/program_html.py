"""A program's steps and totals as HTML, from facts: what the live view shows and what stays in the file.

    >>> steps_html(compared(...))[:44]
    '<div class="mw-step mw-local" data-step="0" '

A collective carries the colours of its axes, a mark and a tint; a local step none of these. Text wraps, so the same
picture reads at any width. Everything from outside is escaped. Next file to read: `../views/steps_view`.
"""

from __future__ import annotations

from html import escape

from mtfcore.steps import listed
from widgets.figures.program import CHOICES, NAMES, Facts
from widgets.numbers import origin, quantity, tagged_html
from widgets.theme import axis_colours


def steps_html(facts: Facts) -> str:
    """The list of steps."""
    colours = axis_colours(axis for axis, _ in facts["mesh"])
    most = max((row["sent"] for row in facts["steps"]), default=0)
    apart = set(facts["apart"])
    rows = (_step(number, row, colours, most, number in apart) for number, row in enumerate(facts["steps"]))
    return "".join(rows) or '<div class="mw-nothing">This function does nothing: it returns what it was given.</div>'


def _step(number: int, row: Facts, colours: dict[str, str], most: float, apart: bool) -> str:
    kind = "mw-collective" if row["collective"] else "mw-local"
    depth = len(row["path"]) - 1
    facts = f'data-step="{number}" data-kind="{row["kind"]}" data-sent="{row["sent"]}" data-flops="{row["flops"]}"'
    carried = [colours[axis] for axis in row["axes"]] if row["collective"] else []
    edge = f"--mw-edge:{_stripes(carried)};--mw-depth:{depth};--mw-place:{number}"
    other = '<span class="mw-apart" title="the other choice has no such step">≠</span>' if apart else ""
    return (
        f'<div class="mw-step {kind}" {facts} data-axes="{escape(" ".join(row["axes"]))}" role="option" style="{edge}">'
        f'<span class="mw-n">{number + 1}</span>'
        f'<span class="mw-what">{_what(row, colours)}{other}</span>'
        f'<span class="mw-arrow">{_arrow(row)}</span>'
        f'<span class="mw-shapes">{_shapes(row)}</span>'
        f'<span class="mw-numbers">{_numbers(row)}</span>'
        f'<span class="mw-bar">{_bar(row["by_axis"], colours, most)}</span></div>'
    )


def _stripes(colours: list[str]) -> str:
    """One colour an axis, one below the other."""
    if not colours:
        return "transparent"
    share = 100 / len(colours)
    stops = (f"{colour} {share * n:.0f}% {share * (n + 1):.0f}%" for n, colour in enumerate(colours))
    return f"linear-gradient({', '.join(stops)})"


def _what(row: Facts, colours: dict[str, str]) -> str:
    swatches = "".join(swatch(colours[axis]) for axis in row["axes"]) if row["collective"] else ""
    times = f' <span class="mw-times">×{row["times"]}</span>' if row["times"] > 1 else ""
    mark = "⇄" if row["collective"] else "•"
    return f'<span class="mw-sign" aria-hidden="true">{mark}</span>{swatches}<b>{escape(row["label"])}</b>{times}'


def swatch(colour: str) -> str:
    """A small square in an axis's colour."""
    return f'<i class="mw-dot" style="background:{colour}"></i>'


def _arrow(row: Facts) -> str:
    before = listed([_named(each) for each in row["before"]])
    return f"{before} <b>→</b> {_named(row['after'])}"


def _named(value: Facts) -> str:
    return f'<span class="mw-value"><em>{escape(value["name"])}</em> {escape(value["lies"])}</span>'


def _shapes(row: Facts) -> str:
    before = listed([escape(each["shape"]) for each in row["before"]])
    return f"{before} → {escape(row['after']['shape'])}"


def _numbers(row: Facts) -> str:
    """One number a line; the last line says where they come from."""
    lines = [f"holds {quantity(row['held'], 'iB')}"]
    if row["collective"]:
        lines.append(f"sends {quantity(row['sent'], 'iB')}")
    elif row["flops"]:
        lines.append(quantity(row["flops"], "FLOP"))
    return "".join(f"<span>{tagged_html(line)}</span>" for line in [*lines[:-1], origin(lines[-1], "modelled")])


def _bar(by_axis: dict[str, float], colours: dict[str, str], most: float) -> str:
    parts = ((axis, sent) for axis, sent in by_axis.items() if sent)
    return "".join(
        f'<i data-axis="{escape(axis)}" title="{escape(axis)}: {quantity(sent, "iB")} modelled" '
        f'style="width:{100 * sent / most:.2f}%;background:{colours[axis]}"></i>'
        for axis, sent in parts
    )


# ---- totals


def totals_html(facts: Facts) -> str:
    """Totals of one device, traffic by axis, and both choices side by side."""
    return f"{traffic_html(facts)}{_choices(facts)}"


def traffic_html(facts: Facts) -> str:
    by_axis, colours = facts["totals"]["by_axis"], axis_colours(axis for axis, _ in facts["mesh"])
    most = max(by_axis.values(), default=0) or 1
    rows = "".join(
        f'<tr data-traffic="{escape(axis)}" data-bytes="{by_axis[axis]}">'
        f'<th scope="row">{swatch(colours[axis])}{escape(axis)}:{size}</th><td class="mw-wide-bar">'
        f'<i style="width:{100 * by_axis[axis] / most:.2f}%;background:{colours[axis]}"></i></td>'
        f"<td>{quantity(by_axis[axis], 'iB')}</td></tr>"
        for axis, size in facts["mesh"]
    )
    head = tagged_html(origin("Sent by one device, by axis", "modelled"))
    return f'<div class="mw-total-head">{head}</div><table class="mw-traffic">{rows}</table>'


_LINES = (
    ("sends", "sent", "iB"), ("computes", "flops", "FLOP"), ("holds at most", "held", "iB"),
    ("steps", "steps", ""), ("collectives", "collectives", ""),
)  # fmt: skip


def _choices(facts: Facts) -> str:
    """Both choices, the shown one marked."""
    here = facts["choice"]
    names = (f"{NAMES[choice]}{' ✓' if choice == here else ''}" for choice in CHOICES)
    heads = "".join(f'<th scope="col"{_shown(c, here)}>{name}</th>' for c, name in zip(CHOICES, names, strict=True))
    lines = "".join(
        f'<tr><th scope="row">{words}</th>{"".join(_total(facts, choice, key, unit) for choice in CHOICES)}</tr>'
        for words, key, unit in _LINES
    )
    head = tagged_html(origin("One device in all", "modelled"))
    return (
        f'<div class="mw-total-head">{head}</div><table class="mw-choices"><tr><td></td>{heads}</tr>{lines}</table>'
        f'<div class="mw-differ">{_differ(facts)}</div>'
    )


def _total(facts: Facts, choice: str, key: str, unit: str) -> str:
    value = facts["choices"][choice][key]
    about = f'data-total="{key}" data-choice="{choice}" data-value="{value}"'
    return f"<td {about}{_shown(choice, facts['choice'])}>{quantity(value, unit)}</td>"


def _shown(choice: str, here: str) -> str:
    return ' class="mw-here" title="shown"' if choice == here else ""


def _differ(facts: Facts) -> str:
    if not any(facts["differs"].values()):
        return "Both choose the same steps."
    parts = ((NAMES[choice], ", ".join(facts["differs"][choice]) or "none") for choice in CHOICES)
    return "".join(f"<div><b>Only in {name}:</b> {escape(steps)}.</div>" for name, steps in parts)
