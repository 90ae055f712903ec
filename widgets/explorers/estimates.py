"""Estimates of `mtf.costs.inference` for the planner and the frontier: asked for once, kept by what was asked.

    >>> setup = Setup(mtf.model.config("palm-540b"), "v4:4x4x4", batch=64)
    >>> plan(setup)["step_seconds"]                                     # one plan, every field, plain data
    >>> trials([setup, ...])                                            # many at once, the few fields a list needs

A partition may be pinned for one phase and not for the other: then each phase's numbers come from the estimate that
was made for it, and memory is that of the fuller one. Next file to read: `planner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.model.configs import Config
from widgets.figures.plans import PHASES, Facts, fields, item

OWN = {
    "prefill": ("prefill_seconds", "prefill_mfu"),
    "decode": ("decode_seconds", "step_seconds", "decode_mfu"),
}
BOTH = ("layouts", "bottleneck", "parts", "candidates")


@dataclass(frozen=True)
class Setup:
    """What is asked: all that an estimate depends on."""

    cfg: Config
    topology: str
    batch: int = 64
    input_tokens: int = 2048
    output_tokens: int = 64
    cached_tokens: int = 0
    weights: str = "int8"
    cache: str = "bf16"
    prefill: str = "auto"
    decode: str = "auto"
    reserve: float = 0.1

    @property
    def chips(self) -> int:
        """Chips of the slice."""
        return mtf.topology(self.topology).chips


@lru_cache(maxsize=512)
def plan(setup: Setup) -> Facts:
    """Every field of one plan."""
    if setup.prefill == setup.decode:
        return fields(_ask([setup], setup.prefill))
    found = {phase: fields(_ask([setup], getattr(setup, phase))) for phase in PHASES}
    return _joined(found, setup)


def _joined(found: dict[str, Facts], setup: Setup) -> Facts:
    """Two estimates, each asked for one phase."""
    fuller = max(found.values(), key=lambda each: each["memory"]["total"])
    both = {name: {phase: found[phase][name][phase] for phase in PHASES} for name in BOTH}
    own = {name: found[phase][name] for phase, names in OWN.items() for name in names}
    seconds = own["prefill_seconds"] + own["decode_seconds"]
    before = sum(found["prefill"][f"{phase}_seconds"] for phase in PHASES)
    return {
        **fuller, **both, **own, "fits": all(each["fits"] for each in found.values()),
        "mfu": found["prefill"]["mfu"] * before / seconds,
        "chip_seconds_per_token": found["prefill"]["chip_seconds_per_token"] * seconds / before,
        **{name: min(each[name] for each in found.values()) for name in ("max_batch", "max_context")},
    }  # fmt: skip


def _ask(setups: Sequence[Setup], partition: str) -> Any:
    """One call for all, whose models and partition are the same."""
    ffn, _, attention = partition.rpartition("-") if partition != "auto" else ("auto", "", "auto")
    first, several = setups[0], len(setups) > 1

    def every(name: str) -> Any:
        values = [getattr(setup, name) for setup in setups]
        return np.array(values) if several and len(set(values)) > 1 else values[0]

    names = ("batch", "input_tokens", "output_tokens", "cached_tokens", "weights", "cache")
    given = {name: every(name) for name in names}
    return mtf.costs.inference(
        first.cfg, every("topology"), **given, ffn=ffn or "auto", attention=attention or "auto", reserve=first.reserve
    )


@lru_cache(maxsize=64)
def trials(setups: tuple[Setup, ...]) -> tuple[Facts, ...]:
    """The fields of a list, of many plans of one model with the best partitions, in one call."""
    est = _ask(setups, "auto")
    several = len(setups) > 1
    return tuple(_trial(setup, est, (n,) if several else ()) for n, setup in enumerate(setups))


def _trial(setup: Setup, est: Any, at: tuple[int, ...]) -> Facts:
    step, topology = item(est.step_seconds, at), mtf.topology(setup.topology)
    memory = {name: item(est.memory[name], at) for name in ("total", "capacity")}
    prefill = item(est.prefill_seconds, at)
    return {
        "setup": setup, "topology": setup.topology, "chip": topology.chip.name, "chips": topology.chips,
        "batch": setup.batch, "step": step, "prefill_seconds": prefill,
        "chip_seconds": topology.chips * step / setup.batch,
        "prefill_chip_seconds": topology.chips * prefill / (setup.batch * setup.input_tokens),
        "fits": bool(item(est.fits, at)), "held": memory["total"] / memory["capacity"],
        "layouts": item(est.layouts, at), "bottleneck": item(est.bottleneck, at),
        "mfu": {"prefill": item(est.prefill_mfu, at), "decode": item(est.decode_mfu, at)},
    }  # fmt: skip


def forget() -> None:
    """Ask anew; for tests that change what answers."""
    plan.cache_clear()
    trials.cache_clear()
