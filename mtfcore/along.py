"""In order along one dimension: the largest and where they are, running sums.

    >>> mtf.top_k(logits, "vocab", 5)                      # values and indices, in two stages where that sends less

Next file to read: `row_writing`.
"""

from __future__ import annotations

from mtfcore.dims import Dim
from mtfcore.dtypes import is_float
from mtfcore.elementwise import (
    equal,
    logical_not,
    logical_or,
    where,
)  # fmt: skip
from mtfcore.errors import LayoutError
from mtfcore.lookups import index
from mtfcore.ops import (
    apply_out,
    expect_tensor,
    whole_number,
)  # fmt: skip
from mtfcore.reductions import end_of_range, max, numeric, reduced, settle, where_seen
from mtfcore.tensor import Tensor


def argmax(t: Tensor, dim: str, out: str | None = None, mask: Tensor | None = None) -> Tensor:
    """The first index of the largest along `dim` (NaN, where one is), as i32; a split `dim` needs no gathering of t.

    `mask`: bool, over some of its dimensions; only elements where it is true count. `out`: its dimensions, and where
    it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

        >>> mtf.argmax(x, "io")
        min(…)[batch:8]
    """
    size = expect_tensor(t).size(dim)
    t = where_seen(settle(t), mask, end_of_range(t, -1), "argmax")
    largest = equal(t, max(t, dim))
    if is_float(t.dtype):
        largest = logical_or(largest, logical_not(equal(t, t)))  # only NaN differs from itself
    found = where(largest, index(dim, t), size - 1)
    return reduced("min", found, dim, out)


def top_k(t: Tensor, dim: str, k: int, out: str | None = None) -> tuple[Tensor, Tensor]:
    """The k largest along `dim`, falling, and their indices (i32); `dim` then has size k.

    `t`: dtype[..., dim, ...]; over a split `dim` it works in two stages where that sends less. `out`: its dimensions,
    and where it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for a `k` below 1 or above the size.

        >>> mtf.top_k(x, "io", 2)
        (top_k(…)[batch:8, io:2], top_k(…)[batch:8, io:2])
    """
    size, k = expect_tensor(t).size(dim), whole_number(k, "top_k: k")
    if not 1 <= k <= size:
        raise LayoutError(f"top_k of {t!r}: k is {k}; {dim} has size {size}, so k is 1 to {size}")
    t = settle(t)
    dims = tuple(Dim(d.name, k) if d.name == dim else d for d in t.dims)
    pick = lambda part, dtype: apply_out("top_k", [t], dims, dtype, out, "top_k", dim=dim, k=k, part=part)  # noqa: E731
    return pick(0, t.dtype), pick(1, "i32")


def cumsum(t: Tensor, dim: str, out: str | None = None) -> Tensor:
    """Running sum along `dim`.

    `t`: a tensor; `dim`: one of its dimensions. Over a split one it works in two stages. `out`: its dimensions, and
    where it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

        >>> mtf.cumsum(x, "io")
        cumsum(x)[batch:8, io:4]
    """
    numeric(t, "cumsum").dim(dim)
    return apply_out("cumsum", [t], t.dims, t.dtype, out, "cumsum", dim=dim)
