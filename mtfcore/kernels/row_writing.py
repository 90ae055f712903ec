"""Rows written into the part of a tensor at hand: three ways, each in place where it is used.

    scattered     one scatter, in the tensor's own order of dimensions
    row by row    a loop of slices that are updated, each at its place
    chosen        for every element the row's or the old one

XLA's scatter changes a donated tensor in place on GPUs, and on CPUs but for bf16, which it turns into f32 and back as
a whole; there a choice of bits, compiled, touches the rows alone. On TPUs a scatter wants another layout and copies
everything twice, so rows are written one by one unless they are very many. (As libtpu compiles it for a v4 chip, a
cache of 94 MB gets 8 rows in some 80 thousand cycles, by a scatter in 1.5 million.) What does not lie in the part is
given the first place behind it. A single row is never scattered: XLA makes slices of such a scatter and then forgets,
where the tensor itself was sliced from a larger one, that a place behind its end is none. Next file to read: `basic`.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jax import Array, lax

from mtfcore.kernels.call import Call, aligned
from mtfcore.row_writing import picked

FEW = 512  # rows; each is a turn of a loop


def write(call: Call, t: Array, rows: Array, at: Array) -> Array:
    size = t.shape[call.in_names[0].index(call.params["dim"])]
    local = at.astype(jnp.int32) - call.start
    local = jnp.where((local >= 0) & (local < size), local, size)
    anywhere = _row_by_row if local.size == 1 else _scattered
    on_cpu = _chosen if t.dtype == jnp.bfloat16 else anywhere
    on_tpu = _row_by_row if local.size <= FEW else _scattered
    ways = {"cpu": on_cpu, "tpu": on_tpu, "default": anywhere}
    return lax.platform_dependent(t, rows, local, **{name: partial(way, call) for name, way in ways.items()})


def _scattered(call: Call, t: Array, rows: Array, local: Array) -> Array:
    names, row_names, at_names = call.in_names
    order = [row_names.index(name) for name in picked(names, at_names, call.params["dim"])]
    return _put(t, names, at_names, call.params["dim"], local, jnp.transpose(rows, order))


def _put(t: Array, names: tuple[str, ...], at_names: tuple[str, ...], dim: str, local: Array, rows: Array) -> Array:
    """`t` with rows set along one dimension, entry by entry along what `at` shares with it."""
    index = {dim: local}
    for name, length in zip(at_names, local.shape, strict=True):
        if name in names:
            index[name] = aligned(jnp.arange(length), (name,), at_names)
    place = tuple(index.get(name, slice(None)) for name in names)
    return t.at[place].set(rows, mode="drop", unique_indices=True)


def _row_by_row(call: Call, t: Array, rows: Array, local: Array) -> Array:
    names, _, at_names = call.in_names
    dim, rows = call.params["dim"], _beside(call, rows)
    sizes = [1 if name == dim or name in at_names else length for name, length in zip(names, t.shape, strict=True)]

    def one(turn: Array, t: Array) -> Array:
        entry = jnp.unravel_index(turn, local.shape)
        to, here = local[entry], dict(zip(at_names, entry, strict=True))
        last = t.shape[names.index(dim)] - 1
        (own,) = [name for name in at_names if name not in names]
        row = lax.dynamic_slice(rows, [here.get(own if name == dim else name, 0) for name in names], sizes)
        start = [jnp.minimum(to, last) if name == dim else here.get(name, 0) for name in names]
        old = lax.dynamic_slice(t, start, sizes)  # behind the end: the last row again, as it was
        return lax.dynamic_update_slice(t, jnp.where(to <= last, row, old), start)

    return lax.fori_loop(0, local.size, one, t)


def _chosen(call: Call, t: Array, rows: Array, local: Array) -> Array:
    """For every element the number of the row that it takes, -1 for none; then a choice of 16 bits."""
    names, row_names, at_names = call.in_names
    dim = call.params["dim"]
    (own,) = [name for name in row_names if name not in names]
    which_names = tuple(name for name in names if name == dim or name in at_names)
    none = jnp.full([t.shape[names.index(name)] for name in which_names], -1)
    numbers = aligned(jnp.arange(rows.shape[row_names.index(own)]), (own,), at_names)
    which = aligned(_put(none, which_names, at_names, dim, local, numbers), which_names, names)
    old, there = (lax.bitcast_convert_type(each, jnp.uint16) for each in (t, _beside(call, rows)))
    if numbers.size > 1:
        there = jnp.take_along_axis(there, jnp.maximum(which, 0), axis=names.index(dim))
    return lax.bitcast_convert_type(jnp.where(which >= 0, there, old), t.dtype)


def _beside(call: Call, rows: Array) -> Array:
    """Rows in the tensor's order of dimensions, their own in the place of the one that is written along."""
    names, row_names, _ = call.in_names
    (own,) = [name for name in row_names if name not in names]
    return aligned(rows, row_names, tuple(own if name == call.params["dim"] else name for name in names))
