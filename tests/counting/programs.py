"""Meshes and shard_map shorthands for the counting tests."""

from collections.abc import Callable
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

P = PartitionSpec


def mesh(**sizes: int) -> Mesh:
    """A mesh of the first devices: mesh(x=2, y=4)."""
    devices = np.array(jax.devices()[: prod(sizes.values())]).reshape(tuple(sizes.values()))
    return Mesh(devices, tuple(sizes))


def mapped(body: Callable, on: Mesh, ins: object, outs: object, check_vma: bool = False) -> Callable:
    return jax.shard_map(body, mesh=on, in_specs=ins, out_specs=outs, check_vma=check_vma)


def array(*shape: int, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))
