"""What explorers with a mesh share: one box an axis, and the texts of mesh and sizes after a box has moved.

    axis_boxes(mtf.Mesh("rows:4 cols:2"), 512)       # controls axis.rows and axis.cols, together at most 512 devices
    moved_axis("rows:4 cols:2", "rows", 8)           # 'rows:8 cols:2'

Next file to read: `planned`.
"""

from __future__ import annotations

from typing import Any

import mtfcore as mtf
from mtfcore.dims import parse_dims
from widgets.controls import Control, IntBox, most


def grid_of(mesh: mtf.Mesh) -> tuple[int, int, int]:
    """Sizes of x, y and z; 1 for an axis that it lacks."""
    x, y, z = (mesh[axis] if axis in mesh else 1 for axis in "xyz")
    return x, y, z


def axis_boxes(mesh: mtf.Mesh, most_devices: int) -> list[Control]:
    """One box an axis; each goes as far as the others leave devices."""
    sizes = dict(mesh.axes)
    others = {axis: [size for name, size in sizes.items() if name != axis] for axis in sizes}
    return [
        IntBox(f"axis.{axis}", size, axis, "Mesh", high=most(most_devices, *others[axis]))
        for axis, size in sizes.items()
    ]


def moved_axis(mesh: str, axis: str, size: Any) -> str:
    """The mesh with another size of one axis."""
    return str(mtf.Mesh([(name, size if name == axis else own) for name, own in mtf.Mesh(mesh).axes]))


def moved_size(sizes: str, name: str, size: Any) -> str:
    """The sizes with another for one dimension."""
    return " ".join(str(mtf.Dim(dim.name, size if dim.name == name else dim.size)) for dim in parse_dims(sizes))
