"""Planning: a named function, a mesh and a layout → a `Program`, without devices and without JAX.

    prog = mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes="batch:64 io:512 hidden:2048")

Whatever is illegal is refused here, before anything runs. Next file to read: `planner`, which does the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtfcore.dims import DimsLike
from mtfcore.errors import LayoutError, nearest, refuse, refuse_flags
from mtfcore.functions import Function
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.ops import flag
from mtfcore.planner import Planner
from mtfcore.sharding import Sharding
from mtfcore.steps import Program
from mtfcore.tensor import Graph


def plan(
    fn: Function,
    mesh: Mesh | str,
    layout: Layout | str = "",
    *,
    sizes: DimsLike = "",
    place: Mapping[str, str | Sharding] | None = None,
    dtype: object = "f32",
    strict: bool = False,
    search: bool = False,
) -> Program:
    """Plan a named function: every local step and collective, with shapes, bytes and FLOPs of one device.

    `place` says exactly where an input lies, instead of the layout: `place={"x": "batch:rows io"}`. `strict` makes
    rules without effect errors; `search` lets every operation move every axis, not only those in conflict: never dearer
    for one operation, but a cheap choice here may cost more later.
    Raises `LayoutError` for anything illegal, before anything runs.

    `fn`: a named function; `mesh`: "rows:4 cols:2"; `layout`: "batch:rows hidden:cols"; `sizes`: those of all
    dimensions, "batch:64 io:512"; `dtype`: that of inputs which say none.

    Source: arXiv 1811.02084, sections 2 to 6.

        >>> mtf.plan(two_layers, mesh, layout, sizes="batch:64 io:512 hidden:2048").collectives()
        [<Step all_reduce over cols: batch:rows io partialsum:cols → batch:rows io>]
    """
    if not isinstance(fn, Function):
        raise LayoutError(f"expected a function made with @mtf.function, got {type(fn).__name__} {fn!r}")
    refuse_flags("plan", strict=strict, search=search)
    mesh, layout = Mesh(mesh), Layout(layout)
    graph = fn.trace(sizes, dtype)
    names = graph.dim_names()
    extra = [name for name in graph.sizes if name not in names]
    unused = [f"size of {name!r} ignored, no tensor has it ({nearest(name, names)})" for name in extra]
    layout.complain(layout.missing_axes(mesh, names) + layout.unknown_dims(names) + unused, strict)
    place = {} if place is None else place
    _check_place(place, graph)
    planner = Planner(graph, mesh, layout, flag(search, "plan: search"))
    return planner.program([[s] for s in planner.input_places(place)])


def _check_place(place: Mapping[str, Any], graph: Graph) -> None:
    if not isinstance(place, Mapping):
        raise LayoutError(f"place: expected e.g. {{'x': 'batch:rows io'}}, got {type(place).__name__}: {place!r:.200}")
    unknown = [name for name in place if name not in graph.inputs]
    refuse([f"no input {name!r}; {nearest(name, graph.inputs)}" for name in unknown], f"place of {graph.name}")
