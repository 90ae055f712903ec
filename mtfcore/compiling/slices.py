"""How libtpu names a slice, and which of its devices each device of a mesh is.

    >>> target = target_of(wire("x:4 y:4 z:4", "v4:4x4x4"))
    >>> target.name, target.options, target.at[1]
    ('v4:4x4x4', {'chip_config_name': 'megacore'}, (0, 0, 1, 0))

The mesh lies on the grid as the cost model lays it (`costs.links.wiring`), so that both speak of the same links.
Next file to read: `process`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mtfcore.costs.links.wiring import Wiring, offers
from mtfcore.errors import LayoutError
from mtfcore.topologies import Topology

NAMES = {"v2": "v2", "v3": "v3", "v4": "v4", "v5e": "v5e", "v5p": "v5p", "v6e": "v6e", "v7x": "tpu7x"}
# The two cores of a v4 as one device, which the records say and libtpu must be told; v5p has it by itself.
OPTIONS: Mapping[str, Mapping[str, str]] = {"v4": {"chip_config_name": "megacore"}}
WHOLE = ("v5e", "v6e")  # of part of such a slice libtpu refuses many programs, and ends its process at others


@dataclass(frozen=True)
class Target:
    """A slice as libtpu knows it, and for each device of the mesh its place: x, y, z of the chip, and the core."""

    name: str
    at: tuple[tuple[int, int, int, int], ...]
    options: Mapping[str, str] = field(default_factory=dict)


def target_of(wired: Wiring) -> Target:
    """What to ask libtpu for; refuses chips that it makes no programs for."""
    slice_ = expect_tpu(wired.topology)
    if slice_.chip.name in WHOLE and 1 < wired.mesh.size < slice_.devices:
        raise LayoutError(
            f"mesh '{wired.mesh}' covers {wired.mesh.size} of the {slice_.devices} devices of '{slice_}', and libtpu "
            f"makes programs for all devices of a {slice_.chip.name} slice, or for one; nearest: "
            f"{offers(wired.mesh, slice_)}"
        )
    at = tuple(_place(slice_, wired.position(device)) for device in range(wired.mesh.size))
    name = NAMES[slice_.chip.name]
    return Target(f"{name}:{'x'.join(map(str, slice_.grid))}", at, dict(OPTIONS.get(slice_.chip.name, {})))


def expect_tpu(slice_: Topology) -> Topology:
    """Refuse GPUs and chips that were added here."""
    if slice_.chip.name not in NAMES:
        known = ", ".join(f"'{name}'" for name in NAMES)
        raise LayoutError(
            f"no compiler for '{slice_}': libtpu compiles for {known}; "
            f"mtf.price says what a program costs on {slice_.chip.name}"
        )
    return slice_


def _place(slice_: Topology, position: tuple[int, ...]) -> tuple[int, int, int, int]:
    """A position on the device grid as libtpu counts: always three coordinates of a chip, then the core."""
    chip, core = position[: len(slice_.grid)], position[len(slice_.grid) :]
    x, y, z = (*chip, 0, 0, 0)[:3]
    return (x, y, z, core[0] if core else 0)
