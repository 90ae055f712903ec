"""A dimension: a name and a size, `batch:64` (Mesh-TensorFlow, section 4).

    >>> mtf.dims.parse_dims("batch:64 io:512")
    (Dim('batch', 64), Dim('io', 512))

Next file to read: `mesh`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mtfcore.errors import LayoutError, NotationError, in_order, refuse, sure
from mtfcore.notation import NAME_RULE, PARTIAL, as_size, format_axes, is_name, parse, too_long


@dataclass(frozen=True, slots=True)
class Dim:
    """A named dimension; the size is None where only the name is known yet."""

    name: str
    size: int | None = None

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise NotationError(f"{self.name!r:.200} is not a name: {NAME_RULE}")
        if self.name == PARTIAL:
            raise LayoutError(f"{PARTIAL!r} is a reserved name and cannot be a dimension; rename it, e.g. 'partial'")
        if self.size is None:
            return
        if (size := as_size(self.size)) is None:
            what = f"dimension {self.name} has size {self.size!r:.200}"
            raise LayoutError(f"{what}; a size is a whole number, at least 1")
        if long := too_long(size):
            raise LayoutError(f"dimension {self.name} has {long}")
        if type(self.size) is not int:
            object.__setattr__(self, "size", size)

    def __repr__(self) -> str:
        return f"Dim({self.name!r}, {self.size})"

    def __str__(self) -> str:
        return self.name if self.size is None else f"{self.name}:{self.size}"


DimsLike = str | Iterable[Dim | str | tuple[str, int]] | Mapping[str, int]


def parse_dims(dims: DimsLike) -> tuple[Dim, ...]:
    """Read dimensions from a text, a mapping, or a sequence of Dim, names and pairs; names must differ."""
    if isinstance(dims, str):
        found = _from_text(dims)
    elif isinstance(dims, Mapping):
        found = tuple(Dim(name, size) for name, size in dims.items())
    elif in_order(dims):
        found = tuple(_one(entry) for entry in dims)
    else:
        raise LayoutError(f"expected dimensions such as 'batch:64 io:512', got {type(dims).__name__}: {dims!r:.200}")
    refuse(repeated_names([dim.name for dim in found]), f"dimensions '{' '.join(map(str, found))}'")
    return found


def _from_text(text: str) -> tuple[Dim, ...]:
    items = parse(text)
    faults = [
        f"{item.name} names a mesh axis, {item.name}:{format_axes(item.axes)}"
        for item in items
        if item.axes and item.name != PARTIAL
    ]
    refuse(faults, f"dimensions '{text}' (only names and sizes are read here)")
    return tuple(Dim(item.name, item.size) for item in items)


def _one(entry: Dim | str | tuple[str, int]) -> Dim:
    if isinstance(entry, Dim):
        return entry
    found = _from_text(entry) if isinstance(entry, str) else ()
    if len(found) == 1:
        return found[0]
    if isinstance(entry, (tuple, list)) and len(entry) == 2:
        return Dim(*entry)
    raise LayoutError(f"expected one dimension such as 'batch:64' or ('batch', 64), got {entry!r:.200}")


def repeated_names(names: Iterable[str]) -> list[str]:
    """A fault for each name that stands twice in one tensor, with the rename that mends it."""
    return [
        f"dimension {name!r} stands {count} times in one tensor; rename one of them, e.g. {name!r} and '{name}_out' "
        "(two names may lie on different mesh axes, so each needs its own layout rule)"
        for name, count in Counter(names).items()
        if count > 1
    ]


def volume(dims: Iterable[Dim]) -> int:
    """The number of elements."""
    return math.prod(sure(dim.size) for dim in dims)


def divisors(n: int) -> list[int]:
    """All whole numbers that divide n, ascending."""
    low = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return sorted({*low, *(n // d for d in low)})
