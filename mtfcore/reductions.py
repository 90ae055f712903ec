"""Reductions and softmax. Most are written with simpler operations, so they need no rules.

Importing these names hides Python's own `sum`, `max`, …: use them as `mtf.sum`. Next file to read: `along`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtfcore.dims import Dim, volume
from mtfcore.dtypes import is_float, whole_range
from mtfcore.elementwise import (
    absolute,
    add,
    cast,
    divide,
    exp,
    less,
    log,
    multiply,
    subtract,
    where,
)  # fmt: skip
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.ops import (
    apply,
    expect_tensor,
    names_of,
    out_dims,
    wanted,
)  # fmt: skip
from mtfcore.tensor import LAYOUT, Tensor


def _kept(t: Tensor, dims: str | Sequence[str] | None, out: str | None, about: str) -> tuple[Dim, ...]:
    known = {dim.name: dim for dim in expect_tensor(t).dims}
    if dims is None and out is None:
        return ()
    if isinstance(dims, (set, frozenset)):
        dims = list(dims)  # its order does not matter here
    gone = [t.dim(name).name for name in names_of(dims)] if dims is not None else []
    kept = {name: dim for name, dim in known.items() if name not in gone}
    if out is None:
        return tuple(kept.values())
    found = out_dims(t.graph, out, kept, f"{about} of {t!r}")
    refuse(
        [f"{d.name!r} is reduced, so the result lacks it" for d in found if d.name in gone]
        + [f"{d.name!r} is not one of its dimensions; {nearest(d.name, known)}" for d in found if d.name not in known],
        f"{about} of {t!r}, out='{out}'",
    )
    return found


def sum(
    t: Tensor, dims: str | Sequence[str] | None = None, out: str | None = None, mask: Tensor | None = None
) -> Tensor:
    """Sum over `dims` (all but those of `out` if not given); over a split dimension it leaves partial sums.

    With a `mask` (truth values, over some of its dimensions) only the elements where it is true count, here as in
    `mean`, `max`, `min`, `softmax`, `logsumexp` and `argmax`; see `padding`.

    `t`: a tensor; `dims`: names in one text or a sequence. `out`: its dimensions, and where it lies if that is said
    exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for names that it lacks.

        >>> mtf.sum(x, "io")
        einsum(x)[batch:8]
    """
    t = where_seen(numeric(t, "sum"), mask, 0, "sum")
    kept = _kept(t, dims, out, "sum")
    return apply("einsum", [t], kept, t.dtype, wanted(out, kept, "sum"), at=None, search=False)


def mean(
    t: Tensor, dims: str | Sequence[str] | None = None, out: str | None = None, mask: Tensor | None = None
) -> Tensor:
    """Mean over `dims`; with a `mask`, over the elements where it is true.

    `t`: a tensor; `dims`: names in one text or a sequence, all of them if not given. `out`: its dimensions, and where
    it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for dtypes without fractions.

        >>> mtf.mean(x, "io")
        multiply(…, …)[batch:8]
    """
    t = where_seen(_float(t, "mean"), mask, 0, "mean")
    kept = _kept(t, dims, out, "mean")
    total = apply("einsum", [t], kept, t.dtype, None, at=None, search=False)
    if mask is None:
        return multiply(total, volume(kept) / volume(t.dims), out=out)
    there = tuple(dim for dim in mask.dims if dim in kept)
    n = apply("einsum", [cast(mask, t.dtype)], there, t.dtype, None, at=None, search=False)
    beside = volume(dim for dim in t.dims if dim not in kept and dim not in mask.dims)
    return divide(total, multiply(n, beside), out=out)


def reduced(fn: str, t: Tensor, dims: str | Sequence[str] | None, out: str | None) -> Tensor:
    kept = _kept(t, dims, out, fn)
    return apply("reduce", [t], kept, t.dtype, wanted(out, kept, fn), fn=fn)


def max(
    t: Tensor, dims: str | Sequence[str] | None = None, out: str | None = None, mask: Tensor | None = None
) -> Tensor:
    """Largest over `dims`; over a split dimension: local, then an all-reduce by max.

    `t`: a tensor; `dims`: names in one text or a sequence, all of them if not given. `out`: its dimensions, and where
    it lies if that is said exactly ("batch:rows io"); otherwise the layout decides. `mask` as in `sum`.

    Raises `LayoutError` for names that it lacks.

        >>> mtf.max(x, "io")
        max(x)[batch:8]
    """
    return reduced("max", where_seen(t, mask, end_of_range(t, -1), "max"), dims, out)


def min(
    t: Tensor, dims: str | Sequence[str] | None = None, out: str | None = None, mask: Tensor | None = None
) -> Tensor:
    """Smallest over `dims`.

    `t`: a tensor; `dims`: names in one text or a sequence, all of them if not given. `out`: its dimensions, and where
    it lies if that is said exactly ("batch:rows io"); otherwise the layout decides. `mask` as in `sum`.

    Raises `LayoutError` for names that it lacks.

        >>> mtf.min(x, "io")
        min(x)[batch:8]
    """
    return reduced("min", where_seen(t, mask, end_of_range(t, 1), "min"), dims, out)


def any(t: Tensor, dims: str | Sequence[str] | None = None, out: str | None = None) -> Tensor:
    """Whether any is true over `dims`.

    `t`: bool[...]; `dims` and `out` as in `sum`.

    Raises `LayoutError` for another dtype or dimension.

        >>> mtf.any(mask, "io")
        max(mask)[batch:8]
    """
    return reduced("max", _bool(t, "any"), dims, out)


def all(t: Tensor, dims: str | Sequence[str] | None = None, out: str | None = None) -> Tensor:
    """Whether all are true over `dims`.

    `t`: bool[...]; `dims` and `out` as in `sum`.

    Raises `LayoutError` for another dtype or dimension.

        >>> mtf.all(mask, "io")
        min(mask)[batch:8]
    """
    return reduced("min", _bool(t, "all"), dims, out)


def _bool(t: Tensor, about: str) -> Tensor:
    if expect_tensor(t).dtype != "bool":
        raise LayoutError(f"{about} of {t!r}: dtype is {t.dtype}, expected bool; compare first, e.g. mtf.greater(t, 0)")
    return t


def where_seen(t: Tensor, mask: Tensor | None, otherwise: float, about: str) -> Tensor:
    """The tensor where the mask is true, and what does not count elsewhere."""
    if mask is None:
        return t
    extra = [name for name in _bool(mask, f"{about}: mask").names if name not in t.names]
    refuse([f"mask {mask!r} has {name!r}, which {t!r} has not; {nearest(name, t.names)}" for name in extra], about)
    return where(mask, t, otherwise)


def end_of_range(t: Tensor, sign: int) -> float:
    """The number beyond which a dtype has none."""
    dtype = expect_tensor(t).dtype
    return sign * float("inf") if is_float(dtype) else whole_range(dtype)[sign > 0]


def settle(t: Tensor) -> Tensor:
    """The same tensor with its partial sums reduced in the cheapest way, once for all that follows.

    `t`: a tensor, of which the planner reduces partial sums by a reduce-scatter where it can, else an all-reduce.

        >>> mtf.settle(x)
        settle(x)[batch:8, io:4]
    """
    return apply("settle", [expect_tensor(t)], t.dims, t.dtype)


def logsumexp(
    t: Tensor, dims: str | Sequence[str] | None = None, out: str | None = None, mask: Tensor | None = None
) -> Tensor:
    """log of the sum of exp over `dims`, without overflow: the largest is taken out first.

    Whatever is taken out cancels, so the largest counts as flat: `mtf.gradients` passes nothing through it.

    `t`: a tensor; `dims`: names in one text or a sequence, all of them if not given. `out`: its dimensions, and where
    it lies if that is said exactly ("batch:rows io"); otherwise the layout decides. `mask` as in `sum`.

    Raises `LayoutError` for dtypes without fractions.

        >>> mtf.logsumexp(x, "io")
        add(…, …)[batch:8]
    """
    t = where_seen(settle(_float(t, "logsumexp")), mask, end_of_range(t, -1), "logsumexp")
    kept = _kept(t, dims, out, "logsumexp")
    largest = apply("reduce", [t], kept, t.dtype, None, fn="max", flat=True)
    finite = where(less(absolute(largest), float("inf")), largest, 0.0)  # an all -inf row stays -inf, not nan
    shifted = exp(subtract(t, finite))
    place = LAYOUT if out is not None and wanted(out, kept, "logsumexp") == LAYOUT else None
    total = apply("einsum", [shifted], kept, t.dtype, place, at=None, search=False)  # reduced once, where it stays
    return add(log(total), finite, out=out)


def softmax(t: Tensor, dim: str, out: str | None = None, mask: Tensor | None = None) -> Tensor:
    """exp(t) over its sum along `dim`; a split `dim` costs two all-reduces of the other dimensions.

    0 where a `mask` is not true; somewhere along `dim` it must be.

    `t`: dtype[...], of a dtype with fractions; the result has the same dimensions. `out`: its dimensions, and where
    it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for whole numbers.

        >>> mtf.softmax(x, "io")
        divide(…, …)[batch:8, io:4]
    """
    _float(t, "softmax").dim(dim)
    t = where_seen(settle(t), mask, end_of_range(t, -1), "softmax")
    kept = _kept(t, dim, None, "softmax")
    shifted = exp(subtract(t, apply("reduce", [t], kept, t.dtype, None, fn="max", flat=True)))
    return divide(shifted, sum(shifted, dim), out=out)


def numeric(t: Tensor, about: str) -> Tensor:
    if expect_tensor(t).dtype == "bool":
        raise LayoutError(f"{about} of {t!r}: dtype is bool; to count, use mtf.cast(t, 'i32') first, or use mtf.any")
    return t


def _float(t: Tensor, about: str) -> Tensor:
    if not is_float(expect_tensor(t).dtype):
        raise LayoutError(f"{about} of {t!r}: dtype is {t.dtype}, expected a float; use mtf.cast(t, 'f32')")
    return t
