"""Rows written into the part of a tensor at hand, in place where the compiler may reuse its memory.

One scatter, indexed in the tensor's own order of dimensions: a transposed one would be copied. What lies elsewhere
is given the first place behind the part, which a scatter drops.

A CPU has no scatter of bf16: XLA turns the whole tensor into f32 and back. There a choice is made bit by bit instead,
row or old, which touches nothing but the rows in what is compiled of it. Next file to read: `basic`.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jax import Array, lax

from mtfcore.kernels.call import Call, aligned
from mtfcore.row_writing import picked


def write(call: Call, t: Array, rows: Array, at: Array) -> Array:
    size = t.shape[call.in_names[0].index(call.params["dim"])]
    local = at.astype(jnp.int32) - call.start
    local = jnp.where((local >= 0) & (local < size), local, size)
    if t.dtype != jnp.bfloat16:
        return _scattered(call, t, rows, local)
    return lax.platform_dependent(t, rows, local, cpu=partial(_chosen, call), default=partial(_scattered, call))


def _scattered(call: Call, t: Array, rows: Array, local: Array) -> Array:
    names, row_names, at_names = call.in_names
    order = [row_names.index(name) for name in picked(names, at_names, call.params["dim"])]
    return _put(t, names, at_names, call.params["dim"], local, jnp.transpose(rows, order))


def _put(
    t: Array, names: tuple[str, ...], at_names: tuple[str, ...], dim: str, local: Array, rows: Array | int
) -> Array:
    """`t` with rows set along one dimension, row by row along what `at` shares with it."""
    index = {dim: local}
    for name, length in zip(at_names, local.shape, strict=True):
        if name in names:
            index[name] = aligned(jnp.arange(length), (name,), at_names)
    place = tuple(index.get(name, slice(None)) for name in names)
    return t.at[place].set(rows, mode="drop", unique_indices=True)


def _chosen(call: Call, t: Array, rows: Array, local: Array) -> Array:
    """The same as a choice for every element: which row it takes, if any."""
    names, row_names, at_names = call.in_names
    dim, (own,) = call.params["dim"], [name for name in row_names if name not in names]
    which_names = tuple(name for name in names if name == dim or name in at_names)
    none = jnp.full([t.shape[names.index(name)] for name in which_names], -1)
    number = aligned(jnp.arange(rows.shape[row_names.index(own)]), (own,), at_names)
    which = _put(none, which_names, at_names, dim, local, number)
    which = aligned(which, which_names, names)
    wide = aligned(lax.bitcast_convert_type(rows, jnp.uint16), row_names, [own if n == dim else n for n in names])
    there = jnp.take_along_axis(wide, jnp.maximum(which, 0), axis=names.index(dim)) if number.size > 1 else wide
    made = jnp.where(which >= 0, there, lax.bitcast_convert_type(t, jnp.uint16))
    return lax.bitcast_convert_type(made, t.dtype)
