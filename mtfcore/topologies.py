"""Topologies: a physical slice, `v2:16x16`: the kind of chip, the grid of chips, and which axes wrap.

    >>> t = mtf.topology("v2:16x16")
    >>> t.devices, t.device_grid, t.wraps
    (512, (16, 16, 2), (True, True, False))

A mesh is a naming abstraction (`mesh`); this is the wires. Several devices of one chip are a last axis of the grid,
with links of their own. GPUs: `h100:8` is a node behind one switch, `h100:4x8` four of them on a slower network.

Which axes wrap (each chip's `wraps` says from where): on v4, v5p and v7x all axes of slices made of whole 4 x 4 x 4
cubes; on v5e and v6e an axis of 16; on v2 and v3 an axis as long as the pod's. Grids smaller than a pod are powers of
two along each axis. How to Scale Your Model, part 2. Next file to read: `topology_answers`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from mtfcore.chips import Chip, chip, chips
from mtfcore.notation import read_whole
from mtfcore.numbers import count

CUBE = 4  # an axis of v4, v5p and v7x wraps in slices made of whole 4 x 4 x 4 cubes
NODES = 512  # the most nodes of a network that a name may have


@dataclass(frozen=True)
class GridAxis:
    """One axis of the device grid: its size, whether the ends are joined, one link's bytes a second, one way."""

    size: int
    wraps: bool
    bytes_per_second: float
    kind: str  # "links" between chips, "cores" within one, "switch" within a node, "network" between nodes
    hop_seconds: float = 0.0  # what one hop takes however little it carries; 0 where nothing is published


@dataclass(frozen=True)
class Topology:
    """A slice of chips. Made by `mtf.topology`."""

    chip: Chip
    grid: tuple[int, ...]  # of chips

    @property
    def chips(self) -> int:
        """How many chips the slice has."""
        return math.prod(self.grid)

    @property
    def devices(self) -> int:
        """What JAX counts."""
        return self.chips * self.chip.devices

    @property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes of the device grid, cores of one chip last."""
        return _axes(self)

    @property
    def device_grid(self) -> tuple[int, ...]:
        """The grid of devices: that of the chips, and where a chip makes several, a last axis of those."""
        return tuple(axis.size for axis in self.axes)

    @property
    def wraps(self) -> tuple[bool, ...]:
        """For each axis of the device grid, whether its ends are joined: a ring, else a line."""
        return tuple(axis.wraps for axis in self.axes)

    @property
    def hbm_bytes_per_device(self) -> int:
        """Bytes of the large memory that one device has."""
        return self.chip.hbm_bytes_per_device

    @property
    def link_bytes_per_second(self) -> float:
        """The slowest link that a collective over the whole slice must cross, one way."""
        return min((axis.bytes_per_second for axis in self.axes if axis.size > 1), default=math.inf)

    def peak_flops_per_device(self, dtype: object = "bf16") -> float:
        """Peak FLOPs a second of one device; `LayoutError` where none is published for the dtype."""
        return self.chip.peak_flops_per_device(dtype)

    @property
    def words(self) -> str:
        """`256 chips, 512 devices, grid 16x16x2, axes 0 and 1 wrap`: the grid is that of the devices."""
        grid = "x".join(map(str, self.device_grid))
        return f"{count(self.chips, 'chip')}, {count(self.devices, 'device')}, grid {grid}, {self._joined}"

    @property
    def _joined(self) -> str:
        """Which axes are rings, in words."""
        on = [str(number) for number, wrap in enumerate(self.wraps) if wrap]
        if self.chip.network == "switch":
            return "behind one switch" if len(self.grid) == 1 else "behind switches on a network"
        if len(on) in (0, len(self.wraps)):
            return "every axis wraps" if on else "no axis wraps"
        return f"axis {on[0]} wraps" if len(on) == 1 else f"axes {', '.join(on[:-1])} and {on[-1]} wrap"

    def __str__(self) -> str:
        return f"{self.chip.name}:{'x'.join(map(str, self.grid))}"

    def __repr__(self) -> str:
        return f"<Topology {self}: {count(self.chips, 'chip')}, {count(self.devices, 'device')}>"


def topology(text: str | Topology) -> Topology:
    """A slice by name, `v4:4x4x4`; refuses impossible grids, naming the nearest possible one.

    `text`: chip and grid, or a slice itself. Sizes are chips; `devices` counts what JAX calls devices.

    Raises `LayoutError` for a chip or grid that does not exist.

        >>> mtf.topology("v2:16x16").devices
        512
    """
    if isinstance(text, Topology):
        return text
    name, _, grid = text.partition(":") if isinstance(text, str) else ("", "", "")
    if name.strip().casefold() not in chips():
        from mtfcore.topology_answers import unknown_chip

        raise unknown_chip(text, name, grid)
    of, sizes = chip(name), sizes_of(grid)
    if sizes not in legal(of):
        from mtfcore.topology_answers import impossible_grid

        raise impossible_grid(text, of, sizes)
    return Topology(of, sizes)


def sizes_of(grid: str) -> tuple[int, ...]:
    """The numbers of `4x4x4`; none where something else is written."""
    sizes = [read_whole(word) for word in grid.strip().casefold().split("x")]
    return tuple(size for size in sizes if size is not None) if None not in sizes else ()


# ---- which grids there are


@cache
def legal(chip: Chip) -> frozenset[tuple[int, ...]]:
    """Every grid that this kind of chip comes in."""
    return frozenset(_grids(chip))


def _grids(chip: Chip) -> Iterator[tuple[int, ...]]:
    if chip.network == "switch":
        node = range(1, chip.value("node_chips") + 1)
        yield from ((n,) for n in node)
        yield from ((nodes, n) for nodes in range(1, NODES + 1) for n in node)
    elif chip.network == "cubes":
        yield from itertools.product((1, 2, CUBE), repeat=3)
        yield from _cubes(chip.value("most_chips") // CUBE**3)
    elif chip.network == "full":
        yield from itertools.product(*({2**power for power in range(n.bit_length())} | {n} for n in chip.pod))
    else:
        yield from itertools.product(*(range(1, size + 1) for size in chip.pod))


def _cubes(most: int) -> Iterator[tuple[int, ...]]:
    """Every grid of at most so many whole cubes."""
    for a in range(1, most + 1):
        for b in range(1, most // a + 1):
            yield from ((CUBE * a, CUBE * b, CUBE * c) for c in range(1, most // (a * b) + 1))


def rule(chip: Chip) -> str:
    """What grids a chip comes in, in words."""
    if chip.network == "switch":
        most = chip.value("node_chips")
        return f"{chip.name} comes in nodes of up to {most}, '{chip.name}:{most}', or several, '{chip.name}:4x{most}'"
    if chip.network == "cubes":
        return (
            f"{chip.name} comes in grids of 3 axes of 1, 2 or {CUBE}, or of multiples of {CUBE}, "
            f"up to {chip.value('most_chips'):,} chips"
        )
    axes = count(len(chip.pod), "axis", "axes")
    step = ", each a power of two," if chip.network == "full" else ""
    return f"{chip.name} comes in grids of {axes}{step} up to {'x'.join(map(str, chip.pod))}"


def even_grid(chip: Chip, number: int) -> tuple[int, ...]:
    """The grid of so many chips whose axes are most alike, axes of 1 last; empty where there is none."""
    grids = by_size(chip).get(number, [()])
    return min(
        grids, key=lambda grid: (max(grid, default=0), -min(grid, default=0), [n if n > 1 else 1e9 for n in grid])
    )


def unlike(grid: Sequence[int], asked: Sequence[int]) -> tuple[float, int, Sequence[int]]:
    """How far a grid is from the one asked for: first in its number of chips, then in its axes."""
    lengths = sum(abs(a - b) for a, b in itertools.zip_longest(grid[::-1], asked[::-1], fillvalue=1))
    return (round(abs(math.log(math.prod(grid) / math.prod(asked))), 9), lengths, grid)


def nearest_with(like: Topology, devices: int) -> Topology | None:
    """The slice of the same kind of chip with so many devices whose grid is most like this one's; None if none."""
    number, rest = divmod(devices, like.chip.devices)
    fits = [] if rest else by_size(like.chip).get(number, ())
    return Topology(like.chip, min(fits, key=lambda grid: unlike(grid, like.grid))) if fits else None


