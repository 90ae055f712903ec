"""Of all partitions, for each setting and phase: seconds, memory, and the one to run.

    >>> est = mtf.costs.inference("palm-540b", "v4:4x4x4", batch=64, input_tokens=2048, weights="int8")
    >>> decode = est.phases["decode"]
    >>> decode.names[decode.chosen[0]], decode.tried[decode.chosen[0]].fits
    ('ws2d-batch', array([ True]))

The fastest of those that fit is taken, and where none fits the fastest of all. ws1d keeps the weights cut otherwise
than the others do, so where both phases are free, either both take ws1d or none does: else the weights would have to
be held twice, or moved between the phases. Next file to read: `limits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtfcore.costs.serving.settings import AUTO, Settings
from mtfcore.costs.serving.timing import PARTS, READS, Took, candidate, tokens
from mtfcore.costs.serving_memory.inference_memory import device_bytes
from mtfcore.model.serving import ATTENTION, FEEDFORWARD, PHASES

OTHERWISE_CUT = "ws1d"
TERMS = ("weights", "cache", "activations", "gathered")


@dataclass(frozen=True)
class Tried:
    """One partition in one phase: its time, its bytes by term, whether these fit. Arrays, one entry a setting."""

    took: Took
    memory: dict[str, np.ndarray]
    fits: np.ndarray
    asked: np.ndarray  # whether the setting lets it be chosen


@dataclass(frozen=True)
class Phase:
    """All partitions of a phase, and which of them each setting runs (-1: none can)."""

    tried: Sequence[Tried]
    chosen: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Of the partitions, in the order in which they were tried."""
        return tuple(each.took.name for each in self.tried)

    def pick(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Each setting's entry from the array of the partition that it runs."""
        stacked, n = np.stack(arrays), len(self.chosen)
        return stacked[np.maximum(self.chosen, 0), np.arange(n)]

    @property
    def seconds(self) -> np.ndarray:
        """Of one pass: a prefill, or one step of decoding."""
        return self.pick([each.took.total for each in self.tried])

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """Seconds of that pass by what binds."""
        return {part: self.pick([each.took.parts[part] for each in self.tried]) for part in PARTS}

    @property
    def reads(self) -> dict[str, np.ndarray]:
        """Bytes between HBM and one device in it, by what they are of."""
        return {name: self.pick([each.took.reads[name] for each in self.tried]) for name in READS}

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """Bytes of one device by term."""
        return {term: self.pick([each.memory[term] for each in self.tried]) for term in TERMS}


def phases(asked: Settings, model: str) -> dict[str, Phase]:
    """Every partition that a setting allows, in both phases, and the choice."""
    tried = {phase: try_all(asked, phase, model) for phase in PHASES}
    free = np.all([asked.per_row(f"{phase}_ffn") == AUTO for phase in PHASES], axis=0)
    chosen = {phase: _best(each, [True] * len(each)) for phase, each in tried.items()}
    _same_cut(asked, tried, chosen, free)
    return {phase: Phase(tried[phase], chosen[phase][0]) for phase in PHASES}


def try_all(asked: Settings, phase: str, model: str) -> list[Tried]:
    """Each partition that any setting asks for."""
    ffns, attentions = asked.per_row(f"{phase}_ffn"), asked.per_row(f"{phase}_attention")
    found = []
    for ffn in FEEDFORWARD:
        for attention in ATTENTION:
            may = ((ffns == ffn) | (ffns == AUTO)) & ((attentions == attention) | (attentions == AUTO))
            if may.any():
                took = candidate(asked, phase, ffn, attention, model, np.flatnonzero(may))
                found.append(_with_memory(asked, phase, ffn, attention, took, may))
    return found


def _with_memory(asked: Settings, phase: str, ffn: str, attention: str, took: Took, may: np.ndarray) -> Tried:
    memory = {term: np.zeros(asked.n) for term in TERMS}
    new, _ = tokens(asked, phase)
    last = asked.numbers["output_tokens"] if phase == "decode" else 0
    context = asked.numbers["cached_tokens"] + asked.numbers["input_tokens"] + last
    done = ~np.isnan(took.total)
    for (cfg, weights, kept), rows in asked.alike(done):
        held = device_bytes(
            cfg, tuple(took.grid[rows].T), batch=asked.batch(phase)[rows], context=context[rows],
            new_tokens=new[rows], weights=weights, cache_dtype=kept, ffn=ffn, attention=attention,
        )  # fmt: skip
        for term in TERMS:
            memory[term][rows] = getattr(held, term)
    capacity = asked.of_topology(lambda slice_: slice_.hbm_bytes_per_device)
    fits = done & (sum(memory.values()) <= capacity * (1 - asked.reserve))
    return Tried(took, memory, fits, may)


def _best(tried: Sequence[Tried], allowed: Sequence[bool]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of the fastest that fits, else of the fastest; its seconds (inf where none can); whether one fits."""
    may = [each.asked & of_list for each, of_list in zip(tried, allowed, strict=True)]
    seconds = np.stack([np.where(ok, _or_inf(each.took.total), np.inf) for ok, each in zip(may, tried, strict=True)])
    fitting = np.where(np.stack([each.fits for each in tried]), seconds, np.inf)
    any_fits = np.isfinite(fitting).any(0)
    number = np.where(any_fits, fitting.argmin(0), seconds.argmin(0))
    took = seconds[number, np.arange(seconds.shape[1])]
    return np.where(np.isfinite(took), number, -1), took, np.asarray(any_fits)


def _or_inf(seconds: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(seconds), np.inf, seconds)


def _same_cut(asked: Settings, tried: dict[str, list[Tried]], chosen: dict[str, tuple], free: np.ndarray) -> None:
    """Where both phases are free: both with ws1d, or both without, whichever takes less in all (and fits)."""
    ways = []
    for with_ws1d in (False, True):
        best = {}
        for phase, each in tried.items():
            best[phase] = _best(each, [t.took.name.startswith(OTHERWISE_CUT) == with_ws1d for t in each])
        steps = np.maximum(asked.numbers["output_tokens"], 1)
        passes = asked.batch("decode") / asked.batch("prefill")
        fits = best["prefill"][2] & best["decode"][2]
        ways.append((best, best["prefill"][1] * passes + best["decode"][1] * steps, fits))
    (plain, time, fits), (other, other_time, other_fits) = ways
    take = (other_fits & ~fits) | ((other_fits == fits) & (other_time < time))
    for phase, now in chosen.items():
        both = np.isfinite(np.minimum(time, other_time)) & free
        picked = np.where(take, other[phase][0], plain[phase][0])
        chosen[phase] = (np.where(both, picked, now[0]), *now[1:])
