"""Random meshes, sizes and placements for the checks, always small enough for the 64 simulated devices.

rng = Random("Ada/01 shape")
draw.mesh(rng, "rows cols")          # Mesh('rows:4 cols:2')
draw.size(rng, mesh)                 # a multiple of all axes together, so that every placement divides
"""

from __future__ import annotations

from random import Random

import mtfcore as mtf


def mesh(rng: Random, names: str, sizes: tuple[int, ...] = (2, 3, 4)) -> mtf.Mesh:
    """A mesh of the named axes, each of a size drawn from `sizes`, no two alike where that is possible."""
    axes = names.split()
    few = len(sizes) < len(axes)
    return mtf.Mesh(list(zip(axes, rng.choices(sizes, k=len(axes)) if few else rng.sample(sizes, len(axes)))))


def size(rng: Random, mesh: mtf.Mesh, factors: tuple[int, ...] = (1, 2, 3, 5)) -> int:
    """A dimension's size that divides over all axes of the mesh."""
    return mesh.size * rng.choice(factors)


def device(rng: Random, mesh: mtf.Mesh) -> int:
    """A device other than the first, whose slice any formula gets right."""
    return rng.randrange(1, mesh.size)


def name(mesh: mtf.Mesh, device: int) -> str:
    """`device 3 (rows=1, cols=1)`."""
    return f"device {device} ({', '.join(f'{axis}={at}' for axis, at in mesh.coordinates(device).items())})"


def ranges(slices: tuple[slice, ...]) -> str:
    """`[16:32, 0:48]`."""
    return f"[{', '.join(f'{s.start}:{s.stop}' for s in slices)}]"
