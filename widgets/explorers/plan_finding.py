"""Many plans at once for the planner: slices under a limit, plans that differ in one thing, slices that can be at all.

    >>> looked(cfg, state, prices)["rows"][0]["topology"]              # of what is known so far
    'v5p:2x2x4'
    >>> [words for words, _ in changes(setup)]
    ['batch 128', 'batch 32', 'v4:4x4x8', 'v4:2x4x4', 'int8 cache']

What is known is drawn at once; a worker asks for the rest, the smallest slices first. Moving the limit asks for
nothing. Next file to read: `growing`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.chips import chips
from mtfcore.costs.pricing.rates import rates
from mtfcore.errors import LayoutError, nearest
from mtfcore.model.configs import Config
from widgets.explorers.estimates import Setup, could_hold, known_plan, known_trials, plan
from widgets.explorers.plan_inputs import read_model, slices_of
from widgets.explorers.plan_prices import price_of
from widgets.figures.finding import Facts, find
from widgets.shown import Offer

BATCHES = tuple(1 << power for power in range(11))
NARROWER = {"f32": "bf16", "bf16": "int8"}
Step = tuple[Setup, ...]  # one slice at all batches


def looked(cfg: Config, state: Mapping[str, Any], prices: Mapping[str, float]) -> Facts:
    """The slices of the chosen chips that meet the limit, of those that are known."""
    names, steps = read_chips(state["chips"]), search(cfg, state)
    known = [found for step in steps if (found := known_trials(step)) is not None]
    priced = {name: price for name in names if (price := price_of(prices, name)) is not None}
    facts = find([trial for found in known for trial in found], state["limit"] / 1000, priced)
    waiting = {mtf.topology(step[0].topology).chip.name for step in steps if known_trials(step) is None}
    nearest_ = {name: facts["nearest"].get(name) for name in names
                if name not in {row["chip"] for row in facts["rows"]} | waiting}  # fmt: skip
    uncalibrated = [name for name in names if not rates(name, "calibrated").is_calibrated]
    return {**facts, "nearest": nearest_, "n_waiting": len(steps) - len(known), "n_slices": len(steps),
            "uncalibrated": uncalibrated}  # fmt: skip


def read_chips(text: str) -> list[str]:
    """Names of chips, each once; all faults at once."""
    names = list(dict.fromkeys(text.replace(",", " ").casefold().split()))
    if not names:
        raise LayoutError(f"no chip is named; write some of {' '.join(chips())}")
    if unknown := [name for name in names if name not in chips()]:
        raise LayoutError("\n".join(f"no chip {name!r}; {nearest(name, chips())}" for name in unknown))
    return names


def search(cfg: Config, state: Mapping[str, Any]) -> list[Step]:
    """Every slice whose memory holds the weights, at every batch, fewest chips first."""
    batches = BATCHES if state["batches"] == "any" else (state["batch"],)
    names = ("input_tokens", "output_tokens", "cached_tokens", "prefill_batch", "weights", "cache")
    given = {name: state[name] for name in names} | {"reserve": state["reserve"] / 100}
    found = [
        tuple(Setup(cfg, str(one), batch=batch, **given) for batch in batches)
        for chip in read_chips(state["chips"])
        for one in slices_of(chip, state["most_chips"])
    ]
    return sorted((step for step in found if could_hold(step[0])), key=lambda step: step[0].chips)


# ---- around one plan


def changes(setup: Setup) -> list[tuple[str, dict[str, Any]]]:
    """Settings that differ in one thing, with words for them."""
    return list(_changes(setup))


def _changes(setup: Setup) -> Iterator[tuple[str, dict[str, Any]]]:
    for batch in (2 * setup.batch, setup.batch // 2):
        if 1 <= batch <= 4096:
            yield f"batch {batch:,}", {"batch": batch}
    yield from ((str(one), {"topology": str(one)}) for one in _beside(setup.topology))
    for name in ("weights", "cache"):
        if narrower := NARROWER.get(getattr(setup, name)):
            yield f"{narrower} {name}", {name: narrower}
    if setup != setup.free:
        yield "the best partitions", {"prefill": "auto", "decode": "auto"}


def _beside(topology: str) -> list[mtf.topologies.Topology]:
    """The slices with twice and with half as many chips."""
    now = mtf.topology(topology)
    return [one for one in slices_of(now.chip.name) if one.chips in (2 * now.chips, now.chips // 2)]


def variants(setup: Setup) -> list[Facts]:
    """Plans that differ in one thing, of those that are known: what each would take, cost, and whether it fits."""
    found = []
    for words, settings in changes(setup):
        other = dataclasses.replace(setup, **settings)
        if (own := known_plan(other)) is not None:
            step = own["step_seconds"]
            found.append({
                "words": words, "settings": settings, "step": step, "prefill_seconds": own["prefill_seconds"],
                "chip_seconds": other.chips * step / other.batch, "fits": bool(own["fits"]),
            })  # fmt: skip
    return found


def around(setup: Setup) -> Iterator[list[Setup]]:
    """What a hand may ask for next, a few at a time: first the changes, then every power of two of a slider."""
    yield from ([dataclasses.replace(setup, **settings)] for _, settings in changes(setup))
    for name, powers in (("batch", range(11)), ("input_tokens", range(5, 16)), ("output_tokens", range(3, 12))):
        own = [_with(setup, {name: 1 << power}) for power in powers]
        yield from (own[first : first + 4] for first in range(0, len(own), 4))


def _with(setup: Setup, changes: Mapping[str, Any]) -> Setup:
    return dataclasses.replace(setup, **changes)


def possible(setup: Setup, padded: str = "") -> Iterator[Offer]:
    """Where a plan cannot be: the best partition instead of a pinned one, padded heads, other slices, another batch."""
    if setup != setup.free and _can(setup.free):
        yield Offer("the best partitions", {"prefill": "auto", "decode": "auto"})
    if padded and _can(dataclasses.replace(setup, cfg=read_model(padded))):
        yield Offer(f"pad heads: {padded}", {"model": padded})
    now = mtf.topology(setup.topology)
    near = sorted(slices_of(now.chip.name), key=lambda one: abs(one.chips.bit_length() - now.chips.bit_length()))
    can = (one for one in near if _can(dataclasses.replace(setup, topology=str(one))))
    for one, _ in zip(can, range(2)):
        yield Offer(str(one), {"topology": str(one)})
    larger = (batch for batch in BATCHES if batch > setup.batch and _can(dataclasses.replace(setup, batch=batch)))
    if setup.batch < now.devices and (batch := next(larger, 0)):
        yield Offer(f"batch {batch:,}", {"batch": batch})


def _can(setup: Setup) -> bool:
    try:
        plan(setup)
    except LayoutError:
        return False
    return True
