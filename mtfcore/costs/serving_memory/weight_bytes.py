"""Bytes of weights on one device: as they are stored, and what a weight-gathered layout collects for a while.

    >>> stored(mtf.model.config("palm-540b"), (4, 4, 4), "ws2d", "bf16").weights
    np.float64(16890531840.0)

Everything is read off what `model.storing` makes of the declared parameters, so nothing is counted twice or forgotten.
A matrix E x F lies `E:x F:yz` in the two-dimensional layout and in the weight-gathered ones, which collect E over x,
over x and y, or everything, just before they use it; the one-dimensional layout has `F:xyz` (Efficiently Scaling
Transformer Inference, arXiv 2211.05102, section 3.2 and Figure 2). What heads cannot take goes to the head size, so
that matrices have no copies; vectors lie whole on every device. All as `model.places` has it, on arrays (`cuts`).

int8 is for the layers' matrices, as `model.storing` has it, and int4 too, of which only the bytes are known here;
tables, norms and biases stay bf16. Each output channel has one scale, bf16 unless told otherwise: one for each of H D
in queries, of F and of E in the feedforward.
Next file to read: `cache_bytes`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mtfcore.costs.serving_memory.cuts import (
    ORDER,
    Grid,
    Numbers,
    across,
    among,
    dimensions,
    partition,
    parts,
    product,
    spread,
)
from mtfcore.errors import nearest, refuse
from mtfcore.model.configs import Config
from mtfcore.model.storing import OUTPUTS, outputs, stored_texts

BITS = {"f32": 32, "bf16": 16, "f16": 16, "int8": 8, "i8": 8, "fp8": 8, "int4": 4, "i4": 4}
WHOLE = ("int8", "i8", "int4", "i4")  # whole numbers: these need scales
SCALE_BYTES = {"bf16": 2, "f32": 4, "none": 0}
SCALES = tuple(SCALE_BYTES)
SMALL = "bf16"  # what is no matrix stays in, where matrices are stored in fewer bits
KEPT = {
    "chunks": ("chunk", 2), "matrix": ("matrix", 1), "matrices": ("matrix", 2), "layer": ("layer", 1),
    "layers": ("layer", 2),
}  # fmt: skip
PAIR = "pair"  # of two matrices stored as one: never cut


class Piece(NamedTuple):
    """Tensors that lie alike, together: the dimensions of one, its output channels', how many of them there are."""

    dims: tuple[str, ...]  # but for the stack's
    outputs: tuple[str, ...]  # of matrices: where a scale belongs
    stack: int  # layers in each
    tensors: int

    @property
    def cut(self) -> bool:
        """Whether it is cut at all: vectors lie whole on every device."""
        return bool(self.outputs) or self.dims in (("V", "E"), ("P", "E"))

    def elements(self, known: Mapping[str, int]) -> int:
        """Of one tensor, one layer of it."""
        return math.prod(known[name] for name in self.dims)


class Stored(NamedTuple):
    """Bytes on one device: weights with their scales, and the scales alone."""

    weights: Numbers
    scales: Numbers


@lru_cache(maxsize=256)
def pieces(cfg: Config) -> tuple[Piece, ...]:
    """What is stored (`model.storing`), added up by how it lies."""
    found: Counter[tuple[tuple[str, ...], tuple[str, ...], int]] = Counter()
    for name, text in stored_texts(cfg).items():
        words = text.split()
        stacked = words[0].startswith("layers:")
        outs = _names(outputs(name, words)) if name in OUTPUTS else ()
        found[_names(words[stacked:]), outs, cfg.layers if stacked else 1] += 1
    return tuple(Piece(*kind, tensors) for kind, tensors in found.items())


