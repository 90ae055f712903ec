"""What the spatial steps compute, on one device's part or on whole arrays; `kernels` holds the table of all.

Before these run, a device's own rows have been extended by those that its neighbours sent, so they only ever look at
the rows at hand. Next file to read: `kernels/basic`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array, lax

from mtfcore.spatial import Reach, roles

if TYPE_CHECKING:
    from mtfcore.kernels.call import Call


def _place(call: Call) -> int:
    return call.in_names[0].index(call.params["dim"])


def edge(call: Call, array: Array) -> Array:
    """Some neighbouring rows of a part."""
    place, start = _place(call), call.params["start"]
    return lax.slice_in_dim(array, start, start + call.out_shape[place], axis=place)


def extend(call: Call, *parts: Array) -> Array:
    """Rows from before, one's own, rows from behind; zeros where no device has any."""
    place = _place(call)
    joined = jnp.concatenate(parts, axis=place) if len(parts) > 1 else parts[0]
    return padded(joined, place, *call.params["zeros"])


def padded(array: Array, place: int, before: int, after: int) -> Array:
    """Zeros on both sides of one dimension."""
    return jnp.pad(array, [(before, after) if axis == place else (0, 0) for axis in range(array.ndim)])


def trim(call: Call, array: Array) -> Array:
    """The rows that this device's results need; where they begin depends on the device."""
    place = _place(call)
    return lax.dynamic_slice_in_dim(array, call.start, call.out_shape[place], place)


def shift(call: Call, array: Array) -> Array:
    """On a whole dimension: the elements moved, with zeros or what left at the other end."""
    place, by, size = _place(call), call.params["by"], call.out_shape[_place(call)]
    if call.params["wrap"]:
        return jnp.roll(array, by, axis=place)
    kept = lax.slice_in_dim(array, max(-by, 0), size - max(by, 0), axis=place)
    return padded(kept, place, max(by, 0), max(-by, 0))


def windows(call: Call, array: Array) -> Array:
    (names,), (reach,) = call.in_names, call.params["reaches"]
    place, size = names.index(reach.dim), call.out_shape[call.out_names.index(reach.dim)]
    array = padded(array, place, reach.before, reach.after)
    rows = [lax.slice_in_dim(array, j, j + size, axis=place) for j in range(reach.size)]
    return _turned(jnp.stack(rows, axis=-1), (*names, reach.by), call.out_names)


def overlap(call: Call, array: Array) -> Array:
    """Each window's elements added where they came from; `before` and `after` are cut away."""
    (names,), (reach,) = call.in_names, call.params["reaches"]
    place, last = names.index(reach.dim), names.index(reach.by)
    columns = [lax.index_in_dim(array, j, last, keepdims=False) for j in range(reach.size)]
    rest = [name for name in names if name != reach.by]
    place = rest.index(reach.dim)
    first, *others = (padded(column, place, j, reach.size - 1 - j) for j, column in enumerate(columns))
    total = sum(others, first)
    own = lax.slice_in_dim(total, reach.before, total.shape[place] - reach.after, axis=place)
    return _turned(own, rest, call.out_names)


def fold(call: Call, array: Array, *received: Array) -> Array:
    """One's own rows, and what the neighbours had added up for them, at their first or last rows."""
    place, size = _place(call), call.out_shape[_place(call)]
    own = lax.slice_in_dim(array, call.params["start"], call.params["start"] + size, axis=place)
    for part, side in zip(received, call.params["sides"], strict=True):
        gap = size - part.shape[place]
        own = own + padded(part, place, *((0, gap) if side == "first" else (gap, 0)))
    return own


def _turned(array: Array, names: Sequence[str], out_names: Sequence[str]) -> Array:
    return jnp.transpose(array, [list(names).index(name) for name in out_names])


# ---- convolution ------------------------------------------------------------------------------------------------


def conv(call: Call, x: Array, w: Array) -> Array:
    """y[i] = sum of x[i + k - before] · w[k]; the kernel runs backwards where `flip` says so."""
    (_, w_names), reaches = call.in_names, call.params["reaches"]
    if call.params["flip"]:
        w = lax.rev(w, [w_names.index(reach.by) for reach in reaches])
    slides = [(reach.dim, reach.by, reach.dim) for reach in reaches]
    return _convolved(call, x, w, slides, reaches)


def conv_kernel(call: Call, x: Array, d: Array) -> Array:
    """The kernel's gradient, w[k] = sum of x[i + k - before] · d[i]: a convolution too, with `d` sliding over x."""
    reaches = call.params["reaches"]
    found = _convolved(call, x, d, [(reach.dim, reach.dim, reach.by) for reach in reaches], reaches)
    places = [call.out_names.index(reach.by) for reach in reaches]
    return lax.rev(found, places) if call.params["flip"] else found  # x slid over d: found back to front


