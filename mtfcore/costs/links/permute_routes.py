"""Which links a permute or a halo exchange of a program needs, once the mesh lies on a grid.

    >>> @mtf.function
    ... def moved(x: "A B"):
    ...     return mtf.reshard(x, "A:cols B")
    >>> [step] = mtf.plan(moved, "rows:2 cols:2", "A:rows", sizes="A:8 B:4").collectives()
    >>> legs, loads = route(step, wire("rows:2 cols:2", "v4:2x2x1"), "both")
    >>> [leg.grid_axis for leg in legs], loads
    ([0, 1], (Load(blocks=1, hops=1), Load(blocks=1, hops=1)))

All groups move at the same time, so all of them are routed together, over the real axes of the grid. Next file to
read: `pricing/work`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mtfcore.costs.links.collectives import Load
from mtfcore.costs.links.routing import Wire, loads
from mtfcore.costs.links.wiring import Leg, Wiring
from mtfcore.mesh import Mesh
from mtfcore.permuting import halo_pairs, permute_axes, permute_pairs
from mtfcore.steps import Step
from mtfcore.topologies import GridAxis

Pairs = tuple[tuple[int, int], ...]


@lru_cache(maxsize=4096)
def route(step: Step, wired: Wiring, way: str) -> tuple[tuple[Leg, ...], tuple[Load, ...]]:
    """The grid's axes as legs, and what the step puts on each; axes over which nothing moves are left out."""
    pairs = halo_pairs(step, wired.mesh) if step.kind == "halo_exchange" else permute_pairs(step, wired.mesh)
    return _route(tuple(pairs), permute_axes(step, wired.mesh), wired.mesh, wired, way)


def route_pairs(pairs: Pairs, wired: Wiring, way: str) -> tuple[tuple[Leg, ...], tuple[Load, ...]]:
    """The same for any permute of the whole mesh, as pairs of devices (from, to)."""
    moved = tuple((start, end) for start, end in pairs if start != end)
    return _route(moved, wired.mesh.names, wired.mesh, wired, way) if moved else ((), ())


@lru_cache(maxsize=4096)
def _route(
    pairs: Pairs, axes: tuple[str, ...], mesh: Mesh, wired: Wiring, way: str
) -> tuple[tuple[Leg, ...], tuple[Load, ...]]:
    groups = _members(mesh, axes)
    starts, ends = (_on_grid(groups[:, list(side)].ravel(), wired) for side in zip(*pairs, strict=True))
    grid = wired.topology.axes
    found = loads([_wire(axis, way) for axis in grid], starts, ends)
    used = [number for number, load in enumerate(found) if load.blocks]
    return tuple(_leg(number, grid[number]) for number in used), tuple(found[number] for number in used)


def _members(mesh: Mesh, axes: tuple[str, ...]) -> np.ndarray:
    """int[groups, members]: the devices of each group, in the order that pairs count them."""
    devices = np.arange(mesh.size).reshape([size for _, size in mesh.axes])
    inside = [mesh.names.index(axis) for axis in axes]
    outside = [number for number in range(len(mesh.axes)) if number not in inside]
    return devices.transpose(outside + inside).reshape(-1, mesh.group_size(axes))


def _on_grid(devices: np.ndarray, wired: Wiring) -> np.ndarray:
    """int[devices, grid axes]: where devices of the mesh lie."""
    coordinates = np.unravel_index(devices, [size for _, size in wired.mesh.axes])
    at = np.zeros((len(devices), len(wired.topology.axes)), dtype=np.int64)
    for rest, parts in zip(coordinates, wired.parts, strict=True):
        for part in reversed(parts):
            rest, step = np.divmod(rest, part.size)
            at[:, part.grid_axis] += step * part.stride
    return at


def _wire(axis: GridAxis, way: str) -> Wire:
    if axis.kind in ("switch", "network"):
        return Wire(axis.size, "direct")
    around = "two_way" if way == "both" else "ring"
    return Wire(axis.size, around if axis.wraps else "line", shares=axis.kind == "cores")


def _leg(number: int, axis: GridAxis) -> Leg:
    return Leg(axis.size, axis.wraps, axis.bytes_per_second, axis.kind, axis.hop_seconds, 1, number)
