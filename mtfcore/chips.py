"""Chips: what one of each kind can do, as dated records with their sources.

    >>> v2 = mtf.chip("v2")
    >>> v2.devices, v2.peak_flops_per_device("bf16"), v2.hbm_bytes_per_device
    (2, 22500000000000, 8589934592)

`print(v2.table())` shows every figure, its sources, and why one of several was chosen. They stand once, in
`reference/chips.json`: of a whole chip, one way, in SI units. A device is what JAX calls one; on v2, v3 and v7x that
is a core, so peak and memory are divided. Your own: `mtf.add_chip`, in `chip_adding`. Next file to read: `topologies`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtfcore.dtypes import canonical, itemsize
from mtfcore.errors import LayoutError, nearest
from mtfcore.numbers import format_bytes, format_flops, format_seconds, quantity

if TYPE_CHECKING:
    from mtfcore.tables import Table

TABLE = Path(__file__).parent / "reference" / "chips.json"
# What a product of such elements runs as where the chip has no figure of its own: matrix units take bf16 and add in
# f32, XLA's default for f32 operands is one such pass (on GPUs a TF32 one).
RUNS_AS = {
    "f32": ("tf32", "bf16"), "f16": ("bf16",), "i8": ("bf16",), "u8": ("i8", "bf16"), "fp8": ("bf16",),
    "i4": ("i8", "bf16"),
}  # fmt: skip
NARROW = {"fp8": "fp8", "f8": "fp8", "float8": "fp8", "i4": "i4", "int4": "i4", "tf32": "tf32"}  # only peaks have these


@dataclass(frozen=True)
class Figure:
    """One published value: as printed, in SI units, with its sources. `sure` is seen, computed, recalled or given."""

    value: Any
    sources: tuple[str, ...]  # keys of `sources()`; of a chip that was added, words
    printed: str = ""
    sure: str = "seen"
    note: str = ""


@dataclass(frozen=True, eq=False)
class Chip:
    """One kind of chip. `figures` keeps every source; the first of several is the chosen one, `because` says why."""

    name: str
    title: str
    kind: str  # "TPU" or "GPU"
    devices: int  # JAX devices that one chip makes
    network: str  # how chips are joined: one of `chip_figures.NETWORKS`
    as_of: str
    figures: Mapping[str, tuple[Figure, ...]]
    because: Mapping[str, str]

    def value(self, figure: str) -> Any:
        """The chosen value of a figure of the whole chip; None where nothing is published."""
        return self.figures[figure][0].value if figure in self.figures else None

    def peak_flops_per_device(self, dtype: object = "bf16") -> float:
        """Peak FLOPs a second of one device, 2 a multiply-add, for operands of a dtype (`fp8` and `i4` too)."""
        name = NARROW.get(str(dtype)) or canonical(dtype)
        for form in (name, *RUNS_AS.get(name, ())):
            if peak := self.value(f"peak_{form}"):
                return peak / self.devices if peak % self.devices else peak // self.devices
        known = [key.removeprefix("peak_") for key in self.figures if key.startswith("peak_") and self.value(key)]
        raise LayoutError(f"{self.title} has no published peak for {name}; it has {', '.join(known)}")

    @property
    def hbm_bytes_per_device(self) -> int:
        """Bytes of its large memory that one device has."""
        return self.value("hbm_bytes") // self.devices

    @property
    def hbm_bytes_per_second_per_device(self) -> float:
        """Bytes a second between that memory and one device."""
        return self.value("hbm_bytes_per_second") / self.devices

    @property
    def fast_memory_bytes_per_device(self) -> int:
        """Bytes beside the matrix unit, where a result may stay until it is used: VMEM and CMEM, or L2."""
        return ((self.value("fast_memory_bytes") or 0) + (self.value("cmem_bytes") or 0)) // self.devices

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of the matrix unit: the depth and the columns of a product are rounded up to them."""
        return tuple(self.value("tile") or (1, 1))

    @property
    def tile_rows(self) -> int:
        """What the rows of a product are rounded up to: they stream through the matrix unit a few at a time."""
        return self.value("tile_rows") or 1

    @property
    def link_bytes_per_second(self) -> float:
        """Bytes a second over one link, one way; of chips behind a switch, over all links of one chip together."""
        return self.value("switch_bytes_per_second") or self.value("link_bytes_per_second")

    @property
    def hop_seconds(self) -> float:
        """What one hop takes however little it carries; 0 where nothing is published."""
        return self.value("hop_seconds") or 0.0

    @property
    def pod(self) -> tuple[int, ...]:
        """The largest grid of chips that is sold or described; none is published of some."""
        return tuple(self.value("pod") or ())

    def critical_batch(self, weights: object = "bf16", math: object | None = None) -> float:
        """Rows at which a product computes as long as its weights are read: below, memory is the limit.

        2 FLOPs for each row and weight at the peak for `math` (as the weights are stored, unless given) against the
        bytes of one weight. How to Scale Your Model, part 7.
        """
        seconds_a_row = 2 / self.peak_flops_per_device(weights if math is None else math)
        return itemsize(weights) / self.hbm_bytes_per_second_per_device / seconds_a_row

    def table(self) -> Table:
        """Every figure with its sources, chosen ones marked."""
        return _table(self)

    def __repr__(self) -> str:
        return f"<Chip {self.name}: {self.title}, figures of {self.as_of}>"

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def chip(name: str | Chip) -> Chip:
    """The record of a chip: `v2 v3 v4 v5e v5p v6e v7x a100 h100 h200`, or one of your own (`add_chip`).

    `name`: one of these, in any case of letters, or a chip itself.

    Raises `LayoutError` for a name that is no chip, with the nearest.

        >>> mtf.chip("v4").peak_flops_per_device("bf16")
        275000000000000
    """
    if isinstance(name, Chip):
        return name
    known = chips()
    if not isinstance(name, str) or name.strip().casefold() not in known:
        raise LayoutError(f"no chip {name!r:.200}; {nearest(name, known)}")
    return known[name.strip().casefold()]


