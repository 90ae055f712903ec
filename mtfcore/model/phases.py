"""Prefill and decode: one step of a served model as a whole program, from tokens to the next token's logits.

    >>> cfg = mtf.model.config("palm-540b", heads=64)                                      # padded, on request
    >>> prog = mtf.model.plan_phase(cfg, "decode", "x:4 y:4 z:4", ffn="ws2d", attention="batch", batch=512,
    ...                             cached_tokens=2048, weights="int8")
    >>> mtf.price(prog, "v4:4x4x4")
    <Cost decode on v4:4x4x4: 58.7 ms, 55% compute, MFU 56.1%, fits (modelled)>

Prefill takes many new tokens of each sequence, decode one; both may look at cached ones, whose keys and values come
in (`cache_k`, `cache_v`: layers B S K D, with H in multihead and neither in multiquery models) and are only read. Those
of the new tokens go out beside the logits: `k` and `v`, layers B L K D, lying as the cache does. New tokens are called
L as queries and N as keys. Source: Efficiently Scaling Transformer Inference (arXiv 2211.05102), sections 2 and 3.
This comes last of `pins`, `serving`, `places`, `reasons`, `storing` and `past`. Next file to read:
`costs/templates/sizes`.
"""

from __future__ import annotations

from collections.abc import Mapping

import mtfcore as mtf
from mtfcore.dims import Dim
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.functions import Function
from mtfcore.mesh import Mesh, as_mesh
from mtfcore.model.block import Rotation, as_dtype, block, causal, normalise, regrouped, rotary
from mtfcore.model.configs import Config, config
from mtfcore.model.params import KV_HEADS
from mtfcore.model.past import Keys, attend_parts, new_keys, quantised
from mtfcore.model.pins import FREE, Pins, Weights, brought, product
from mtfcore.model.places import Placement, placement
from mtfcore.model.reasons import possible
from mtfcore.model.serving import PHASES, SERVING
from mtfcore.model.storing import stored_arguments, stored_dtype
from mtfcore.planning import plan
from mtfcore.steps import Program
from mtfcore.tensor import Tensor

CACHE = "cache_"  # what the names of the cache's parts begin with


def plan_phase(
    cfg: Config | str, phase: str, mesh: Mesh | str, *, ffn: str = "ws2d", attention: str = "heads", batch: int,
    new_tokens: int = 1, cached_tokens: int = 0, weights: str = "bf16", cache: str = "bf16",
) -> Program:  # fmt: skip
    """The whole step under a partition on a mesh of axes x, y and z; refuses what cannot be, all reasons at once.

    `cfg`: a configuration or its name; `phase`: "prefill" or "decode"; `mesh`: "x:4 y:4 z:4"; `ffn`: ws1d, ws2d,
    wg_x, wg_xy or wg_xyz; `attention`: heads or batch; `batch` sequences, each with `new_tokens` after
    `cached_tokens`; `weights` and `cache`: the dtypes in which these are stored.

    Raises `LayoutError` with every reason why not.

    Source: arXiv 2211.05102, section 3.

        >>> mtf.model.plan_phase(cfg, "decode", "x:2 y:2 z:1", batch=4).mesh
        Mesh('x:2 y:2 z:1')
    """
    cfg, mesh = config(cfg), as_mesh(mesh)
    faults = possible(cfg, ffn, attention, mesh, batch, new_tokens, cached_tokens, phase)
    refuse(faults, f"{phase} of {cfg.name} under {ffn}-{attention} on mesh '{mesh}'")
    where = placement(cfg, phase, mesh, SERVING[f"{ffn}-{attention}"], batch=batch, new_tokens=new_tokens)
    return plan_placed(cfg, phase, mesh, where, batch, new_tokens, cached_tokens, weights, cache)


def plan_placed(
    cfg: Config, kind: str, mesh: Mesh, where: Placement, batch: int, new_tokens: int, cached_tokens: int,
    weights: str = "bf16", cache: str = "bf16",
) -> Program:  # fmt: skip
    """The same under any placement, such as one whose operands are free."""
    fn = phase(cfg, kind, where.pins, cached_tokens=cached_tokens, weights=weights, cache=cache)
    sizes = f"B:{batch} L:{new_tokens}" + (f" S:{cached_tokens}" if cached_tokens else "")
    place = {name: where.place[name] for name in fn.arguments}
    return plan(fn, mesh, where.layout, sizes=sizes, place=place, dtype=activations(weights))


def activations(weights: str) -> str:
    """The dtype that is computed in: that of the weights, and bf16 beside whole numbers."""
    return "f32" if stored_dtype(weights, "weights") == "f32" else "bf16"


def phase(
    cfg: Config | str, kind: str = "decode", pins: Pins = FREE, *, cached_tokens: int = 0, weights: str = "bf16",
    cache: str = "bf16",
) -> Function:  # fmt: skip
    """The step as a named function: tokens `B L`, parameters (and cache) → logits `B V`, new keys and values.

    Without pins it lies wherever a layout, and the planner, have it.

    `cfg`: a configuration or its name; `kind`: "prefill" or "decode"; `cached_tokens`: of each sequence, from before;
    `weights` and `cache`: the dtypes in which these are stored; `pins` as partitions give them.

    Raises `LayoutError` for another kind or dtype.
    """
    if not isinstance(kind, str) or kind not in PHASES:
        raise LayoutError(f"no phase {kind!r:.100}; {nearest(kind, PHASES)}")
    cfg, kept = config(cfg), stored_dtype(cache, "cache")
    texts, dtypes = stored_arguments(cfg, stored_dtype(weights, "weights"), activations(weights))
    if cached_tokens:
        kept_texts, kept_dtypes = cache_arguments(cfg, kept, activations(weights))
        texts, dtypes = texts | kept_texts, dtypes | kept_dtypes

    def call(tokens: Tensor, **given: Tensor) -> dict[str, Tensor]:
        return step(cfg, given, tokens, pins, cached_tokens, kept)

    return Function.of(kind, {"tokens": "B L", **texts}, call, {"tokens": "i32", **dtypes})


