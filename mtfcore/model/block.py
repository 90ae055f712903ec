"""The block: attention and a feedforward layer, as named operations. There is one in this project; all else uses it.

    y = block(cfg, x, w, see=causal(x))                    # x: B L E; w: the layer's parameters by name

The configuration decides what is computed: multihead, grouped or multiquery attention, gated or plain feedforward, one
after the other or side by side. Where things lie is the layout's business; nothing here asks for it. Both sublayers
end in a product over a dimension that layouts like to split, heads or d_ff: their results may be partial sums, and the
block reduces them before it adds them to x. So each costs one all-reduce where `heads` and `d_ff` are split (Mesh-
TensorFlow, arXiv 1811.02084, section 9), and side by side they share one (arXiv 2211.05102, section 3.4).

    serial    y = x + Attn(LN(x));  out = y + FFN(LN(y))           parallel    out = x + Attn(LN(x)) + FFN(LN(x))

Queries have length L, what they look at has length S: keys and values are made with L and then renamed, or come from
an encoder (or, later, a cache) with S. Lesson 06 uses this. Next file to read: `transformer`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import NamedTuple

import mtfcore as mtf
from mtfcore.dims import Dim
from mtfcore.errors import sure
from mtfcore.model.configs import Config
from mtfcore.model.pins import FREE, Pins, Weights, brought, product
from mtfcore.ops import apply
from mtfcore.rules.reshaping import groups
from mtfcore.tensor import Tensor

Drop = Callable[[Tensor, int], Tensor]  # (a sublayer's result, which sublayer) → the same with some elements zero
Core = Callable[[Tensor, Tensor, Tensor], Tensor]  # queries, keys and values of x → the mixed values

NEVER = -1e9  # a score for what may not be seen: finite, so that gradients are too
HALF = ("bf16", "f16")


class Rotation(NamedTuple):
    """Rotary positions: dtype[L, D/2] cosines and sines of each position's angles."""

    cos: Tensor
    sin: Tensor


def block(
    cfg: Config, x: Tensor, w: Weights, *, see: Tensor | None = None, turns: Rotation | None = None,
    memory: Tensor | None = None, see_memory: Tensor | None = None, drop: Drop | None = None, core: Core | None = None,
    pins: Pins = FREE,
) -> Tensor:  # fmt: skip
    """One layer: x `B L E` → the same. `see` says which positions S each position L looks at (bool; None: all).

    `core` attends instead, where keys and values were kept; `pins` say where the operands of each product lie.
    """
    own = lambda h: attention(cfg, h, w, see=see, turns=turns, core=core, pins=pins)  # noqa: E731
    cross = lambda h: attention(cfg, h, w, "cross_", memory=memory, see=see_memory)  # noqa: E731
    parts = {"attention_norm": own, "cross_norm": cross, "ffn_norm": lambda h: feedforward(cfg, h, w, pins)}
    if memory is None:
        del parts["cross_norm"]
    if cfg.block == "parallel":
        h = normalise(cfg, x, w, "norm", pins)
        return x + _reduced(functools.reduce(operator.add, [part(h) for part in parts.values()]), 0, drop)
    for site, (norm, part) in enumerate(parts.items()):
        x = x + _reduced(part(normalise(cfg, x, w, norm, pins)), site, drop)
    return x


def _reduced(addend: Tensor, site: int, drop: Drop | None) -> Tensor:
    t = mtf.reshard(addend, "B L E")  # B L E partialsum → B L E, wherever the layout has it
    return drop(t, site) if drop else t


def normalise(cfg: Config, x: Tensor, w: Weights, name: str, pins: Pins = FREE) -> Tensor:
    """Layer norm, or RMS norm, over E; in f32 for half-precision x."""
    rows = " ".join(letter for letter in x.names if letter != "E")
    x = brought(x, "norm", pins)
    t = full_precision(x)
    if cfg.norm == "layer":
        t = t - _mean(t, rows, pins)
    size = _mean(mtf.square(t), rows, pins)
    t = as_dtype(t * mtf.rsqrt(size + cfg.norm_eps), x.dtype) * w[f"{name}_scale"]
    return t + w[f"{name}_bias"] if f"{name}_bias" in w else t


