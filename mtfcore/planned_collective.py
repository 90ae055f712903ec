"""One collective as a program: what is measured to fit the links' constants, and what explorers compile and run.

    >>> program = planned_collective("reduce_scatter", "x:2 y:2", "y", 65536)
    >>> [(step.kind, step.axes, step.n_bytes) for step in program.collectives()]
    [('reduce_scatter', ('y',), 65536)]

Along the mesh's other axes each group has data of its own, so that all groups send at once and no device is idle. Of a
sum each device holds one addend, as its part of a dimension, so nothing is added before it is sent. A permute hands a
device's whole block to the next one. Next file to read: `one_collective`, where arrays go through JAX's own calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtfcore.dtypes import itemsize
from mtfcore.errors import nearest, refuse
from mtfcore.functions import Function
from mtfcore.mesh import Mesh, as_mesh
from mtfcore.notation import format_axes, parse_axes
from mtfcore.planning import plan
from mtfcore.reductions import sum as summed
from mtfcore.reshapes import reshard
from mtfcore.spatial import shift
from mtfcore.steps import Program
from mtfcore.tensor import Tensor

COLUMNS = 128  # elements in a row where that divides: a vector unit's lanes, so that no array is padded
KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute")
SUMS = ("reduce_scatter", "all_reduce")


def planned_collective(
    kind: str, mesh: Mesh | str, axes: str | Sequence[str] = "", n_bytes: int = 2**20, dtype: str = "bf16"
) -> Program:
    """A collective over some axes (all of them if none is named).

    A device holds `n_bytes` before, or a little more where they cannot be cut: they can in parts of the group's size
    times `COLUMNS` elements.
    """
    grid = as_mesh(mesh)
    over = (parse_axes(axes) if isinstance(axes, str) else tuple(axes)) if axes else grid.names
    refuse([f"unknown kind {kind!r:.100}; {nearest(kind, KINDS)}"] if kind not in KINDS else [])
    refuse([f"no mesh axis {axis!r}; {nearest(axis, grid.names)}" for axis in over if axis not in grid])
    rest, group = tuple(axis for axis in grid.names if axis not in over), grid.group_size(over)
    columns, rows = _cut(kind, group, n_bytes, itemsize(dtype))
    other = f"other:{format_axes(rest)}" if rest else "other"
    before, after = (f"{other} {place}" for place in _places(kind, f":{format_axes(over)}"))
    sizes = {"other": grid.group_size(rest), "part": group, "row": rows if kind in SUMS else rows * group,
             "block": group, "column": columns}  # fmt: skip
    names = [word.partition(":")[0] for word in before.split()]
    fn = Function.of(kind, {"t": " ".join(names)}, lambda t: _call(kind, t, after, rows, over))
    told = " ".join(f"{name}:{sizes[name]}" for name in names)
    return plan(fn, grid, sizes=told, place={"t": before}, dtype=dtype)


def _cut(kind: str, group: int, n_bytes: int, item_bytes: int) -> tuple[int, int]:
    """Columns, and rows of one device before; of an all-to-all each row has a block for every device of the group."""
    columns = COLUMNS if n_bytes % (item_bytes * group * COLUMNS) == 0 else 1
    row_bytes = item_bytes * columns * (group if kind == "all_to_all" else 1)
    rows = max(-(-n_bytes // row_bytes), 1)
    return columns, -(-rows // group) * group if kind in SUMS else rows


def _places(kind: str, at: str) -> tuple[str, str]:
    """Where the operand and the result lie, behind the dimension that the other axes cut."""
    return {
        "all_gather": (f"row{at} column", "row column"),
        "reduce_scatter": (f"part{at} row column", f"row{at} column"),
        "all_reduce": (f"part{at} row column", "row column"),
        "all_to_all": (f"row{at} block column", f"row block{at} column"),
        "permute": (f"row{at} column", f"row{at} column"),
    }[kind]


def _call(kind: str, t: Tensor, after: str, rows: int, over: tuple[str, ...]) -> Tensor:
    if kind == "permute":
        return shift(t, "row", rows, wrap=True)
    if kind in SUMS:
        t = summed(t, "part", out=f"{after.split()[0]} row column partialsum:{format_axes(over)}")
    return reshard(t, after)
