"""Bytes of weights on one device: as they are stored, and what a weight-gathered layout collects for a while.

    >>> stored(mtf.model.config("palm-540b"), (4, 4, 4), "ws2d", "bf16").weights / 1e9
    17.4…

Everything is read off the declaration of the parameters (`cfg.params`), so nothing is counted twice or forgotten. A
matrix E x F lies `E:x F:yz` in the two-dimensional layout and in the weight-gathered ones, which collect E over x, over
x and y, or everything, just before they use it; the one-dimensional layout has `F:xyz` (Efficiently Scaling Transformer
Inference, arXiv 2211.05102, section 3.2 and Figure 2). Dimensions that do not divide are held in copies (`ways`).

int8 and int4 are for matrices, tables included; norms, biases and learned positions stay bf16. Each output channel has
one scale, f32 unless told otherwise: H D for queries, F and E for the feedforward, one a row of the tables. Next file
to read: `activation_bytes`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mtfcore.costs.ways import Numbers, product, ways
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.model.configs import Config

BITS = {"f32": 32, "bf16": 16, "f16": 16, "int8": 8, "i8": 8, "fp8": 8, "int4": 4, "i4": 4}
WHOLE = ("int8", "i8", "int4", "i4")  # whole numbers: these need scales
SCALES = ("f32", "bf16", "none")
SMALL = "bf16"  # what is no matrix stays in, where matrices are stored in fewer bits

_2D = {"E": "x", "F": "yz", "H": "yz", "K": "yz", "V": "yz"}
_1D = {"F": "xyz", "H": "xyz", "K": "xyz", "V": "xyz"}
STORED = {"ws1d": _1D, "ws2d": _2D, "wg_x": _2D, "wg_xy": _2D, "wg_xyz": _2D}  # letter → axes, where weights lie
GATHERED_OVER = {"ws1d": "", "ws2d": "", "wg_x": "x", "wg_xy": "xy", "wg_xyz": "xyz"}
KEPT = {"matrix": ("matrix", 1), "matrices": ("matrix", 2), "layer": ("layer", 1), "layers": ("layer", 2)}

Grid = tuple[Numbers, Numbers, Numbers]


class Piece(NamedTuple):
    """Parameters that lie alike, together: their letters but for the stack's, whether they are matrices, how many."""

    letters: str
    outputs: str  # the letters of the output channels, where a scale belongs
    matrix: bool
    stack: int  # how many layers are stacked
    elements: int


class Stored(NamedTuple):
    """Bytes on one device: weights with their scales, and the scales alone."""

    weights: Numbers
    scales: Numbers


@lru_cache(maxsize=256)
def pieces(cfg: Config) -> tuple[Piece, ...]:
    """The declaration, added up by how parameters lie."""
    found: dict[tuple[str, str, bool, int], int] = {}
    for param in cfg.params.values():
        stacked = param.dims[0].name in ("layers", "encoder_layers")
        letters = "".join(dim.name for dim in param.dims[stacked:])
        outputs = _outputs(param.name, letters)
        kind = (letters, outputs, bool(outputs), param.dims[0].size if stacked else 1)
        found[kind] = found.get(kind, 0) + param.n_elements
    return tuple(Piece(*kind, elements) for kind, elements in found.items())


def _outputs(name: str, letters: str) -> str:
    """The letters of a matrix's output channels; nothing for norms, biases and positions."""
    if name in ("embedding", "softmax"):
        return "V"
    inner = name.removeprefix("encoder_").removeprefix("cross_")
    if not inner.startswith("w"):
        return ""
    return "E" if letters[-1] == "E" else letters.removeprefix("E")


def stored(
    cfg: Config, grid: Grid, ffn: str = "ws2d", weights: Any = "bf16", scales: str = "f32"
) -> Stored:  # fmt: skip
    """Bytes of all weights on one device of the grid x, y, z; arrays broadcast (also `weights`, of dtype names)."""
    among("scales", scales, SCALES)
    cut, bits, whole = _cut(cfg, grid, ffn), bits_of(weights, "weights"), is_whole(weights)
    small = np.maximum(bits, BITS[SMALL])
    held: Numbers = 0
    kept: Numbers = 0
    for piece in pieces(cfg):
        held = held + piece.elements / _parts(piece.letters, cut) * (bits if piece.matrix else small) / 8
        if piece.matrix and scales != "none":
            kept = kept + _channels(cfg, piece) / _parts(piece.outputs, cut) * whole * BITS[scales] / 8
    return Stored(held + kept, kept)


