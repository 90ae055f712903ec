"""Who sends to whom in a permute, as `jax.lax.ppermute` wants it. Pure: the executor and the source printer share it.

    A:x → A:y on x:2 y:2      device (x=0, y=1) holds block 0 and wants block 1: it is sent by (x=1, y=0) or (1, 1)
    permute on a ring         every device sends to the one `distance` places on (looped collectives, mtfcore.overlap)
    halo exchange of A:x      the device with block b sends to that with block b + 1; the last one to nobody

Next file to read: `execute`.
"""

from __future__ import annotations

from mtfcore.mesh import Mesh
from mtfcore.sharding import Axes
from mtfcore.steps import Step


def permute_axes(step: Step, mesh: Mesh) -> Axes:
    """The axes of the group in mesh order: `ppermute` counts devices so, whatever order it is given."""
    return tuple(name for name in mesh.names if name in step.axes)


def permute_pairs(step: Step, mesh: Mesh) -> list[tuple[int, int]]:
    """(from, to) of every device in the group; one that holds what it wants keeps it. On a ring all go as far."""
    if "distance" in step.params:
        return halo_pairs(step, mesh)
    names = permute_axes(step, mesh)
    group = Mesh([(name, mesh[name]) for name in names])
    holds, wants = _blocks(step.before[0].axes, group), _blocks(step.after.axes, group)
    kept = [device for device in range(group.size) if holds[device] == wants[device]]
    senders: dict[tuple[int, ...], list[int]] = {}
    for device in range(group.size):
        if device not in kept:
            senders.setdefault(holds[device], []).append(device)
    moved = [(senders[wants[device]].pop(0), device) for device in range(group.size) if device not in kept]
    return sorted([(device, device) for device in kept] + moved)


def halo_pairs(step: Step, mesh: Mesh) -> list[tuple[int, int]]:
    """(from, to) of a halo exchange: blocks `distance` apart, in the order of the step's axes."""
    group = Mesh([(name, mesh[name]) for name in permute_axes(step, mesh)])
    holder = {group.block(device, step.axes): device for device in range(group.size)}
    distance, wrap = step.params["distance"], step.params["wrap"]
    goals = [(block, (block + distance) % group.size if wrap else block + distance) for block in range(group.size)]
    return sorted((holder[block], holder[goal]) for block, goal in goals if goal in holder)


def _blocks(axes: tuple[Axes, ...], group: Mesh) -> list[tuple[int, ...]]:
    """Which block each device holds in every dimension, as far as the group's axes tell."""
    inside = [tuple(axis for axis in on if axis in group) for on in axes]
    return [tuple(group.block(device, on) for on in inside) for device in range(group.size)]
