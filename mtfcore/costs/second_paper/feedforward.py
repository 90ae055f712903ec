"""The feedforward's five layouts: bytes that one device moves for a layer, as the paper counts them.

    >>> n = dict(tokens=256, d_model=16384, d_ff=65536)
    >>> ws1d(256, 16384) / 2**20, ws2d(**n, x=4, yz=16) / 2**20
    (16.0, 8.0)

Symbols: BL tokens in the pass, E d_model, F d_ff, n = X·Y·Z devices, N = X, XY or XYZ those that gather weights.

| layout | weights stay as | bytes over bytes an element |
|---|---|---|
| ws1d | E F_xyz | 2 BL E |
| ws2d | E_x F_yz | 2 BL (E/X + F/YZ): E gathered over yz and reduce-scattered, F the same over x |
| wg_x, wg_xy, wg_xyz | E_x F_yz, gathered over N | 2 E F N/n + 2 BL E/N; without the second term where N = n |

Each is one all-gather and one reduce-scatter on every volume, that is the factor 2, and W_in and W_out on the weights.
The paper's A.2.2 leaves an activation term for wg_xyz; its Figures 2 and 3 have none, for a group of one moves nothing.

Two options go beyond the paper. `gated`: a third matrix, as in SwiGLU: one more reduce-scatter of F, one more gather of
weights. `exact`: every volume times (K-1)/K, its group's share. All of it takes numbers, arrays, or fractions.

Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), sections 3.2.1-3.2.3, A.2.1, A.2.2 and
Figure 3. Next file to read: `splits`.
"""

from __future__ import annotations

import numpy as np

from mtfcore.costs.second_paper.collectives import Number, at_least_one, positive, share
from mtfcore.errors import LayoutError, nearest, refuse

LAYOUTS = ("ws1d", "ws2d", "wg_x", "wg_xy", "wg_xyz")


def ws1d(tokens: Number, d_model: Number, itemsize: Number = 2, devices: Number = 2, exact: bool = False) -> Number:
    """Bytes of 1D weight-stationary: 2 BL E, whatever the number of devices. Section 3.2.1."""
    positive(tokens=tokens, d_model=d_model, itemsize=itemsize)
    at_least_one(devices=devices)
    return 2 * tokens * d_model * share(devices, exact) * itemsize


def ws2d(
    tokens: Number, d_model: Number, d_ff: Number, x: Number, yz: Number, itemsize: Number = 2,
    gated: bool = False, exact: bool = False,
) -> Number:  # fmt: skip
    """Bytes of 2D weight-stationary: 2 BL (E/X + F/YZ). Sections 3.2.2 and A.2.1.

    With x of 1 nothing is summed over x, and what remains is `ws1d`.
    """
    positive(tokens=tokens, d_model=d_model, d_ff=d_ff, itemsize=itemsize)
    at_least_one(x=x, yz=yz)
    outside, inside = d_model * share(yz, exact) / x, d_ff * share(x, exact) / yz
    return tokens * (2 * outside + (3 if gated else 2) * inside) * itemsize


def gathered_weights(
    d_model: Number, d_ff: Number, gathered: Number, devices: Number, itemsize: Number = 2,
    gated: bool = False, exact: bool = False,
) -> Number:  # fmt: skip
    """Bytes of weights that a device gathers from `gathered` of all devices: 2 E F N/n. Section A.2.2."""
    positive(d_model=d_model, d_ff=d_ff, itemsize=itemsize)
    at_least_one(gathered=gathered, devices=devices)
    _within(gathered, devices)
    return (3 if gated else 2) * d_model * d_ff * gathered * share(gathered, exact) * itemsize / devices


def gathered_activations(
    tokens: Number, d_model: Number, gathered: Number, devices: Number, itemsize: Number = 2, exact: bool = False
) -> Number:
    """Bytes of activations over the n/N other devices: 2 BL E/N, none where N is n. Section A.2.2, Figure 3."""
    positive(tokens=tokens, d_model=d_model, itemsize=itemsize)
    at_least_one(gathered=gathered, devices=devices)
    _within(gathered, devices)
    return 2 * tokens * d_model * share(devices / gathered, exact) * itemsize / gathered


def weight_gathered(
    tokens: Number, d_model: Number, d_ff: Number, gathered: Number, devices: Number, itemsize: Number = 2,
    weight_itemsize: Number | None = None, gated: bool = False, exact: bool = False,
) -> Number:  # fmt: skip
    """Bytes of a weight-gathered layout over N devices, both parts. Sections 3.2.3 and A.2.2.

    `weight_itemsize` where weights are narrower than activations: int8 halves the first part alone (section 3.6).
    """
    narrow = itemsize if weight_itemsize is None else weight_itemsize
    weights = gathered_weights(d_model, d_ff, gathered, devices, narrow, gated, exact)
    return weights + gathered_activations(tokens, d_model, gathered, devices, itemsize, exact)


def best_gathered(tokens: Number, d_ff: Number, devices: Number) -> Number:
    """N with the least traffic if it could be any number: sqrt(BL n/F). Section A.2.2, which prints S for L."""
    positive(tokens=tokens, d_ff=d_ff, devices=devices)
    return (tokens * devices / d_ff) ** 0.5


def least_gathered(tokens: Number, d_model: Number, d_ff: Number, devices: Number, itemsize: Number = 2) -> Number:
    """Bytes at that N: 4 E sqrt(BL F/n). Section A.2.2. A bound: no real N need be there."""
    positive(tokens=tokens, d_model=d_model, d_ff=d_ff, devices=devices, itemsize=itemsize)
    return 4 * d_model * (tokens * d_ff / devices) ** 0.5 * itemsize


def layout_bytes(
    layout: str, tokens: Number, d_model: Number, d_ff: Number, x: Number, y: Number = 1, z: Number = 1,
    itemsize: Number = 2, weight_itemsize: Number | None = None, gated: bool = False, exact: bool = False,
) -> Number:  # fmt: skip
    """Bytes that one device moves for one feedforward layer in a layout by name, on x·y·z devices."""
    sizes, n = (tokens, d_model, d_ff), x * y * z
    if layout == "ws1d":
        return ws1d(tokens, d_model, itemsize, n, exact)
    if layout == "ws2d":
        return ws2d(*sizes, x, y * z, itemsize, gated, exact)
    over = {"wg_x": x, "wg_xy": x * y, "wg_xyz": n}
    if layout not in over:
        raise LayoutError(f"no layout {layout!r:.60}; {nearest(layout, LAYOUTS)}")
    return weight_gathered(*sizes, over[layout], n, itemsize, weight_itemsize, gated, exact)


def _within(gathered: Number, devices: Number) -> None:
    if np.any(np.asarray(gathered, dtype=float) > np.asarray(devices, dtype=float)):
        refuse([f"weights gathered over {gathered!r:.60} of {devices!r:.60} devices; at most all of them"])