def _mean(t: Tensor, rows: str, pins: Pins) -> Tensor:
    """B L partialsum → B L; by a single collective where what is sent has been decided (`pins`)."""
    return mtf.reshard(mtf.mean(t, "E"), rows, at_once=True) if pins else mtf.mean(t, "E", out=rows)


# ---- feedforward ------------------------------------------------------------------------------------------------


def feedforward(cfg: Config, x: Tensor, w: Weights, pins: Pins = FREE) -> Tensor:
    """relu(x W_in) W_out, or with a gate (SwiGLU, arXiv 2002.05202); the sum over F may still be partial."""
    if cfg.gated:
        h, gate = _pair(x, w, ("w_in", "w_gate"), ("b_in", "b_gate"), "w_in_gate", pins)
        h = (mtf.silu if cfg.activation == "swiglu" else mtf.gelu)(gate) * h
    else:
        h = _projected(x, w, "w_in", "b_in", pins)
        h = (mtf.relu if cfg.activation == "relu" else mtf.gelu)(h)
    return _biased(product(h, w, "w_out", "B L E", pins, follow=True), w, "b_out")


# ---- attention: projections, core, output -----------------------------------------------------------------------


def attention(
    cfg: Config, x: Tensor, w: Weights, prefix: str = "", *, memory: Tensor | None = None, see: Tensor | None = None,
    turns: Rotation | None = None, core: Core | None = None, pins: Pins = FREE,
) -> Tensor:  # fmt: skip
    """Attention of x to itself, or to `memory` (`B S E`); the sum over heads may still be partial."""
    q = queries(x, w, prefix, turns, pins)
    if core is not None:
        mixed = core(q, *keys_values(x, w, prefix, turns, pins))
        return project_out(brought(mixed, f"{prefix}mixed", pins), w, prefix, pins)
    if memory is None:
        k, v = (mtf.rename(t, "L", "S") for t in keys_values(x, w, prefix, turns, pins))
    else:
        k, v = keys_values(memory, w, prefix)
    return project_out(attend(cfg, q, k, v, see), w, prefix, pins)


def queries(x: Tensor, w: Weights, prefix: str = "", turns: Rotation | None = None, pins: Pins = FREE) -> Tensor:
    """`B L H D`, or `B L K G D` where the weights have their heads in groups."""
    q = _projected(x, w, f"{prefix}wq", f"{prefix}bq", pins)
    return rotated(q, turns) if turns else q


def keys_values(
    x: Tensor, w: Weights, prefix: str = "", turns: Rotation | None = None, pins: Pins = FREE
) -> tuple[Tensor, Tensor]:
    """Keys and values of x, with the heads that their weights have: H (multihead), K (grouped) or none (multiquery)."""
    names, biases = ((f"{prefix}{kind}k", f"{prefix}{kind}v") for kind in "wb")
    k, v = _pair(x, w, names, biases, f"{prefix}wkv", pins)
    return (rotated(k, turns) if turns else k), v


def attend(cfg: Config, q: Tensor, k: Tensor, v: Tensor, see: Tensor | None = None) -> Tensor:
    """softmax(q kᵀ / √D) v. Heads that share keys are taken apart, H into K groups of G; S may be split."""
    grouped = cfg.attention == "grouped"
    q, heads = (regrouped(q, "H", _groups(cfg)), "K G") if grouped else (q, "H")
    scores = mtf.einsum(q * cfg.head_size**-0.5, k, out=f"B {heads} L S", follow=True)
    scores = full_precision(scores)
    if see is not None:
        scores = mtf.where(see, scores, NEVER)
    weights = as_dtype(mtf.softmax(scores, "S"), v.dtype)
    mixed = mtf.einsum(weights, v, out=f"B L {heads} D", follow=True)
    return regrouped(mixed, "K G", (Dim("H", cfg.heads),)) if grouped else mixed


