"""The facts of a tensor cut into slices, as plain JSON; made from the sharding alone, whatever the tensor's size.

    >>> f = facts(mtf.Sharding("batch:64 io:512", "batch:rows"), mtf.Mesh("rows:4 cols:2"), "bf16", "x")
    >>> f["local"], f["copies"], f["holds"][:4]
    ([16, 512], 2, [0, 0, 1, 1])

`holds` gives for each device the number of the piece that it holds, pieces counted row by row; two devices with the
same piece hold copies. The ranges come from `Sharding.slices`, so a picture cannot disagree with what runs. Ideas
drawn here: "Mesh-TensorFlow" (arXiv 1811.02084), sections 3 and 4. Next file to read: `grid`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import mtfcore as mtf
from widgets.numbers import origin, quantity

Facts = dict[str, Any]


@functools.lru_cache(maxsize=512)
def facts(sharding: mtf.Sharding, mesh: mtf.Mesh, dtype: str = "bf16", name: str = "") -> Facts:
    """Everything a picture of this tensor needs. The result is shared between calls: read it, do not change it."""
    local = sharding.local_shape(mesh)
    parts = [size // one for size, one in zip(sharding.shape, local)]
    n_bytes = sharding.bytes_per_device(mesh, dtype)
    return {
        "name": name,
        "placed": sharding.text(),
        "dims": [
            {"name": dim.name, "size": dim.size, "axes": list(on), "parts": n}
            for dim, on, n in zip(sharding.dims, sharding.axes, parts)
        ],
        "mesh": [[axis, size] for axis, size in mesh.axes],
        "dtype": dtype,
        "local": list(local),
        "bytes": n_bytes,
        "each": origin(quantity(n_bytes, "iB"), "modelled"),
        "whole_bytes": n_bytes * math.prod(parts),
        "copies": sharding.copies(mesh),
        "partial": list(sharding.partial),
        "holds": [_piece(sharding, mesh, device, local, parts) for device in range(mesh.size)],
    }


@functools.lru_cache(maxsize=128)
def mesh_facts(mesh: mtf.Mesh) -> Facts:
    """A mesh in the same form: a tensor of devices in which each holds its own place."""
    dims = [{"name": axis, "size": size, "axes": [axis], "parts": size} for axis, size in mesh.axes]
    return {"name": "mesh", "dims": dims, "mesh": [list(axis) for axis in mesh.axes], "holds": list(range(mesh.size))}


def _piece(sharding: mtf.Sharding, mesh: mtf.Mesh, device: int, local: Sequence[int], parts: Sequence[int]) -> int:
    piece = 0
    for held, size, n in zip(sharding.slices(mesh, device), local, parts):
        piece = piece * n + held.start // size
    return piece


def ranges(tensor: Facts, device: int) -> list[tuple[str, int, int]]:
    """(dimension, first index, last index) for what a device holds."""
    piece, found = tensor["holds"][device], []
    for dim, size in zip(reversed(tensor["dims"]), reversed(tensor["local"])):
        piece, block = divmod(piece, dim["parts"])
        found.append((dim["name"], block * size, (block + 1) * size - 1))
    return found[::-1]


def _words(dim: str, first: int, last: int) -> str:
    return f"{dim} {first}" if first == last else f"{dim} {first}–{last}"


def holders(tensor: Facts) -> dict[int, list[int]]:
    """Piece → the devices that hold it."""
    found: dict[int, list[int]] = {}
    for device, piece in enumerate(tensor["holds"]):
        found.setdefault(piece, []).append(device)
    return found


def table(tensors: Sequence[Facts], devices: int = 64) -> list[tuple[str, ...]]:
    """What the picture says, row by row; a long mesh is cut after `devices` and says so."""
    rows: list[tuple[str, ...]] = [("tensor", "device", "holds", "slice shape", "bytes", "same on")]
    for tensor in tensors:
        by_piece = holders(tensor)
        for device in range(min(len(tensor["holds"]), devices)):
            held = ", ".join(_words(*found) for found in ranges(tensor, device)) or "the one value"
            others = [str(other) for other in by_piece[tensor["holds"][device]] if other != device]
            shape = f"{tensor['dtype']}[{', '.join(map(str, tensor['local']))}]"
            rows.append((tensor["name"], str(device), held, shape, tensor["each"], " ".join(others[:16]) or "no other"))
        if len(tensor["holds"]) > devices:
            rows.append((tensor["name"], "…", f"{len(tensor['holds']) - devices} more devices", "", "", ""))
    return rows


def why(tensor: Facts, on_axis: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
    """One sentence about one tensor: its share, its bytes, and why slices are copied.

    `on_axis` says which dimensions the layout puts on each mesh axis: the reason for a copy is that none is here.
    """
    names = [dim["name"] for dim in tensor["dims"]]
    used = {axis for dim in tensor["dims"] for axis in dim["axes"]} | set(tensor["partial"])
    idle = [axis for axis, size in tensor["mesh"] if axis not in used and size > 1]
    share = math.prod(dim["parts"] for dim in tensor["dims"])
    says = f"{tensor['name']}: {'the whole' if share == 1 else f'1/{share}'} on each device, {tensor['each']}"
    if not idle:
        return f"{says}."
    missing = dict.fromkeys(dim for axis in idle for dim in on_axis.get(axis, ()) if dim not in names)
    reason = f"it has no {' or '.join(missing)}" if missing else f"nothing of it lies on {' or '.join(idle)}"
    return f"{says}; {reason}, so {tensor['copies']} devices hold copies of each slice."
