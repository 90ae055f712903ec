"""Bytes of activations on one device at the fullest moments of one pass, from sizes alone.

    >>> moments(mtf.model.config("palm-540b"), (4, 4, 4), batch=512, new_tokens=1, ffn="ws2d", attention="batch").keys()
    dict_keys(['attention', 'feedforward', 'logits'])

Inference keeps no activations for later: one layer works, the next one takes its place. Three moments can be the
fullest: attention (queries and what it mixes), the feedforward (the hidden layer, twice where it is gated), the logits
of each sequence's last position. Beside them lie the residual stream, cut over all devices, and the normalised input
as it was gathered. How far each is cut says the layout (arXiv 2211.05102, Figure 2 and Appendix A.2):

    layout     tokens over   E while it works   F and heads over
    ws1d       -             whole              x y z
    ws2d       -             x                  y z
    wg_x       x             whole              y z             wg_xy and wg_xyz alike

Scores are worked off in tiles and never stored whole (arXiv 2205.14135), unless `scores="whole"` is asked for. Next
file to read: `inference_memory`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtfcore.costs.cache_bytes import cache_ways
from mtfcore.costs.ways import Numbers, product, ways
from mtfcore.costs.weight_bytes import GATHERED_OVER, STORED, Grid, among, axes_of, bits_of
from mtfcore.model.configs import Config

SCORES = ("tiled", "whole")
F32 = 4
WORKS_OVER = {  # layout → (axes that cut E, axes that cut F and heads) while a product works
    "ws1d": ("", "xyz"), "ws2d": ("x", "yz"), "wg_x": ("", "yz"), "wg_xy": ("", "z"), "wg_xyz": ("", ""),
}  # fmt: skip


def moments(
    cfg: Config, grid: Grid, *, batch: Numbers = 1, new_tokens: Numbers = 1, context: Numbers = 2048,
    ffn: str = "ws2d", attention: str = "heads", dtype: Any = "bf16", scores: str = "tiled",
) -> dict[str, Numbers]:  # fmt: skip
    """Bytes on one device at each of the moments that may be the fullest; arrays broadcast."""
    among("scores", scores, SCORES)
    n_bytes = bits_of(dtype, "activations") / 8
    over_e, over_f = (axes_of(grid, axes) for axes in WORKS_OVER[among("ffn", ffn, STORED)])
    rows = ways(batch, *axes_of(grid, GATHERED_OVER[ffn]))  # the parts in which sequences lie
    sequences = batch / rows
    tokens = sequences * (np.asarray(new_tokens) * 1.0)
    stream = batch * (np.asarray(new_tokens) * 1.0) * cfg.d_model / product(grid)
    inside = tokens * cfg.d_model / ways(cfg.d_model, *over_e)  # normalised and gathered; later, the partial sums
    beside = stream + inside * (2 if cfg.block == "parallel" else 1)  # attention's addend waits for the other
    hidden = tokens * cfg.d_ff / ways(cfg.d_ff, *over_f) * (2 if cfg.gated else 1)
    mixing = _attention(cfg, grid, batch, new_tokens, ffn, attention)
    logits = sequences * cfg.vocab / ways(cfg.vocab, *over_f) * (n_bytes + F32)
    whole = _scores(cfg, grid, batch, new_tokens, context, ffn, attention) * (n_bytes + F32) if scores == "whole" else 0
    return {
        "attention": (stream + inside + mixing) * n_bytes + whole,
        "feedforward": (beside + hidden) * n_bytes,
        "logits": stream * n_bytes + logits,
    }


def _attention(cfg: Config, grid: Grid, batch: Numbers, new_tokens: Numbers, ffn: str, attention: str) -> Numbers:
    """Elements of the queries, new keys and values, and what has been mixed: as projected, or as attention has them."""
    queries, own = cfg.heads * cfg.head_size, 2 * cfg.kv_heads * cfg.head_size
    heads, sequences = _ways_of_queries(cfg, grid, batch, ffn, attention)
    over = axes_of(grid, WORKS_OVER[ffn][1])
    rows = ways(batch, *axes_of(grid, GATHERED_OVER[ffn]))
    projected = queries / ways(cfg.heads, *over) / rows + own / ways(cfg.kv_heads, *over) / rows
    attended = queries / heads / sequences + own / cache_ways(cfg, grid, batch, ffn, attention)[0] / sequences
    mixed = queries / heads / sequences
    return (np.maximum(projected, attended) + mixed) * batch * (np.asarray(new_tokens) * 1.0)


def _ways_of_queries(cfg: Config, grid: Grid, batch: Numbers, ffn: str, attention: str) -> tuple[Numbers, Numbers]:
    """In how many parts query heads and sequences lie while attention works."""
    if attention == "heads":
        rest = "".join(axis for axis in "xyz" if axis not in GATHERED_OVER[ffn])
        return ways(cfg.heads, *axes_of(grid, rest)), ways(batch, *axes_of(grid, GATHERED_OVER[ffn]))
    return cache_ways(cfg, grid, batch, ffn, attention)


def _scores(
    cfg: Config, grid: Grid, batch: Numbers, new_tokens: Numbers, context: Numbers, ffn: str, attention: str
) -> Numbers:
    """Elements of all scores at once: every query head, new token and cached token."""
    heads, sequences = _ways_of_queries(cfg, grid, batch, ffn, attention)
    return cfg.heads / heads * (batch / sequences) * (np.asarray(new_tokens) * 1.0) * context
