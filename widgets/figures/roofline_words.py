"""What the roofline explorer says: what a layer waits for in each phase, the batch at which that changes, the table.

    >>> sentence(facts)[:58]
    'Decode waits for HBM, 81 % of a layer: each weight is read'

Next file to read: `../explorers/plan_inputs`.
"""

from __future__ import annotations

import math

from widgets.figures.roofline import WORDS, Facts, chosen, ridge
from widgets.numbers import origin, quantity

PHASES = ("prefill", "decode")
WHY = {
    "compute": "its products reuse each byte often enough; only fewer FLOPs, a narrower type or more chips help",
    "hbm": "weights and cache are read for few FLOPs each; more sequences share a weight, a narrower type halves it",
    "link": "what is sent is large for what is computed; another partition or fewer chips send less",
    "hops": "its collectives are small, and each takes its hops; fewer chips or a larger batch make them worth it",
    "launch": "its collectives are many and small; fewer chips or a larger batch make each worth its start",
}


def sentence(facts: Facts) -> str:
    """The chosen step, or both phases, and the ridge."""
    if found := chosen(facts, facts["chosen"]):
        return _step(facts, *found)
    return " ".join([*(_phase(facts[phase]) for phase in PHASES), _ridge(facts)])


def _phase(side: Facts) -> str:
    total, waits = side["layer"]["seconds"] or 1.0, side["waits"]
    bound = max(waits, key=waits.get)
    share = origin(f"{100 * waits[bound] / total:.0f} % of a layer's {quantity(total, 's')}", "modelled")
    return f"{side['phase'].capitalize()} waits for {WORDS[bound]}, {share}: {WHY[bound]}."


def _ridge(facts: Facts) -> str:
    knee = origin(quantity(ridge(facts["roof"])), "published")
    return f"Peak and HBM of {facts['title']} meet at {knee} FLOPs a byte."


def _step(facts: Facts, phase: str, step: Facts) -> str:
    total = facts[phase]["layer"]["seconds"] or 1.0
    share = origin(f"{quantity(step['seconds'], 's')}, {100 * step['seconds'] / total:.0f} % of the layer", "modelled")
    head = f"{phase.capitalize()}, step {step['number']}, {step['name']}: {share}; it waits for {WORDS[step['bound']]}."
    if not step["is_local"] and not step["is_collective"]:
        read = origin(quantity(step["hbm_bytes"], "iB"), "modelled")
        return f"{head} It multiplies nothing, so it has no place under the roof; it reads and writes {read}."
    if not step["is_local"]:
        sent = origin(quantity(step["link_bytes"], "iB"), "modelled")
        return f"{head} It computes nothing, so it has no place under the roof; each device sends {sent}."
    if not math.isfinite(step["intensity"]):
        return f"{head} It reads nothing from HBM: what it needs is still in fast memory."
    lies = origin(f"{quantity(step['intensity'])} FLOPs a byte, {100 * step['share_of_roof']:.0f} % of the roof there",
                  "modelled")  # fmt: skip
    pads = f" {100 * step['padded_share']:.0f} % of what it computes pads tiles."
    padded = pads if step["padded_share"] > 0.005 else ""
    before = "left of" if step["intensity"] < ridge(facts["roof"]) else "right of"
    return f"{head} It lies at {lies}, {before} the ridge at {quantity(ridge(facts['roof']))}.{padded}"


def table(facts: Facts) -> list[tuple[str, ...]]:
    """Every step of both phases."""
    head = ("phase", "step", "what", "FLOPs", "HBM bytes", "FLOPs a byte", "bytes sent", "computing", "HBM", "links",
            "takes", "waits for")  # fmt: skip
    return [head, *(_row(phase, step) for phase in PHASES for step in facts[phase]["steps"])]


def _row(phase: str, step: Facts) -> tuple[str, ...]:
    per_byte = quantity(step["intensity"]) if step["is_local"] and math.isfinite(step["intensity"]) else "-"
    numbers = (
        quantity(step["flops"], "FLOP"), quantity(step["hbm_bytes"], "iB"), per_byte,
        quantity(step["link_bytes"], "iB"),
        *(quantity(step.get(part, 0.0), "s") for part in ("compute", "hbm", "link")), quantity(step["seconds"], "s"),
    )  # fmt: skip
    tagged = (number if number == "-" else origin(number, "modelled") for number in numbers)
    return (phase, str(step["number"]), step["name"], *tagged, WORDS[step["bound"]])
