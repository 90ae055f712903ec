"""The figures a chip may have, in words, and how each is read: a number in SI units, or a text with its unit.

    >>> read("hbm_bytes", "95 GiB"), read("link_bytes_per_second", "400 Gbit/s"), read("tile", "128x128")
    ((102005473280, ''), (50000000000, ''), ([128, 128], ''))
    >>> read("hbm_bytes", "95 GB/s")
    (None, "bytes, e.g. 95 * 2**30 or '95 GiB'")

Next file to read: `topologies`.
"""

from __future__ import annotations

import math
import re
from typing import Any

from mtfcore.dtypes import DTYPES
from mtfcore.notation import as_size, read_whole

NETWORKS = {
    "torus": "a grid of any size up to the pod, the ends of every axis joined",
    "mesh": "such a grid, no ends joined",
    "full": "grids of powers of two, the ends of an axis joined where it is as long as the pod's",
    "cubes": "3 axes, joined in slices of whole 4x4x4 cubes",
    "switch": "nodes of chips that all reach each other, on a network",
}
FIGURES = {
    "peak_bf16": "FLOP/s of one chip, 2 a multiply-add (so too peak_f32, peak_i8, peak_fp8, …)",
    "cores": "cores of one chip",
    "clock_hz": "cycles a second of a core, in which a compiler counts",
    "hbm_bytes": "bytes of its large memory",
    "hbm_bytes_per_second": "bytes a second of that memory",
    "fast_memory_bytes": "bytes beside the matrix unit: VMEM, L2",
    "cmem_bytes": "bytes of a second such memory",
    "tile": "rows and columns of the matrix unit, e.g. '128x128'",
    "tile_rows": "rows that stream through it at a time",
    "links": "links of one chip",
    "link_bytes_per_second": "bytes a second of one link, one way",
    "interconnect_bytes_per_second": "bytes a second of all links of one chip, as printed",
    "switch_bytes_per_second": "bytes a second of one chip into the switch, one way",
    "core_link_bytes_per_second": "bytes a second between the devices of one chip, one way",
    "hop_seconds": "seconds that one hop takes at least",
    "pod": "the largest grid of chips, e.g. '16x16'",
    "most_chips": "chips of the largest slice",
    "node_chips": "chips behind one switch",
    "host": "chips that one host drives, e.g. '2x2x1'",
    "network_bytes_per_second": "bytes a second of one chip into the network between nodes or slices, one way",
    "network_hop_seconds": "seconds that a message between nodes takes at least",
    "pcie_bytes_per_second": "bytes a second between one chip and its host, one way",
}
_PEAKS = {f"peak_{dtype}" for dtype in (*DTYPES, "fp8", "i4", "tf32")}
_QUANTITY = re.compile(
    r"([0-9.]+(?:e[+-]?[0-9]+)?)\s*([kMGTPEmuµn]i?)?(FLOP/s|FLOPS|OP/s|B/s|bit/s|Hz|B|s)", re.IGNORECASE
)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_PARTS = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}


def is_peak(key: str) -> bool:
    """Whether a figure is the peak for some type of element."""
    return key in _PEAKS


def as_whole_size(value: object) -> int | None:
    """A whole number of at least 1, or None."""
    return None if isinstance(value, bool) else as_size(value)


def read(key: str, value: Any) -> tuple[Any, str]:
    """The value in SI units, and what it should have been if it cannot be read."""
    if key in ("tile", "pod", "host"):
        return _sizes(key, value)
    if key in ("cores", "links", "most_chips", "node_chips", "tile_rows"):
        size = as_whole_size(value)
        return size, "" if size is not None else "a whole number, at least 1"
    unit, example = _unit(key)
    number = _with_unit(value, unit) if isinstance(value, str) else value
    least = 0.0 if unit == "s" else 1.0
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None, example
    return (number, "") if least <= number <= 1e30 else (None, example)  # no chip has more


def _unit(key: str) -> tuple[str, str]:
    if key.startswith("peak_"):
        return "flop/s", "FLOPs a second, e.g. 459e12 or '459 TFLOP/s'"
    if key.endswith("_per_second"):
        return "b/s", "bytes a second, e.g. 2765e9 or '2765 GB/s'"
    if key.endswith("_seconds"):
        return "s", "seconds, e.g. 1e-6 or '1 µs'"
    if key.endswith("_hz"):
        return "hz", "cycles a second, e.g. 1.05e9 or '1050 MHz'"
    return "b", "bytes, e.g. 95 * 2**30 or '95 GiB'"


def _with_unit(text: str, unit: str) -> float | None:
    """A text such as `95 GiB` in SI units; None where it is no quantity of this unit."""
    match = _QUANTITY.fullmatch(text.strip())
    if not match:
        return None
    number, prefix, of = float(match[1]), match[2] or "", match[3].casefold()
    bits = 8 if of == "bit/s" else 1
    if {"flops": "flop/s", "op/s": "flop/s", "bit/s": "b/s"}.get(of, of) != unit:
        return None
    if unit == "s":
        return number * _PARTS[prefix] if prefix in _PARTS else None
    power = _POWERS.get(prefix.casefold().removesuffix("i"))
    if power is None:
        return None
    scaled = number * (1024 if prefix.endswith("i") else 1000) ** power / bits
    return int(scaled) if scaled.is_integer() else scaled


def _sizes(key: str, value: Any) -> tuple[list[int] | None, str]:
    parts = value.split("x") if isinstance(value, str) else value
    parts = [read_whole(part) if isinstance(part, str) else part for part in parts or ()]
    found = [as_whole_size(part) for part in parts]
    sizes = [size for size in found if size is not None]
    wrong = not sizes or len(sizes) < len(found) or (key == "tile" and len(sizes) != 2)
    what = "two whole numbers, e.g. '128x128'" if key == "tile" else "whole numbers, e.g. '16x16'"
    if key == "pod" and not wrong and math.prod(sizes) > 2**16:
        wrong, what = True, "at most 65,536 chips"
    return (None, what) if wrong else (sizes, "")
