"""The schedule of a program's step: every group of devices that takes part, by their numbers on the mesh.

    for plan in schedules.every_group(step, mesh, "two_way"):
        print(plan.devices, plan.steps)

A mesh axis is taken to be one axis of wires, a ring or a line as `way` says: a mesh itself has no wires.
Next file to read: `closed_forms`.
"""

from __future__ import annotations

from collections.abc import Mapping

from mtfcore.errors import LayoutError, expect, nearest, refuse
from mtfcore.mesh import DeviceLike, Mesh, as_mesh
from mtfcore.permuting import permute_axes, permute_pairs
from mtfcore.schedules.hops import Schedule
from mtfcore.schedules.making import KINDS, schedule
from mtfcore.sharding import Axes
from mtfcore.steps import Step

Way = str | Mapping[str, str]


def of_step(
    step: Step, mesh: Mesh | str, way: Way = "two_way", device: DeviceLike = 0, *, at_once: bool = True
) -> Schedule:
    """The hops of a collective step in the group that holds this device; hops call devices by mesh number.

    `way` is one for all axes, or one for each by name: {"x": "two_way", "y": "line"}.

    `step`: a collective of a program; `mesh`: that of the program; `device`: an index or coordinates; `at_once` as in
    `schedule`.

    Raises `LayoutError` for a step that sends nothing.

        >>> mtf.schedules.of_step(prog.collectives()[0], prog.mesh).group
        2
    """
    mesh = as_mesh(mesh)
    return _of_group(step, mesh, way, at_once).placed(_groups(mesh, _axes(step, mesh), device)[0])


def every_group(step: Step, mesh: Mesh | str, way: Way = "two_way", *, at_once: bool = True) -> tuple[Schedule, ...]:
    """The hops of a collective step in each of its groups: they all run at the same time, on links of their own.

    `step`: a collective of a program; `mesh`, `way` and `at_once` as in `of_step`.

        >>> len(mtf.schedules.every_group(prog.collectives()[0], prog.mesh))
        4
    """
    mesh = as_mesh(mesh)
    plan = _of_group(step, mesh, way, at_once)
    return tuple(plan.placed(devices) for devices in _groups(mesh, _axes(step, mesh)))


def _axes(step: Step, mesh: Mesh) -> Axes:
    return permute_axes(step, mesh) if step.kind == "permute" else step.axes


def _of_group(step: Step, mesh: Mesh, way: Way, at_once: bool) -> Schedule:
    if expect(step, Step, "a step of a program, such as program.collectives()[0]").kind not in KINDS:
        raise LayoutError(f"{step!r} has no hops: it is no collective ({', '.join(KINDS)})")
    axes = _axes(step, mesh)
    ways = dict.fromkeys(axes, way) if isinstance(way, str) else dict(way)
    refuse([f"no way for axis {axis!r}; {nearest(axis, ways)}" for axis in axes if axis not in ways], f"{step!r}")
    sizes, chosen = [mesh[axis] for axis in axes], [ways[axis] for axis in axes]
    return schedule(step.kind, sizes, chosen, step.n_bytes, pairs=_pairs(step, mesh), at_once=at_once)


def _pairs(step: Step, mesh: Mesh) -> list[tuple[int, int]] | None:
    """(from, to) by position in the group, where a step has them."""
    if step.kind == "permute":
        return permute_pairs(step, mesh)
    if step.kind != "halo_exchange":
        return None
    group, distance = step.group, step.params["distance"]
    goals = [(block, block + distance) for block in range(group)]
    return [(a, b % group) for a, b in goals if step.params["wrap"] or 0 <= b < group]


def _groups(mesh: Mesh, axes: Axes, device: DeviceLike | None = None) -> list[tuple[int, ...]]:
    """The devices of each group, in the order of their blocks; of one group where a device is given."""
    inside = Mesh([(axis, mesh[axis]) for axis in axes])
    places = range(mesh.size) if device is None else [mesh.device(device)]
    starts = dict.fromkeys(mesh.device({**mesh.coordinates(place), **dict.fromkeys(axes, 0)}) for place in places)
    return [
        tuple(mesh.device({**mesh.coordinates(start), **inside.coordinates(n)}) for n in range(inside.size))
        for start in starts
    ]
