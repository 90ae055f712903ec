"""One collective for real: one array for each device in, JAX's own collective, one array for each device out.

    >>> perform("all_gather", "x:4", [np.full(2, device) for device in range(4)])[3]
    array([0, 0, 1, 1, 2, 2, 3, 3], dtype=int32)

What the arrays mean is as in `schedules.replay`, so that both can be laid side by side: all cut along their first
dimension; of a permute each goes to the next device, of a halo exchange too, but not from the last to the first.
Next file to read: `execute`, where the same calls carry a program's steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mtfcore.device_pool import attached_mesh, launch, simulated_mesh
from mtfcore.errors import LayoutError, nearest
from mtfcore.mesh import Mesh, as_mesh

# kind → the call, as a reader would write it on one device's array
CALLS = {
    "all_gather": "jax.lax.all_gather(x, {axes}, axis=0, tiled=True)",
    "reduce_scatter": "jax.lax.psum_scatter(x, {axes}, scatter_dimension=0, tiled=True)",
    "all_reduce": "jax.lax.psum(x, {axes})",
    "all_to_all": "jax.lax.all_to_all(x, {axes}, split_axis=0, concat_axis=0, tiled=True)",
    "permute": "jax.lax.ppermute(x, {axes}, [(0, 1), (1, 2), …, ({last}, 0)])",
    "halo_exchange": "jax.lax.ppermute(x, {axes}, [(0, 1), (1, 2), …, ({before}, {last})])",
}


def call_text(kind: str, mesh: Mesh | str) -> str:
    """The JAX call of a kind on this mesh."""
    mesh = as_mesh(mesh)
    axes = repr(mesh.names if len(mesh.names) > 1 else mesh.names[0])
    return CALLS[kind].format(axes=axes, last=mesh.size - 1, before=mesh.size - 2)


def perform(kind: str, mesh: Mesh | str, arrays: Sequence[Any], attached: bool = False) -> list[np.ndarray]:
    """Each device's array after the collective over all axes of the mesh, on simulated devices or attached ones."""
    mesh = as_mesh(mesh)
    if kind not in CALLS:
        raise LayoutError(f"unknown kind {kind!r:.100}; {nearest(kind, CALLS)}")
    if len(arrays) != mesh.size:
        raise LayoutError(f"{len(arrays)} arrays for the {mesh.size} devices of mesh '{mesh}'; give one for each")
    if mesh.size == 1:
        return [np.asarray(arrays[0]) if kind != "halo_exchange" else np.zeros_like(arrays[0])]
    return _perform(kind, mesh, np.stack([np.asarray(array) for array in arrays]), attached)


def _perform(kind: str, mesh: Mesh, stacked: np.ndarray, attached: bool) -> list[np.ndarray]:
    import jax
    from jax.sharding import PartitionSpec

    spec = PartitionSpec(mesh.names)
    jax_mesh = (attached_mesh if attached else simulated_mesh)(mesh)
    call = _calls(mesh)[kind]
    local = jax.shard_map(lambda x: call(x[0])[None], mesh=jax_mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return list(np.asarray(launch(jax.jit(local), stacked, jax_mesh=jax_mesh)))


def _calls(mesh: Mesh) -> dict[str, Callable]:
    from jax import lax

    axes, n = mesh.names, mesh.size
    following = [(device, (device + 1) % n) for device in range(n)]
    return {
        "all_gather": lambda x: lax.all_gather(x, axes, axis=0, tiled=True),
        "reduce_scatter": lambda x: lax.psum_scatter(x, axes, scatter_dimension=0, tiled=True),
        "all_reduce": lambda x: lax.psum(x, axes),
        "all_to_all": lambda x: lax.all_to_all(x, axes, split_axis=0, concat_axis=0, tiled=True),
        "permute": lambda x: lax.ppermute(x, axes, following),
        "halo_exchange": lambda x: lax.ppermute(x, axes, following[:-1]),
    }
