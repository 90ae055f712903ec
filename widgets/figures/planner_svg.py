"""The planner's picture as HTML: the answers in figures, memory by terms, time by parts, every partition's time.

    >>> planner_html(facts)[:12]
    '<div class="'

The same text serves the live view and the still picture; `planner_file` is the charts as one SVG. A partition can be
picked, which pins it for its phase; picked again, the best is chosen again. Next file to read: `planner_words`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import replace

from widgets.figures.bars_svg import Bar, Part, bars_svg
from widgets.figures.plans import PARTS, PHASES, TERMS, Facts, money, shares, waits_for
from widgets.figures.svg import tag
from widgets.numbers import count, modelled, origin, quantity, tagged_html
from widgets.theme import COMPUTE, GROUND, INK, LINKS, MEMORY

TERM_COLOURS = {"weights": "#0B4F79", "cache": "#56B4E9", "activations": "#CC79A7", "gathered": "#009E73",
                "reserve": "#BBBBBB"}  # fmt: skip
PART_COLOURS = {"compute": COMPUTE, "hbm": MEMORY, "link": LINKS, "launch": "#B0B0B0"}
PART_WORDS = {"compute": "compute", "hbm": "HBM", "link": "link", "launch": "launch"}
CUT = 4.0  # times the fastest, beyond which a partition's bar is cut
MOST_ROWS = 10


def planner_html(facts: Facts) -> str:
    """Answers above, four charts below."""
    slots = "".join(f'<div class="mw-slot">{chart}</div>' for chart in charts(facts))
    return f'{answers_html(answers(facts))}<div class="mw-charts">{slots}</div>'


def charts(facts: Facts) -> list[str]:
    """Memory, time, and the partitions of both phases."""
    return [memory_svg(facts), time_svg(facts), *(partitions_svg(facts, phase) for phase in PHASES)]


def planner_file(facts: Facts, width: float = 420.0) -> str:
    """The charts as one SVG file, two in a row."""
    tops = (0.0, 210.0)
    placed = [tag("g", chart, transform=f"translate({n % 2 * width:.0f} {tops[n // 2]:.0f})")
              for n, chart in enumerate(charts(facts))]  # fmt: skip
    size = {"width": 2 * width, "height": tops[1] + 300}
    return tag("svg", tag("rect", **size, fill=GROUND), *placed, **size, color=INK,
               xmlns="http://www.w3.org/2000/svg")  # fmt: skip


# ---- answers


def answers(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """(key, number with its origin, what it is)."""
    batch, chips = facts["batch"], facts["chips"]
    yield "step", _modelled(facts["step"], "s"), "a token"
    yield "prefill", _modelled(facts["prefill_seconds"], "s"), f"prefill, {count(facts['prompts'], 'prompt')} at a time"
    rate = batch / facts["step"] if facts["step"] else 0.0
    yield "rate", origin(f"{quantity(rate)}/s", "modelled"), f"new tokens, batch {batch:,} on {count(chips, 'chip')}"
    yield "cost", _modelled(facts["chip_seconds"]["decode"], "chip-s"), "a new token"
    for key, words in (("decode", "a million new tokens"), ("prefill", "a million prompt tokens")):
        yield f"million.{key}", *_million(facts, key, words)
    by_phase = ", ".join(f"{name} {_percent(facts['mfu'][name])}" for name in PHASES)
    yield "mfu", origin(_percent(facts["mfu"]["request"]), "modelled"), f"MFU ({by_phase})"
    held = facts["held"] / facts["capacity"]
    yield "fits", origin(_percent(held), "modelled"), f"of memory: {'fits' if facts['fits'] else 'does not fit'}"


def _million(facts: Facts, key: str, words: str) -> tuple[str, str]:
    chip_seconds = 1e6 * facts["chip_seconds"][key]
    if facts["price"] is None:
        return origin(f"{quantity(chip_seconds / 3600)} chip-h", "modelled"), words
    return origin(format(money(chip_seconds, facts["price"]), ",.3g"), "modelled"), f"{words}, at your price"


def _modelled(value: float, unit: str) -> str:
    if unit == "chip-s":
        return origin(quantity(value, "s").replace(" ", " chip-"), "modelled")
    return modelled(value, unit)


def _percent(share: float) -> str:
    return f"{quantity(100 * share)} %"


def answers_html(given: Iterator[tuple[str, str, str]]) -> str:
    """Numbers in large, what they are in small."""
    cells = []
    for key, number, words in given:
        value, _, word = number.rpartition(" ")
        small = tagged_html(f"{words} {word}")
        cells.append(f'<div class="mw-answer" data-answer="{key}"><b>{html.escape(value)}</b><br>{small}</div>')
    return f'<div class="mw-answers">{"".join(cells)}</div>'


# ---- charts


def memory_svg(facts: Facts) -> str:
    """Each term where the last one ended, the sum below, and the line where memory ends."""
    bars, start = [], 0.0
    for term in TERMS:
        n_bytes = facts["memory"][term]
        words = f"{term}: {n_bytes:,.0f} bytes, modelled"
        bars.append(Bar(term, (Part(n_bytes, TERM_COLOURS[term], words),), quantity(n_bytes, "iB"), start, hint=words))
        start += n_bytes
    whole = tuple(Part(facts["memory"][term], TERM_COLOURS[term], term) for term in TERMS)
    bars.append(Bar("in all", whole, quantity(facts["held"], "iB"), chosen=True))
    top = min(max(facts["held"], facts["capacity"]), 2 * facts["capacity"]) * 1.02
    limit = (facts["capacity"], f"a device has {quantity(facts['capacity'], 'iB')} (published)")
    return bars_svg("Memory of a device (modelled)", bars, top, limit, name="memory")


def time_svg(facts: Facts) -> str:
    """What prefill and a token wait for, each as shares of its own time; and the whole request by phases."""
    bars = []
    for phase, label in (("prefill", "prefill"), ("decode", "a token")):
        parts, known = facts["parts"][phase], shares(facts["parts"][phase])
        seconds = facts["prefill_seconds"] if phase == "prefill" else facts["step"]
        pieces = tuple(
            Part(known[part], PART_COLOURS[part],
                 f"{PART_WORDS[part]}: {quantity(parts[part], 's')}, {_percent(known[part])}, modelled",
                 f"{PART_WORDS[part]} {100 * known[part]:.0f} %")
            for part in PARTS
        )  # fmt: skip
        words = ", ".join(f"{PART_WORDS[part]} {_percent(known[part])}" for part in PARTS if known[part])
        bars.append(Bar(label, pieces, quantity(seconds, "s"), hint=words))
    whole = {"prefill": facts["prefill_seconds"], "output": facts["decode_seconds"]}
    known, colours = shares(whole), {"prefill": "#CC79A7", "output": "#009E73"}
    pieces = tuple(Part(known[part], colours[part], f"{part}: {quantity(whole[part], 's')}, modelled",
                        f"{part} {100 * known[part]:.0f} %") for part in whole)  # fmt: skip
    bars.append(Bar("request", pieces, quantity(sum(whole.values()), "s")))
    named = (("prefill", "prefill"), ("decode", "token"))
    waits = (f"{label}: {waits_for(facts['bottleneck'][phase])}" for phase, label in named)
    note = f"waits most for · {' · '.join(waits)}"
    return bars_svg("Time by what it waits for (modelled)", bars, 1.0, rows=6, name="time", note=note)


def partitions_svg(facts: Facts, phase: str) -> str:
    """Every partition's time, or the reason why it cannot be; the chosen one starred."""
    found = facts["candidates"][phase]
    known = sorted(each["seconds"] for each in found.values() if each["seconds"] is not None)
    top = min(known[-1], CUT * known[0]) if known else 1.0
    order = sorted(found, key=lambda name: (found[name]["seconds"] is None, found[name]["seconds"] or 0.0))
    bars = [_partition(facts, phase, name) for name in order]
    if phase == "decode" and (point := facts.get("device")):
        top = max(top, min(1.1 * point["seconds"], CUT * top))
        bars = [replace(bar, measured=point) if bar.chosen else bar for bar in bars]
    what = "Prefill by partition" if phase == "prefill" else "A token by partition"
    pinned = facts["pinned"][phase]
    note = f"pinned to {pinned}; pick it again for the best"
    if pinned == "auto":
        note = "pick one to pin it; ws1d cuts weights otherwise: both or none"
    return bars_svg(f"{what} (modelled)", bars, top, rows=MOST_ROWS, name=f"partitions-{phase}", note=note)


def _partition(facts: Facts, phase: str, name: str) -> Bar:
    each, is_chosen = facts["candidates"][phase][name], facts["layouts"][phase] == name
    if each["seconds"] is None:
        return Bar(name, reason=each["reason"], hint=f"{name}: {each['reason']}", chosen=is_chosen)
    seconds, full = each["seconds"], "" if each["fits"] else ", does not fit"
    colour = "#0072B2" if is_chosen else "#A9C4D6" if each["fits"] else "#D8D8D8"
    words = f"{name}: {quantity(seconds, 's')}, modelled{full}"
    says = f"{quantity(seconds, 's')}{' (too full)' if full else ''}"
    best = is_chosen and facts["pinned"][phase] == "auto"
    return Bar(name, (Part(seconds, colour),), says, pick=f"{phase}:{name}", chosen=is_chosen, best=best, hint=words)


def reasons(facts: Facts, phase: str) -> Sequence[str]:
    """Why partitions of a phase cannot be, each reason once."""
    return list(dict.fromkeys(each["reason"] for each in facts["candidates"][phase].values() if each["reason"]))
