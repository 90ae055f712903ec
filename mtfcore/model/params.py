"""The parameters of a Transformer as one declaration: name, dimensions, initial values.

    >>> mtf.model.config("tiny-lm").params["wq"]
    Param(name='wq', text='layers:2 E:64 H:8 D:16', init='normal', scale=0.125)

Everything that handles parameters reads this table: a named function's arguments, layouts, the optimizers' state,
checkpoints, counts. Layers are stacked: their dimension `layers` comes first, so that `mtf.repeat` runs one block.
Letters as in arXiv 2211.05102: E d_model, F d_ff, H query heads, K key/value heads, D head size, V vocabulary; P is
the number of learned positions. Multihead keys have H, grouped ones K, multiquery ones neither (section 3.3).
Next file to read: `block`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtfcore.dims import Dim, parse_dims, volume
from mtfcore.errors import LayoutError, expect, sure
from mtfcore.model.configs import Config, sizes_of
from mtfcore.notation import as_whole

if TYPE_CHECKING:
    import numpy as np

KV_HEADS = {"multihead": "H", "grouped": "K", "multiquery": ""}  # the dimension of heads that keys and values have


@dataclass(frozen=True)
class Param:
    """One parameter: `text` is its dimensions with sizes, `init` normal (times `scale`), ones or zeros."""

    name: str
    text: str
    init: str = "normal"
    scale: float = 1.0

    @property
    def dims(self) -> tuple[Dim, ...]:
        """Its dimensions, stack first."""
        return parse_dims(self.text)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the whole array."""
        return tuple(sure(dim.size) for dim in self.dims)

    @property
    def n_elements(self) -> int:
        """How many numbers it has, all layers of a stack together."""
        return volume(self.dims)


def declare(cfg: Config) -> dict[str, Param]:
    """Every parameter of a configuration, in the order in which a forward pass meets them."""
    found = [_weight(cfg, "embedding", "V E", "E")]
    if cfg.encoder_layers:
        found += [*_positions(cfg, "encoder_"), *_layer(cfg, "encoder_layers", "encoder_", cross=False)]
        found += _norm(cfg, "encoder_final_norm", "")
    found += [*_positions(cfg, ""), *_layer(cfg, "layers", "", cross=cfg.encoder_layers > 0)]
    found += _norm(cfg, "final_norm", "")
    if not cfg.tied:
        found.append(_weight(cfg, "softmax", "V E", "E"))
    return {param.name: param for param in found}


def layer_names(cfg: Config, prefix: str = "") -> dict[str, str]:
    """The stacked parameters of one stack of layers: name inside the block → name in the declaration."""
    stack = "encoder_layers" if prefix else "layers"
    stacked = [name for name, param in declare(cfg).items() if param.dims[0].name == stack]
    return {name.removeprefix(prefix): name for name in stacked}


def _layer(cfg: Config, stack: str, prefix: str, cross: bool) -> Iterator[Param]:
    """What one block has, stacked. What ends in the residual stream is smaller, the more of it is added up there."""
    gain = 1 / math.sqrt(getattr(cfg, stack) * (3 if cross else 2))
    if cfg.block == "parallel":
        yield from _norm(cfg, f"{prefix}norm", stack)
    for part in ("", "cross_") if cross else ("",):
        if cfg.block == "serial":
            yield from _norm(cfg, f"{prefix}{part or 'attention_'}norm", stack)
        yield from _attention(cfg, f"{prefix}{part}", stack, gain)
    if cfg.block == "serial":
        yield from _norm(cfg, f"{prefix}ffn_norm", stack)
    yield from _feedforward(cfg, prefix, stack, gain)


def _attention(cfg: Config, prefix: str, stack: str, gain: float) -> Iterator[Param]:
    kv = KV_HEADS[cfg.attention]
    yield from _product(cfg, prefix, "q", stack, "E", "H D")
    yield from _product(cfg, prefix, "k", stack, "E", f"{kv} D")
    yield from _product(cfg, prefix, "v", stack, "E", f"{kv} D")
    yield from _product(cfg, prefix, "o", stack, "H D", "E", gain)


def _feedforward(cfg: Config, prefix: str, stack: str, gain: float) -> Iterator[Param]:
    yield from _product(cfg, prefix, "_in", stack, "E", "F")
    if cfg.gated:
        yield from _product(cfg, prefix, "_gate", stack, "E", "F")
    yield from _product(cfg, prefix, "_out", stack, "F", "E", gain)


def _product(
    cfg: Config, prefix: str, name: str, stack: str, ins: str, outs: str, gain: float = 1.0
) -> Iterator[Param]:
    """A matrix `w…` from `ins` to `outs`, and its bias `b…` where the configuration has biases."""
    yield _weight(cfg, f"{prefix}w{name}", f"{stack} {ins} {outs}", ins, gain)
    if cfg.biases or (cfg.qkv_biases and name in "qkv"):
        yield Param(f"{prefix}b{name}", _sized(cfg, f"{stack} {outs}"), "zeros")


def _norm(cfg: Config, name: str, stack: str) -> Iterator[Param]:
    yield Param(f"{name}_scale", _sized(cfg, f"{stack} E"), "ones")
    if cfg.biases and cfg.norm == "layer":
        yield Param(f"{name}_bias", _sized(cfg, f"{stack} E"), "zeros")


def _positions(cfg: Config, prefix: str) -> Iterator[Param]:
    if cfg.positions == "learned":
        yield _weight(cfg, f"{prefix}positions", "P E", "E")


def _weight(cfg: Config, name: str, dims: str, fan_in: str, gain: float = 1.0) -> Param:
    """Normal values of variance 1/fan_in: `fan_in` is what is summed over where it is used (rows of E for tables)."""
    sizes = sizes_of(cfg)
    return Param(name, _sized(cfg, dims), "normal", gain / math.sqrt(math.prod(sizes[d] for d in fan_in.split())))


def _sized(cfg: Config, dims: str) -> str:
    sizes = sizes_of(cfg)
    return " ".join(f"{letter}:{sizes[letter]}" for letter in dims.split())


WANTED = "a configuration such as mtf.model.config('tiny-lm'), or its parameters"


def initial(params: Config | Mapping[str, Param], seed: int = 0) -> dict[str, np.ndarray]:
    """f32 arrays to begin with. Each depends on the seed and its own name only: not on the order of the declaration,
    nor on any layout.

    `params`: a configuration or its parameters; `seed`: a whole number.

        >>> mtf.model.initial(cfg)["embedding"].dtype.name
        'float32'

    Raises `LayoutError` for a seed that is no whole number.
    """
    import numpy as np

    if as_whole(seed) is None or seed < 0:
        raise LayoutError(f"initial: seed is {seed!r:.100}; expected a whole number, 0 or more")
    named = params.params if isinstance(params, Config) else expect(params, Mapping, WANTED)
    made = {}
    for name, param in named.items():
        expect(param, Param, f"{name!r:.100} to be a parameter, mtf.model.Param")
        if param.init == "normal":
            random = np.random.default_rng([int(seed), zlib.crc32(name.encode())])
            made[name] = random.standard_normal(param.shape, np.float32) * np.float32(param.scale)
        else:
            made[name] = np.full(param.shape, {"ones": 1, "zeros": 0}[param.init], np.float32)
    return made
