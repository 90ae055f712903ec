"""`mtf.gradients(loss, params)`: the backward, as named operations of the same function.

    @mtf.function
    def slopes(x: "batch io", w: "io hidden", v: "hidden io"):
        y = mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")
        return mtf.gradients(mtf.mean(mtf.square(y - x)), {"w": w, "v": v})

So it is planned, drawn, priced and counted like the forward. Each cotangent is wanted where its primal lies; where
several meet in a sum, each may stay a partial sum until they are added up. A tensor that lies in another form already
is a free source, which is why the backward gathers nothing twice. Loops are in `loops`.
Source: reverse accumulation; its placement is arXiv 1811.02084, section 8 (the gradients' all-reduce), made general.
Next file to read: `walk`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtfcore.backward.loops import pull_loop
from mtfcore.backward.recomputing import Primals
from mtfcore.backward.walk import Walk
from mtfcore.dtypes import is_float
from mtfcore.elementwise import constant
from mtfcore.errors import LayoutError, refuse
from mtfcore.ops import expect_tensor
from mtfcore.tensor import Graph, Tensor

Params = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


def gradients(loss: Tensor, params: Params) -> Any:
    """The derivative of `loss` (one number) for each of `params`, in the form in which they are given.

    Each has the dimensions, dtype and placement of its parameter; one that the loss does not depend on gives zeros.
    Raises `LayoutError` for a loss with dimensions, integers, and tensors of another function.
    """
    if not isinstance(params, (Tensor, Mapping, list, tuple)):
        raise LayoutError(f"gradients: params is {type(params).__name__} {params!r:.200}; expected tensors of this "
                          "function: one, a sequence or a mapping")  # fmt: skip
    single = isinstance(params, Tensor)
    listed = [params] if isinstance(params, Tensor) else params
    named: dict[Any, Tensor] = dict(listed) if isinstance(listed, Mapping) else dict(enumerate(listed))
    graph = _check(loss, named)
    numbers = {name: graph.adopt(t) for name, t in named.items()}
    walk = Walk(graph, list(numbers.values()), graph, Primals(graph, graph), pull_loop)
    walk.receive(graph.adopt(loss), constant(graph, 1.0, loss.dtype))
    walk.run()
    found = {name: walk.result(number) for name, number in numbers.items()}
    if single:
        return found[0]
    return found if isinstance(params, Mapping) else tuple(found.values())


def _check(loss: Tensor, params: Mapping[Any, Tensor]) -> Graph:
    expect_tensor(loss)
    if loss.dims:
        raise LayoutError(f"gradients: the loss {loss!r} has dimensions; use mtf.sum(t) or mtf.mean(t) to make it one "
                          "number")  # fmt: skip
    faults = [f"{name} is {type(t).__name__} {t!r:.200}, expected a tensor of this function"
              for name, t in params.items() if not isinstance(t, Tensor)]  # fmt: skip
    floats = {"the loss": loss, **{f"param {k}": t for k, t in params.items() if isinstance(t, Tensor)}}
    faults += [f"{name} {t!r} is {t.dtype}; only floats have gradients" for name, t in floats.items()
               if not is_float(t.dtype)]  # fmt: skip
    refuse(faults, "gradients")
    return loss.graph