@cache
def by_size(chip: Chip) -> dict[int, list[tuple[int, ...]]]:
    """Every grid that a chip comes in, by how many chips it has."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for grid in legal(chip):
        found.setdefault(math.prod(grid), []).append(grid)
    return found


# ---- the wires


@cache
def _axes(slice_: Topology) -> tuple[GridAxis, ...]:
    chip, grid = slice_.chip, slice_.grid
    link, hop = chip.link_bytes_per_second, chip.hop_seconds
    if chip.network == "switch":
        network = chip.value("network_bytes_per_second") or link
        far = chip.value("network_hop_seconds") or 0.0
        outer = [GridAxis(size, False, network, "network", far) for size in grid[:-1]]
        return (*outer, GridAxis(grid[-1], False, link, "switch", hop))
    axes = [GridAxis(n, n > 2 and wrap, link, "links", hop) for n, wrap in zip(grid, _wraps(chip, grid), strict=True)]
    return (*axes, *_cores(chip, link))


def _wraps(chip: Chip, grid: tuple[int, ...]) -> list[bool]:
    """For each axis whether wires join its ends."""
    if chip.network == "full":
        return [size == full for size, full in zip(grid, chip.pod, strict=True)]
    whole_cubes = chip.network == "cubes" and all(size % CUBE == 0 for size in grid)
    return [whole_cubes or chip.network == "torus"] * len(grid)


def _cores(chip: Chip, link: float) -> list[GridAxis]:
    """The devices of one chip: a last axis, as fast as the links between chips where nothing is published."""
    between: Any = chip.value("core_link_bytes_per_second")
    return [GridAxis(chip.devices, False, between or link, "cores")] if chip.devices > 1 else []