def _names(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(word.partition(":")[0] for word in words)


def stored(
    cfg: Config, grid: Grid, ffn: str = "ws2d", weights: Any = "bf16", scales: str = "bf16"
) -> Stored:  # fmt: skip
    """Bytes of all weights on one device of the grid x, y, z; arrays broadcast (also `weights`, of dtype names)."""
    among("scales", scales, SCALES)
    bits, whole = bits_of(weights, "weights"), is_whole(weights)
    small, known = np.maximum(bits, BITS[SMALL]), dimensions(cfg)
    held: Numbers = 0
    kept: Numbers = 0
    for piece in pieces(cfg):
        cut, cut_outputs = at_rest(cfg, grid, ffn, piece)
        layers = piece.tensors * piece.stack
        held = held + layers * piece.elements(known) / cut * (bits if piece.outputs else small) / 8
        if piece.outputs:
            channels = layers * math.prod(known[name] for name in piece.outputs)
            kept = kept + channels / cut_outputs * whole * SCALE_BYTES[scales]
    return Stored(held + kept, kept)


def at_rest(cfg: Config, grid: Grid, ffn: str, piece: Piece) -> tuple[Numbers, Numbers]:
    """In how many parts a piece lies, and its output channels."""
    if not piece.cut:
        return 1, 1
    known, of = dimensions(cfg), partition(ffn)
    rows, _ = spread(grid, of.stored_e, {"E": known["E"]})
    rest = [name for name in piece.dims if name not in ("E", "P", PAIR)]
    left = {name: known[name] for name in rest}
    if "V" in rest or not rest:  # what the vocabulary cannot take goes to E; positions lie by E alone
        left["E"] = known["E"] // rows["E"]
    cut, _ = spread(grid, [axis for axis in ORDER if axis in of.stored_f], left)
    channels = rows["E"] if piece.outputs == ("E",) else product(cut[name] for name in piece.outputs if name in cut)
    return product(cut.values()) * rows["E"], channels


def gathered(cfg: Config, grid: Grid, ffn: str, weights: Any = "bf16", kept: str = "matrix") -> dict[str, Numbers]:
    """Bytes of the collected weights, by the sublayer at work. `kept`: one matrix at a time, as planned; two, where the
    next one arrives meanwhile; all those of a layer, or of two; or of a matrix the two chunks that a loop around the
    ring has in hand (section 3.5)."""
    what, at_once = KEPT[among("gathered", kept, KEPT)]
    of, known = partition(ffn), dimensions(cfg)
    if not of.batch:
        return {"attention": 0.0, "feedforward": 0.0}
    n_bytes = at_once * bits_of(weights, "weights") / 8 / (across(grid, of.batch) if what == "chunk" else 1)
    names = {piece: [name for name in piece.dims if name not in ("E", PAIR)] for piece in pieces(cfg) if piece.outputs}
    sizes = {piece: piece.elements(known) * n_bytes / parts(cfg, grid, of.f, names[piece]) for piece in names}
    if what == "layer":
        everything = sum(size * piece.tensors for piece, size in sizes.items())
        return {"attention": everything, "feedforward": everything}
    return {
        "attention": _largest([size for piece, size in sizes.items() if "F" not in piece.dims]),
        "feedforward": _largest([size for piece, size in sizes.items() if "F" in piece.dims]),
    }


def evenly(cfg: Config, n_devices: Numbers, weights: Any, n_params: Numbers | None = None) -> Numbers:
    """Bytes on one device if all parameters lay evenly over all devices, no copy and no scale: a floor."""
    return (cfg.n_params if n_params is None else n_params) * bits_of(weights, "weights") / 8 / n_devices


# ---- helpers ----------------------------------------------------------------------------------------------------


def bits_of(dtypes: Any, about: str) -> Numbers:
    """Bits of one element as stored, for a dtype's name or an array of names."""
    names = np.asarray(dtypes)
    wrong = [name for name in np.unique(names.astype(str)) if name not in BITS]
    refuse([f"{about}: no stored type {str(name)!r:.100}; {nearest(name, BITS)}" for name in wrong])
    return BITS[str(names)] if names.ndim == 0 else np.vectorize(BITS.__getitem__, otypes=[int])(names)


def is_whole(dtypes: Any) -> Numbers:
    """Whether a stored type is a whole number, which needs scales."""
    return np.isin(np.asarray(dtypes), WHOLE) if np.ndim(dtypes) else str(dtypes) in WHOLE


def _largest(values: list[Numbers]) -> Numbers:
    best: Numbers = 0.0
    for value in values:
        best = np.maximum(best, value)
    return best