def _convolved(call: Call, x: Array, w: Array, slides: list[tuple[str, str, str]], reaches: tuple[Reach, ...]) -> Array:
    """`slides`: the spatial dimension of x, of w and of the result, for each direction."""
    (x_names, w_names), of_x, of_w, of_out = call.in_names, *zip(*slides, strict=True)
    part = roles(x_names, w_names, call.out_names, [*of_x, *of_w])
    size = {**dict(zip(x_names, x.shape, strict=True)), **dict(zip(w_names, w.shape, strict=True))}
    lhs = _flat(x, x_names, part.batch, of_x, [*part.group, *part.summed])
    rhs = _turned(w, w_names, [*of_w, *part.summed, *part.group, *part.features])
    n_features = math.prod(size[name] for name in [*part.group, *part.features])
    rhs = rhs.reshape(*rhs.shape[: len(of_w)], -1, n_features)
    letters = "".join("DHW"[-len(slides) :])
    result = lax.conv_general_dilated(
        lhs, rhs, (1,) * len(slides), [(reach.before, reach.after) for reach in reaches],
        dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"),
        feature_group_count=math.prod(size[name] for name in part.group),
    )  # fmt: skip
    names = [*part.batch, *of_out, *part.group, *part.features]
    shape = [call.out_shape[call.out_names.index(name)] for name in names]
    return _turned(result.reshape(shape), names, call.out_names)


def _flat(array: Array, names: Sequence[str], first: list[str], middle: Sequence[str], last: list[str]) -> Array:
    """Dimensions in this order, those of `first` and of `last` merged into one each."""
    turned = _turned(array, names, [*first, *middle, *last])
    shape = turned.shape
    ends = len(first), len(first) + len(middle)
    return turned.reshape(math.prod(shape[: ends[0]]), *shape[ends[0] : ends[1]], math.prod(shape[ends[1] :]))


# ---- for a compiler that partitions -----------------------------------------------------------------------------


def conv_by_taps(call: Call, x: Array, w: Array) -> Array:
    """The same as `conv`, as one product for each place of the kernel: whole arrays that a compiler shall partition.

    The partitioner of jaxlib 0.10 doubles the values of a convolution whose input is split along space on one mesh
    axis while another axis splits something too; it deals with these slices and products well.
    """
    (_, w_names), reaches = call.in_names, call.params["reaches"]
    kept = [name for name in w_names if name not in [reach.by for reach in reaches]]
    total = jnp.zeros((), x.dtype)
    for places, seen in _taps(call, x):
        if call.params["flip"]:
            places = [reach.size - 1 - k for k, reach in zip(places, reaches, strict=True)]
        at = dict(zip([reach.by for reach in reaches], places, strict=True))
        tap = w[tuple(at.get(name, slice(None)) for name in w_names)]
        total = total + _product(seen, call.in_names[0], tap, kept, call.out_names)
    return total


def conv_kernel_by_taps(call: Call, x: Array, d: Array) -> Array:
    """The same as `conv_kernel`, place by place."""
    slid = [reach.by for reach in call.params["reaches"]]
    rest = [name for name in call.out_names if name not in slid]
    found = [_product(seen, call.in_names[0], d, call.in_names[1], rest) for _, seen in _taps(call, x)]
    sizes = [reach.size for reach in call.params["reaches"]]
    return _turned(jnp.stack(found).reshape(*sizes, *found[0].shape), [*slid, *rest], call.out_names)


def _taps(call: Call, x: Array) -> Iterator[tuple[list[int], Array]]:
    """(place in the kernel, what it meets at every result)."""
    names, reaches = call.in_names[0], call.params["reaches"]
    axes = [names.index(reach.dim) for reach in reaches]
    for axis, reach in zip(axes, reaches, strict=True):
        x = padded(x, axis, reach.before, reach.after)
    for places in itertools.product(*[range(reach.size) for reach in reaches]):
        seen = x
        for axis, reach, k in zip(axes, reaches, places, strict=True):
            seen = lax.slice_in_dim(seen, k, x.shape[axis] - reach.size + 1 + k, axis=axis)
        yield list(places), seen


def _product(a: Array, a_names: Sequence[str], b: Array, b_names: Sequence[str], out: Sequence[str]) -> Array:
    number = {name: place for place, name in enumerate(dict.fromkeys([*a_names, *b_names]))}
    return jnp.einsum(a, [number[n] for n in a_names], b, [number[n] for n in b_names], [number[n] for n in out])


BY_TAPS: dict[str, Callable[..., Array]] = {"conv": conv_by_taps, "conv_kernel": conv_kernel_by_taps}
SPATIAL: dict[str, Callable[..., Any]] = {
    kernel.__name__: kernel for kernel in (edge, extend, trim, shift, windows, overlap, fold, conv, conv_kernel)
}
