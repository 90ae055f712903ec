"""What the examples in docstrings find already there: a few tensors, a mesh, a layout, a plan, a configuration."""

from __future__ import annotations

from typing import Any

import mtfcore as mtf
from mtfcore.functions import Function


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


TENSORS = {
    "x": "batch:8 io:4", "y": "batch:8 io:4", "w": "io:4 hidden:6", "table": "vocab:16 io:4", "taps": "tap:3",
    "ids": "batch:8 length:3", "mask": "batch:8 io:4", "seed": "",
}  # fmt: skip
DTYPES = {"ids": "i32", "mask": "bool", "seed": "i32"}


def tensors() -> dict[str, mtf.Tensor]:
    """The arguments of a named function while it is recorded; operations may be added later too."""
    found: dict[str, mtf.Tensor] = {}

    def keep(**given: mtf.Tensor) -> mtf.Tensor:
        found.update(given)
        return mtf.sum(given["x"])

    Function.of("keep", TENSORS, keep, DTYPES).trace("")
    return found


def context() -> dict[str, Any]:
    """Everything that an example may name."""
    mesh, layout = mtf.Mesh("rows:4 cols:2"), mtf.Layout("batch:rows hidden:cols")
    prog = mtf.plan(two_layers, mesh, layout, sizes="batch:64 io:512 hidden:2048", dtype="bf16")
    sharding = mtf.Sharding("batch:64 io:512", "batch:rows io:cols")
    cfg = mtf.model.config("tiny-lm")
    return {"mtf": mtf, "mesh": mesh, "layout": layout, "s": sharding, "prog": prog, "cfg": cfg,
            "two_layers": two_layers, **tensors()}  # fmt: skip
