"""The key-value cache: what it takes, how it lies on devices, and the longest context that fits.

    >>> palm = dict(layers=118, kv_heads=1, head_size=256)
    >>> cache_bytes(**palm, batch=512, context=2048) / 1e9                      # GB of all devices together
    126.701...
    >>> longest_context(**palm, batch=128, hbm_bytes=32 * 2**30, devices=64, by="batch")       # 43,000 in Table 1
    42653.9...

A token of a sequence leaves one key and one value in every layer, each kv_heads · head_size long. d_model has no part
in it: PaLM 540B has 18,432 of one and 48 · 256 = 12,288 of the other. By heads, devices share out the key-value heads,
and with one head every device holds all of it. By batch they share out sequences, and a device holds 1/n.

Table 1 gives 30 % of 64 chips' memory to the cache. Its multihead row has heads of 128 and is right for the 64 heads
that 48 are padded to; section 2.1's 3 TB counts 48.

Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), sections 2.1, 3.3 and Table 1.
Next file to read: `serving`.
"""

from __future__ import annotations

import numpy as np

from mtfcore.costs.second_paper.collectives import Number, at_least_one, positive
from mtfcore.errors import LayoutError, nearest

BY = ("heads", "batch")


def cache_bytes(
    layers: Number, kv_heads: Number, head_size: Number, batch: Number, context: Number, itemsize: Number = 2
) -> Number:
    """Bytes of all keys and values: 2 · layers · kv_heads · head_size · bytes · L · B. Section 2.1."""
    positive(batch=batch, context=context, itemsize=itemsize)
    at_least_one(layers=layers, kv_heads=kv_heads, head_size=head_size)
    return 2 * layers * kv_heads * head_size * itemsize * context * batch


def ways(kv_heads: Number, batch: Number, devices: Number, by: str) -> Number:
    """Into how many equal parts devices cut the cache; devices beyond that hold copies. Section 3.3, Figure 4."""
    at_least_one(kv_heads=kv_heads, batch=batch, devices=devices)
    if by not in BY:
        raise LayoutError(f"no attention by {by!r:.60}; {nearest(by, BY)}")
    common = np.gcd(kv_heads if by == "heads" else batch, devices)
    return common if np.ndim(common) else int(common)


def cache_bytes_per_device(
    layers: Number, kv_heads: Number, head_size: Number, batch: Number, context: Number, devices: Number, by: str,
    itemsize: Number = 2,
) -> Number:  # fmt: skip
    """Bytes of the cache on one device, by heads or by batch. Section 3.3."""
    whole = cache_bytes(layers, kv_heads, head_size, batch, context, itemsize)
    return whole / ways(kv_heads, batch, devices, by)


def longest_context(
    layers: Number, kv_heads: Number, head_size: Number, batch: Number, hbm_bytes: Number, devices: Number, by: str,
    itemsize: Number = 2, fraction: Number = 0.3,
) -> Number:  # fmt: skip
    """Tokens of context with which the cache takes that fraction of each device's memory. Table 1."""
    positive(hbm_bytes=hbm_bytes, fraction=fraction)
    one = cache_bytes_per_device(layers, kv_heads, head_size, batch, 1, devices, by, itemsize)
    return fraction * hbm_bytes / one
