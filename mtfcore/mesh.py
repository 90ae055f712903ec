"""A mesh: named axes with sizes, a way to name devices (Mesh-TensorFlow, section 4). It is not the wires.

    >>> mesh = mtf.Mesh("rows:4 cols:2")
    >>> mesh.size, mesh.coordinates(3), mesh.device({"rows": 1, "cols": 1})
    (8, {'rows': 1, 'cols': 1}, 3)

Devices are numbered row by row: the last axis counts fastest. Next file to read: `placing`.
"""

from __future__ import annotations

import math
import operator
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mtfcore.errors import LayoutError, in_order, nearest, refuse
from mtfcore.notation import (
    NAME_RULE,
    PARTIAL,
    as_size,
    as_whole,
    format_axes,
    is_name,
    looks_like_run,
    parse,
    too_long,
)  # fmt: skip

DeviceLike = int | Mapping[str, int]


@dataclass(frozen=True, init=False, repr=False)
class Mesh:
    """Named axes with sizes, in order. `Mesh("rows:4 cols:2")`, `Mesh(rows=4, cols=2)` and pairs are the same."""

    axes: tuple[tuple[str, int], ...]

    def __init__(self, axes: str | Mesh | Mapping[str, int] | Iterable[tuple[str, int]] = (), /, **more: int) -> None:
        pairs = (*_pairs(axes), *more.items())
        refuse(_faults(pairs), f"mesh '{_shown(pairs)}'")
        object.__setattr__(self, "axes", tuple((name, as_size(size)) for name, size in pairs))

    @property
    def names(self) -> tuple[str, ...]:
        """The axis names, in order."""
        return tuple(name for name, _ in self.axes)

    @property
    def shape(self) -> dict[str, int]:
        """Axis name → size."""
        return dict(self.axes)

    @property
    def size(self) -> int:
        """How many devices the mesh names."""
        return math.prod(size for _, size in self.axes)

    def __getitem__(self, axis: str) -> int:
        for name, size in self.axes:
            if name == axis:
                return size
        raise LayoutError(f"mesh '{self}' has no axis {axis!r}; {nearest(axis, self.names)}")

    def __contains__(self, axis: object) -> bool:
        return axis in self.names

    def __str__(self) -> str:
        return " ".join(f"{name}:{size}" for name, size in self.axes)

    def __repr__(self) -> str:
        return f"Mesh({str(self)!r})"

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        from mtfcore.rendering import render_mesh

        return render_mesh(self, path, subtree_renderer)

    def mesh_tensorflow(self) -> str:
        """The string that Mesh-TensorFlow reads: `rows:4;cols:2`."""
        return ";".join(f"{name}:{size}" for name, size in self.axes)

    def group_size(self, axes: Iterable[str]) -> int:
        """How many devices differ only along these axes."""
        return math.prod(self[axis] for axis in axes)

    def coordinates(self, device: DeviceLike) -> dict[str, int]:
        """Axis → position of a device given by index (or by coordinates, which are checked and returned).

        Raises `LayoutError` for a device that the mesh lacks.

            >>> mesh.coordinates(3)
            {'rows': 1, 'cols': 1}
        """
        if isinstance(device, Mapping):
            return self._checked(device)
        index = _position(device)
        if index is None or not 0 <= index < self.size:
            raise LayoutError(f"mesh '{self}' has devices 0 to {self.size - 1}, not {device!r:.200}")
        found = {}
        for name, size in reversed(self.axes):
            index, found[name] = divmod(index, size)
        return {name: found[name] for name in self.names}

    def device(self, coordinates: DeviceLike) -> int:
        """The index of the device at these coordinates."""
        position, index = self.coordinates(coordinates), 0
        for name, size in self.axes:
            index = index * size + position[name]
        return index

    def block(self, device: DeviceLike, axes: Iterable[str]) -> int:
        """Which block a device holds of something cut over `axes`, outermost first."""
        position, index = self.coordinates(device), 0
        for axis in axes:
            index = index * self[axis] + position[axis]
        return index

    def _checked(self, coordinates: Mapping[str, int]) -> dict[str, int]:
        faults = [f"no axis {name!r}; {nearest(name, self.names)}" for name in coordinates if name not in self]
        faults += [f"axis {name!r} is missing" for name in self.names if name not in coordinates]
        faults += [
            f"{name} runs from 0 to {size - 1}, not {coordinates[name]!r}"
            for name, size in self.axes
            if name in coordinates and _position(coordinates[name], -1) not in range(size)
        ]
        refuse(faults, f"device {dict(coordinates)} on mesh '{self}'")
        return {name: operator.index(coordinates[name]) for name in self.names}


def as_mesh(mesh: Mesh | str) -> Mesh:
    """A mesh given as one or in any form that `Mesh` reads."""
    return mesh if isinstance(mesh, Mesh) else Mesh(mesh)


def _position(value: object, otherwise: int | None = None) -> int | None:
    """A whole number of any type (numpy's too), or `otherwise`."""
    number = as_whole(value)
    return otherwise if number is None else number


def _pairs(axes: Any) -> tuple[tuple[str, Any], ...]:
    """Names with what was given as their sizes, not checked yet."""
    if isinstance(axes, Mesh):
        return axes.axes
    if isinstance(axes, str):
        return tuple((item.name, item.size if item.axes is None else item.axes) for item in parse(axes))
    if isinstance(axes, Mapping):
        return tuple(axes.items())
    pairs = tuple(axes) if in_order(axes) else (axes,)
    if bad := [pair for pair in pairs if not isinstance(pair, (tuple, list)) or len(pair) != 2]:
        raise LayoutError(
            f"expected mesh axes with sizes, such as 'rows:4 cols:2' or [('rows', 4), ('cols', 2)], got {bad[0]!r:.200}"
        )
    return tuple((name, size) for name, size in pairs)


def _shown(pairs: tuple[tuple[object, object], ...]) -> str:
    """The axes as they were given, faults and all."""
    words = [(name, format_axes(size) if isinstance(size, tuple) else size) for name, size in pairs]
    return " ".join(str(name) if size is None else f"{name}:{size}" for name, size in words)[:200]


def _faults(axes: tuple[tuple[str, int], ...]) -> list[str]:
    faults = []
    for name, size in axes:
        if not is_name(name):
            faults.append(f"{name!r:.200} is not a name: {NAME_RULE}")
        elif looks_like_run(name):
            run = ", ".join(name)
            faults.append(f"axis {name!r} reads as the run of axes {run}; use another name, e.g. 'axis_{name}'")
        elif not name.isascii():  # XLA ends the whole process over them
            plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
            offer = plain if is_name(plain) else "rows"
            what = "names of axes have only letters a to z, digits and _ (those of dimensions have any letters)"
            faults.append(f"axis {name!r}: {what}; use another, e.g. {offer!r}")
        elif name == PARTIAL:
            faults.append(f"{PARTIAL!r} is a reserved name; use another, e.g. 'parts'")
        if size is None:
            faults.append(f"axis {name!r} has no size; write {name}:2, say")
        elif as_size(size) is None:
            shown = format_axes(size) if isinstance(size, tuple) else size
            faults.append(f"axis {name!r:.200} has size {shown!r:.200}; a size is a whole number, at least 1")
        elif long := too_long(int(size)):
            faults.append(f"axis {name!r:.200} has {long}")
    names = Counter(name for name, _ in axes if is_name(name))
    twice = [(name, count) for name, count in names.items() if count > 1]
    return faults + [f"axis {name!r} stands {count} times; names must differ" for name, count in twice]
