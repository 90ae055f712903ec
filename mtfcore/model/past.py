"""Attention to keys and values that were kept: those of earlier tokens and those of new ones, in one softmax.

    mixed = attend_parts(cfg, q, [Keys(cache_k, cache_v, "S"), Keys(k, v, "N", causal(x, "N"))])

The kept ones are read where they lie and the new ones are not put behind them: the softmax is taken in parts, whose
largest scores and sums are shared (as in arXiv 2112.05682, section 2), so that no step copies the cache. A cache of
whole numbers has one scale for each vector of D numbers; scores and weights are multiplied by it, not the cache.
Next file to read: `phases`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import NamedTuple

import mtfcore as mtf
from mtfcore.dims import Dim
from mtfcore.model.block import NEVER, as_dtype, full_precision, regrouped
from mtfcore.model.configs import Config
from mtfcore.tensor import Tensor


class Keys(NamedTuple):
    """Keys and values along one dimension of positions: dtype[B, S, heads, D]; `see` is bool[L, S], or None: all."""

    k: Tensor
    v: Tensor
    over: str
    see: Tensor | None = None
    k_scale: Tensor | None = None  # of whole numbers: dtype[B, S, heads]
    v_scale: Tensor | None = None


def new_keys(k: Tensor, v: Tensor, over: str, see: Tensor | None) -> Keys:
    """Keys and values of new tokens: their positions under another name than those of the queries."""
    dim = (Dim(over, k.dim("L").size),)
    return Keys(regrouped(k, "L", dim), regrouped(v, "L", dim), over, see)


def attend_parts(cfg: Config, q: Tensor, parts: Sequence[Keys]) -> Tensor:
    """softmax(q kᵀ / √D) v over all parts: queries `B L heads D` → the same."""
    scores = [_scores(q * cfg.head_size**-0.5, keys) for keys in parts]
    top = functools.reduce(mtf.maximum, [mtf.max(s, keys.over) for s, keys in zip(scores, parts, strict=True)])
    shares = [mtf.exp(s - top) for s in scores]
    total = functools.reduce(operator.add, [mtf.sum(e, keys.over) for e, keys in zip(shares, parts, strict=True)])
    mixed = [_mixed(e, keys, q) for e, keys in zip(shares, parts, strict=True)]
    return as_dtype(full_precision(functools.reduce(operator.add, mixed)) / total, q.dtype)


def _scores(q: Tensor, keys: Keys) -> Tensor:
    heads = " ".join(name for name in q.names if name not in "BLD")
    found = mtf.einsum(q, as_dtype(keys.k, q.dtype), out=f"B {heads} L {keys.over}", follow=True)
    found = found if keys.k_scale is None else found * keys.k_scale
    found = full_precision(found)
    return found if keys.see is None else mtf.where(keys.see, found, NEVER)


def _mixed(shares: Tensor, keys: Keys, q: Tensor) -> Tensor:
    shares = as_dtype(shares, q.dtype)
    shares = shares if keys.v_scale is None else shares * keys.v_scale
    return mtf.einsum(shares, as_dtype(keys.v, q.dtype), out=" ".join(q.names), follow=True)


def quantised(t: Tensor) -> tuple[Tensor, Tensor]:
    """(i8 of the same dimensions, scales without D): each vector of D numbers is divided by its largest over 127."""
    scale = mtf.maximum(mtf.max(mtf.absolute(t), "D") * (1 / 127), 1e-30)
    found = full_precision(t / scale)
    nearest = mtf.where(mtf.less(found, 0), found - 0.5, found + 0.5)  # a cast cuts towards 0
    return mtf.cast(nearest, "i8"), scale
