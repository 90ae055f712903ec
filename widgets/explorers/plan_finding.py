"""Many plans at once for the planner: slices under a limit, plans that differ in one thing, slices that can be at all.

    >>> found(cfg, state, prices)["rows"][0]["topology"]
    'v5p:2x2x4'
    >>> [each["words"] for each in variants(setup)]
    ['batch 128', 'batch 32', 'v4:4x4x8', 'v4:2x4x4', 'int8 cache']

Everything is asked for in as few calls as there are kinds of chips, and kept, so that moving the limit costs nothing.
Next file to read: `../figures/finding`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import mtfcore as mtf
from mtfcore.chips import chips
from mtfcore.errors import LayoutError, nearest
from mtfcore.model.configs import Config
from widgets.explorers.estimates import Setup, plan, trials
from widgets.explorers.plan_inputs import read_model, slices_of
from widgets.explorers.plan_prices import price_of
from widgets.figures.finding import Facts, find
from widgets.shown import Offer

BATCHES = tuple(1 << power for power in range(11))
NARROWER = {"f32": "bf16", "bf16": "int8"}


def found(cfg: Config, state: Mapping[str, Any], prices: Mapping[str, float]) -> Facts:
    """The slices of the chosen chips that meet the limit."""
    names = read_chips(state["chips"])
    tried: list[Facts] = []
    for name in names:
        tried += _tried(cfg, name, state)
    return find(tried, state["limit"] / 1000, {name: price for name in names
                                               if (price := price_of(prices, name)) is not None})  # fmt: skip


def read_chips(text: str) -> list[str]:
    """Names of chips, each once; all faults at once."""
    names = list(dict.fromkeys(text.replace(",", " ").casefold().split()))
    if not names:
        raise LayoutError(f"no chip is named; write some of {' '.join(chips())}")
    if unknown := [name for name in names if name not in chips()]:
        raise LayoutError("\n".join(f"no chip {name!r}; {nearest(name, chips())}" for name in unknown))
    return names


def _tried(cfg: Config, chip: str, state: Mapping[str, Any]) -> list[Facts]:
    batches = BATCHES if state["batches"] == "any" else (state["batch"],)
    names = ("input_tokens", "output_tokens", "cached_tokens", "weights", "cache")
    given = {name: state[name] for name in names} | {"reserve": state["reserve"] / 100}
    tried: list[Facts] = []
    for one in slices_of(chip, state["most_chips"]):
        tried += _trials(tuple(Setup(cfg, str(one), batch=batch, **given) for batch in batches))
    return tried


@lru_cache(maxsize=2048)
def _trials(setups: tuple[Setup, ...]) -> tuple[Facts, ...]:
    """Of one slice; none where the model cannot lie there at all."""
    try:
        return trials(setups)
    except LayoutError:
        return ()


# ---- around one plan


def variants(setup: Setup) -> list[Facts]:
    """Plans that differ in one thing: what each would take, cost, and whether it fits."""
    return [each for words, settings in _changes(setup) if (each := _variant(setup, words, settings)) is not None]


def _changes(setup: Setup) -> Iterator[tuple[str, dict[str, Any]]]:
    for batch in (2 * setup.batch, setup.batch // 2):
        if 1 <= batch <= 4096:
            yield f"batch {batch:,}", {"batch": batch}
    yield from ((str(one), {"topology": str(one)}) for one in _beside(setup.topology))
    for name in ("weights", "cache"):
        if narrower := NARROWER.get(getattr(setup, name)):
            yield f"{narrower} {name}", {name: narrower}
    if (setup.prefill, setup.decode) != ("auto", "auto"):
        yield "the best partitions", {"prefill": "auto", "decode": "auto"}


def _beside(topology: str) -> list[mtf.topologies.Topology]:
    """The slices with twice and with half as many chips."""
    now = mtf.topology(topology)
    return [one for one in slices_of(now.chip.name) if one.chips in (2 * now.chips, now.chips // 2)]


def _variant(setup: Setup, words: str, settings: Mapping[str, Any]) -> Facts | None:
    other = dataclasses.replace(setup, **settings)
    try:
        found = plan(other)
    except LayoutError:
        return None
    step = found["step_seconds"]
    return {
        "words": words, "settings": dict(settings), "step": step, "prefill_seconds": found["prefill_seconds"],
        "chip_seconds": other.chips * step / other.batch, "fits": bool(found["fits"]),
    }  # fmt: skip


def possible(setup: Setup, padded: str = "") -> Iterator[Offer]:
    """Where a plan cannot be: the best partition instead of a pinned one, padded heads, other slices, another batch."""
    if (setup.prefill, setup.decode) != ("auto", "auto") and _can(setup, prefill="auto", decode="auto"):
        yield Offer("the best partitions", {"prefill": "auto", "decode": "auto"})
    if padded and _can(setup, cfg=read_model(padded)):
        yield Offer(f"pad heads: {padded}", {"model": padded})
    now = mtf.topology(setup.topology)
    near = sorted(slices_of(now.chip.name), key=lambda one: abs(one.chips.bit_length() - now.chips.bit_length()))
    can = (one for one in near if _can(setup, topology=str(one)))
    for one, _ in zip(can, range(2)):
        yield Offer(str(one), {"topology": str(one)})
    larger = (batch for batch in BATCHES if batch > setup.batch and _can(setup, batch=batch))
    if (batch := next(larger, 0)) and setup.batch < now.devices:
        yield Offer(f"batch {batch:,}", {"batch": batch})


def _can(setup: Setup, **settings: Any) -> bool:
    try:
        plan(dataclasses.replace(setup, **settings))
    except LayoutError:
        return False
    return True
