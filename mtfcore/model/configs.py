"""Configurations: a Transformer as numbers and choices, by name.

    >>> cfg = mtf.model.config("palm-540b")
    >>> cfg.layers, cfg.heads, cfg.kv_heads, cfg.attention, cfg.n_params
    (118, 48, 1, 'multiquery', 540358834176)
    >>> mtf.model.config("palm-540b", heads=64)            # padded for 64 chips
    >>> mtf.model.config("models/mine/config.json")        # a file on disk (`config_files`)

Each named configuration says which paper and table it comes from. `kv_heads` alone says how keys and values are
shared: as many as `heads` is multihead, 1 is multiquery, between them grouped. Next file to read: `params`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.notation import as_size, as_whole

if TYPE_CHECKING:
    from mtfcore.model.params import Param

CHOICES = {
    "block": ("serial", "parallel"),
    "norm": ("layer", "rms"),
    "activation": ("relu", "gelu", "swiglu", "geglu"),
    "positions": ("learned", "rotary", "none"),
}
SIZES = ("layers", "d_model", "d_ff", "heads", "kv_heads", "head_size", "vocab", "max_length")
FLAGS = ("causal", "tied", "biases", "qkv_biases")
MOST_PARAMS = 10**16  # beyond it sizes are a slip, and sums of bytes would no longer be exact
MADE_UP = "made-up"  # a name for sizes that no model has, on purpose: programs planned for them are only compared
MOST_LISTED = 10_000  # numbers of key and value heads up to which the possible ones are looked for
LARGEST = 1e38  # what a 32-bit float holds


@dataclass(frozen=True)
class Config:
    """One Transformer. A decoder alone, or, where `encoder_layers` is not 0, an encoder and a decoder."""

    name: str
    layers: int  # of the decoder
    d_model: int
    d_ff: int
    heads: int  # query heads
    head_size: int
    vocab: int
    max_length: int
    kv_heads: int = 0  # key and value heads; 0: as many as query heads
    encoder_layers: int = 0
    block: str = "serial"
    norm: str = "layer"
    activation: str = "relu"
    positions: str = "learned"
    causal: bool = True  # a position of the decoder sees none behind it
    tied: bool = False  # the softmax's table is the embedding's
    biases: bool = False  # beside every product, and in layer norms
    qkv_biases: bool = False  # beside the products that make queries, keys and values, only
    norm_eps: float = 1e-6
    rotary_base: float = 10_000.0
    source: str = "chosen for this course"
    left_out: str = ""  # what the published model does besides: its costs are those of this configuration without it

    def __post_init__(self) -> None:
        if as_whole(self.kv_heads) == 0:
            object.__setattr__(self, "kv_heads", self.heads)
        faults = [*_size_faults(self), *_choice_faults(self)] or _too_many(self) or _shape_faults(self)
        refuse(faults, f"config {self.name!r:.100}")

    @property
    def attention(self) -> str:
        """How keys and values are shared by the query heads."""
        if self.kv_heads == self.heads:
            return "multihead"
        return "multiquery" if self.kv_heads == 1 else "grouped"

    @property
    def gated(self) -> bool:
        """Whether the feedforward has a third matrix whose product gates the others'."""
        return self.activation in ("swiglu", "geglu")

    @property
    def params(self) -> dict[str, Param]:
        """The declaration of every parameter: name → dimensions, initial values."""
        from mtfcore.model.params import declare

        return declare(self)

    @property
    def n_params(self) -> int:
        """The number of parameters, norms, biases and positions included."""
        return sum(param.n_elements for param in self.params.values())

    def but(self, **changes: Any) -> Config:
        """The same with some fields changed, e.g. `cfg.but(layers=2)`."""
        fields = [field.name for field in dataclasses.fields(self)]
        hints = {"groups": "say kv_heads, the number of key and value heads"}
        faults = [f"no field {name!r}; {hints.get(name, nearest(name, fields))}" for name in changes
                  if name not in fields]  # fmt: skip
        refuse(faults, f"config {self.name!r}")
        if self.kv_heads == self.heads and "heads" in changes:  # multihead stays multihead
            changes.setdefault("kv_heads", 0)
        return dataclasses.replace(self, **changes)


