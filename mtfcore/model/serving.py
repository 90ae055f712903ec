"""The second paper's partitions, as data: which mesh axes cut a layer's dimensions, at rest and while it is computed.

    ws1d      weights stay, F over all axes: x is gathered whole, and its sums are scattered again
    ws2d      weights stay, E over x and F over z and y: what moves is a part of E, and a part of F
    wg_x      the batch lies over x, and weights are gathered over x just before they are used
    wg_xy     the same over x and y
    wg_xyz    the same over all: each device has its own sequences and, for a moment, a whole matrix

    >>> FEEDFORWARD["ws2d"].stored_e, FEEDFORWARD["ws2d"].stored_f           # where a matrix E x F lies at rest
    ('x', 'zy')

All but ws1d store the weights as `E:x F:zy`, so that a model may be prefilled one way and decode another, and each
gathers innermost axes. Attention lies by heads, or by batch so that devices share out the kept keys and values. Axes
are written outermost first; those that a mesh lacks, or of size 1, drop out, so that the same data serve meshes of one
and two axes. Source: Efficiently Scaling Transformer Inference (arXiv 2211.05102), sections 3.2 and 3.3, appendix A.2.
Next file to read: `places`, which says where each tensor lies for one model and mesh.
"""

from __future__ import annotations

from dataclasses import dataclass

from mtfcore.layout import Layout

_PAPER = "Efficiently Scaling Transformer Inference, arXiv 2211.05102"
AXES = "xyz"
PHASES = ("prefill", "decode")


@dataclass(frozen=True)
class Feedforward:
    """The axes of one feedforward partition, each a run such as "zy"."""

    name: str
    batch: str  # of B, all through the layer
    e: str  # of E while it is multiplied
    f: str  # of F while it is multiplied
    stored_e: str  # of the weights at rest
    stored_f: str
    idea: str
    source: str

    @property
    def rest(self) -> str:
        """The axes of E in the residual stream, between the layers."""
        return self.e + self.f

    @property
    def sites(self) -> dict[str, str]:
        """Where each tensor of the feedforward layer lies: figures 2 and A.1 of the paper, with the order of axes."""
        rows, e, f = (("B", self.batch), ("L", "")), ("E", self.e), ("F", self.f)
        return {
            "stored": text(("E", self.stored_e), ("F", self.stored_f)),
            "residual": text(*rows, ("E", self.rest)), "x": text(*rows, e), "w_in": text(e, f),
            "hidden": text(*rows, ("F", self.f + self.e)), "h": text(*rows, f), "w_out": text(f, e),
        }  # fmt: skip


def text(*dims: tuple[str, str]) -> str:
    """Dimensions with their axes in our notation."""
    return " ".join(f"{name}:{axes}" if axes else name for name, axes in dims)


FEEDFORWARD: dict[str, Feedforward] = {
    ffn.name: ffn
    for ffn in (
        Feedforward(
            "ws1d", "", "", "xyz", "", "xyz",
            "1D weight-stationary: one gather and one reduce-scatter of E; what is sent does not shrink with the mesh",
            f"{_PAPER}, section 3.2.1",
        ),
        Feedforward(
            "ws2d", "", "x", "zy", "x", "zy",
            "2D weight-stationary: matrices stay, cut both ways; what is sent shrinks with the root of the devices",
            f"{_PAPER}, section 3.2.2 and appendix A.2.1",
        ),
        Feedforward(
            "wg_x", "x", "", "zy", "x", "zy",
            "X-weight-gathered: the batch lies over x and weights are gathered over x", f"{_PAPER}, section 3.2.3",
        ),
        Feedforward(
            "wg_xy", "xy", "", "z", "x", "zy",
            "XY-weight-gathered: the batch lies over x and y and weights are gathered over both",
            f"{_PAPER}, section 3.2.3",
        ),
        Feedforward(
            "wg_xyz", "xzy", "", "", "x", "zy",
            "XYZ-weight-gathered: only weights are sent", f"{_PAPER}, section 3.2.3 and appendix A.2.2",
        ),
    )
}  # fmt: skip

ATTENTION = {
    "heads": "query heads over z and y, and x where they divide; keys and values are copied where they have fewer",
    "batch": "sequences over every axis that divides the batch, so that kept keys and values have fewest copies",
}


@dataclass(frozen=True)
class ServingPartition:
    """A feedforward partition and one of attention: what prefill or decode runs under."""

    ffn: Feedforward
    attention: str

    @property
    def name(self) -> str:
        return f"{self.ffn.name}-{self.attention}"

    @property
    def axes(self) -> tuple[str, ...]:
        """The mesh axes that it uses."""
        return tuple(AXES)

    @property
    def words(self) -> str:
        """Where the residual stream lies between the layers, as rules of a layout."""
        rules = {"B": self.ffn.batch, "E": self.ffn.rest}
        return " ".join(f"{letter}:{axes}" for letter, axes in rules.items() if axes)

    @property
    def layout(self) -> Layout:
        """The same as a layout; everything else is pinned."""
        return Layout(self.words)

    @property
    def idea(self) -> str:
        return f"{self.ffn.idea}; attention: {ATTENTION[self.attention]}"

    @property
    def source(self) -> str:
        return f"{self.ffn.source}; {_PAPER}, section 3.3"


SERVING: dict[str, ServingPartition] = {
    made.name: made for ffn in FEEDFORWARD.values() for made in (ServingPartition(ffn, name) for name in ATTENTION)
}
