"""Meshwork's library: name dimensions, lay them on a mesh, plan every collective, then run exactly that plan.

    import mtfcore as mtf
    mesh, layout = mtf.Mesh("rows:4 cols:2"), mtf.Layout("batch:rows hidden:cols")

Nothing here loads JAX until something is run. First file to read: `notation`.
"""

from mtfcore.dims import Dim
from mtfcore.errors import DeviceError, LayoutError, LayoutWarning, NotationError
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.ops import (
    absolute,
    add,
    cast,
    divide,
    einsum,
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
    sqrt,
    square,
    subtract,
    tanh,
    where,
)  # fmt: skip
from mtfcore.planning import plan
from mtfcore.reductions import (
    all,
    any,
    argmax,
    cumsum,
    gather,
    index,
    logsumexp,
    max,
    mean,
    min,
    one_hot,
    settle,
    softmax,
    sum,
    top_k,
)  # fmt: skip
from mtfcore.reshapes import concat, merge, pad, rename, repeat, reshape, reshard, slice, split, transpose
from mtfcore.sharding import Sharding
from mtfcore.steps import Program, Step
from mtfcore.tensor import Tensor, function
