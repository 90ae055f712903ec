"""The largest batch and the longest context that one device's memory allows: formulas, not searches.

    >>> palm = mtf.model.config("palm-540b")
    >>> longest_context(palm, (4, 4, 4), batch=128, attention="batch", capacity=32 * 2**30, cache_share=0.3)
    42653

At every moment of a pass memory grows by the same amount with each further token, or with each further step of the
batch; the fullest moment alone may change. So the answer is the least, over the moments, of what is left divided by
that amount. Steps of the batch are what the layout allows: 1, or the devices over which sequences lie; below one step,
its divisors. Then the neighbours are checked, so that rounding can never be off by one: what is
returned fits, one step more does not. Everything takes numpy arrays. Source of the example: Efficiently Scaling
Transformer Inference (arXiv 2211.05102), Table 1. Next file to read: `serving/inference`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mtfcore.costs.serving_memory.cache_bytes import cache
from mtfcore.costs.serving_memory.cuts import Grid, Numbers, across, core, partition
from mtfcore.costs.serving_memory.inference_memory import MOST, RESERVE, by_moment, check, check_room
from mtfcore.dims import divisors
from mtfcore.errors import LayoutError
from mtfcore.model.configs import Config


def batch_step(grid: Grid, ffn: str = "ws2d", attention: str = "heads") -> Numbers:
    """What batches are multiples of: the devices over which sequences lie, 1 where they lie whole."""
    if attention == "batch":
        return across(grid, "xyz")
    return across(grid, partition(ffn).batch)


def largest_batch(cfg: Config, grid: Grid, *, capacity: Numbers, reserve: Numbers = RESERVE, **how: Any) -> Numbers:
    """The largest batch that fits with the reserve kept free; 0 where not one sequence does.

    `how` is as in `device_bytes`. The batch is a multiple of `batch_step`, or, below one step, one of its divisors.
    """
    _not_given(how, "batch")
    step = np.asarray(batch_step(grid, how.get("ffn", "ws2d"), how.get("attention", "heads")))
    cut = np.asarray(across(grid, partition(how.get("ffn", "ws2d")).batch))
    budget = capacity - check_room(capacity, reserve)
    total = partial(_with_batch, cfg, grid, how)
    steps = _most(budget, lambda n: total(n * step), MOST // step)
    small = 0 if np.all(steps > 0) else _divisor(step, cut, budget, total)
    return _plain(np.where(steps > 0, steps * step, small))


def longest_context(
    cfg: Config, grid: Grid, *, capacity: Numbers, reserve: Numbers = RESERVE,
    cache_share: Numbers | None = None, **how: Any,
) -> Numbers:  # fmt: skip
    """The most cached tokens a sequence that fit with the reserve kept free; 0 where none does.

    With `cache_share`, the cache may have that share of the capacity and the other terms are not asked for: so counts
    Table 1, with 0.3. What the model was made for (`max_length`) is another question.
    """
    _not_given(how, "context")
    budget = capacity - check_room(capacity, reserve)
    if cache_share is not None:
        return _within(cfg, grid, np.asarray(capacity) * np.asarray(cache_share), **how)
    return _plain(_most(budget, lambda n: by_moment(cfg, grid, context=n, **how), MOST))


def longest_read(
    cfg: Config, grid: Grid, *, capacity: Numbers, reserve: Numbers = RESERVE, cached: Numbers = 0, **how: Any
) -> Numbers:
    """The longest context of which all but `cached` tokens are read in one pass, with the reserve kept free; 0 if none.

    Where the queries' length is cut, in whole steps of that: a text that does not divide would take more.
    """
    for name in ("context", "new_tokens"):
        _not_given(how, name)
    if how.get("scores") == "whole":
        raise LayoutError("scores='whole' grow with the square of what is read; the longest is known for 'tiled' only")
    budget = capacity - check_room(capacity, reserve)
    asked = how.get("ffn", "ws2d"), how.get("attention", "heads"), how.get("batch", 1)
    step = core(cfg, grid, *asked, new_tokens=across(grid, "xyz")).length

    def total(steps: Numbers) -> Numbers:
        return by_moment(cfg, grid, context=cached + steps * step, new_tokens=steps * step, **how)

    new = _most(budget, total, MOST // 2 // step) * step
    return _plain(np.where(new > 0, cached + new, 0))


def _with_batch(cfg: Config, grid: Grid, how: dict[str, Any], batch: Numbers) -> Numbers:
    return by_moment(cfg, grid, batch=batch, **how)


def _within(
    cfg: Config, grid: Grid, budget: Numbers, *, batch: Numbers = 1, cache_dtype: Any = "bf16", ffn: str = "ws2d",
    attention: str = "heads", few_copies: bool = False, scales: str = "bf16",
) -> Numbers:  # fmt: skip
    """Cached tokens of each sequence within so many bytes of one device."""
    check(cfg, grid, batch=batch)
    how: dict[str, Any] = {"ffn": ffn, "attention": attention, "few_copies": few_copies, "scales": scales}
    one = cache(cfg, grid, batch=batch, context=1, dtype=cache_dtype, **how)
    return _plain(np.floor(budget / one.bytes))


def _most(budget: Numbers, total: Callable[[Numbers], Numbers], limit: Numbers) -> Numbers:
    """The largest n whose total is within the budget at every moment, 0 if not even 1 is, and at most `limit`."""
    wide = np.zeros(np.shape(budget), np.int64)  # one row a moment, each as wide as the budget
    one, two = total(1 + wide), total(2 + wide)
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.floor((budget - one) / (two - one))
    more = np.where(two > one, more, np.where(one <= budget, limit, -1)).min(axis=0)
    n = np.clip(more + 1, 0, limit)
    inside = [(total(np.clip(n + change, 1, limit)) <= budget).all(axis=0) for change in (0, 1)]  # rounding may be off
    return np.where(inside[1], np.minimum(n + 1, limit), np.where(inside[0] | (n == 0), n, n - 1))


def _divisor(step: Numbers, cut: Numbers, budget: Numbers, total: Callable[[Numbers], Numbers]) -> Numbers:
    """The largest divisor of a step, below it, that fits as a batch; 0 if none does. `cut`: what must divide it."""
    best: Numbers = np.zeros(())
    for n in sorted({d for whole in np.unique(step) for d in divisors(int(whole)) if d < whole}):
        inside = (total(np.full(np.broadcast_shapes(step.shape, np.shape(budget)), n)) <= budget).all(axis=0)
        best = np.where(inside & (step % n == 0) & (n < step) & (n % cut == 0), n, best)
    return best


def _not_given(how: dict[str, Any], name: str) -> None:
    if name in how:
        raise LayoutError(f"{name} is what is looked for; leave it out")


def _plain(array: Numbers) -> Numbers:
    whole = np.asarray(array).astype(np.int64)
    return whole.item() if whole.ndim == 0 else whole
