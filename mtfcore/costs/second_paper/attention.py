"""Attention's traffic under 2D weight-stationary, by heads or by batch, and what a parallel block saves.

    >>> palm = dict(heads=64, kv_heads=1, head_size=256, x=4, yz=16)
    >>> by_batch, by_heads = (attention_bytes(512, **palm, by=by) for by in ("batch", "heads"))
    >>> by_batch / 2**20, by_heads / 2**20                          # MiB a layer and device, decoding 512 sequences
    (2.5390625, 2.5625)

q, k and v are products over E, which lies over x: partial sums, reduce-scattered over x, T·heads·head_size/YZ for T
tokens. W_o wants its heads over yz: one gather over x, the same size again. By heads that is all, if every head of keys
has its own device. One shared head must lie whole on every device: k and v are all-reduced over x and gathered over yz,
and, what costs far more, every device keeps and reads all of the cache. By batch, all-to-alls over yz bring each device
all heads of its sequences and take the result back: T·heads·head_size/n each way. That is paid for new tokens alone,
and saves reading (n-1)/n of the cache.

A serial block gathers E before each sublayer and reduce-scatters it after; a parallel one does both once for the two.

Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), sections 3.3 and 3.4, Figures 4 and 5.
Next file to read: `cache`.
"""

from __future__ import annotations

import numpy as np

from mtfcore.costs.second_paper.cache import BY
from mtfcore.costs.second_paper.collectives import Number, at_least_one, positive, share
from mtfcore.costs.second_paper.feedforward import ws2d
from mtfcore.errors import LayoutError, nearest, refuse


def attention_bytes(
    tokens: Number, heads: Number, kv_heads: Number, head_size: Number, x: Number, yz: Number, by: str = "batch",
    itemsize: Number = 2, exact: bool = False,
) -> Number:  # fmt: skip
    """Bytes that one device moves for one layer's attention, without E: projections, exchange, result. Section 3.3."""
    positive(tokens=tokens, itemsize=itemsize)
    at_least_one(heads=heads, kv_heads=kv_heads, head_size=head_size, x=x, yz=yz)
    if by not in BY:
        raise LayoutError(f"no attention by {by!r:.60}; {nearest(by, BY)}")
    one_head = tokens * head_size * itemsize
    over_x, over_yz = one_head * share(x, exact) / yz, one_head * share(yz, exact)
    if by == "batch":
        return (2 * heads + 2 * kv_heads) * (over_x + over_yz / (x * yz))
    if np.all(kv_heads == heads):
        return (2 * heads + 2 * kv_heads) * over_x
    if np.any(kv_heads != 1):
        refuse([f"by heads the paper has multihead and multiquery attention, not {kv_heads} of {heads} heads"])
    return 2 * heads * over_x + 2 * (2 * over_x + over_yz)


def block_bytes(
    tokens: Number, d_model: Number, d_ff: Number, heads: Number, kv_heads: Number, head_size: Number,
    x: Number, yz: Number, by: str = "batch", parallel: bool = True, itemsize: Number = 2, gated: bool = False,
    exact: bool = False,
) -> Number:  # fmt: skip
    """Bytes that one device moves for a whole layer under 2D weight-stationary. Sections 3.2.2, 3.3 and 3.4."""
    inside = attention_bytes(tokens, heads, kv_heads, head_size, x, yz, by, itemsize, exact)
    feedforward = ws2d(tokens, d_model, d_ff, x, yz, itemsize, gated, exact)
    return inside + feedforward + (0 if parallel else residual_bytes(tokens, d_model, x, yz, itemsize, exact))


def residual_bytes(
    tokens: Number, d_model: Number, x: Number, yz: Number, itemsize: Number = 2, exact: bool = False
) -> Number:
    """Bytes of E for one sublayer: gathered over yz before it, reduce-scattered after. What a parallel block saves."""
    positive(tokens=tokens, d_model=d_model, itemsize=itemsize)
    at_least_one(x=x, yz=yz)
    return 2 * tokens * d_model * share(yz, exact) * itemsize / x
