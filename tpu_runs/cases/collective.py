"""One collective, by kind, size and axes: what `calibrate` fits the links' constants to.

    >>> from tpu_runs.cases import CASES, check
    >>> case = CASES["collective"]
    >>> params = check(case, {"kind": "reduce_scatter", "mesh": "x:2 y:2", "axes": "y", "n_bytes": 65536})
    >>> [(step.kind, step.axes, step.n_bytes) for step in case.program(params).collectives()]
    [('reduce_scatter', ('y',), 65536)]

`n_bytes` is what one device holds before, as in all our formulas. Along the mesh's other axes each group has data of
its own, so that all groups send at once and no device is idle. A permute sends a device's whole block to the next.
Next file to read: `product`.
"""

from __future__ import annotations

import mtfcore as mtf
from mtfcore.dtypes import itemsize
from mtfcore.errors import LayoutError, nearest
from mtfcore.functions import Function
from mtfcore.mesh import Mesh
from mtfcore.notation import format_axes, parse_axes
from tpu_runs.cases.schema import Case, Params, axes, choice, mesh, whole

COLUMNS = 128  # elements in a row: a vector unit's lanes, so that no array is padded
KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute")

SUMS = ("reduce_scatter", "all_reduce")

PARAMS = {
    "kind": choice("all_gather", KINDS, "which collective"),
    "mesh": mesh("x:2"),
    "axes": axes("the axes that it goes over, such as x or xy; empty: all"),
    "n_bytes": whole(2**20, 2**8, 2**34, "bytes that one device holds before"),
    "dtype": choice("bf16", ("bf16", "f32"), "of the elements"),
}


def axes_of(params: Params) -> tuple[str, ...]:
    """The axes that it goes over."""
    over = parse_axes(params["axes"]) if params["axes"] else Mesh(params["mesh"]).names
    return tuple(over)


def faults(params: Params) -> list[str]:
    """Axes that the mesh lacks, and sizes that do not divide."""
    named = Mesh(params["mesh"])
    try:
        over = axes_of(params)
    except LayoutError as fault:
        return [f"axes: {fault}"]
    unknown = [axis for axis in over if axis not in named]
    if unknown:
        return [f"axes: mesh '{named}' has no axis {axis!r}; {nearest(axis, named.names)}" for axis in unknown]
    group = named.group_size(over)
    found = [f"axes {params['axes'] or 'of'} the mesh '{named}' make groups of 1, in which nothing is sent; "
             f"give it an axis of at least 2"] if group == 1 else []  # fmt: skip
    unit = group * COLUMNS * itemsize(params["dtype"])
    if params["n_bytes"] % unit:
        lower = params["n_bytes"] // unit * unit
        near = " or ".join(str(n) for n in (lower, lower + unit) if n)
        found.append(f"n_bytes {params['n_bytes']} is not {COLUMNS} elements times the group's {group}: nearest {near}")
    return found


def program(params: Params) -> mtf.Program:
    """The collective alone, planned on the mesh."""
    named, kind, over = Mesh(params["mesh"]), params["kind"], axes_of(params)
    group = named.group_size(over)
    rest = tuple(axis for axis in named.names if axis not in over and named[axis] > 1)
    other = f"other:{format_axes(rest)}" if rest else "other"
    rows = params["n_bytes"] // itemsize(params["dtype"]) // COLUMNS // (group if kind == "all_to_all" else 1)
    whole_rows = rows if kind in SUMS else rows * group
    sizes = {"other": named.group_size(rest), "part": group, "row": whole_rows, "block": group, "column": COLUMNS}
    before, after = (f"{other} {place}" for place in _places(kind, f":{format_axes(over)}"))
    names = [word.partition(":")[0] for word in before.split()]
    fn = Function.of(kind, {"t": " ".join(names)}, lambda t: _call(kind, t, after, rows, over))
    told = " ".join(f"{name}:{sizes[name]}" for name in names)
    return mtf.plan(fn, named, sizes=told, place={"t": before}, dtype=params["dtype"])


def _places(kind: str, at: str) -> tuple[str, str]:
    """Where the operand and the result lie, behind the dimension that the other axes cut."""
    return {
        "all_gather": (f"row{at} column", "row column"),
        "reduce_scatter": (f"part{at} row column", f"row{at} column"),
        "all_reduce": (f"part{at} row column", "row column"),
        "all_to_all": (f"row{at} block column", f"row block{at} column"),
        "permute": (f"row{at} column", f"row{at} column"),
    }[kind]


def _call(kind: str, t: mtf.Tensor, after: str, rows: int, over: tuple[str, ...]) -> mtf.Tensor:
    if kind == "permute":
        return mtf.shift(t, "row", rows, wrap=True)
    if kind in SUMS:  # of the sum each device has one addend, so nothing is added here
        other = after.split()[0]
        t = mtf.sum(t, "part", out=f"{other} row column partialsum:{format_axes(over)}")
    return mtf.reshard(t, mtf.Sharding(after))


def _sweep(mesh: str, kinds: tuple[str, ...], sizes: tuple[int, ...], **more: str) -> tuple[Params, ...]:
    """Every kind at every size."""
    return tuple({"kind": kind, "mesh": mesh, "n_bytes": size, **more} for kind in kinds for size in sizes)


CASE = Case(
    "collective", "one collective by kind, size and axes", PARAMS, program, faults, shares=False,
    sweeps={
        "simulated": (*_sweep("x:4", KINDS, (2**14,)), *_sweep("x:2 y:2", ("all_gather",), (2**14,), axes="y")),
        "chip": (),  # one chip sends nothing
        "slice": _sweep("x:all", KINDS, (2**13, 2**16, 2**20, 2**23, 2**26)),
    },
)  # fmt: skip
