"""Words about steps, and where two lists of steps part.

    >>> differing(["a", "b", "c"], ["a", "c", "d"])
    ([1], [2])

Next file to read: `program`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import mtfcore as mtf
from mtfcore.steps import Step
from mtfcore.traffic import COLLECTIVES


def label(step: Step) -> str:
    """What it does as people write it: `reduce-scatter over x into F`."""
    words = step.label()
    return words.replace(step.kind, step.kind.replace("_", "-"), 1) if step.kind in COLLECTIVES else words


def sum_words(sharding: mtf.Sharding) -> str:
    """How a partial sum is said."""
    return f"each device holds one addend of a sum over {' '.join(sharding.partial)}"


def differing(first: Sequence[object], second: Sequence[object]) -> tuple[list[int], list[int]]:
    """The places of each sequence that the other lacks, like parts laid side by side."""
    mine: list[int] = []
    theirs: list[int] = []
    for same, a, b, c, d in difflib.SequenceMatcher(a=first, b=second, autojunk=False).get_opcodes():
        if same != "equal":
            mine += range(a, b)
            theirs += range(c, d)
    return mine, theirs


def part_words(dims: Sequence[mtf.Dim], slices: Sequence[slice]) -> str:
    """Which part of the whole tensor a device holds: `batch 16–31 of 64, io whole`."""
    return ", ".join(_one(dim, held) for dim, held in zip(dims, slices, strict=True)) or "the one value"


def _one(dim: mtf.Dim, held: slice) -> str:
    if held.stop - held.start == dim.size:
        return f"{dim.name} whole"
    last = f"–{held.stop - 1}" if held.stop - held.start > 1 else ""
    return f"{dim.name} {held.start}{last} of {dim.size}"


def device_words(coordinates: Mapping[str, int], device: int) -> str:
    """A device by its number and its place: `device 3 (rows 1, cols 1)`."""
    where = ", ".join(f"{axis} {place}" for axis, place in coordinates.items())
    return f"device {device} ({where})" if where else f"device {device}"
