"""The second paper's closed forms: what its layouts move, keep and cost, each a short function with its source.

    >>> from mtfcore.costs.second_paper import best_layout, winners
    >>> best_layout(512, 18432, 73728, "4x4x4").layout                        # a decode step of 512 sequences
    'ws2d'
    >>> [part.layout for part in winners(18432, 73728, "4x4x8")]              # as the tokens of a pass grow
    ['ws2d', 'wg_x', 'wg_xy', 'wg_xy', 'wg_xyz']

`collectives` (A.1), `feedforward` (3.2, A.2), `splits` and `crossovers` (which X and YZ, which layout where),
`attention` (3.3, 3.4), `cache` (3.3, Table 1), `serving` (2, 4.4), and `wrong_claims` in circulation with the right
values. They count as the paper does; `mtf.price(..., model="paper")` gives the same of planned programs (`programs`),
and tests hold the two together. Everything takes numbers or numpy arrays. Every number is modelled.

Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102). First file to read: `collectives`.
"""

from mtfcore.costs.second_paper.cache import BY, cache_bytes, cache_bytes_per_device, longest_context
from mtfcore.costs.second_paper.collectives import all_gather, all_reduce, overlapped, reduce_scatter
from mtfcore.costs.second_paper.crossovers import best_layout, crossover, layouts_at, winners
from mtfcore.costs.second_paper.feedforward import LAYOUTS, layout_bytes, weight_gathered, ws1d, ws2d
from mtfcore.costs.second_paper.serving import chip_seconds_per_token, critical_tokens, flops_per_token, mfu
from mtfcore.costs.second_paper.splits import best_split, devices_from_which_2d_wins, ideal_split, meshes
from mtfcore.costs.second_paper.wrong_claims import errata, errata_table

__all__ = [
    "BY", "LAYOUTS", "all_gather", "all_reduce", "best_layout", "best_split", "cache_bytes", "cache_bytes_per_device",
    "chip_seconds_per_token", "critical_tokens", "crossover", "devices_from_which_2d_wins", "errata", "errata_table",
    "flops_per_token", "ideal_split", "layout_bytes", "layouts_at", "longest_context", "meshes", "mfu", "overlapped",
    "reduce_scatter", "weight_gathered", "winners", "ws1d", "ws2d",
]  # fmt: skip
