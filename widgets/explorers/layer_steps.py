"""The steps of one layer of a served model, priced, as plain data for the roofline.

    >>> cost = priced(mtf.model.config("palm-540b"), "v4:4x4x4", "decode", "ws2d-batch", 64, 2048, "int8", "bf16")
    >>> [step["name"] for step in layer_steps(cost)][:4]
    ['all-gather over zy of E', 'all-reduce over x', 'all-reduce over x', 'x Wq: E → H D']

The whole phase is planned (`mtf.model.plan_phase`) and priced (`mtf.price`), and the steps inside the loop over layers
that take time are kept: those that are computed where their result is used take none. Plans are kept by their
settings. Next file to read: `roofline`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import mtfcore as mtf
from mtfcore.costs.pricing.cost import Cost, StepCost
from mtfcore.model.configs import Config
from mtfcore.model.phases import activations
from mtfcore.topologies import Topology
from widgets.figures.words import label

# what is summed over, and what the weight brings → the product as people call it
NAMES = {
    "E → H D": "x Wq", "E → D": "x Wk or x Wv", "E → K D": "x Wk or x Wv", "E → pair D": "x Wk, x Wv",
    "E → pair K D": "x Wk, x Wv", "E → pair H D": "x Wk, x Wv", "E → F": "x W_in or gate", "E → pair F": "x W_in, gate",
    "F → E": "h W_out", "H D → E": "heads Wo", "D → S": "q · cached keys", "D → N": "q · new keys",
    "S → D": "mix cached values", "N → D": "mix new values",
}  # fmt: skip


def mesh_of(topology: Topology) -> str:
    """The grid as mesh axes x, y and z; x, which cuts E, gets the side nearest to half the root of the devices."""
    sides = sorted(side for side in topology.device_grid if side > 1) or [1]
    while len(sides) > 3:  # nodes, chips and cores: the two smallest become one
        sides = sorted([sides[0] * sides[1], *sides[2:]])
    best = math.sqrt(topology.devices) / 2
    x = min(sides, key=lambda side: (abs(math.log(side / best)), side)) if len(sides) > 1 else 1
    rest = list(sides)
    if len(sides) > 1:
        rest.remove(x)
    y, z = (*rest, 1)[:2]
    return f"x:{x} y:{y} z:{z}"


def lengths(phase: str, tokens: int) -> dict[str, int]:
    """What a phase is planned with: `tokens` are the prompt's, new in prefill and cached in decode."""
    return {"new_tokens": tokens} if phase == "prefill" else {"new_tokens": 1, "cached_tokens": tokens}


@lru_cache(maxsize=256)
def priced(
    cfg: Config, topology: str, phase: str, partition: str, batch: int, tokens: int, weights: str, cache: str
) -> Cost:  # fmt: skip
    """The phase's program on the slice: `tokens` are the prompt's, new in prefill and cached in decode."""
    ffn, _, attention = partition.rpartition("-")
    program = mtf.model.plan_phase(
        cfg, phase, mesh_of(mtf.topology(topology)), ffn=ffn, attention=attention, batch=batch, weights=weights,
        cache=cache, **lengths(phase, tokens),
    )  # fmt: skip
    return mtf.price(program, topology, model="calibrated")


def layer_steps(cost: Cost) -> list[dict[str, Any]]:
    """The steps inside the loop over layers that take time, each once."""
    return [_step(step) for step in cost.steps if "." in step.ask.number and step.once.total > 0]


def outside_seconds(cost: Cost) -> float:
    """What embedding, final norm and logits take."""
    return sum(step.seconds for step in cost.steps if "." not in step.ask.number)


def roof(cost: Cost, weights: str) -> dict[str, float]:
    """What a device can do at most: FLOPs a second, bytes a second of HBM and over all of its links one way."""
    at = cost.rates
    return {"peak": at.peak(activations(weights)), "hbm": at.hbm_bytes_per_second,
            "link": at.all_links_bytes_per_second if cost.topology.devices > 1 else 0.0}  # fmt: skip


def _step(step: StepCost) -> dict[str, Any]:
    once, own = step.once, step.step
    return {
        "name": name_of(step), "is_collective": own.is_collective, "flops": float(own.flops),
        "hbm_bytes": float(step.ask.hbm_bytes),
        "link_bytes": float(own.link_bytes) if own.is_collective else 0.0, "seconds": float(once.total),
        "padded_share": 1 - own.flops / step.ask.flops if step.ask.flops else 0.0,
        **{part: float(getattr(once, part)) for part in ("compute", "hbm", "link", "hops", "launch")},
    }  # fmt: skip


def name_of(step: StepCost) -> str:
    """A product by what it multiplies, anything else by what it does."""
    own = step.step
    if own.kind not in ("einsum", "reduce"):
        return label(own)
    left, *others = ([dim.name for dim in each.dims] for each in own.before)
    out = [dim.name for dim in own.after.dims]
    if not others:
        return f"{own.params.get('fn', 'sum')} over {' '.join(name for name in left if name not in out)}"
    summed = " ".join(name for name in others[0] if name in left and name not in out)
    brought = " ".join(name for name in others[0] if name in out and name not in left)
    does = f"{summed} → {brought}"
    return f"{NAMES[does]}: {does}" if does in NAMES else does
