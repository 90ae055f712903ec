"""What each local step computes, on plain arrays: used on one device's part and, the same code, on whole arrays.

A kernel gets a `Call` and its operands. Next file to read: `execute`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from mtfcore.dtypes import long_name
from mtfcore.kernels.call import Call, aligned
from mtfcore.kernels.row_writing import write
from mtfcore.kernels.spatial import SPATIAL
from mtfcore.kernels.threefry import dropout, fold_in, random


def einsum(call: Call, *arrays: Array) -> Array:
    labels: dict[str, int] = {}
    numbered = [[labels.setdefault(name, len(labels)) for name in names] for names in call.in_names]
    pairs = [item for array, names in zip(arrays, numbered, strict=True) for item in (array, names)]
    return jnp.einsum(*pairs, [labels[name] for name in call.out_names])


def sort_key(t: Array) -> Array:
    """The bits of a float stand in its order if negative ones are turned round; -0 counts as 0."""
    turned = lax.bitcast_convert_type(t, jnp.int32) ^ 0x7FFFFFFF
    return jnp.where(t < 0, turned, lax.bitcast_convert_type(jnp.abs(t), jnp.int32))


POINTWISE: dict[str, Callable[..., Array]] = {
    "add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply, "divide": jnp.divide,
    "barrier": lax.optimization_barrier, "stop_gradient": lax.stop_gradient,
    "identity": lambda t: t, "cast": lambda t: t, "maximum": jnp.maximum, "minimum": jnp.minimum, "power": jnp.power,
    "relu": jax.nn.relu, "gelu": jax.nn.gelu, "silu": jax.nn.silu, "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh, "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt, "square": jnp.square,
    "sin": jnp.sin, "cos": jnp.cos, "absolute": jnp.abs, "equal": jnp.equal, "less": jnp.less, "greater": jnp.greater,
    "logical_and": jnp.logical_and, "logical_or": jnp.logical_or, "logical_not": jnp.logical_not, "where": jnp.where,
    "fold_in": fold_in, "sort_key": sort_key,
}  # fmt: skip


def pointwise(call: Call, *arrays: Array) -> Array:
    parts = [aligned(array, names, call.out_names) for array, names in zip(arrays, call.in_names, strict=True)]
    result = POINTWISE[call.params["fn"]](*parts).astype(long_name(call.dtype))
    return jnp.broadcast_to(result, call.out_shape)


def reduce(call: Call, array: Array) -> Array:
    (names,) = call.in_names
    gone = tuple(place for place, name in enumerate(names) if name not in call.out_names)
    kept = [name for name in names if name in call.out_names]
    by = {"max": jnp.any, "min": jnp.all} if array.dtype == bool else {"max": jnp.max, "min": jnp.min}
    result = by[call.params["fn"]](array, axis=gone)
    return jnp.transpose(result, [kept.index(name) for name in call.out_names])


def gather(call: Call, ids: Array, table: Array) -> Array:
    """Rows of the part at hand; ids outside it give zeros, so that the parts sum to the whole lookup."""
    id_names, names = call.in_names
    shared = [name for name in id_names if name in names]  # looked up row by row: outermost, then vmap
    own_ids, own = ([name for name in side if name not in shared] for side in (id_names, names))
    place = own.index(call.params["dim"])
    pick = _take(place, call.start)
    for _ in shared:
        pick = jax.vmap(pick)
    result = pick(aligned(ids, id_names, (*shared, *own_ids)), aligned(table, names, (*shared, *own)))
    found = [*shared, *own[:place], *own_ids, *own[place + 1 :]]
    return jnp.transpose(result, [found.index(name) for name in call.out_names])


def _take(place: int, start: Any) -> Callable[[Array, Array], Array]:
    def take(ids: Array, table: Array) -> Array:
        local = ids.astype(jnp.int32) - start  # narrow ids could not count past what this device holds
        inside = (local >= 0) & (local < table.shape[place])
        rows = jnp.take(table, jnp.clip(local, 0, table.shape[place] - 1), axis=place)
        shape = (1,) * place + inside.shape + (1,) * (table.ndim - place - 1)
        return jnp.where(inside.reshape(shape), rows, jnp.zeros((), table.dtype))

    return take


def scatter(call: Call, ids: Array, rows: Array) -> Array:
    """Rows added up where their ids say, in the part at hand: the way back from `gather`."""
    id_names, names = call.in_names
    dim, table = call.params["dim"], call.out_names
    shared = [name for name in id_names if name in table]  # a table of its own for each: outermost, then vmap
    own_ids = [name for name in id_names if name not in shared]
    rest = [name for name in table if name != dim and name not in shared]
    size = call.out_shape[table.index(dim)]
    put = _put(size, len(own_ids))
    for _ in shared:
        put = jax.vmap(put)
    local = aligned(ids, id_names, (*shared, *own_ids)).astype(jnp.int32) - call.start
    made = put(local, aligned(rows, names, (*shared, *own_ids, *rest)))
    found = [*shared, dim, *rest]
    return jnp.transpose(made, [found.index(name) for name in table])


def _put(size: int, n_ids: int) -> Callable[[Array, Array], Array]:
    def put(ids: Array, rows: Array) -> Array:
        inside = jnp.where((ids >= 0) & (ids < size), ids, size)  # what lies elsewhere is dropped
        return jnp.zeros((size, *rows.shape[n_ids:]), rows.dtype).at[inside].add(rows, mode="drop")

    return put


def window(call: Call, array: Array) -> Array:
    place, start = call.in_names[0].index(call.params["dim"]), call.params["start"]
    return lax.slice_in_dim(array, start, start + call.out_shape[place], axis=place)


def part(call: Call, array: Array) -> Array:
    """Rows that begin at another place on each device (`overlap.spots`)."""
    for spot, start in zip(call.params["spots"], call.start, strict=True):
        array = lax.dynamic_slice_in_dim(array, start, spot.size, call.in_names[0].index(spot.dim))
    return array


def put(call: Call, *arrays: Array) -> Array:
    """Rows written at a place of each device's own into a value, or into zeros."""
    whole = arrays[0] if len(arrays) == 2 else jnp.zeros(call.out_shape, long_name(call.dtype))
    starts = dict(zip([spot.dim for spot in call.params["spots"]], call.start, strict=True))
    return lax.dynamic_update_slice(whole, arrays[-1], [starts.get(name, 0) for name in call.out_names])