def gathered(cfg: Config, grid: Grid, ffn: str, weights: Any = "bf16", kept: str = "matrix") -> dict[str, Numbers]:
    """Bytes of the collected weights, by the sublayer at work. `kept`: one matrix at a time, two (the next one arrives
    meanwhile), all those of a layer, or of two layers."""
    what, times = KEPT[among("gathered", kept, KEPT)]
    if not GATHERED_OVER[among("ffn", ffn, STORED)]:
        return {"attention": 0.0, "feedforward": 0.0}
    cut = _cut(cfg, grid, ffn, collected=GATHERED_OVER[ffn])
    sizes = {
        piece: _elements_of_one(cfg, piece) / _parts(piece.letters, cut)
        for piece in pieces(cfg) if piece.matrix and "V" not in piece.letters
    }  # fmt: skip
    n_bytes = times * bits_of(weights, "weights") / 8
    if what == "layer":
        everything = sum(piece.elements // piece.stack / _parts(piece.letters, cut) for piece in sizes)
        return {"attention": everything * n_bytes, "feedforward": everything * n_bytes}
    return {
        "attention": _largest([size for piece, size in sizes.items() if "F" not in piece.letters]) * n_bytes,
        "feedforward": _largest([size for piece, size in sizes.items() if "F" in piece.letters]) * n_bytes,
    }


def evenly(cfg: Config, n_devices: Numbers, weights: Any, n_params: Numbers | None = None) -> Numbers:
    """Bytes on one device if all parameters lay evenly over all devices, no copy and no scale: a floor."""
    return (cfg.n_params if n_params is None else n_params) * bits_of(weights, "weights") / 8 / n_devices


# ---- helpers ----------------------------------------------------------------------------------------------------


def sizes(cfg: Config) -> dict[str, int]:
    """Letter → size."""
    return {
        "E": cfg.d_model, "F": cfg.d_ff, "H": cfg.heads, "K": cfg.kv_heads, "D": cfg.head_size, "V": cfg.vocab,
        "P": cfg.max_length,
    }  # fmt: skip


def axes_of(grid: Grid, names: str) -> tuple[Numbers, ...]:
    """The sizes of some axes of the grid: `axes_of((4, 2, 8), "yz")` is (2, 8)."""
    return tuple(grid["xyz".index(name)] for name in names)


def bits_of(dtypes: Any, about: str) -> Numbers:
    """Bits of one element as stored, for a dtype's name or an array of names."""
    names = np.asarray(dtypes)
    wrong = [name for name in np.unique(names.astype(str)) if name not in BITS]
    refuse([f"{about}: no stored type {str(name)!r:.100}; {nearest(name, BITS)}" for name in wrong])
    return BITS[str(names)] if names.ndim == 0 else np.vectorize(BITS.__getitem__, otypes=[int])(names)


def is_whole(dtypes: Any) -> Numbers:
    """Whether a stored type is a whole number, which needs scales."""
    return np.isin(np.asarray(dtypes), WHOLE) if np.ndim(dtypes) else str(dtypes) in WHOLE


def among(about: str, value: Any, legal: Any) -> Any:
    """The value, if it is one of these."""
    if not isinstance(value, str) or value not in legal:
        raise LayoutError(f"{about} is {value!r:.100}; {nearest(value, legal)}")
    return value


def _cut(cfg: Config, grid: Grid, ffn: str, collected: str = "") -> dict[str, Numbers]:
    """Letter → in how many parts it lies, once some axes have been collected."""
    rules = STORED[among("ffn", ffn, STORED)]
    left = {letter: "".join(axis for axis in axes if axis not in collected) for letter, axes in rules.items()}
    known = sizes(cfg)
    return {letter: ways(known[letter], *axes_of(grid, axes)) for letter, axes in left.items()}


def _parts(letters: str, cut: dict[str, Numbers]) -> Numbers:
    return product(tuple(cut[letter] for letter in letters if letter in cut))


def _channels(cfg: Config, piece: Piece) -> int:
    """Output channels of all the matrices in a piece."""
    known = sizes(cfg)
    one = math.prod(known[letter] for letter in piece.letters)
    return piece.elements // one * math.prod(known[letter] for letter in piece.outputs)


def _elements_of_one(cfg: Config, piece: Piece) -> int:
    return math.prod(sizes(cfg)[letter] for letter in piece.letters)


def _largest(values: list[Numbers]) -> Numbers:
    best: Numbers = 0.0
    for value in values:
        best = np.maximum(best, value)
    return best
