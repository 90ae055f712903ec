"""The two-layer net twice: as a named function, and written by hand in `shard_map`, not printed by the library.

Batch is cut over rows, the hidden dimension over cols; the second product leaves addends of a sum over cols.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec

import mtfcore as mtf

MESH, LAYOUT = "rows:4 cols:2", "batch:rows hidden:cols"
SPECS = (PartitionSpec("rows", None), PartitionSpec(None, "cols"), PartitionSpec("cols", None))


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def planned(batch: int, io: int, hidden: int) -> mtf.Program:
    """Our plan of it."""
    return mtf.plan(two_layers, MESH, LAYOUT, sizes=f"batch:{batch} io:{io} hidden:{hidden}")


def hand_mesh() -> jax.sharding.Mesh:
    """Four rows and two columns of simulated devices."""
    return jax.make_mesh((4, 2), ("rows", "cols"), (AxisType.Auto, AxisType.Auto), devices=jax.devices("cpu")[:8])


def by_hand(mesh: jax.sharding.Mesh) -> Callable:
    """A new function of whole arrays each time, so that tracing it again is not a cache hit."""

    def net(x, w, v):
        h = jnp.maximum(jnp.einsum("bi,ih->bh", x, w), 0)
        return jax.lax.psum(jnp.einsum("bh,hi->bi", h, v), "cols")

    return jax.shard_map(net, mesh=mesh, in_specs=SPECS, out_specs=SPECS[0], check_vma=False)
