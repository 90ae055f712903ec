"""The two layers of Table 1 as named functions, so that the closed forms can be held against a plan, and run.

    >>> planned(ROWS["batch:rows hidden:cols"], Sizes(64, 32, 128), 4, 2).collectives()
    [<Step all_reduce over cols: batch:rows io partialsum:cols → batch:rows io>, ...]

`training` takes dy, what the rest of a larger network sends back, and returns dx, which goes on to it, and the
gradients of both weights. Its backward is written out as the chain rule has it, one einsum a line, which is what
`mtf.gradients` plans too (a test compares them). Next file to read: `pricing/liveness`.
"""

from __future__ import annotations

import mtfcore as mtf
from mtfcore.costs.first_paper.two_layers import Row, Sizes


@mtf.function
def forward(x: "batch io", w: "io hidden", v: "hidden io"):
    """y = relu(x w) v."""
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


@mtf.function
def training(x: "batch io", w: "io hidden", v: "hidden io", dy: "batch io"):
    """The forward pass, and from dy the gradients of x, w and v."""
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    y = mtf.einsum(h, v, out="batch io")
    dv = mtf.einsum(h, dy, out="hidden io")
    dh = mtf.where(mtf.greater(h, 0.0), mtf.einsum(dy, v, out="batch hidden"), 0.0)
    dw = mtf.einsum(x, dh, out="io hidden")
    dx = mtf.einsum(dh, w, out="batch io")
    return {"y": y, "dx": dx, "dw": dw, "dv": dv}


FUNCTIONS = {"forward": forward, "training": training}


def planned(
    row: Row, sizes: Sizes, rows: int, cols: int = 1, planes: int = 1, dtype: str = "bf16", passes: str = "training"
) -> mtf.Program:
    """The program of a row's layout on its mesh of rows·cols·planes devices."""
    mesh = row.mesh(rows, cols, planes)
    return mtf.plan(FUNCTIONS[passes], mesh, row.layout, sizes=str(sizes), dtype=dtype, strict=True)
