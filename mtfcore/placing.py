"""What can be wrong with where one tensor lies, each fault with the fix: shared by shardings and layouts.

A placement is the axes of each dimension, and the axes over which the tensor is still a partial sum. Next file to
read: `sharding`.
"""

from __future__ import annotations

from collections import defaultdict

from mtfcore.dims import Dim
from mtfcore.errors import nearest, refuse
from mtfcore.mesh import Mesh
from mtfcore.notation import PARTIAL, Item

Axes = tuple[str, ...]


def placed_by(dims: tuple[Dim, ...], items: tuple[Item, ...]) -> tuple[tuple[Dim, ...], tuple[Axes, ...], Axes]:
    """(dimensions, axes of each, partial axes) that the items of a text say; refuses what they cannot."""
    sizes = {dim.name: dim.size for dim in dims}
    on: dict[str, Axes] = {}
    faults = []
    for item in items:
        if item.name in on and item.name == PARTIAL:
            faults.append(f"{PARTIAL} stands twice; put all its axes in one, e.g. {PARTIAL}:(rows cols)")
        elif item.name in on:
            one = f"{item.name}:(rows cols)"
            faults.append(f"dimension {item.name!r} is placed twice; put all its axes in one, e.g. {one}")
        if item.name not in sizes and item.name != PARTIAL:
            faults.append(f"no dimension {item.name!r} in this tensor; {nearest(item.name, sizes)}")
        elif item.size is not None and item.size != sizes.get(item.name):
            first = "no size" if sizes[item.name] is None else f"size {sizes[item.name]}"
            faults.append(f"{item.name} has {first} in the dimensions and size {item.size} where they are placed; "
                          "say it once")  # fmt: skip
        on[item.name] = item.axes or ()
    refuse(faults, f"tensor '{' '.join(map(str, dims))}'")
    return dims, tuple(on.get(dim.name, ()) for dim in dims), on.get(PARTIAL, ())


def axis_twice(names: tuple[str, ...], axes: tuple[Axes, ...], partial: Axes = ()) -> list[str]:
    """A fault for each mesh axis used twice in one tensor, partial sums included."""
    places = defaultdict(list)
    for name, on in (*zip(names, axes, strict=True), (PARTIAL, partial)):
        for axis in on:
            places[axis].append(name)
    return [
        f"mesh axis {axis!r} is used twice in one tensor: on {' and on '.join(names)}; "
        f"keep it on one of them, or put the other on another axis"
        for axis, names in places.items()
        if len(names) > 1
    ]


def uneven(dim: Dim, on: Axes, mesh: Mesh) -> list[str]:
    """A fault if a size does not divide over its axes, with the neighbours that do."""
    parts = mesh.group_size(on)
    if dim.size is None or dim.size % parts == 0:
        return []
    below, above = dim.size // parts * parts, -(-dim.size // parts) * parts
    sizes = " x ".join(f"{axis}:{mesh[axis]}" for axis in on)
    offer = f"{below} or {above}" if below else f"{above}"
    return [
        f"dimension {dim.name} of size {dim.size} does not divide over mesh axis {sizes} ({parts} parts); nearest "
        f"sizes that do: {offer}, or leave {dim.name} whole, or pad on request: mtf.pad(t, '{dim.name}', {above})"
    ]
