"""What a kernel is told: the names of its operands' dimensions and of its result, the result's shape, the parameters.

Next file to read: `basic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array


@dataclass(frozen=True)
class Call:
    """The facts of one local computation; `start` is where the part of a looked-up dimension begins."""

    in_names: tuple[tuple[str, ...], ...]
    out_names: tuple[str, ...]
    out_shape: tuple[int, ...]
    dtype: str
    params: Mapping[str, Any]
    start: Any = 0
    sizes: tuple[int, ...] = ()  # of the whole result, where a kernel must know; and where this part begins
    starts: tuple[Any, ...] = ()


def aligned(array: Array, names: tuple[str, ...], out_names: tuple[str, ...]) -> Array:
    """Dimensions in the order of `out_names`, with size 1 where the array has none."""
    order = [names.index(name) for name in out_names if name in names]
    shape = [array.shape[names.index(name)] if name in names else 1 for name in out_names]
    return jnp.transpose(array, order).reshape(shape)
