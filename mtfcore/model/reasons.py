"""Why a model cannot run under a partition on a mesh: every reason, each with the nearest choice that could.

    >>> possible(mtf.model.config("palm-540b"), "wg_x", "heads", mtf.Mesh("x:4 y:4 z:4"), batch=2)
    ['batch 2 does not divide over x:4, as wg_x needs; nearest: batch=4, or ffn="ws2d", which cuts no batch']

An empty list: it can. Nothing is planned for this, so a comparison may ask it for every candidate.
Next file to read: `head_padding`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from mtfcore.errors import nearest
from mtfcore.mesh import Mesh, as_mesh
from mtfcore.model.configs import Config, config
from mtfcore.model.places import QUERY_HEADS, core_of, letters, present, spread
from mtfcore.model.serving import ATTENTION, AXES, FEEDFORWARD, PHASES, Feedforward
from mtfcore.notation import as_size, as_whole

MOST_TRIED = 10_000  # numbers of heads


def possible(
    cfg: Config | str, ffn: str, attention: str, mesh: Mesh | str, batch: int, new_tokens: int = 1,
    cached_tokens: int = 0, phase: str = "decode",
) -> list[str]:  # fmt: skip
    """The reasons why not, none if it can be planned.

    The arguments are those of `plan_phase`: `cfg`, `ffn`, `attention`, `mesh`, `batch`, `new_tokens`,
    `cached_tokens`, `phase`.

        >>> mtf.model.possible(cfg, "ws2d", "heads", "x:2 y:2 z:1", batch=4)
        []
    """
    cfg, mesh = config(cfg), as_mesh(mesh)
    faults = word_faults(ffn, attention, phase) + _mesh_faults(mesh) + _model_faults(cfg)
    faults += _number_faults(cfg, phase, batch, new_tokens, cached_tokens)
    if faults:
        return faults
    found, sizes = FEEDFORWARD[ffn], present(mesh)
    faults = _matrix_faults(cfg, found, sizes) + _batch_faults(found, attention, sizes, batch)
    return faults + _head_faults(cfg, found, attention, sizes, batch)


def heads_fit(cfg: Config, ffn: str, attention: str, mesh: Mesh | str, batch: int) -> bool:
    """Whether the heads, whatever else, divide as the partition needs."""
    return not _head_faults(cfg, FEEDFORWARD[ffn], attention, present(as_mesh(mesh)), batch)


def word_faults(ffn: object, attention: object, phase: object = "decode") -> list[str]:
    """Names that no partition and no phase has."""
    asked = (("ffn", ffn, FEEDFORWARD), ("attention", attention, ATTENTION), ("phase", phase, PHASES))
    return [f"no {name} {word!r:.100}; {nearest(word, legal)}" for name, word, legal in asked
            if not isinstance(word, str) or word not in legal]  # fmt: skip


def _mesh_faults(mesh: Mesh) -> list[str]:
    other = [axis for axis in mesh.names if axis not in AXES]
    if not other:
        return []
    free = [axis for axis in AXES if axis not in mesh]
    named = dict(zip(other, free, strict=False))
    offer = " ".join(f"{named.get(axis, axis)}:{size}" for axis, size in mesh.axes)
    hint = f"write e.g. '{offer}'" if len(named) == len(other) else "merge some into three, e.g. x:4 y:2 z:8"
    return [f"mesh '{mesh}' has {', '.join(other)}; these partitions lie on mesh axes x, y and z: {hint}"]


def _model_faults(cfg: Config) -> list[str]:
    why = "an encoder" if cfg.encoder_layers else "positions that look ahead" if not cfg.causal else ""
    return [f"{cfg.name} has {why}; prefill and decode are those of a causal decoder alone"] if why else []


def _number_faults(cfg: Config, phase: object, batch: int, new_tokens: int, cached_tokens: int) -> list[str]:
    faults = [
        f"{name} is {value!r:.100}; expected a whole number of at least 1"
        for name, value in (("batch", batch), ("new_tokens", new_tokens)) if as_size(value) is None
    ]  # fmt: skip
    kept = as_whole(cached_tokens)
    if kept is None or kept < 0:
        faults.append(f"cached_tokens is {cached_tokens!r:.100}; expected a whole number, 0 for none")
    if faults:
        return faults
    if isinstance(phase, str) and phase == "decode" and new_tokens != 1:
        faults.append(f"decode takes 1 token a sequence, not new_tokens={new_tokens}; use phase 'prefill'")
    total = new_tokens + cached_tokens
    if cfg.positions == "learned" and total > cfg.max_length:
        faults.append(f"{cfg.name} has {cfg.max_length} learned positions, fewer than {total} tokens; "
                      f"use cfg.but(max_length={total}), or fewer tokens")  # fmt: skip
    return faults


def _matrix_faults(cfg: Config, ffn: Feedforward, sizes: Mapping[str, int]) -> list[str]:
    """E and F over the axes of the weights at rest, and of what is gathered from and scattered to them."""
    asked = [
        ("d_model", cfg.d_model, ffn.stored_e), ("d_model", cfg.d_model, ffn.rest), ("d_ff", cfg.d_ff, ffn.stored_f),
        ("d_ff", cfg.d_ff, ffn.f + ffn.e),
    ]  # fmt: skip
    return list(dict.fromkeys(fault for name, size, axes in asked for fault in _uneven(name, size, axes, sizes, ffn)))


def _uneven(name: str, size: int, axes: str, sizes: Mapping[str, int], ffn: Feedforward) -> list[str]:
    parts = _parts(axes, sizes)
    if size % parts == 0:
        return []
    above = -(-size // parts) * parts
    what = f"{name} {size} does not divide over {_named(axes, sizes)} ({parts} parts), as {ffn.name} needs"
    below = max(size - size % parts, parts)
    near = f"{below} or {above}" if below < above else f"{above}"
    return [f"{what}; nearest: {near}, padded on request: cfg.but({name}={above})"]


def _batch_faults(ffn: Feedforward, attention: str, sizes: Mapping[str, int], batch: int) -> list[str]:
    parts = _parts(ffn.batch, sizes)
    if batch % parts:
        near = sorted({max(batch - batch % parts, parts), -(-batch // parts) * parts})
        offer = " or ".join(f"batch={n}" for n in near)
        return [f"batch {batch} does not divide over {_named(ffn.batch, sizes)}, as {ffn.name} needs; "
                f'nearest: {offer}, or ffn="ws2d", which cuts no batch']  # fmt: skip
    if attention == "batch" and sizes and parts == 1 and all(batch % size for size in sizes.values()):
        axis = min(sizes.values(), key=lambda size: (-(-batch // size) * size, size))
        return [f"batch {batch} divides over none of {_named(AXES, sizes)}, so attention by batch would be copied "
                f'everywhere; nearest: batch={-(-batch // axis) * axis}, or attention="heads"']  # fmt: skip
    return []


def _head_faults(cfg: Config, ffn: Feedforward, attention: str, sizes: Mapping[str, int], batch: int) -> list[str]:
    """By heads, they must divide over every axis that is left of z and y; x may take something else."""
    if attention != "heads":
        return []
    order = [axis for axis in "zy" if axis in sizes and axis not in ffn.batch]
    if not _loose(cfg, order, sizes):
        return []
    heads = f"{cfg.heads} heads"
    if cfg.attention == "grouped":
        heads = f"{cfg.kv_heads} key/value heads with {cfg.heads // cfg.kv_heads} query heads each"
    padded = _next_even(cfg, order, sizes)
    fits = core_of(cfg, sizes, "", batch, 1, True).batch
    others = f', or attention="batch" (batch {batch} over {_named(fits, sizes)})' if fits else ""
    most = min(cfg.heads, _parts("".join(order), sizes))
    less = max(n for n in range(1, most + 1) if cfg.heads % n == 0)
    return [f"{heads} do not divide over {_named(''.join(order), sizes)}; nearest: cfg.but(heads={padded}), padded on "
            f"request{others}, or a mesh whose z and y make {less} parts"]  # fmt: skip


def _next_even(cfg: Config, order: list[str], sizes: Mapping[str, int]) -> int:
    """The least number of heads, not under today's, that these axes take; one that they take, where they are many."""
    step = _step(cfg) * _parts("".join(order), sizes)
    every = range(cfg.heads, (even := -(-cfg.heads // step) * step) + 1, _step(cfg))
    return even if len(every) > MOST_TRIED else next(n for n in every if not _loose(cfg, order, sizes, n))


def _loose(cfg: Config, order: list[str], sizes: Mapping[str, int], heads: int = 0) -> str:
    """The axes that no dimension of this many heads can take."""
    dims = letters(cfg) | ({"H": heads, "G": heads // cfg.kv_heads} if heads else {})
    return spread(order, {name: dims[name] for name in QUERY_HEADS[cfg.attention]}, sizes)[1]


def _step(cfg: Config) -> int:
    return cfg.kv_heads if cfg.attention == "grouped" else 1


def _parts(axes: str, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes.get(axis, 1) for axis in axes)


def _named(axes: str, sizes: Mapping[str, int]) -> str:
    return " ".join(f"{axis}:{sizes[axis]}" for axis in axes if axis in sizes)