def cache_arguments(cfg: Config, kept: str, computed: str) -> tuple[dict[str, str], dict[str, str]]:
    """(name → dimensions, name → dtype) of the cache's parts: those of whole numbers have scales."""
    heads = f"K:{cfg.kv_heads}" if cfg.attention == "grouped" else f"H:{cfg.heads}" * bool(KV_HEADS[cfg.attention])
    rows, names = f"layers:{cfg.layers} B S {heads}".rstrip(), ("cache_k", "cache_v")
    texts, dtypes = dict.fromkeys(names, f"{rows} D:{cfg.head_size}"), dict.fromkeys(names, kept)
    if kept == "i8":
        scales = tuple(f"{name}_scale" for name in names)
        texts, dtypes = texts | dict.fromkeys(scales, rows), dtypes | dict.fromkeys(scales, computed)
    return texts, dtypes


def step(
    cfg: Config, given: Weights, tokens: Tensor, pins: Pins = FREE, past: int | Tensor = 0, kept: str = "bf16",
    count: Tensor | None = None,
) -> dict[str, Tensor]:  # fmt: skip
    """Embedding, all layers as one loop, the last position's logits; and what the cache gains.

    `past` tokens are kept of every sequence; or, as i32[B], of each sequence so many as it says, from the cache's
    beginning. Then `count`, i32[B], says how many of the L new tokens are real, the first of each row.
    """
    x = looked_up(cfg, given, tokens, past, pins)
    x, *made = layers(cfg, given, x, pins, past, kept)
    x = normalise(cfg, last_of(x, count), given, "final_norm", pins)
    table = given["embedding" if cfg.tied else "softmax"]
    names = ("k", "v", "k_scale", "v_scale")
    return {"logits": product(x, {"logits": table}, "logits", "B V", pins), **dict(zip(names, made, strict=False))}


def last_of(x: Tensor, count: Tensor | None = None) -> Tensor:
    """The last position of `B L E`, or of each sequence the last real one: `B L:1 E`."""
    length = x.size("L")
    if length == 1:
        return x
    if count is None:
        return mtf.slice(x, "L", length - 1, length)
    here = mtf.one_hot(count - 1, str(x.dim("L")), dtype=x.dtype)
    found = mtf.einsum(x, here, out="B E", follow=True)  # one term, so exact
    return regrouped(found, "B", (x.dim("B"), Dim("L", 1)))


def positions(like: Tensor, past: int | Tensor) -> Tensor:
    """Of each new token, behind so many kept ones: i32 `L`, or `B L` where sequences differ."""
    here = mtf.index("L", like)
    return here + past if isinstance(past, int) else mtf.add(past, here, out="B L")


def looked_up(cfg: Config, given: Weights, tokens: Tensor, past: int | Tensor, pins: Pins) -> Tensor:
    """Tokens `B L`, behind so many kept ones → `B L E`."""
    x = mtf.gather(brought(given["embedding"], "embedding", pins), tokens, "V", out="B L E")
    if cfg.positions != "learned":
        return x
    at = positions(tokens, past)
    return x + mtf.gather(given["positions"], at, "P", out=" ".join([*at.names, "E"]))


def layers(cfg: Config, given: Weights, x: Tensor, pins: Pins, past: int | Tensor, kept: str) -> tuple[Tensor, ...]:
    """Every layer: x after the last, and the new keys and values of each, as they are kept."""
    stack = {name: t for name, t in given.items() if t.names[0] == "layers"}
    turns = rotary(cfg, positions(x, past), x.dtype) if cfg.positions == "rotary" else None
    see = causal(x, "N") if x.size("L") > 1 else None
    kept_see = None if isinstance(past, int) else mtf.less(mtf.index(given["cache_k"].dim("S"), x), past, out="B S")

    def layer(x: Tensor, **w: Tensor) -> tuple[Tensor, ...]:
        return one_layer(cfg, x, w, pins, turns, see, kept, kept_see)

    return mtf.repeat(layer, cfg.layers, stack, x)


def one_layer(
    cfg: Config, x: Tensor, w: Mapping[str, Tensor], pins: Pins, turns: Rotation | None, see: Tensor | None, kept: str,
    kept_see: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The block, looking at cached keys and values too (those that `kept_see` has); and the new ones."""
    cached = {name.removeprefix(CACHE): t for name, t in w.items() if name.startswith(CACHE)}
    past = [Keys(over="S", see=kept_see, **cached)] if cached else []
    new: list[Tensor] = []

    def core(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        new.extend((k, v))
        return attend_parts(cfg, q, [*past, new_keys(k, v, "N", see)])

    weights = {name: t for name, t in w.items() if not name.startswith(CACHE)}
    x = block(cfg, x, weights, turns=turns, core=core, pins=pins)
    if kept != "i8":
        return x, *[as_dtype(t, kept) for t in new]
    (k, k_scale), (v, v_scale) = map(quantised, new)
    return x, k, v, k_scale, v_scale
