"""The gradients of the spatial operations, which are spatial operations again; `backward/rules` holds the table.

    shift by n           →  shift by -n
    windows              ⇄  overlap_add
    y = conv(x, w)       →  x: conv(d, w turned round); w: the product of d with each place's view of x

Next file to read: `backward/rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mtfcore.dims import Dim
from mtfcore.ops import apply
from mtfcore.spatial import Reach, overlap_add, shift, windows
from mtfcore.tensor import Tensor


def _shift(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    dim, by, wrap = (y.op.params[name] for name in ("dim", "by", "wrap"))
    return shift(d, dim, -by, wrap)


def _windows(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    (reach,) = y.op.params["reaches"]
    return overlap_add(d, reach.dim, reach.by, (reach.before, reach.after))


def _overlap(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    (reach,) = y.op.params["reaches"]
    return windows(d, reach.dim, reach.size, reach.by, (reach.before, reach.after))


def _backwards(reaches: Sequence[Reach]) -> list[Reach]:
    return [reach.backwards for reach in reaches]


def _slid(x: Tensor, w: Tensor, dims: tuple[Dim, ...], reaches: Sequence[Reach], flip: bool) -> Tensor:
    return apply("conv", [x, w], dims, x.dtype, None, reaches=tuple(reaches), flip=flip)


def _of_kernel(x: Tensor, d: Tensor, dims: tuple[Dim, ...], reaches: Sequence[Reach]) -> Tensor:
    return apply("conv_kernel", [x, d], dims, x.dtype, None, reaches=tuple(reaches), flip=False)


def _conv(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    (x, w), reaches, flip = xs, y.op.params["reaches"], y.op.params["flip"]
    if place == 0:
        return _slid(d, w, x.dims, _backwards(reaches), not flip)
    if flip:  # the kernel ran backwards: x takes the place of d
        return _of_kernel(d, x, w.dims, _backwards(reaches))
    return _of_kernel(x, d, w.dims, reaches)


def _conv_kernel(y: Tensor, xs: Sequence[Tensor], d: Tensor, place: int) -> Tensor:
    (x, slid), reaches = xs, y.op.params["reaches"]
    if place == 0:
        return _slid(slid, d, x.dims, _backwards(reaches), True)
    return _slid(x, d, slid.dims, reaches, False)


SPATIAL: dict[str, Callable[[Tensor, Sequence[Tensor], Tensor, int], Tensor]] = {
    "shift": _shift, "windows": _windows, "overlap": _overlap, "conv": _conv, "conv_kernel": _conv_kernel,
}  # fmt: skip
