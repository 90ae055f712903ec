"""Estimates of `mtf.costs.inference` for planner and frontier: asked for once, kept by what was asked.

    >>> setup = Setup(mtf.model.config("palm-540b"), "v4:4x4x4", batch=64)
    >>> plan(setup)["step_seconds"]                                     # one plan, every field, plain data
    >>> trials((setup, ...))                                            # many at once, the few fields of a list
    >>> known_trials((setup, ...))                                      # the same if they were asked for, else None

The first estimate of a kind of model on a kind of grid plans its steps and takes a while, the next ones do not. So
explorers draw what is known and let their worker ask for the rest, a few at a time; one thread asks at a time. Next
file to read: `plan_finding`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.model.configs import Config
from widgets.figures.plans import PHASES, Facts, fields, item

ASKED = ("batch", "input_tokens", "output_tokens", "cached_tokens", "weights", "cache", "reserve")
FEW = 4  # settings a call, so that nobody waits long for their turn
MOST_KEPT = 8192


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
    prefill_batch: int = 0  # prompts that are read at a time; 0: all of the batch

    @property
    def prompts(self) -> int:
        """How many prompts are read at a time."""
        return min(self.prefill_batch, self.batch) or self.batch

    @property
    def chips(self) -> int:
        """Chips of the slice."""
        return mtf.topology(self.topology).chips

    @property
    def free(self) -> Setup:
        """The same with the best partitions."""
        return replace(self, prefill="auto", decode="auto")


_PLANS: OrderedDict[Setup, Facts] = OrderedDict()
_TRIALS: OrderedDict[Setup, Facts] = OrderedDict()
_ASKING = threading.RLock()


# ---- whole plans


def plan(setup: Setup) -> Facts:
    """Every field of one plan; `LayoutError` with the reasons where it cannot be."""
    if setup not in _PLANS:
        ask([setup])
    found = _PLANS[setup]
    if faults := [f"{phase}: {_reason(found, phase)}" for phase in PHASES if not found["layouts"][phase]]:
        raise LayoutError("\n".join(faults))
    return found


def known_plan(setup: Setup) -> Facts | None:
    """The plan if it was asked for and can be."""
    found = _PLANS.get(setup)
    return found if found and all(found["layouts"].values()) else None


def ask(setups: Sequence[Setup]) -> None:
    """Ask for plans of one model, all at once."""
    with _ASKING:
        missing = [setup for setup in setups if setup not in _PLANS]
        if missing:
            est = _estimate(missing)
            for n, setup in enumerate(missing):
                _keep(_PLANS, setup, fields(est, (n,)))


def _reason(found: Facts, phase: str) -> str:
    """Why no partition can be: the first reason, which is that of the one asked for."""
    reasons = (str(each["reason"]) for each in found["candidates"][phase].values())
    return next((reason for reason in reasons if reason not in ("", "not asked for")), "no partition can be")


# ---- lists of them


def trials(setups: Sequence[Setup]) -> list[Facts]:
    """The fields of a list, of plans of one model and slice, the batch growing; what cannot be does not fit.

    Where a batch does not fit, no larger one does, and nobody asks for it.
    """
    with _ASKING:
        missing = [setup for setup in setups if setup not in _TRIALS]
        for first in range(0, len(missing), FEW):
            some = missing[first : first + FEW]
            est = _estimate(some)
            for n, setup in enumerate(some):
                _keep(_TRIALS, setup, _trial(setup, est, (n,)))
            if _is_full(some[-1]):
                for setup in missing[first + FEW :]:
                    _keep(_TRIALS, setup, {**_TRIALS[some[-1]], "batch": setup.batch, "step": np.inf})
                break
    return [_TRIALS[setup] for setup in setups]


def _is_full(setup: Setup) -> bool:
    """Whether memory ends at this batch, in every phase that grows with it."""
    found = _TRIALS[setup]
    growing = ("decode",) if setup.prefill_batch else PHASES
    return all(found["layouts"][phase] and not found["fits_in"][phase] for phase in growing)


def known_trials(setups: Sequence[Setup]) -> list[Facts] | None:
    """The same without asking; None where one is not known yet."""
    found = [trial for setup in setups if (trial := _TRIALS.get(setup)) is not None]
    return found if len(found) == len(setups) else None


def _trial(setup: Setup, est: Any, at: tuple[int, ...]) -> Facts:
    step, topology = item(est.step_seconds, at), mtf.topology(setup.topology)
    memory = {name: item(est.memory[name], at) for name in ("total", "capacity", "reserve")}
    prefill = item(est.prefill_seconds, at)
    return {
        "topology": setup.topology, "chip": topology.chip.name, "chips": topology.chips, "batch": setup.batch,
        "step": step, "prefill_seconds": prefill, "chip_seconds": topology.chips * step / setup.batch,
        "prefill_chip_seconds": topology.chips * prefill / (setup.prompts * setup.input_tokens),
        "fits": bool(item(est.fits, at)), "fits_in": item(est.fits_by_phase, at),
        "held": (memory["total"] + memory["reserve"]) / memory["capacity"],
        "layouts": item(est.layouts, at), "bottleneck": item(est.bottleneck, at),
        "mfu": {"prefill": item(est.prefill_mfu, at), "decode": item(est.decode_mfu, at)},
    }  # fmt: skip


def could_hold(setup: Setup) -> bool:
    """Whether the weights alone fit: no need to ask where they cannot."""
    topology, size = mtf.topology(setup.topology), {"int8": 1, "bf16": 2, "f32": 4}[setup.weights]
    return _n_params(setup.cfg) * size <= topology.devices * topology.hbm_bytes_per_device * (1 - setup.reserve)


@cache
def _n_params(cfg: Config) -> int:
    return cfg.n_params


# ---- asking


def _estimate(setups: Sequence[Setup]) -> Any:
    """One call; every field has one entry a setup."""
    given = {name: np.array([getattr(setup, name) for setup in setups]) for name in ASKED}
    given["prefill_batch"] = np.array([setup.prompts for setup in setups])
    pinned = {phase: [getattr(setup, phase).rpartition("-") for setup in setups] for phase in PHASES}
    ffn = {phase: np.array([ffn or "auto" for ffn, _, _ in words]) for phase, words in pinned.items()}
    attention = {phase: np.array([last if ffn else "auto" for ffn, _, last in words])
                 for phase, words in pinned.items()}  # fmt: skip
    where = np.array([setup.topology for setup in setups])
    return mtf.costs.inference(setups[0].cfg, where, **given, ffn=ffn, attention=attention)


def _keep(kept: OrderedDict[Setup, Facts], setup: Setup, facts: Facts) -> None:
    kept[setup] = facts
    while len(kept) > MOST_KEPT:
        kept.popitem(last=False)


def forget() -> None:
    """Ask anew; for tests."""
    with _ASKING:
        _PLANS.clear()
        _TRIALS.clear()