def pad(call: Call, array: Array) -> Array:
    place = call.in_names[0].index(call.params["dim"])
    before, widths = call.params.get("before", 0), [(0, 0)] * array.ndim
    widths[place] = (before, call.out_shape[place] - array.shape[place] - before)
    return jnp.pad(array, widths, constant_values=call.params["value"])


def concat(call: Call, *arrays: Array) -> Array:
    parts = [aligned(array, names, call.out_names) for array, names in zip(arrays, call.in_names, strict=True)]
    return jnp.concatenate(parts, axis=call.out_names.index(call.params["dim"]))


def cumsum(call: Call, array: Array, totals: Array | None = None) -> Array:
    """Running sums; or, of parts summed already, with the totals of the `start` parts before."""
    place = call.in_names[0].index(call.params["dim"])
    if totals is None:
        return jnp.cumsum(array, axis=place, dtype=array.dtype)
    part = jnp.arange(totals.shape[place]).reshape([-1 if axis == place else 1 for axis in range(array.ndim)])
    before = jnp.where(part * array.shape[place] < call.start, totals, jnp.zeros((), totals.dtype))
    return array + jnp.sum(before, axis=place, keepdims=True, dtype=array.dtype)


def top_k(call: Call, array: Array, places: Array | None = None) -> Array:
    """The k largest, or where they stand: counted from `start`, or looked up in the candidates' `places`."""
    place = call.in_names[0].index(call.params["dim"])
    values, spots = lax.top_k(jnp.moveaxis(array, place, -1), call.params["k"])
    if call.params["part"] == 0:
        return jnp.moveaxis(values, -1, place)
    spots = jnp.moveaxis(spots, -1, place).astype(jnp.int32)
    return spots + call.start if places is None else jnp.take_along_axis(places, spots, axis=place)


def reshape(call: Call, array: Array) -> Array:
    return array.reshape(call.out_shape)


def constant(call: Call) -> Array:
    return jnp.asarray(call.params["value"], long_name(call.dtype))


def index(call: Call) -> Array:
    return jnp.arange(call.out_shape[0], dtype=long_name(call.dtype))


KERNELS: dict[str, Callable[..., Any]] = {  # each gives an array; but for what stands in for collectives, see `cutting`
    kernel.__name__: kernel
    for kernel in (
        einsum, pointwise, reduce, gather, scatter, window, part, put, pad, concat, cumsum, top_k, reshape, constant,
        index, random, dropout, write,
    )
} | SPATIAL  # fmt: skip
