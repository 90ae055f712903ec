"""What the planner says: how long, how it lies, what it waits for, what would help; and the table.

    >>> sentence(facts)[:61]
    'palm-540b on v4:4x4x4, batch 64: a token takes 29.6 ms [modell'

Next file to read: `finding`.
"""

from __future__ import annotations

from collections.abc import Iterator

from widgets.figures.planner_svg import answers
from widgets.figures.plans import PARTS, PHASES, TERMS, Facts, shares, waits_for
from widgets.numbers import count, origin, quantity


def sentence(facts: Facts) -> str:
    """One plan in four sentences."""
    return " ".join([_takes(facts), _lies(facts), _waits(facts), *_fits(facts), *_helps(facts)])


def _takes(facts: Facts) -> str:
    at_once = "all prompts" if facts["prompts"] == facts["batch"] > 1 else count(facts["prompts"], "prompt")
    prefill = f"prefill of {at_once} {quantity(facts['prefill_seconds'], 's')}"
    times = f"a token takes {quantity(facts['step'], 's')}, {prefill}"
    return f"{facts['model']} on {facts['topology']}, batch {facts['batch']:,}: {origin(times, 'modelled')}."


def _lies(facts: Facts) -> str:
    pinned = [phase for phase in PHASES if facts["pinned"][phase] != "auto"]
    why = "the fastest pair that keeps the weights once" if not pinned else f"{' and '.join(pinned)} as you pinned it"
    return f"Prefill lies as {facts['layouts']['prefill']}, decode as {facts['layouts']['decode']}: {why}."


def _waits(facts: Facts) -> str:
    known = [shares(facts["parts"][phase]) for phase in PHASES]
    most = [max(each.values()) for each in known]
    words = (f"{name} waits most for {waits_for(facts['bottleneck'][phase])} ({100 * share:.0f} %)"
             for phase, name, share in zip(PHASES, ("prefill", "a token"), most))  # fmt: skip
    said = ", ".join(words)
    return f"{said[0].upper()}{said[1:]}."


def _fits(facts: Facts) -> Iterator[str]:
    held, has = quantity(facts["held"], "iB"), quantity(facts["capacity"], "iB")
    if not facts["fits"]:
        most = max(TERMS, key=lambda term: facts["memory"][term])
        where = " and ".join(phase for phase in PHASES if not facts["fits_in"][phase])
        yield (
            f"It does not fit in {where}: {origin(held, 'modelled')} with the reserve, where a device has "
            f"{origin(has, 'published')}, mostly {most}."
        )


def _helps(facts: Facts) -> Iterator[str]:
    """The change that shortens a token most, and the one that makes it cheapest."""
    known = [each for each in facts["helps"] if each["fits"]]
    if faster := [each for each in known if each["step"] < 0.98 * facts["step"]]:
        best = min(faster, key=lambda each: each["step"])
        words = f"{best['words']}: {quantity(best['step'], 's')} a token"
        yield f"What shortens a token most is {origin(words, 'modelled')}."
    own = facts["chip_seconds"]["decode"]
    if cheaper := [each for each in known if each["chip_seconds"] < 0.98 * own]:
        best = min(cheaper, key=lambda each: each["chip_seconds"])
        words = f"{best['words']}: {100 * (1 - best['chip_seconds'] / own):.0f} % less for a token"
        yield f"What saves most is {origin(words, 'modelled')}."


def table(facts: Facts) -> list[tuple[str, ...]]:
    """Everything that the pictures show, as text."""
    head = ("what", "value", "of what")
    return [head, *_about(facts), *((words, number, "") for _, number, words in answers(facts)), *_memory(facts),
            *_parts(facts), *_partitions(facts), *_variants(facts)]  # fmt: skip


def _about(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "model", f"{facts['model']}, {quantity(facts['n_params'])} parameters", facts["source"]
    if facts["left_out"]:
        yield "left out", facts["left_out"], facts["model"]
    yield "slice", f"{facts['topology']}, {count(facts['chips'], 'chip')}", facts["title"]
    lengths = f"{facts['input_tokens']:,} in, {facts['output_tokens']:,} out, {facts['cached_tokens']:,} cached before"
    yield "request", f"batch {facts['batch']:,}, {lengths}", f"weights {facts['weights']}, cache {facts['cache']}"
    yield "read at a time", count(facts["prompts"], "prompt"), f"of {facts['batch']:,}"
    most = [(f"largest batch in {phase}", facts["max_batch"][phase]) for phase in PHASES]
    for words, n in (*most, ("longest context", facts["max_context"])):
        yield words, origin(f"{n:,}", "modelled"), "that fits in memory, the rest as it is"


def _memory(facts: Facts) -> Iterator[tuple[str, ...]]:
    for term in TERMS:
        n_bytes = facts["memory"][term]
        yield f"memory: {term}", origin(quantity(n_bytes, "iB"), "modelled"), f"{n_bytes:,.0f} bytes"
    yield "memory: in all", origin(quantity(facts["held"], "iB"), "modelled"), f"{facts['held']:,.0f} bytes"
    yield "memory: of a device", origin(quantity(facts["capacity"], "iB"), "published"), facts["title"]


def _parts(facts: Facts) -> Iterator[tuple[str, ...]]:
    for phase in PHASES:
        known = shares(facts["parts"][phase])
        for part in PARTS:
            yield f"{phase}: {part}", origin(f"{100 * known[part]:.1f} %", "modelled"), "of its time"


def _partitions(facts: Facts) -> Iterator[tuple[str, ...]]:
    for phase in PHASES:
        for name, each in facts["candidates"][phase].items():
            shown = each["reason"] or origin(quantity(each["seconds"], "s"), "modelled")
            yield f"{phase}: {name}", shown, "chosen" if facts["layouts"][phase] == name else ""


def _variants(facts: Facts) -> Iterator[tuple[str, ...]]:
    for each in facts["helps"]:
        shown = origin(f"{quantity(each['step'], 's')} a token", "modelled")
        yield f"with {each['words']}", shown, "fits" if each["fits"] else "does not fit"