_ADDED: dict[str, Chip] = {}  # by `add_chip`


def chips() -> Mapping[str, Chip]:
    """Every chip by name, those that were added last."""
    return published() | _ADDED


@cache
def published() -> dict[str, Chip]:
    """The chips of the table, by name."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    return {name: _chip(name, entry, table["as_of"]) for name, entry in table["chips"].items()}


@cache
def sources() -> Mapping[str, Mapping[str, str]]:
    """Every source by its key: title, address and date."""
    return json.loads(TABLE.read_text(encoding="utf-8"))["sources"]


def _chip(name: str, entry: Mapping[str, Any], as_of: str) -> Chip:
    figures = {
        key: tuple(Figure(**(row | {"sources": tuple(row["sources"])})) for row in rows)
        for key, rows in entry["figures"].items()
    }
    because = entry.get("because", {})  # where sources agree there is nothing to say
    return Chip(name, entry["title"], entry["kind"], entry["devices"], entry["network"], as_of, figures, because)


def _table(chip: Chip) -> Table:
    from mtfcore.tables import Column, Table

    columns = (
        Column("figure", "figure"), Column("value", "value"), Column("sure", "how sure"),
        Column("sources", "source", wraps=True), Column("why", "why", below=True),
    )  # fmt: skip
    rows = [_row(chip, key, rank, figure) for key, of in chip.figures.items() for rank, figure in enumerate(of)]
    origin = "published figures" if published().get(chip.name) is chip else "figures"
    title = f"{chip.title}: {origin} of one chip ({_devices(chip)}), as of {chip.as_of}"
    return Table(columns, rows, title, notes=("▸ the figure that is used",), marked="is_used")


def _devices(chip: Chip) -> str:
    """How many devices one chip makes, in words."""
    return "one device" if chip.devices == 1 else f"{chip.devices} devices, one a core"


def _row(chip: Chip, key: str, rank: int, figure: Figure) -> dict[str, Any]:
    why = "; ".join(part for part in (figure.note, "" if rank else chip.because.get(key, "")) if part)
    return {
        "figure": "" if rank else key, "value": figure.printed or shown(key, figure.value), "sure": figure.sure,
        "sources": "; ".join(map(_source, figure.sources)), "why": why, "is_used": rank == 0,
    }  # fmt: skip


def _source(key: str) -> str:
    """Title and date of a source; of a chip that was added, its own words."""
    if key not in sources():
        return key
    title, dated = sources()[key]["title"], sources()[key]["dated"]
    return f"{title} ({dated})" if dated else title


def shown(key: str, value: Any) -> str:
    """A figure's value with its unit, for people."""
    if value is None or isinstance(value, str):
        return value or "none"
    if isinstance(value, (list, tuple)):
        return "x".join(map(str, value))
    if key.startswith("peak_"):
        return format_flops(value) + "/s"
    if key.endswith("_seconds"):
        return format_seconds(value)
    if key.endswith("_per_second"):
        return quantity(value, "B/s")
    return format_bytes(value) if key.endswith("_bytes") else f"{value:,}"
