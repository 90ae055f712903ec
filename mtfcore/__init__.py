"""Meshwork's library: name dimensions, lay them on a mesh, plan every collective, then run exactly that plan.

    import mtfcore as mtf

    @mtf.function
    def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
        h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
        return mtf.einsum(h, v, out="batch io")

    prog = mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes="batch:64 io:512 hidden:2048")
    print(prog.table())
    y = mtf.simulate(prog)(x, w, v)

Importing this loads no JAX; running does. First file to read: `notation`.
"""

import importlib
from typing import Any

from mtfcore.along import argmax, cumsum, top_k
from mtfcore.backward.gradient import gradients
from mtfcore.backward.recomputing import recompute
from mtfcore.chips import chip
from mtfcore.dims import Dim
from mtfcore.elementwise import (
    absolute,
    add,
    cast,
    cos,
    divide,
    equal,
    exp,
    gelu,
    greater,
    less,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    power,
    relu,
    rsqrt,
    sigmoid,
    silu,
    sin,
    sort_key,
    sqrt,
    square,
    stop_gradient,
    subtract,
    tanh,
    where,
)  # fmt: skip
from mtfcore.errors import DeviceError, LayoutError, LayoutWarning, NotationError
from mtfcore.functions import function
from mtfcore.layout import Layout
from mtfcore.lookups import (
    gather,
    index,
    one_hot,
)
from mtfcore.loops import repeat
from mtfcore.mesh import Mesh
from mtfcore.ops import einsum
from mtfcore.padding import pad_to, padding_share, valid
from mtfcore.planning import plan
from mtfcore.randomness import dropout, fold_in, random_gumbel, random_normal, random_uniform
from mtfcore.reductions import (
    all,
    any,
    logsumexp,
    max,
    mean,
    min,
    settle,
    softmax,
    sum,
)  # fmt: skip
from mtfcore.reshapes import (
    concat,
    merge,
    pad,
    rename,
    reshape,
    reshard,
    slice,
    split,
    transpose,
)
from mtfcore.row_writing import write
from mtfcore.sharding import Sharding
from mtfcore.spatial import conv, overlap_add, shift, windows
from mtfcore.steps import Program, Step
from mtfcore.tensor import Tensor
from mtfcore.topologies import topology

__version__ = "0.7.0"  # CHANGELOG.md says what each version brought

_LATER = {  # these load JAX, or more than a plan needs, when first used
    "add_chip": "chip_adding", "attach": "runs", "simulate": "runs", "compile": "compiling.programs",
    "count": "counting", "devices": "device_pool",
    "doctor": "diagnosis", "looped": "overlap.looping", "partitioned": "whole", "price": "costs.pricing.price",
    "measure": "measuring.timing", "search_layout": "costs.search.layouts", "single": "whole",
}  # fmt: skip
_PACKAGES = ("costs", "model", "schedules")  # pure, but more than a plan needs: `mtf.model.config` imports it

__all__ = [
    "DeviceError",
    "Dim",
    "Layout",
    "LayoutError",
    "LayoutWarning",
    "Mesh",
    "NotationError",
    "Program",
    "Sharding",
    "Step",
    "Tensor",
    "absolute",
    "add",
    "add_chip",
    "all",
    "any",
    "argmax",
    "attach",
    "cast",
    "chip",
    "compile",
    "concat",
    "conv",
    "cos",
    "count",
    "cumsum",
    "devices",
    "divide",
    "doctor",
    "dropout",
    "einsum",
    "equal",
    "exp",
    "fold_in",
    "function",
    "gather",
    "gelu",
    "gradients",
    "greater",
    "index",
    "less",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "logsumexp",
    "looped",
    "max",
    "maximum",
    "mean",
    "measure",
    "merge",
    "min",
    "minimum",
    "multiply",
    "one_hot",
    "overlap_add",
    "pad",
    "pad_to",
    "padding_share",
    "partitioned",
    "plan",
    "power",
    "price",
    "random_gumbel",
    "random_normal",
    "random_uniform",
    "recompute",
    "relu",
    "rename",
    "repeat",
    "reshape",
    "reshard",
    "rsqrt",
    "search_layout",
    "settle",
    "shift",
    "sigmoid",
    "silu",
    "simulate",
    "sin",
    "single",
    "slice",
    "softmax",
    "sort_key",
    "split",
    "sqrt",
    "square",
    "stop_gradient",
    "subtract",
    "sum",
    "tanh",
    "top_k",
    "topology",
    "transpose",
    "valid",
    "where",
    "windows",
    "write",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"mtfcore.{name}")
    if name not in _LATER:
        raise AttributeError(f"module 'mtfcore' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"mtfcore.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_PACKAGES})
