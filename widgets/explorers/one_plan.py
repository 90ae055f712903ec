"""One plan as the planner's facts: what a state asks for, what it gives, and what to press next.

    >>> facts = planned(cfg, state, prices={})
    >>> facts["step"], [offer.label for offer in ways_on(facts)]
    (0.0296, ['batch 32', 'batch 128'])

Next file to read: `planner`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.model.configs import Config
from widgets.explorers import plan_finding, plan_inputs
from widgets.explorers.estimates import Setup, could_hold, plan
from widgets.explorers.plan_prices import price_of
from widgets.figures.plans import PHASES, Facts, plan_facts
from widgets.shown import Offer, Refused
from widgets.state import State

OWN_WORDS = ("does not fit", "settings do not fit")  # ends of warnings that the sentence says better


def setup_of(cfg: Config, state: Mapping[str, Any]) -> Setup:
    """What a state asks."""
    names = ("batch", "input_tokens", "output_tokens", "cached_tokens", "prefill_batch", "weights", "cache", "prefill",
             "decode")  # fmt: skip
    return Setup(cfg, str(plan_inputs.read_slice(state["topology"])), reserve=state["reserve"] / 100,
                 **{name: state[name] for name in names})  # fmt: skip


def planned(cfg: Config, state: State, prices: Mapping[str, float]) -> Facts:
    """The facts of one plan, and of those that differ in one thing."""
    setup = setup_of(cfg, state)
    topology = mtf.topology(setup.topology)
    try:
        found = plan(setup)
    except LayoutError as fault:
        padded = plan_inputs.padded_heads(state["model"])
        raise Refused(str(fault), list(plan_finding.possible(setup, padded))) from None
    about = {
        "model": state["model"], "n_params": cfg.n_params, "source": cfg.source, "left_out": cfg.left_out,
        "topology": setup.topology, "chips": topology.chips, "chip": topology.chip.name, "title": topology.chip.title,
        "prompts": setup.prompts, "price": price_of(prices, topology.chip.name),
        "pinned": {phase: state[phase] for phase in PHASES},
        **{name: state[name] for name in
           ("batch", "input_tokens", "output_tokens", "cached_tokens", "weights", "cache", "reserve")},
    }  # fmt: skip
    facts = plan_facts(found, about)
    if setup != setup.free:  # the pinned plan knows no other partition's time
        facts["candidates"] = plan_facts(plan(setup.free), about)["candidates"]
    warnings = [said for said in found["warnings"] if not said.endswith(OWN_WORDS)]
    return {**facts, "helps": plan_finding.variants(setup), "roomier": _roomier(setup), "warnings": warnings}


def _roomier(setup: Setup) -> str:
    """Where the weights alone do not fit: the smallest slice of this chip that holds them, if there is one."""
    if could_hold(setup):
        return ""
    slices = plan_inputs.slices_of(mtf.topology(setup.topology).chip.name)
    others = (dataclasses.replace(setup, topology=str(one)) for one in sorted(slices, key=lambda one: one.chips))
    return next((other.topology for other in others if could_hold(other)), "")


def ways_on(facts: Facts) -> Iterator[Offer]:
    """Where it does not fit, what does; else the change that shortens a token most, and the one that saves most."""
    if facts["fits"]:
        known = [each for each in facts["helps"] if each["fits"]]
        offers = {}
        for key, own in (("step", facts["step"]), ("chip_seconds", facts["chip_seconds"]["decode"])):
            if better := [each for each in known if each[key] < 0.98 * own]:
                best = min(better, key=lambda each: each[key])
                offers[best["words"]] = Offer(best["words"], best["settings"])
        yield from offers.values()  # one change may do both
        return
    if (most := facts["max_batch"])["prefill"] and not facts["fits_in"]["prefill"]:
        yield Offer(f"read {most['prefill']:,} at a time", {"prefill_batch": most["prefill"]})
    if most["decode"] and not facts["fits_in"]["decode"]:
        yield Offer(f"batch {most['decode']:,}", {"batch": most["decode"]})
    if facts["roomier"]:
        yield Offer(facts["roomier"], {"topology": facts["roomier"]})
    room = facts["max_context"] - facts["output_tokens"] - facts["cached_tokens"]
    if room >= 1:
        yield Offer(f"input {room:,}", {"input_tokens": room})
    yield from (Offer(each["words"], each["settings"]) for each in facts["helps"] if each["fits"])


def nearest_limit(facts: Facts) -> tuple[Offer, ...]:
    """The nearest possible limit, where none is met."""
    if facts["rows"]:
        return ()
    near = [row for row in facts["nearest"].values() if row is not None]
    if not near:
        return ()
    best = min(near, key=lambda row: row["step"])
    limit = -(-best["step"] // 1e-3)
    return (Offer(f"limit {limit:.0f} ms", {"limit": int(limit)}),)
