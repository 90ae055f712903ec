"""Heads that do not divide over the devices, filled up with heads of zeros: only on request, and with its price.

    >>> cfg = mtf.model.config("smollm2-135m")                                     # 9 query heads, 3 key/value heads
    >>> more = least_padding(cfg, "ws2d", "heads", "x:2 y:2 z:2", batch=8)
    >>> more
    Heads(heads=12, kv_heads=4)
    >>> wider, arrays = padded(cfg, {}, *more)           # with the model's parameters for {}: outputs are unchanged
    >>> padding_words(cfg, wider)
    'heads 9 → 12, key/value heads 3 → 4: +6.6% parameters, +6.6% FLOPs a token, +33.3% cache (modelled)'

What a head of zeros says is multiplied by zeros in `wo`, so nothing of it arrives, whether it has keys of its own or
shares those of others. A query head stands with its key head: of groups that grow each is filled up by itself.
Source: 48 query heads over 64 chips, arXiv 2211.05102, section 4. Next file to read: `storing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mtfcore.errors import LayoutError, refuse
from mtfcore.mesh import Mesh, as_mesh
from mtfcore.model.configs import Config, config
from mtfcore.model.params import Param
from mtfcore.model.reasons import heads_fit, word_faults
from mtfcore.notation import as_size

MOST_TRIED = 1 << 20  # numbers of heads, or of groups and heads


class Heads(NamedTuple):
    """How many query heads, and how many key and value heads."""

    heads: int
    kv_heads: int

    @property
    def group(self) -> int:
        """Query heads of each key head."""
        return self.heads // self.kv_heads


def padded(
    cfg: Config | str, params: Mapping[str, Any], heads: int | None = None, kv_heads: int | None = None
) -> tuple[Config, Mapping[str, Any]]:
    """The configuration with so many heads, and its parameters, each made when it is asked for.

    Of grouped heads `heads` alone adds whole groups where it can, else a query head to each group.

    `cfg`: a configuration or its name; `params`: name → array; `heads` and `kv_heads`: numbers of query and key
    heads. New heads are zero, so logits stay the same.

    Raises `LayoutError` for fewer heads than it has.
    """
    cfg = config(cfg)
    old, new = Heads(cfg.heads, cfg.kv_heads), _asked(cfg, heads, kv_heads)
    return _but(cfg, new), _Padded(cfg, params, old, new)


def least_padding(cfg: Config | str, ffn: str, attention: str, mesh: Mesh | str, batch: int) -> Heads:
    """The fewest heads that divide under a partition on a mesh; those that it has, if they do already.

    `cfg`: a configuration or its name; `ffn` and `attention`: the partition; `batch`: sequences. Heads are of queries
    and of keys.

    Raises `LayoutError` where no number of heads would help.
    """
    cfg, mesh = config(cfg), as_mesh(mesh)
    faults = word_faults(ffn, attention)
    faults += [] if as_size(batch) else [f"batch is {batch!r:.100}; expected a whole number of at least 1"]
    refuse(faults, "least_padding")
    most = math.isqrt(MOST_TRIED) if cfg.attention == "grouped" else MOST_TRIED
    if mesh.size > most:
        raise LayoutError(f"'{mesh}' has {mesh.size:,} devices; {cfg.attention} heads are padded for at most {most:,}")
    for heads, _, kv_heads in sorted(_candidates(cfg, mesh.size)):
        if heads_fit(_but(cfg, Heads(heads, kv_heads)), ffn, attention, mesh, batch):
            return Heads(heads, kv_heads)
    raise LayoutError(f"no number of heads up to those of {mesh.size} groups more fits {ffn}-{attention} on '{mesh}'")


def padding_words(cfg: Config | str, wider: Config | str, cached_tokens: int = 1) -> str:
    """What padding costs, in one line; FLOPs are those of one token that looks at so many.

    `cfg`: as it was; `wider`: with more heads; `cached_tokens`: how many a token looks at.
    """
    cfg, wider = config(cfg), config(wider)
    if (cfg.heads, cfg.kv_heads) == (wider.heads, wider.kv_heads):
        return f"heads {cfg.heads}: not padded"
    of = f"heads {cfg.heads} → {wider.heads}"
    if cfg.kv_heads != wider.kv_heads and cfg.attention == "grouped":
        of += f", key/value heads {cfg.kv_heads} → {wider.kv_heads}"
    flops = _token_flops(wider, cached_tokens) / _token_flops(cfg, cached_tokens) - 1
    cache = wider.kv_heads / cfg.kv_heads - 1
    more = f", +{cache:.1%} cache" if cache else ""
    return f"{of}: +{wider.n_params / cfg.n_params - 1:.1%} parameters, +{flops:.1%} FLOPs a token{more} (modelled)"


# ---- which numbers of heads ---------------------------------------------------------------------------------------


def _asked(cfg: Config, heads: int | None, kv_heads: int | None) -> Heads:
    """The numbers that were asked for, what was left out added; refuses fewer, and what would mix groups."""
    old = Heads(cfg.heads, cfg.kv_heads)
    given = {"heads": heads, "kv_heads": kv_heads}
    refuse([f"{name} is {n!r:.100}; expected a whole number of at least {getattr(old, name)}, or None"
            for name, n in given.items() if n is not None and ((size := as_size(n)) is None
                                                               or size < getattr(old, name))], "padded")  # fmt: skip
    if heads is None:
        heads = kv_heads * old.group if kv_heads is not None else old.heads
    if kv_heads is None:
        kv_heads = _own_keys(cfg, old, heads)
    return _checked(cfg, old, Heads(int(heads), int(kv_heads)))


def _own_keys(cfg: Config, old: Heads, heads: int) -> int:
    if cfg.attention == "multiquery":
        return 1
    return heads // old.group if heads % old.group == 0 else old.kv_heads


def _checked(cfg: Config, old: Heads, new: Heads) -> Heads:
    faults = []
    if cfg.attention == "multiquery" and new.kv_heads != 1:
        faults.append(f"multiquery heads share one key head, so kv_heads is 1, not {new.kv_heads}")
    elif cfg.attention == "multihead" and new.heads != new.kv_heads:
        faults.append(f"each of {new.heads} heads has its own keys; kv_heads={new.heads}, or leave it out")
    elif new.heads % new.kv_heads or new.group < old.group:
        more = -(-new.heads // new.kv_heads) * new.kv_heads
        legal = max(more, new.kv_heads * old.group)
        faults.append(f"heads {new.heads} are no groups of at least {old.group} for each of {new.kv_heads} key/value "
                      f"heads; nearest: heads={legal}")  # fmt: skip
    refuse(faults, f"padded {cfg.name}")
    return new


def _candidates(cfg: Config, parts: int) -> Iterator[tuple[int, int, int]]:
    """(heads, by how much a group grows, key and value heads) of every padding that could be the least."""
    old = Heads(cfg.heads, cfg.kv_heads)
    groups = [old.group] if cfg.attention == "multihead" else range(old.group, old.group + parts)
    keys = [1] if cfg.attention == "multiquery" else range(old.kv_heads, old.kv_heads + parts)
    for group in groups:
        yield from ((count * group, group - old.group, count) for count in keys)


def _but(cfg: Config, new: Heads) -> Config:
    return cfg.but(heads=new.heads, kv_heads=new.kv_heads)


def _token_flops(cfg: Config, cached_tokens: int) -> int:
    from mtfcore.model.phases import plan_phase

    return plan_phase(cfg, "decode", "x:1", batch=1, cached_tokens=cached_tokens).flops()


# ---- parameters ---------------------------------------------------------------------------------------------------


class _Padded(Mapping):
    """Parameters with heads of zeros behind, one array at a time."""

    def __init__(self, cfg: Config, params: Mapping[str, Any], old: Heads, new: Heads) -> None:
        self.declared, self.params, self.old, self.new = cfg.params, params, old, new

    def __getitem__(self, name: str) -> Any:
        found = self.params[name]
        return _wider(found, self.declared[name], self.old, self.new) if name in self.declared else found

    def __iter__(self) -> Iterator[str]:
        return iter(self.params)

    def __len__(self) -> int:
        return len(self.params)


def _wider(array: Any, param: Param, old: Heads, new: Heads) -> Any:
    """One parameter: heads behind the others of their group, groups behind the others."""
    for place, dim in enumerate(param.dims):
        if dim.name in ("H", "K") and old != new:
            array = _grown(np.asarray(array), place, old, new, keys=dim.name == "K")
    return array


def _grown(array: np.ndarray, place: int, old: Heads, new: Heads, keys: bool) -> np.ndarray:
    """More of one dimension: key heads, or query heads as groups of them."""
    before, after = ((h.kv_heads, 1 if keys else h.group) for h in (old, new))
    front, behind = array.shape[:place], array.shape[place + 1 :]
    apart = array.reshape(*front, *before, *behind)
    widths = [(0, 0)] * apart.ndim
    widths[place : place + 2] = [(0, b - a) for a, b in zip(before, after, strict=True)]
    return np.pad(apart, widths).reshape(*front, after[0] * after[1], *behind)
