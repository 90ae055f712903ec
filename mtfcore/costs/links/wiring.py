"""Wiring: the axes of a mesh laid over the axes of a topology's grid, so that a collective knows its links.

    >>> wired = wire("x:4 y:16", "v4:4x4x4")
    >>> wired.text()
    'x→0, y→1+2'
    >>> [(leg.size, leg.wraps) for leg in wired.legs("y")]
    [(4, True), (4, True)]

A mesh axis takes one grid axis, several, or a part of one. Several mesh axes on one grid axis: the inner part is a
line of neighbours, the outer one strides over it, so that each of its hops crosses `stride` links and `stride` groups
share every link. The cores of one chip share its links in the same way. A switch, and the network above it, give
every chip its full rate whoever it talks to: parts of those cost nothing extra.

A mesh smaller than the topology lies on a contiguous block of it; the rest is idle, and a block that does not reach
round an axis has no ring there. "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), section 3.1, lays
x, y, z on a torus of that shape; How to Scale Your Model, part 3, tells of axes that do not wrap.
Next file to read: `wiring_choices`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from mtfcore.costs.links.wiring_choices import Given, Part, Pins, best, choices, read
from mtfcore.dims import divisors
from mtfcore.errors import LayoutError, refuse
from mtfcore.mesh import Mesh, as_mesh
from mtfcore.notation import looks_like_run
from mtfcore.topologies import GridAxis, Topology, nearest_with
from mtfcore.topologies import topology as as_topology

DIRECT = ("switch", "network")  # kinds of grid axis whose members all reach each other at the full rate


@dataclass(frozen=True)
class Leg:
    """What a collective runs along: a grid axis or a part of one.

    `bytes_per_second` is what one group gets of one link, one way, while all groups run: the link's rate over `shared`.
    """

    size: int
    wraps: bool
    bytes_per_second: float
    kind: str  # "links", "cores", "switch" or "network"
    hop_seconds: float  # from one member to the next; 0 where no latency is published
    shared: int = 1  # how many groups use each link at the same time
    grid_axis: int = 0

    @property
    def direct(self) -> bool:
        """Whether all members reach each other at the full rate, through a switch."""
        return self.kind in DIRECT


@dataclass(frozen=True)
class Wiring:
    """One way to lay a mesh over a topology. Made by `wire` and `wirings`."""

    mesh: Mesh
    topology: Topology
    parts: tuple[tuple[Part, ...], ...]  # of each mesh axis, outermost first; none for an axis of size 1
    _legs: dict[tuple[str, ...], tuple[Leg, ...]] = field(default_factory=dict, compare=False, repr=False)

    def legs(self, axes: str | Iterable[str]) -> tuple[Leg, ...]:
        """What a collective over these mesh axes runs along, slow and outer legs first.

        A reduce-scatter goes along them from the last to the first, a gather from the first to the last, so that the
        slow legs carry the least. Parts that adjoin on one grid axis are one leg.
        """
        key = _named(axes) if isinstance(axes, str) else tuple(axes)
        if (found := self._legs.get(key)) is None:
            found = self._legs[key] = tuple(_leg(self, part) for part in _joined(self, key))
        return found

    @property
    def idle(self) -> int:
        """How many devices of the topology the mesh leaves out."""
        return self.topology.devices - self.mesh.size

    @property
    def shape(self) -> Mapping[str, tuple[Part, ...]]:
        """Mesh axis → the parts of grid axes that it takes, outermost first."""
        return dict(zip(self.mesh.names, self.parts, strict=True))

    def position(self, device: int | Mapping[str, int]) -> tuple[int, ...]:
        """Where on the device grid a device of the mesh lies."""
        at, coordinates = [0] * len(self.topology.axes), self.mesh.coordinates(device)
        for axis, parts in self.shape.items():
            rest = coordinates[axis]
            for part in reversed(parts):
                rest, step = divmod(rest, part.size)
                at[part.grid_axis] += step * part.stride
        return tuple(at)

    def text(self) -> str:
        """`x→0, y→1+2`; a part of a grid axis as `0:4` (neighbours) or `0:4 by 2` (every second one)."""
        axes = self.topology.axes
        shown = [(name, "+".join(_shown(p, axes) for p in parts)) for name, parts in self.shape.items() if parts]
        idle = f" ({self.idle} of {self.topology.devices} devices idle)" if self.idle else ""
        return (", ".join(f"{name}→{where}" for name, where in shown) or "one device") + idle

    def __str__(self) -> str:
        return self.text()


def wire(mesh: Mesh | str, topology: Topology | str, given: Given | Wiring = None) -> Wiring:
    """The mesh laid over the topology as `given` says, or by best guess: in the order of both, cutting least.

    `given`: what `text` writes, `"x→0, y→1+2"`, or a mapping, `{"x": 0, "y": (1, 2)}`. Grid axes are numbered as in
    `topology.device_grid`; `cores`, `switch` and `network` name theirs. Mesh axes not named lie where they fit.
    """
    if isinstance(given, Wiring):
        given = given.text()
    where = as_topology(topology)
    return _wire(as_mesh(mesh), where, read(given, as_mesh(mesh), where))


def wirings(mesh: Mesh | str, topology: Topology | str) -> tuple[Wiring, ...]:
    """Every sensible way to lay the mesh over the topology, best guess first.

    Sensible: torus axes are cut no more often than they must be. Two that differ only by swapping equal grid axes
    are one. Where there are very many, the first 256.
    """
    return _wirings(as_mesh(mesh), as_topology(topology))


@lru_cache(maxsize=4096)
def _wirings(mesh: Mesh, topology: Topology) -> tuple[Wiring, ...]:
    refuse(_faults(mesh, topology))
    return tuple(Wiring(mesh, topology, parts) for parts in choices(mesh, topology))


@lru_cache(maxsize=4096)
def _wire(mesh: Mesh, topology: Topology, given: Pins) -> Wiring:
    if not given:
        return _wirings(mesh, topology)[0]
    refuse(_faults(mesh, topology))
    if parts := best(mesh, topology, given):
        return Wiring(mesh, topology, parts)
    fits = "; ".join(f"'{wired.text()}'" for wired in _wirings(mesh, topology)[:3])
    raise LayoutError(f"mesh '{mesh}' does not lie on '{topology}' ({_grid(topology)}) that way; what fits: {fits}")


def _faults(mesh: Mesh, topology: Topology) -> list[str]:
    """Why a mesh cannot lie on a topology at all, with the nearest mesh and the nearest topology that would do."""
    devices = topology.devices
    if devices % mesh.size == 0:
        return []
    why = "" if mesh.size > devices else f", no multiple of {mesh.size}"
    return [f"mesh '{mesh}' names {mesh.size} devices; '{topology}' has {devices}{why}; nearest: "
            f"{offers(mesh, topology)}"]  # fmt: skip


def offers(mesh: Mesh, topology: Topology) -> str:
    """The nearest mesh that covers every device, or the slice that the mesh covers."""
    found = [f"mesh '{_nearest_mesh(mesh, topology.devices)}'"]
    found += [f"'{other}'"] if (other := nearest_with(topology, mesh.size)) else []
    return " or ".join(found)


def _nearest_mesh(mesh: Mesh, devices: int) -> Mesh:
    """A mesh of the same axes that covers every device, one axis changed if that is enough."""
    fits = [(name, devices * size // mesh.size) for name, size in mesh.axes if devices * size % mesh.size == 0]
    if fits:
        return Mesh(mesh.shape | dict(fits[-1:]))
    near, left = [], devices
    for name, size in mesh.axes[:-1]:
        near.append((name, min(divisors(left), key=lambda part: abs(math.log(part / size)))))
        left //= near[-1][1]
    return Mesh([*near, (mesh.names[-1], left)])


def _named(axes: str) -> tuple[str, ...]:
    """The axes that a word names: a run of one-letter axes, or one."""
    return tuple(axes) if looks_like_run(axes) else (axes,)


def _joined(wired: Wiring, axes: tuple[str, ...]) -> list[Part]:
    """The parts that the axes take, in the order of the grid, those that adjoin on one grid axis made one."""
    for axis in axes:
        wired.mesh[axis]  # refuses one that the mesh does not have
    parts = sorted((p for axis in dict.fromkeys(axes) for p in wired.shape[axis]), key=lambda p: (p[0], -p.stride))
    joined: list[Part] = []
    for part in parts:
        if joined and joined[-1].grid_axis == part.grid_axis and joined[-1].stride == part.stride * part.size:
            part = Part(part.grid_axis, joined.pop().size * part.size, part.stride)
        joined.append(part)
    return joined


def _leg(wired: Wiring, part: Part) -> Leg:
    """A part of a grid axis, with what its strides and the other cores of a chip leave it of each link."""
    axis = wired.topology.axes[part.grid_axis]
    stride = 1 if axis.kind in DIRECT else part.stride
    shared = stride * (_busy_cores(wired) if axis.kind == "links" else 1)
    wraps = axis.wraps and part.size * part.stride == axis.size
    rate = axis.bytes_per_second / shared
    return Leg(part.size, wraps, rate, axis.kind, axis.hop_seconds * stride, shared, part.grid_axis)


def _busy_cores(wired: Wiring) -> int:
    """How many devices of one chip the mesh uses: they share its links."""
    axes = wired.topology.axes
    return math.prod(p.size for parts in wired.parts for p in parts if axes[p.grid_axis].kind == "cores")


def _shown(part: Part, axes: tuple[GridAxis, ...]) -> str:
    axis = axes[part.grid_axis]
    name = str(part.grid_axis) if axis.kind == "links" else axis.kind
    stride = f" by {part.stride}" if part.stride > 1 else ""
    return name if part.size == axis.size else f"{name}:{part.size}{stride}"


def _grid(topology: Topology) -> str:
    return "grid " + "x".join(str(size) for size in topology.device_grid)
