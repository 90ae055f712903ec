"""The functions that the program explorer offers, each with settings in which it has something to show.

    >>> EXAMPLES["two_layers"].settings["layout"]
    'batch:rows hidden:cols'

The two layers are the first paper's running example (arXiv 1811.02084, section 4), the two-dimensional
weight-stationary layer is the second one's (arXiv 2211.05102, section 3.2.2), the convolution exchanges halos, and the
weight gradient is the case in which free search finds fewer bytes and more moves. Next file to read: `program_inputs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mtfcore as mtf
from mtfcore.functions import Function


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


@mtf.function
def split_softmax(logits: "batch vocab"):
    return mtf.softmax(logits, "vocab")


@mtf.function
def weight_stationary_2d(x: "B L E", w_in: "E F", w_out: "F E"):
    h = mtf.einsum(mtf.reshard(x, "B L E:x"), w_in, out="B L F:zyx")
    h = mtf.gelu(h)
    return mtf.einsum(mtf.reshard(h, "B L F:zy"), w_out, out="B L E:xzy")


@mtf.function
def heads(x: "batch io", wq: "io hd"):
    q = mtf.split(mtf.einsum(x, wq, out="batch hd"), "hd", "heads:8 size")
    return mtf.merge(mtf.relu(q), "heads size", "hd")


@mtf.function(dtypes={"tokens": "i32"})
def embedding(tokens: "batch length", table: "vocab io"):
    return mtf.gather(table, tokens, "vocab", out="batch length io")


@mtf.function
def smooth(image: "height width", kernel: "kh:3 kw:3"):
    return mtf.conv(image, kernel, spatial={"height": "kh", "width": "kw"}, out="height width")


@mtf.function
def weight_gradient(x: "batch io", dh: "batch hidden"):
    return mtf.einsum(x, dh, out="io hidden")


@dataclass(frozen=True)
class Example:
    """A function, the words of the menu, and the settings it starts with."""

    fn: Function
    words: str
    settings: Mapping[str, Any]


def _example(fn: Function, words: str, mesh: str, layout: str, sizes: str, place: str = "") -> Example:
    return Example(fn, words, {"mesh": mesh, "layout": layout, "sizes": sizes, "place": place})


_FLAT, _CUBE = "rows:4 cols:2", "x:2 y:2 z:2"
EXAMPLES: dict[str, Example] = {
    each.fn.__name__: each
    for each in (
        _example(two_layers, "two layers", _FLAT, "batch:rows hidden:cols", "batch:64 io:512 hidden:2048"),
        _example(split_softmax, "softmax over a split dimension", _FLAT, "batch:rows vocab:cols", "batch:64 vocab:512"),
        _example(
            weight_stationary_2d, "feedforward, 2D weight-stationary", _CUBE, "", "B:8 L:4 E:64 F:256",
            "x: B L E:xzy; w_in: E:x F:zy; w_out: F:zy E:x",
        ),
        _example(heads, "split into heads and merge", _FLAT, "batch:rows heads:cols", "batch:64 io:256 hd:512"),
        _example(
            embedding, "look up a split table", _FLAT, "batch:rows vocab:cols", "batch:16 length:8 vocab:512 io:64"
        ),
        _example(smooth, "convolution, an image cut both ways", _FLAT, "height:rows width:cols", "height:16 width:12"),
        _example(weight_gradient, "gradient of a weight", _FLAT, "batch:rows", "batch:64 io:256 hidden:1024"),
    )
}  # fmt: skip