def project_out(mixed: Tensor, w: Weights, prefix: str = "", pins: Pins = FREE) -> Tensor:
    """`B L H D` → `B L E`; where heads are split, a partial sum."""
    return _biased(product(mixed, w, f"{prefix}wo", "B L E", pins, follow=True), w, f"{prefix}bo")


def _projected(x: Tensor, w: Weights, name: str, bias: str, pins: Pins) -> Tensor:
    """x times a weight whose first dimension is E: x's other dimensions, then the weight's."""
    dims = " ".join([*[letter for letter in x.names if letter != "E"], *w[name].names[1:]])
    return _biased(product(x, w, name, dims, pins), w, bias)


def _pair(
    x: Tensor, w: Weights, names: tuple[str, str], biases: tuple[str, str], both: str, pins: Pins
) -> tuple[Tensor, Tensor]:
    """x times two weights; or times both at once where they are stored as one, so that what is sent is sent once."""
    if both not in w:
        k, v = (_projected(x, w, name, bias, pins) for name, bias in zip(names, biases, strict=True))
        return k, v
    t = _projected(x, w, both, both.replace("w", "b", 1), pins)
    before = t.dims[t.names.index("pair") - 1]
    k, v = (regrouped(mtf.slice(t, "pair", n, n + 1), f"{before.name} pair", (before,)) for n in range(2))
    return k, v


# ---- what is seen, and where ------------------------------------------------------------------------------------


def causal(like: Tensor, keys: str = "S") -> Tensor:
    """bool[L, S]: each position sees itself and those before it; sizes are those of L in `like`."""
    length = like.dim("L").size
    here, there = mtf.index(Dim("L", length), like), mtf.index(Dim(keys, length), like)
    return mtf.logical_not(mtf.greater(there, here, out=f"L {keys}"))


def rotary(cfg: Config, at: Tensor, dtype: str) -> Rotation:
    """The turns of positions `at` (i32): pair j of a head turns by position · base^(-2j/D) (arXiv 2104.09864)."""
    half = cfg.head_size // 2
    pair = mtf.cast(mtf.index(Dim("pairs", half), at), "f32")
    speed = mtf.exp(pair * (-math.log(cfg.rotary_base) / half))
    angles = mtf.multiply(mtf.cast(at, "f32"), speed, out=" ".join([*at.names, "pairs"]))
    angles = regrouped(angles, "pairs", (Dim("D", half),))  # a layout's rule for D speaks of whole heads
    return Rotation(as_dtype(mtf.cos(angles), dtype), as_dtype(mtf.sin(angles), dtype))


def rotated(t: Tensor, turns: Rotation) -> Tensor:
    """Each pair (element j of the first half of D, element j of the second) turned by its position's angle."""
    half, (cos, sin) = sure(t.dim("D").size) // 2, turns
    a, b = mtf.slice(t, "D", 0, half), mtf.slice(t, "D", half, 2 * half)
    return mtf.concat([a * cos - b * sin, b * cos + a * sin], "D")


# ---- helpers ----------------------------------------------------------------------------------------------------


def _biased(t: Tensor, w: Weights, name: str) -> Tensor:
    return t + w[name] if name in w else t


def as_dtype(t: Tensor, dtype: str) -> Tensor:
    """A cast, where one is needed."""
    return t if t.dtype == dtype else mtf.cast(t, dtype)


def full_precision(t: Tensor) -> Tensor:
    """f32 where t is half precision: for norms, softmax and losses."""
    return mtf.cast(t, "f32") if t.dtype in HALF else t


def _groups(cfg: Config) -> tuple[Dim, ...]:
    return Dim("K", cfg.kv_heads), Dim("G", cfg.heads // cfg.kv_heads)


def regrouped(t: Tensor, old: str, new: tuple[Dim, ...]) -> Tensor:
    """A reshape that lies as its operand gives it: the query heads' axes go to the groups and back, unasked."""
    first, gone = t.names.index(old.split()[0]), old.split()
    dims = (*t.dims[:first], *new, *t.dims[first + len(gone) :])
    return apply("reshape", [t], dims, t.dtype, None, cut=groups(t.dims, dims))
