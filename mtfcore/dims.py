"""A dimension: a name and a size, `batch:64` (Mesh-TensorFlow, section 3).

    >>> mtf.dims.parse_dims("batch:64 io:512")
    (Dim('batch', 64), Dim('io', 512))

Next file to read: `mesh`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mtfcore.errors import LayoutError, NotationError, refuse
from mtfcore.notation import PARTIAL, is_name, parse


@dataclass(frozen=True, slots=True)
class Dim:
    """A named dimension; the size is None where only the name is known yet."""

    name: str
    size: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not is_name(self.name):
            raise NotationError(f"{self.name!r} is not a name: letters, digits and _ only, not starting with a digit")
        if self.name == PARTIAL:
            raise LayoutError(f"{PARTIAL!r} is a reserved name and cannot be a dimension; rename it, e.g. 'partial_sums'")
        if self.size is not None and (not isinstance(self.size, int) or isinstance(self.size, bool) or self.size < 1):
            raise LayoutError(f"dimension {self.name} has size {self.size!r}; a size is a whole number of at least 1")

    def __repr__(self) -> str:
        return f"Dim({self.name!r}, {self.size})"

    def __str__(self) -> str:
        return self.name if self.size is None else f"{self.name}:{self.size}"


DimsLike = str | Iterable[Dim | str | tuple[str, int]] | Mapping[str, int]


def parse_dims(dims: DimsLike) -> tuple[Dim, ...]:
    """Read dimensions from a text, a mapping, or a sequence of Dim, names and pairs; names must differ."""
    if isinstance(dims, str):
        found = tuple(_from_item(dims, item) for item in parse(dims))
    elif isinstance(dims, Mapping):
        found = tuple(Dim(name, size) for name, size in dims.items())
    else:
        found = tuple(_one(entry) for entry in dims)
    refuse(repeated_names([dim.name for dim in found]), f"dimensions '{' '.join(map(str, found))}'")
    return found


def _from_item(text: str, item: object) -> Dim:
    if item.axes is not None and item.name != PARTIAL:
        raise NotationError(f"{text!r}: {item.name} names mesh axes {item.axes}; here only names and sizes are read")
    return Dim(item.name, item.size)


def _one(entry: Dim | str | tuple[str, int]) -> Dim:
    if isinstance(entry, Dim):
        return entry
    if isinstance(entry, str):
        (only,) = parse_dims(entry)
        return only
    return Dim(*entry)


def repeated_names(names: Iterable[str]) -> list[str]:
    """A fault for each name that stands twice in one tensor, with the rename that mends it (case S02)."""
    return [
        f"dimension {name!r} stands {count} times in one tensor; rename one of them, e.g. {name!r} and '{name}_out' "
        "(two names may lie on different mesh axes, so each needs its own layout rule)"
        for name, count in Counter(names).items()
        if count > 1
    ]


def volume(dims: Iterable[Dim]) -> int:
    """The number of elements."""
    return math.prod(dim.size for dim in dims)
