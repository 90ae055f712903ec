"""One collective, by kind, size and axes: what `calibrate` fits the links' constants to.

    >>> from tpu_runs.cases import CASES, check
    >>> case = CASES["collective"]
    >>> params = check(case, {"kind": "reduce_scatter", "mesh": "x:2 y:2", "axes": "y", "n_bytes": 65536})
    >>> [(step.kind, step.axes, step.n_bytes) for step in case.program(params).collectives()]
    [('reduce_scatter', ('y',), 65536)]

`n_bytes` is what one device holds before, as in all our formulas; here it must divide, so that what is fitted is of the
bytes that were asked for. `mtfcore.planned_collective` plans it. Next file to read: `product`.
"""

from __future__ import annotations

import mtfcore as mtf
from mtfcore.dtypes import itemsize
from mtfcore.errors import LayoutError, nearest
from mtfcore.mesh import Mesh
from mtfcore.notation import parse_axes
from mtfcore.planned_collective import COLUMNS, KINDS, planned_collective
from tpu_runs.cases.schema import Case, Params, axes, choice, mesh, whole

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
    return planned_collective(params["kind"], params["mesh"], axes_of(params), params["n_bytes"], params["dtype"])


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
