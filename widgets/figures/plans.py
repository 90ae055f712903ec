"""Facts for the planner: one estimate of `mtf.costs.inference` as plain data, with what a reader compares.

    >>> facts = plan_facts(fields(est), about)
    >>> facts["step"], facts["fits"], facts["layouts"]
    (0.0296, True, {'prefill': 'ws2d-heads', 'decode': 'ws2d-batch'})

An estimate may stand for many plans; `item` takes one of them out. All numbers are modelled. Costs are chip-seconds:
chips · seconds / tokens ("Efficiently Scaling Transformer Inference", arXiv 2211.05102, section 4.4); money comes from
the reader's own price alone. Next file to read: `planner_svg`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mtfcore.costs.serving.timing import PARTS

Facts = dict[str, Any]
PHASES = ("prefill", "decode")
TERMS = ("weights", "cache", "activations", "gathered", "reserve")
FIELDS = (
    "prefill_seconds", "decode_seconds", "step_seconds", "mfu", "prefill_mfu", "decode_mfu", "fits", "fits_by_phase",
    "layouts", "bottleneck", "memory", "parts", "candidates", "chip_seconds_per_token", "max_batch_by_phase",
    "max_context", "warnings",
)  # fmt: skip


WAITS = {"compute": "computing", "link": "links", "launch": "starting collectives"}


def waits_for(bottleneck: str) -> str:
    """What a phase waits for most, as people say it; of HBM, whether it is for weights or for the cache."""
    return WAITS.get(bottleneck, bottleneck)


def item(value: Any, at: tuple[int, ...] = ()) -> Any:
    """One plan's value out of a field that may hold many; what is no array is everybody's."""
    if isinstance(value, Mapping):
        return {key: item(each, at) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        value = value[at] if value.ndim else value[()]
    return value.item() if isinstance(value, np.generic) else value


def fields(est: Any, at: tuple[int, ...] = ()) -> Facts:
    """All fields of one plan."""
    return {name: item(getattr(est, name), at) for name in FIELDS}


def plan_facts(found: Mapping[str, Any], about: Mapping[str, Any]) -> Facts:
    """What the planner shows of one plan; `about` says what was asked: model, slice, batch, lengths, types, price."""
    memory = {term: float(found["memory"].get(term, 0.0)) for term in TERMS}
    step, chips, batch = found["step_seconds"], about["chips"], about["batch"]
    return {
        **about, "step": step, "prefill_seconds": found["prefill_seconds"], "decode_seconds": found["decode_seconds"],
        "mfu": {"prefill": found["prefill_mfu"], "decode": found["decode_mfu"], "request": found["mfu"]},
        "fits": bool(found["fits"]), "layouts": found["layouts"], "bottleneck": found["bottleneck"], "memory": memory,
        "held": sum(memory.values()), "capacity": found["memory"]["capacity"],
        "parts": {phase: {part: found["parts"][phase].get(part, 0.0) for part in PARTS} for phase in PHASES},
        "candidates": {phase: candidates(found["candidates"][phase]) for phase in PHASES},
        "chip_seconds": {
            "decode": chips * step / batch,
            "prefill": chips * found["prefill_seconds"] / (about["prompts"] * about["input_tokens"]),
            "request": found["chip_seconds_per_token"],
        },
        "fits_in": found["fits_by_phase"], "max_batch": found["max_batch_by_phase"],
        "max_context": int(found["max_context"]),
    }  # fmt: skip


def candidates(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Facts]:
    """Every partition with its seconds, or with the reason why it cannot be; and whether it fits."""
    found = {}
    for name, each in given.items():
        possible = math.isfinite(each["seconds"]) and not each["reason"]
        found[name] = {"seconds": each["seconds"] if possible else None, "reason": each["reason"],
                       "fits": bool(each.get("fits", possible))}  # fmt: skip
    return found


def money(chip_seconds: float, price: float | None) -> float | None:
    """What so many chip-seconds cost at the reader's price of a chip-hour."""
    return None if price is None else chip_seconds * price / 3600


def shares(parts: Mapping[str, float]) -> dict[str, float]:
    """Each part of the time as a share of all."""
    total = sum(parts.values())
    return {part: seconds / total if total else 0.0 for part, seconds in parts.items()}
