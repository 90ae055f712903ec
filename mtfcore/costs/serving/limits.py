"""Of every setting the largest batch and the longest context that fit, phase by phase, partitions as they were chosen.

    >>> est = mtf.costs.inference("palm-540b", "v4:4x4x4", batch=64, input_tokens=2048, weights="int8")
    >>> est.max_batch_by_phase, est.max_context_by_phase
    ({'prefill': 200, 'decode': 5504}, {'prefill': 6516, 'decode': 185344})

What is read in one pass has activations as long as itself; what is decoded has those of one token. So a context that
could be decoded may have to be read a part at a time, as cached tokens. Next file to read: `words`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mtfcore.costs.serving.settings import Settings
from mtfcore.costs.serving_memory import memory_limits as memory

if TYPE_CHECKING:
    from mtfcore.costs.serving.choosing import Phase

Columns = Mapping[str, np.ndarray]


def batches(asked: Settings, phases: Mapping[str, Phase]) -> dict[str, np.ndarray]:
    """Phase → the largest batch of one pass, lengths as they are."""
    read = asked.numbers["cached_tokens"] + asked.numbers["input_tokens"]
    prefill = {"context": read, "new_tokens": asked.numbers["input_tokens"]}
    decode = {"context": read + asked.numbers["output_tokens"], "new_tokens": np.ones(asked.n, int)}
    return {
        "prefill": _limit(asked, phases["prefill"], memory.largest_batch, prefill),
        "decode": _limit(asked, phases["decode"], memory.largest_batch, decode),
    }


def batch_of_both(asked: Settings, phases: Mapping[str, Phase], each: Columns) -> np.ndarray:
    """The largest batch that both phases have room for and can cut; where fewer are read at a time, that of decoding.

    `each`: what `batches` found.
    """
    most, parts = np.minimum(each["prefill"], each["decode"]), [_parts(asked, of) for of in phases.values()]
    whole = np.lcm(*[steps for steps, _ in parts])
    small = np.zeros_like(most)
    for n in sorted({d for step in np.unique(whole[most < whole]) for d in memory.divisors(int(step))}):
        legal = np.all([(n % step == 0) | ((step % n == 0) & (n % cut == 0)) for step, cut in parts], axis=0)
        small = np.where(legal & (n <= most), n, small)
    found = np.where(most >= whole, most - most % whole, small)
    apart = asked.batch("prefill") < asked.batch("decode")
    return np.where(apart & (asked.batch("prefill") <= each["prefill"]), each["decode"], found)


def _parts(asked: Settings, of: Phase) -> tuple[np.ndarray, np.ndarray]:
    """What batches are multiples of in a phase, and what must divide smaller ones too."""
    steps, cuts = np.ones(asked.n, np.int64), np.ones(asked.n, np.int64)
    for number, tried in enumerate(of.tried):
        ffn, _, attention = tried.took.name.rpartition("-")
        rows = of.chosen == number
        grid = tuple(tried.took.grid[rows].T)
        steps[rows], cuts[rows] = memory.batch_step(grid, ffn, attention), memory.batch_step(grid, ffn)
    return steps, cuts


def contexts(asked: Settings, phases: Mapping[str, Phase]) -> dict[str, np.ndarray]:
    """Phase → the longest context, the batch as it is: read in one pass before so many are written, or decoded."""
    prefill = {"batch": asked.batch("prefill"), "cached": asked.numbers["cached_tokens"]}
    decode = {"batch": asked.batch("decode"), "new_tokens": np.ones(asked.n, int)}
    read = _limit(asked, phases["prefill"], memory.longest_read, prefill)
    found = {
        "prefill": np.where(read > 0, read + asked.numbers["output_tokens"], 0),
        "decode": _limit(asked, phases["decode"], memory.longest_context, decode),
    }
    learned = asked.of_model(lambda cfg: cfg.max_length if cfg.positions == "learned" else 2**62)
    return {phase: np.minimum(most, learned) for phase, most in found.items()}


def _limit(asked: Settings, of: Phase, limit: Callable[..., Any], columns: Columns) -> np.ndarray:
    """A limit of one phase, partition by partition; 0 where the phase cannot be."""
    found, capacity = np.zeros(asked.n, np.int64), asked.of_topology(lambda slice_: slice_.hbm_bytes_per_device)
    for number, tried in enumerate(of.tried):
        ffn, _, attention = tried.took.name.rpartition("-")
        for (cfg, weights, kept), rows in asked.alike(of.chosen == number):
            found[rows] = limit(
                cfg, tuple(tried.took.grid[rows].T), capacity=capacity[rows].astype(float), ffn=ffn,
                attention=attention, reserve=asked.reserve[rows], weights=weights, cache_dtype=kept,
                **{name: column[rows] for name, column in columns.items()},
            )  # fmt: skip
    return found
