"""What is said of slices: the list of those that there are, and the nearest ones where a name is wrong.

    >>> print(slices("v4", 64))
    slice       chips  cores  devices  device grid  wraps
    >>> mtf.topology("v4:3x5x7")
    LayoutError: no topology 'v4:3x5x7': v4 comes in grids of …; nearest: 'v4:4x4x8' (128 chips, 128 devices, …), …

Every slice is told with its chips, its devices (what JAX counts: on v2, v3 and v7x the cores of one chip are devices of
their own, the last axis of the grid), its grid, and which axes wrap: a v5p-8 is 4 chips, 2x2x1, without any ring.
Next file to read: `costs/links/wiring`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from mtfcore.chips import Chip, chip, chips
from mtfcore.errors import LayoutError, nearest
from mtfcore.notation import as_size
from mtfcore.numbers import count
from mtfcore.tables import Column, Table
from mtfcore.topologies import Topology, by_size, even_grid, legal, rule, sizes_of, unlike

OFFERED = 2  # so many of the nearest are told
LIBTPU = {"tpu7x": "v7x"}  # libtpu's names for chips that have another one here
PRODUCT = re.compile(r"(v2|v3|v4|v5p|v5e|v5lite|v6e)(?:pod)?-(\d+)")

COLUMNS = (
    Column("slice", "slice"),
    Column("chips", "chips", is_number=True),
    Column("cores", "cores", is_number=True),
    Column("devices", "devices", is_number=True),
    Column("device_grid", "device grid", lambda grid: "x".join(map(str, grid))),
    Column("wraps", "wraps", lambda wraps: " ".join("yes" if wrap else "no" for wrap in wraps)),
)


def slices(chip_name: str | Chip | None = None, devices: int | None = None) -> Table:
    """The slices that there are: of one kind of chip or of all TPUs, with so many devices or of every size.

    Without a number of devices, the most even grid of each power of two; with it, every grid, axes in ascending order.

    `chip_name`: one kind of chip, "v4"; `devices`: a number, at least 1.

    Raises `LayoutError` for a chip that is none.

        >>> len(mtf.costs.slices("v4", 64).rows)
        1
    """
    if devices is not None and as_size(devices) is None:
        raise LayoutError(f"devices is {devices!r:.100}; expected a whole number of at least 1, or None for every size")
    of = [chip(chip_name)] if chip_name is not None else [c for c in chips().values() if c.kind == "TPU"]
    found = [Topology(c, grid) for c in of for grid in _listed(c, devices)]
    if not found:
        raise LayoutError(
            f"no slice of {' '.join(c.name for c in of)} has {devices} devices; {_sizes_near(of, devices)}"
        )
    return Table(COLUMNS, [row(slice_) for slice_ in found], "slices")


def row(slice_: Topology) -> dict[str, object]:
    """One slice, exactly."""
    return {
        "slice": str(slice_), "chips": slice_.chips, "cores": slice_.chips * (slice_.chip.value("cores") or 1),
        "devices": slice_.devices, "grid": slice_.grid, "device_grid": slice_.device_grid, "wraps": slice_.wraps,
    }  # fmt: skip


def _listed(of: Chip, devices: int | None) -> list[tuple[int, ...]]:
    if devices is None:
        powers = sorted(n for n in by_size(of) if n & (n - 1) == 0)
        return [even_grid(of, number) for number in powers]
    number, rest = divmod(devices, of.devices)
    grids = [] if rest else by_size(of).get(number, [])
    return sorted({tuple(sorted(grid)) for grid in grids} & legal(of), key=lambda grid: grid[::-1])


def _sizes_near(of: Iterable[Chip], devices: int | None) -> str:
    every = sorted({number * c.devices for c in of for number in by_size(c)}, key=lambda n: abs(n - (devices or 0)))
    return f"nearest: {', '.join(map(str, sorted(every[:4])))}"


# ---- wrong names -------------------------------------------------------------------------------------------------


def unknown_chip(text: object, name: str, grid: str) -> LayoutError:
    """What to write instead of a name whose chip is not known."""
    said = _product(name) or _libtpu(name, grid) or _example(name, sizes_of(grid))
    return LayoutError(f"no topology {text!r:.200}{said}")


def impossible_grid(text: object, of: Chip, sizes: tuple[int, ...]) -> LayoutError:
    """What to write instead of a grid that a chip does not come in."""
    near = ", ".join(map(told, _nearest(of, sizes)))
    return LayoutError(f"no topology {text!r:.200}: {rule(of)}; nearest: {near}")


def told(slice_: Topology) -> str:
    """A slice with all that its name means."""
    return f"'{slice_}' ({slice_.words})"


def _example(name: str, sizes: tuple[int, ...]) -> str:
    """The same grid, of the latest kind that comes in it."""
    has = [of for of in chips().values() if of.kind == "TPU" and sizes in legal(of)]
    like = Topology(has[-1], sizes) if has else Topology(chip("v4"), (4, 4, 4))
    return f"; write e.g. {told(like)}; chip {name!r:.100}: {nearest(name, chips())}"


def _libtpu(name: str, grid: str) -> str:
    """libtpu's own name for a chip."""
    of = LIBTPU.get(name.strip().casefold())
    if of is None:
        return ""
    sizes = sizes_of(grid)
    near = [Topology(chip(of), sizes)] if sizes in legal(chip(of)) else _nearest(chip(of), sizes)
    return f": libtpu's name for {of}; write {', '.join(map(told, near))}"


def _product(name: str) -> str:
    """What to write for a name of a cloud's product: `v5p-8` counts cores, `v5litepod-16` chips."""
    match = PRODUCT.fullmatch(name.strip().casefold())
    if not match or not (number := int(match[2])):
        return ""
    of = chip({"v5lite": "v5e"}.get(match[1], match[1]))
    chips_, rest = divmod(number, of.value("cores"))
    if rest or not (even := even_grid(of, chips_)):
        return ""
    what = f"a product's name, of {count(number, 'core')} on {count(chips_, 'chip')}"
    return f": {what}; write {told(Topology(of, even))}"


def _nearest(of: Chip, sizes: tuple[int, ...]) -> list[Topology]:
    """The legal slices most like the one asked for: about as many chips, then axes about as long."""
    asked = [max(size, 1) for size in sizes] or [1]
    grids: Iterable[tuple[int, ...]] = legal(of)
    if of.network == "switch":  # one node, or whole ones
        grids = [grid for grid in grids if len(grid) == 1 or (grid[0] > 1 and grid[1] == of.value("node_chips"))]
    elif len(sizes) == 1:  # a number of chips
        grids = [even_grid(of, number) for number in by_size(of)]
    ranked = sorted(grids, key=lambda grid: unlike(grid, asked))
    several: dict[tuple[int, ...], tuple[int, ...]] = {}
    for grid in ranked:  # of grids that differ in the order of axes alone, one
        several.setdefault(tuple(sorted(grid)), grid)
    return [Topology(of, grid) for grid in itertools.islice(several.values(), OFFERED)]
