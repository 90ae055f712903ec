"""Bytes of activations on one device at the fullest moments of one pass, from sizes alone.

    >>> moments(mtf.model.config("palm-540b"), (4, 4, 4), batch=512, new_tokens=1, ffn="ws2d", attention="batch").keys()
    dict_keys(['attention', 'feedforward', 'logits'])

Inference keeps no activations for later: one layer works, the next one takes its place. Three moments can be the
fullest: attention (queries, and what they mix), the feedforward (the hidden layer, twice where it is gated), the logits
of each sequence's last position. Beside them lie the residual stream, cut over all devices, and the normalised input
as it was gathered. How far each is cut, `model.serving` says (arXiv 2211.05102, Figure 2 and Appendix A.2).

Scores are worked off in tiles and never stored whole (arXiv 2205.14135), unless `scores="whole"` is asked for. Next
file to read: `inference_memory`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtfcore.costs.serving_memory.cuts import HEADS, Core, Grid, Numbers, across, among, core, partition, parts
from mtfcore.costs.serving_memory.weight_bytes import bits_of
from mtfcore.model.configs import Config
from mtfcore.model.params import KV_HEADS

SCORES = ("tiled", "whole")
F32 = 4


def moments(
    cfg: Config, grid: Grid, *, batch: Numbers = 1, new_tokens: Numbers = 1, context: Numbers = 2048,
    ffn: str = "ws2d", attention: str = "heads", dtype: Any = "bf16", scores: str = "tiled", cut: Core | None = None,
) -> dict[str, Numbers]:  # fmt: skip
    """Bytes on one device at each of the moments that may be the fullest; arrays broadcast. `cut`, if it is known."""
    n_bytes, of = bits_of(dtype, "activations") / 8, partition(ffn)
    sequences = batch / across(grid, of.batch)
    tokens = batch * (np.asarray(new_tokens) * 1.0)
    local = sequences * new_tokens
    over_e, over_f = (across(grid, axes) for axes in (of.e, of.f))
    stream = local * cfg.d_model / (over_e * over_f)
    inside = local * cfg.d_model / over_e  # normalised and gathered; at the end, the partial sums
    waiting = inside if cfg.block == "parallel" else 0  # attention's addend, while the feedforward works
    hidden = local * cfg.d_ff / over_f * (2 if cfg.gated else 1)
    cut = cut or core(cfg, grid, ffn, attention, batch, new_tokens)
    mixing = _attention(cfg, grid, local, tokens, cut, ffn)
    whole = 0.0
    if among("scores", scores, SCORES) == "whole":
        whole = cfg.heads * tokens * context / (cut.batch * cut.queries * cut.length) * (n_bytes + F32)
    return {
        "attention": (stream + inside + mixing) * n_bytes + whole,
        "feedforward": (stream + inside + waiting + hidden) * n_bytes,
        "logits": stream * n_bytes + batch * cfg.vocab / across(grid, "xyz") * (n_bytes + F32),
    }


def _attention(cfg: Config, grid: Grid, local: Numbers, tokens: Numbers, cut: Core, ffn: str) -> Numbers:
    """Elements of queries, new keys and values, and what has been mixed: as projected, or as attention has them."""
    queries, own = cfg.heads * cfg.head_size, 2 * cfg.kv_heads * cfg.head_size
    q, k = (parts(cfg, grid, partition(ffn).f, kind[cfg.attention] + "D") for kind in (HEADS, KV_HEADS))
    projected = local * (queries / q + own / k)
    there = cut.batch * cut.queries * cut.length
    attended = tokens * (queries / there + own / (cut.batch * cut.keys))
    return np.maximum(projected, attended) + tokens * queries / there
