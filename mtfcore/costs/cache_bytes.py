"""Bytes of cached keys and values on one device, by heads or by batch, with the copies there really are.

    >>> palm = mtf.model.config("palm-540b")
    >>> cache(palm, (4, 4, 4), batch=512, context=2048, attention="batch").bytes / 1e9
    1.98…
    >>> cache(palm, (4, 4, 4), batch=512, context=2048, attention="heads").bytes / 1e9
    126.7…

There is one head: by heads every device holds everything. A cached token costs 2 · layers · kv_heads · head_size
elements: key and value heads, not query heads (case C08), and not d_model. By heads, they lie over the axes that their
number divides; fewer heads than devices are copied, and one alone (multiquery) is held by every device. By batch,
sequences lie over the axes; fewer sequences than devices are copied. `both` has heads first, then sequences over what
is left; `even` is the floor that no layout may reach: all devices' memory taken as one. Weight-gathered layouts split
the batch to begin with. Source: Efficiently Scaling Transformer Inference (arXiv 2211.05102), sections 2.1 and 3.3,
Figure 4, Table 1. Next file to read: `inference_memory`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mtfcore.costs.ways import Numbers, product, ways
from mtfcore.costs.weight_bytes import GATHERED_OVER, Grid, among, axes_of, bits_of
from mtfcore.model.configs import Config

ATTENTION = ("heads", "batch", "both", "even")


class Cache(NamedTuple):
    """The cache on one device: its bytes, in how many parts heads and sequences lie, how many devices hold the same."""

    bytes: Numbers
    head_ways: Numbers
    batch_ways: Numbers
    copies: Numbers


def token_bytes(cfg: Config, dtype: Any = "bf16") -> Numbers:
    """Bytes of one cached token of one sequence, all layers, keys and values, everywhere together."""
    return 2 * cfg.layers * cfg.kv_heads * cfg.head_size * bits_of(dtype, "cache") / 8


def cache(
    cfg: Config, grid: Grid, *, batch: Numbers = 1, context: Numbers = 2048, dtype: Any = "bf16",
    ffn: str = "ws2d", attention: str = "heads",
) -> Cache:  # fmt: skip
    """What one device holds of `batch` sequences of `context` tokens; arrays broadcast."""
    among("attention", attention, ATTENTION)
    n_bytes = token_bytes(cfg, dtype) * (np.asarray(context) * 1.0) * batch
    heads, sequences = cache_ways(cfg, grid, batch, ffn, attention)
    parts = product(grid) if attention == "even" else heads * sequences
    return Cache(n_bytes / parts, heads, sequences, product(grid) / parts)


def cache_ways(cfg: Config, grid: Grid, batch: Numbers, ffn: str, attention: str) -> tuple[Numbers, Numbers]:
    """In how many parts heads and sequences lie."""
    first = GATHERED_OVER[among("ffn", ffn, GATHERED_OVER)]  # a weight-gathered layout has its batch over these
    rest = axes_of(grid, "".join(axis for axis in "xyz" if axis not in first))
    if attention == "heads":
        return ways(cfg.kv_heads, *rest), ways(batch, *axes_of(grid, first))
    if attention == "batch":
        return 1, ways(batch, *grid)
    return _heads_then_batch(cfg.kv_heads, batch, grid)


def _heads_then_batch(kv_heads: int, batch: Numbers, grid: Grid) -> tuple[Numbers, Numbers]:
    """Heads over a part of the devices and sequences over the rest: the split that leaves fewest copies."""
    n = product(grid)
    best_heads: Numbers = 1
    best_batch: Numbers = ways(batch, *grid)
    for heads in (h for h in range(2, kv_heads + 1) if kv_heads % h == 0):
        possible = np.asarray(n) % heads == 0
        sequences = np.where(possible, ways(batch, np.where(possible, n // heads, 1)), 0)
        better = heads * sequences >= best_heads * best_batch
        best_heads, best_batch = np.where(better, heads, best_heads), np.where(better, sequences, best_batch)
    return best_heads, best_batch
