"""Bytes of cached keys and values on one device, by heads or by batch, with the copies there really are.

    >>> palm = mtf.model.config("palm-540b")
    >>> cache(palm, (4, 4, 4), batch=512, context=2048, attention="batch").bytes
    np.float64(1979711488.0)
    >>> cache(palm, (4, 4, 4), batch=512, context=2048, attention="heads").bytes
    np.float64(126701535232.0)

There is one head: by heads every device holds everything. A cached token costs 2 · layers · kv_heads · head_size
elements: key and value heads, not query heads, and not d_model. By heads, these lie over the axes that their
number divides and are copied over the others. By batch, sequences lie over the axes that their number divides, and
heads over what is left; fewer sequences than devices are copied. Weight-gathered layouts split the batch to
begin with. Axes are used whole; `few_copies=True` says what the best axes for as many devices would give: 8 heads on
16 devices are one a device, each on two. `even` is the floor that no layout may reach: all devices' memory
as one. Source: Efficiently Scaling Transformer Inference (arXiv 2211.05102), sections 2.1 and 3.3, Figure 4, Table 1.
Next file to read: `activation_bytes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mtfcore.costs.serving_memory.cuts import Core, Grid, Numbers, across, among, core, fewest, partition
from mtfcore.costs.serving_memory.weight_bytes import SCALE_BYTES, SCALES, bits_of, is_whole
from mtfcore.model.configs import Config


class Cache(NamedTuple):
    """The cache on one device: its bytes, in how many parts heads and sequences lie, how many devices hold the same."""

    bytes: Numbers
    head_parts: Numbers
    batch_parts: Numbers
    copies: Numbers


def token_bytes(cfg: Config, dtype: Any = "bf16", scales: str = "bf16") -> Numbers:
    """Bytes of one cached token of one sequence, all layers, keys and values, everywhere together.

    Whole numbers have one scale for each head's vector, as `model.past` has it.
    """
    one = cfg.head_size * bits_of(dtype, "cache") / 8 + is_whole(dtype) * SCALE_BYTES[among("scales", scales, SCALES)]
    return 2 * cfg.layers * cfg.kv_heads * one


def cache(
    cfg: Config, grid: Grid, *, batch: Numbers = 1, context: Numbers = 2048, dtype: Any = "bf16",
    ffn: str = "ws2d", attention: str = "heads", scales: str = "bf16", few_copies: bool = False,
    cut: Core | None = None,
) -> Cache:  # fmt: skip
    """What one device holds of `batch` sequences of `context` tokens; arrays broadcast. `cut`, where it is known."""
    even = attention == "even"
    n_bytes = token_bytes(cfg, dtype, "none" if even else scales) * (np.asarray(context) * 1.0) * batch
    found = cut or core(cfg, grid, ffn, attention, batch)
    heads, sequences = found.keys, found.batch
    if few_copies:
        heads, sequences = fewest_copies(cfg, grid, batch, ffn, attention)
    ways = across(grid, "xyz") if even else heads * sequences
    return Cache(n_bytes / ways, heads, sequences, across(grid, "xyz") / ways)


def fewest_copies(cfg: Config, grid: Grid, batch: Numbers, ffn: str, attention: str) -> tuple[Numbers, Numbers]:
    """The same with axes chosen for it: heads alone, or the sequences and, over what they leave, heads."""
    first = across(grid, partition(ffn).batch)
    rest = across(grid, "xyz") // np.asarray(first)
    sequences = first * (fewest(np.maximum(batch // np.asarray(first), 1), rest) if attention == "batch" else 1)
    return fewest(cfg.kv_heads, across(grid, "xyz") // np.asarray(sequences)), sequences
