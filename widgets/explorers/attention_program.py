"""One layer's attention in decode as a program of its own: at full size to read its steps, at a small one to run it.

    >>> program = attention_program(mtf.model.config("palm-540b", heads=64), "x:4 y:4 z:4", 128, 2048, "batch")
    >>> [step.label() for step in program.collectives()][1:3]
    ['reduce_scatter over x into B', 'all_to_all over zy from H to B']

The same functions and pins as in `mtf.model.plan_phase`, without norms, feedforward and rotary positions: x comes in
and goes out as it lies between the layers. `smaller` keeps what decides who holds what (mesh, heads, which axes divide
the batch) and shortens all else. Source: arXiv 2211.05102, section 3.3, Figures 4 and 5. Next file to read:
`attention_run`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import mtfcore as mtf
from mtfcore.errors import refuse
from mtfcore.functions import Function
from mtfcore.model.block import attention
from mtfcore.model.configs import Config
from mtfcore.model.past import Keys, attend_parts, new_keys
from mtfcore.model.places import Placement, placement
from mtfcore.model.reasons import possible
from mtfcore.model.serving import SERVING
from mtfcore.model.storing import stored_texts
from mtfcore.tensor import Tensor

FFN = "ws2d"  # where weights lie in the paper's decode
WEIGHTS = ("wq", "wkv", "wo", "bq", "bkv", "bo")
LENGTH, HEAD = 16, 8  # kept tokens, and the least head size, of a small run


@lru_cache(maxsize=128)
def attention_program(
    cfg: Config, mesh: str, batch: int, context: int, by: str, dtype: str = "bf16", cache: str = "bf16"
) -> mtf.Program:  # fmt: skip
    """Attention of one new token of each sequence to `context` kept ones; refuses what cannot be."""
    grid = mtf.Mesh(mesh)
    refuse(possible(cfg, FFN, by, grid, batch, 1, context), f"attention of {cfg.name} by {by} on mesh '{grid}'")
    where = placement(cfg, "decode", grid, SERVING[f"{FFN}-{by}"], batch=batch)
    fn = attention_function(cfg, where, context, cache)
    place = {name: where.place[name] for name in fn.arguments if name != "x"} | {"x": residual(grid)}
    return mtf.plan(fn, grid, where.layout, sizes=f"B:{batch} L:1", place=place, dtype=dtype)


def attention_function(cfg: Config, where: Placement, context: int, cache: str = "bf16") -> Function:
    """x `B L E`, the weights of attention and what is kept → attention's result, and the new keys and values."""
    texts = {name: text.split(" ", 1)[1] for name, text in stored_texts(cfg).items() if name in WEIGHTS}
    kept = " ".join(["B", f"S:{context}", *key_heads(cfg), f"D:{cfg.head_size}"])
    names = ("cache_k", "cache_v")

    def call(x: Tensor, **given: Tensor) -> dict[str, Tensor]:
        new: list[Tensor] = []

        def core(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            new.extend((k, v))
            past = Keys(given["cache_k"], given["cache_v"], "S")
            return attend_parts(cfg, q, [past, new_keys(k, v, "N", None)])

        weights = {name: given[name] for name in texts}
        y = attention(cfg, x, weights, core=core, pins=where.pins)
        return {"y": mtf.reshard(y, "B L E"), "k": new[0], "v": new[1]}

    arguments = {"x": f"B L E:{cfg.d_model}", **texts, **dict.fromkeys(names, kept)}
    return Function.of("attention", arguments, call, dict.fromkeys(names, cache))


def key_heads(cfg: Config) -> list[str]:
    """The dimension of heads that kept keys and values have: H, K, or none."""
    return {"multihead": [f"H:{cfg.heads}"], "grouped": [f"K:{cfg.kv_heads}"], "multiquery": []}[cfg.attention]


def residual(mesh: mtf.Mesh) -> str:
    """Where x lies between the layers."""
    axes = "".join(axis for axis in "xzy" if axis in mesh and mesh[axis] > 1)
    return f"B L E:{axes}" if axes else "B L E"


def smaller(cfg: Config, mesh: str, batch: int) -> tuple[Config, int]:
    """A model and batch that lie the same way and run in a moment: heads are kept, the rest is short."""
    grid = mtf.Mesh(mesh)
    over_yz = math.prod(grid[axis] for axis in "yz" if axis in grid)
    short = cfg.but(
        layers=1, d_model=2 * grid.size, d_ff=4 * grid.size, head_size=over_yz * -(-HEAD // over_yz), vocab=64,
        max_length=4 * LENGTH, positions="none",
    )  # fmt: skip
    return short, math.gcd(batch, grid.size)