def _size_faults(cfg: Config) -> list[str]:
    names = [name for name in SIZES if name != "kv_heads" or cfg.kv_heads is not cfg.heads]  # not the same one twice
    wrong = [name for name in names if as_size(getattr(cfg, name)) is None]
    faults = [f"{name} is {getattr(cfg, name)!r:.100}; expected a whole number of at least 1" for name in wrong]
    encoder = as_whole(cfg.encoder_layers)
    if encoder is None or encoder < 0:
        faults.append(f"encoder_layers is {cfg.encoder_layers!r:.100}; expected a whole number, 0 for a decoder alone")
    for name in ("norm_eps", "rotary_base"):
        value = getattr(cfg, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < LARGEST:
            faults.append(f"{name} is {_short(value)}; expected a positive number below {LARGEST:.0e}")
    return faults


def _short(value: object) -> str:
    """A value in a message. Python refuses to write whole numbers of over 4,300 digits."""
    if isinstance(value, int) and value > LARGEST:
        return f"a whole number of {value.bit_length():,} bits"
    return f"{value!r:.100}"


def _too_many(cfg: Config) -> list[str]:
    """Sizes that no model has, refused before anything is worked out with them."""
    size = {name: int(getattr(cfg, name)) for name in (*SIZES, "encoder_layers")}
    if cfg.name == MADE_UP:
        return []
    if large := [name for name in size if size[name] > MOST_PARAMS]:
        return [f"{name} is over {MOST_PARAMS:.0e}; no model has that" for name in large]
    wide = max(size["d_ff"], size["heads"] * size["head_size"])
    layers = size["layers"] + size["encoder_layers"]
    least = size["d_model"] * max(size["vocab"], size["max_length"], layers * wide)  # of its largest kind of matrix
    return [f"it has over {least:.1e} parameters; no model has over {MOST_PARAMS:.0e}"] * (least > MOST_PARAMS)


def _is_among(value: object, legal: tuple[str, ...]) -> bool:
    return isinstance(value, str) and value in legal


def _choice_faults(cfg: Config) -> list[str]:
    wrong = {name: legal for name, legal in CHOICES.items() if not _is_among(getattr(cfg, name), legal)}
    faults = [f"{name} is {getattr(cfg, name)!r:.100}; {nearest(getattr(cfg, name), wrong[name])}" for name in wrong]
    flags = [name for name in FLAGS if not isinstance(getattr(cfg, name), bool)]
    return faults + [f"{name} is {getattr(cfg, name)!r:.100}; expected True or False" for name in flags]


def _shape_faults(cfg: Config) -> list[str]:
    """What does not fit together; only `kv_heads` says how heads are shared."""
    faults = []
    if cfg.heads % cfg.kv_heads:
        few = range(1, min(cfg.heads, MOST_LISTED) + 1)
        legal = ", ".join(str(n) for n in few if cfg.heads % n == 0)
        faults.append(f"heads {cfg.heads} do not divide by kv_heads {cfg.kv_heads}; kv_heads may be {legal}")
    if cfg.positions == "rotary" and cfg.head_size % 2:
        what = f"rotary positions turn pairs, so head_size must be even; it is {cfg.head_size}"
        faults.append(f"{what}, try {cfg.head_size - 1} or {cfg.head_size + 1}")
    return faults


def config(name: str | os.PathLike[str] | Config, **changes: Any) -> Config:
    """A configuration by name, or from a file on disk, with some fields changed: `config("tiny-lm", heads=16)`.

    `name`: such as "palm-540b", a path, or a configuration; `changes`: fields with their new values.

    Raises `LayoutError` for names and fields that there are not.

        >>> mtf.model.config("palm-540b").layers
        118
    """
    return (name if isinstance(name, Config) else _found(name)).but(**changes)


def _found(name: object) -> Config:
    from mtfcore.model.published import CONFIGS

    if isinstance(name, str) and name in CONFIGS:
        return CONFIGS[name]
    if isinstance(name, os.PathLike) or (isinstance(name, str) and ("/" in name or os.sep in name or ".json" in name)):
        from mtfcore.model.config_files import config_file

        return config_file(name)
    hint = "; a file is given with its folder, './config.json'"
    raise LayoutError(f"no model {name!r:.100}; {nearest(name, CONFIGS)}{hint}")


def sizes_of(cfg: Config) -> Mapping[str, int]:
    """Letter → size of the dimensions that the configuration fixes; B, L and S come with the data."""
    found = {
        "layers": cfg.layers, "E": cfg.d_model, "F": cfg.d_ff, "H": cfg.heads, "K": cfg.kv_heads, "D": cfg.head_size,
        "V": cfg.vocab, "P": cfg.max_length, "encoder_layers": cfg.encoder_layers,
    }  # fmt: skip
    return {letter: int(size) for letter, size in found.items() if size}
