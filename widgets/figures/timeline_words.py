"""What the timeline explorer says: a bar when it is pointed at, the step and the effect of rings, the table.

    >>> bar_text(panel, panel["bars"][3])
    'all-gather all_gather.41 over y z, step 17.0 (all_gather over zy of E): 4 µs [modelled] from compiled schedule, …'

Next file to read: `../views/timeline_view`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtfcore.compiling.timeline import COMPUTE
from widgets.figures.timeline import Facts, find, longest, waits_on
from widgets.numbers import count, origin, quantity

FROM = "from compiled schedule"


def seconds(value: float) -> str:
    """With its origin."""
    return f"{origin(quantity(value, 's'), 'modelled')} {FROM}"


def percent(part: float, whole: float) -> str:
    """A share in words."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def heading(one: Facts) -> str:
    """The line above a panel."""
    if not one["bars"]:
        return f"{one['kind']}: {one['says']}"
    what = f"one layer of {one['turns']:,}" if one["which"] == "layer" else "the whole step"
    waits = f"{percent(one['exposed'], one['seconds'])} waiting"
    return f"{one['kind']}: {what}, {quantity(one['seconds'], 's')}, {waits} (modelled {FROM})"


# ---- a bar


def bar_words(bar: Facts) -> str:
    """What is written on it."""
    if bar["kind"] == "loop":
        return count(bar["parts"], "turn") if COMPUTE in dict(bar["places"]) else ""
    return (" ".join(filter(None, (bar["step"], bar["words"]))) or bar["name"]) if bar["kind"] == COMPUTE else ""


def bar_text(one: Facts, bar: Facts) -> str:
    """Everything about it, as text; the origin words stand out on pages."""
    return f"{_what(bar)}: {_takes(one, bar)}{_hides(bar)}"


def _what(bar: Facts) -> str:
    where = f", step {bar['step']} ({bar['words']})" if bar["words"] else ""
    more = f" and {bar['parts'] - 1:,} more" if bar["parts"] > 1 and bar["kind"] != "loop" else ""
    rows = " ".join(row for row, _ in bar["places"])
    if bar["kind"] == "wait":
        return f"waiting for {bar['name']}{more}{where}"
    if bar["kind"] == "loop":
        return f"loop {bar['name']}, {count(bar['parts'], 'turn')}{'' if rows == COMPUTE else f', links of {rows}'}"
    if bar["kind"] == COMPUTE:
        return f"{bar['name']}{more}{where}"
    return f"{bar['kind'].replace('_', '-')} {bar['name']}{more} over {rows}{where}"


def _takes(one: Facts, bar: Facts) -> str:
    cycles = f"{origin(count(bar['cycles'], 'cycle'), 'compiled')}, " if bar["cycles"] else ""
    return f"{cycles}{seconds(bar['busy'])}, {percent(bar['busy'], one['seconds'])} of what is shown"


def _hides(bar: Facts) -> str:
    if bar["kind"] == "wait":
        return "; nothing computes meanwhile"
    if COMPUTE in dict(bar["places"]):
        return ""
    hidden = max(bar["busy"] - bar["exposed"], 0.0)
    if hidden <= 1e-3 * bar["busy"]:
        return "; nothing hides it: the device waits"
    behind = f"behind {' and '.join(bar['hidden_by'])}" if bar["hidden_by"] else "behind what computes"
    if bar["exposed"] <= 1e-3 * bar["busy"]:
        return f"; all of it hidden {behind}"
    return f"; {quantity(hidden, 's')} of it hidden {behind}, {quantity(bar['exposed'], 's')} waited for"


# ---- the sentence


def sentence(facts: Facts) -> str:
    """The step's time, what waits, and what rings change."""
    panels = facts["panels"]
    plain, looped = find(panels, "plain"), find(panels, "looped")
    first = plain or looped
    said = [*_steps(first)] if first else []
    if plain and looped:
        said.append(_effect(plain, looped, facts.get("rings", 1)))
    said += [f"{one['kind'].capitalize()}: {one['says']}." for one in panels if not one["bars"] and one["says"]]
    return " ".join([*said, facts.get("says", "")]).strip()


def _steps(one: Facts) -> Iterator[str]:
    kind = "" if one["kind"] == "plain" else " looped"
    waits = origin(percent(one["whole_exposed"], one["whole"]), "modelled")
    yield f"One step{kind} takes {seconds(one['whole'])}; {waits} of it waits for links."
    if axes := waits_on(one):
        most = max(axes, key=lambda axis: axes[axis])
        yield f"Most of that waiting is for the links of {most}." if len(axes) > 1 else f"All of it is for {most}."


def _effect(plain: Facts, looped: Facts, rings: int) -> str:
    if not rings:
        return "By the price model rings pay nowhere here, so looped is the plain program."
    before, after = plain["whole"], looped["whole"]
    less, more = plain["whole_exposed"] - looped["whole_exposed"], looped["whole_compute"] - plain["whole_compute"]
    how = (f"{origin(f'{before / after:.2f} times as fast', 'modelled')}" if after <= before
           else f"slower, {origin(f'{after / before:.2f} times as long', 'modelled')}")  # fmt: skip
    said = [f"Looped it takes {origin(quantity(after, 's'), 'modelled')}, {how}: {_change(less)}"]
    if more > 0:
        worst = f"; its longest bar is {_what(longest(looped)[0])}" if more > 0.1 * before and longest(looped) else ""
        said.append(f", but blocks cost {origin(quantity(more, 's'), 'modelled')} more computing{worst}")
    return "".join(said) + "."


def _change(less: float) -> str:
    size = origin(quantity(abs(less), "s"), "modelled")
    return f"{size} less waiting" if less >= 0 else f"{size} more waiting"


# ---- the table


HEADS = (
    "schedule",
    "rows",
    "bar",
    "step",
    "what the plan calls it",
    "starts",
    "takes",
    "cycles",
    "waited for",
    "hidden by",
)


def table(panels: Sequence[Facts]) -> list[tuple[str, ...]]:
    """Every bar, in the order in which they start."""
    return [HEADS, *(_line(one, bar) for one in panels for bar in one["bars"])]


def _line(one: Facts, bar: Facts) -> tuple[str, ...]:
    rows = " ".join(f"{row}{part}" for row, part in bar["places"])
    times = (origin(quantity(bar[name], "s"), "modelled") for name in ("start", "busy"))
    name = bar["name"] if bar["parts"] == 1 else f"{bar['name']} ({bar['parts']:,})"
    cycles = origin(f"{bar['cycles']:,}", "compiled") if bar["cycles"] else "-"
    exposed = origin(quantity(bar["exposed"], "s"), "modelled") if bar["exposed"] else "-"
    kind = "" if bar["kind"] == COMPUTE else f"{bar['kind'].replace('_', '-')} "
    return (one["kind"], rows, kind + name, bar["step"] or "-", bar["words"] or "-", *times, cycles, exposed,
            " ".join(bar["hidden_by"]) or "-")  # fmt: skip
