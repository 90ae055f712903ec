"""Rows written into the part of a tensor at hand, in place where the compiler may reuse its memory.

One scatter, indexed in the tensor's own order of dimensions: a transposed one would be copied. What lies elsewhere
is given the first place behind the part, which a scatter drops. Next file to read: `basic`.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mtfcore.kernels.call import Call, aligned
from mtfcore.row_writing import picked


def write(call: Call, t: Array, rows: Array, at: Array) -> Array:
    names, row_names, at_names = call.in_names
    dim = call.params["dim"]
    size = t.shape[names.index(dim)]
    local = at.astype(jnp.int32) - call.start
    index = {dim: jnp.where((local >= 0) & (local < size), local, size)}
    for name, length in zip(at_names, at.shape, strict=True):
        if name in names:  # row by row along what both have
            index[name] = aligned(jnp.arange(length), (name,), at_names)
    place = tuple(index.get(name, slice(None)) for name in names)
    order = [row_names.index(name) for name in picked(names, at_names, dim)]
    return t.at[place].set(jnp.transpose(rows, order), mode="drop", unique_indices=True)
