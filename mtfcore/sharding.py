"""Where one tensor lies: for each dimension its mesh axes in order, and the axes it still has to be summed over.

    >>> s = mtf.Sharding("B:64 L:1 E:18432", "E:xyz")
    >>> s, s.local_shape(mtf.Mesh("x:4 y:4 z:4"))
    (Sharding('B:64 L:1 E:18432', 'B L E:xyz'), (64, 1, 288))

One mesh axis can be three things to one tensor: on a dimension (at a place in that dimension's order), unused
(the devices along it hold copies), or partial (each device along it holds an addend). Order matters:
`batch:16` on (x:4, y:2) gives device (x=1, y=0) rows 4-5, on (y, x) rows 2-3. Both papers' layouts are such
objects (arXiv 1811.02084, section 5; arXiv 2211.05102, section 3.1). Next file to read: `layout`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from mtfcore import partition_specs
from mtfcore.dims import Dim, DimsLike, parse_dims
from mtfcore.dtypes import itemsize
from mtfcore.errors import LayoutError, nearest, refuse, sure
from mtfcore.mesh import DeviceLike, Mesh, as_mesh
from mtfcore.notation import (
    PARTIAL,
    format_items,
    format_paper,
    parse,
    parse_paper,
)  # fmt: skip
from mtfcore.placing import Axes, axis_twice, placed_by, uneven

if TYPE_CHECKING:
    from jax.sharding import NamedSharding, PartitionSpec


@dataclass(frozen=True, init=False, repr=False)
class Sharding:
    """One tensor's dimensions and where they lie; hashable, and equal only with the same order of axes."""

    dims: tuple[Dim, ...]
    axes: tuple[Axes, ...]
    partial: Axes

    def __init__(self, dims: DimsLike, placed: str | None = None, /) -> None:
        """`dims` with sizes, then where they lie; dimensions that `placed` leaves out are whole.

        One text with both works where no sizes are needed: `Sharding("B L E:xyz")`.
        """
        if isinstance(dims, str) and (placed is None or (isinstance(placed, str) and not placed.strip())):
            items = parse(dims)
            dims = [Dim(item.name, item.size) for item in items if item.name != PARTIAL]
        else:
            items = parse("" if placed is None else placed)
        self._set(*placed_by(parse_dims(dims), items))

    def _set(self, dims: tuple[Dim, ...], axes: tuple[Axes, ...], partial: Axes) -> Sharding:
        object.__setattr__(self, "dims", dims)
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "partial", partial)
        object.__setattr__(self, "_hash", hash((dims, axes, partial)))
        if faults := axis_twice(self.names, axes, partial):
            refuse(faults, f"tensor '{self}'")
        return self

    @classmethod
    def of(cls, dims: tuple[Dim, ...], axes: tuple[Axes, ...], partial: Axes = ()) -> Sharding:
        """Build from parts, as the rules do.

        `dims`: with sizes; `axes`: for each its mesh axes, outermost first; `partial`: axes of a partial sum.

        Raises `LayoutError` where an axis is used twice.

            >>> mtf.Sharding.of(s.dims, (("cols",), ()))
            Sharding('batch:64 io:512', 'batch:cols io')
        """
        return _made(tuple(dims), tuple(map(tuple, axes)), tuple(partial))

    @classmethod
    def from_paper(cls, text: str, sizes: DimsLike = "") -> Sharding:
        """Read `BLE_xyz (partialsum-w)`. The subscripts of the paper carry no order: compare with `same_sets`.

        `text`: as arXiv 2211.05102, section 3.1, writes it; `sizes`: "B:64 L:1".

        Raises `LayoutError` for what does not read so.

            >>> mtf.Sharding.from_paper("BLE_xyz")
            Sharding('B L E', 'B L E:xyz')
        """
        items = parse_paper(text)
        known = {dim.name: dim.size for dim in parse_dims(sizes)}
        names = [item.name for item in items if item.name != PARTIAL]
        unknown = [f"sizes name {name!r}, which '{text}' does not; {nearest(name, names)}" for name in known]
        refuse([fault for name, fault in zip(known, unknown, strict=True) if name not in names])
        return cls.of(*placed_by(parse_dims([Dim(name, known.get(name)) for name in names]), items))

    @classmethod
    def from_partition_spec(cls, dims: DimsLike, spec: object) -> Sharding:
        """Read a `jax.sharding.PartitionSpec`, entry by entry; entries that are missing mean whole.

        Axes that JAX calls `unreduced` are partial sums here.

        `dims`: with sizes, in order; `spec`: the `PartitionSpec`.

        Raises `LayoutError` for more entries than dimensions.
        """
        dims = parse_dims(dims)
        return cls.of(dims, *partition_specs.read(dims, spec))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, in order."""
        return tuple(dim.name for dim in self.dims)

    @cached_property
    def on(self) -> dict[str, Axes]:
        """Dimension name → its axes, outermost first."""
        return dict(zip(self.names, self.axes, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """The whole tensor's sizes; refuses where one is unknown."""
        if missing := [dim.name for dim in self.dims if dim.size is None]:
            raise LayoutError(f"the size of {', '.join(missing)} is not known in '{self}'; write e.g. {missing[0]}:64")
        return tuple(sure(dim.size) for dim in self.dims)

    def used(self) -> Axes:
        """Every mesh axis that splits a dimension, in dimension order."""
        return tuple(axis for on in self.axes for axis in on)

    def used_size(self, mesh: Mesh) -> int:
        """Into how many parts the mesh cuts the tensor."""
        return mesh.group_size(self.used())

    def check(self, mesh: Mesh | str) -> Sharding:
        """Refuse unknown axes and sizes that do not divide, all at once.

        Returns the same sharding, its partial axes in the mesh's order (which has no meaning, so the rules fix it).
        """
        mesh = as_mesh(mesh)
        faults = [
            f"unknown mesh axis {axis!r} on {name}; {nearest(axis, mesh.names)}"
            for name, on in (*self.on.items(), (PARTIAL, self.partial))
            for axis in on
            if axis not in mesh
        ]
        for dim, on in zip(self.dims, self.axes, strict=True):
            faults += uneven(dim, tuple(axis for axis in on if axis in mesh) if faults else on, mesh)
        if faults:
            refuse(faults, f"tensor '{self._sized()}' on mesh '{mesh}'")
        partial = tuple(axis for axis in mesh.names if axis in self.partial) if len(self.partial) > 1 else self.partial
        return self if partial == self.partial else Sharding.of(self.dims, self.axes, partial)

    def local_shape(self, mesh: Mesh | str) -> tuple[int, ...]:
        """The shape that each device holds, in dimension order.

        `mesh`: "rows:4 cols:2", or the mesh itself.

        Raises `LayoutError` where a size does not divide or an axis is missing.

            >>> s.local_shape(mesh)
            (16, 256)
        """
        mesh = as_mesh(mesh)
        self.check(mesh)
        return tuple(size // mesh.group_size(on) for size, on in zip(self.shape, self.axes, strict=True))

    def slices(self, mesh: Mesh | str, device: DeviceLike) -> tuple[slice, ...]:
        """The index ranges that a device holds, one slice a dimension: `whole[s.slices(mesh, device)]`."""
        mesh = as_mesh(mesh)
        blocks = [mesh.block(device, on) for on in self.check(mesh).axes]
        return tuple(slice(n * block, n * (block + 1)) for n, block in zip(self.local_shape(mesh), blocks, strict=True))

    def bytes_per_device(self, mesh: Mesh | str, dtype: object = "f32") -> int:
        """Bytes that each device holds.

        `mesh` as in `local_shape`; `dtype`: that of an element.

        Raises `LayoutError` as `local_shape` does.

            >>> s.bytes_per_device(mesh, "bf16")
            8192
        """
        elements = itemsize(dtype)
        for size in self.local_shape(mesh):
            elements *= size
        return elements

    def copies(self, mesh: Mesh | str) -> int:
        """How many devices hold the same values; addends of a partial sum are not copies of each other.

        `mesh` as in `local_shape`.

        Raises `LayoutError` as `local_shape` does.

            >>> s.copies(mesh)
            1
        """
        mesh = as_mesh(mesh)
        return mesh.size // mesh.group_size((*self.check(mesh).used(), *self.partial))

    def partition_spec(self) -> PartitionSpec:
        """The same placement as a `jax.sharding.PartitionSpec`; a sharding with partial sums is refused."""
        return partition_specs.written(self.names, self.axes, self.partial, str(self))

    def named_sharding(self, devices: Any) -> NamedSharding:
        """The same placement as a `jax.sharding.NamedSharding`.

        `devices`: a `jax.sharding.Mesh`, or a `Mesh` to be laid on simulated devices.

        Raises `LayoutError` for partial sums, and `DeviceError` for fewer devices than the mesh needs.
        """
        from jax.sharding import NamedSharding

        if isinstance(devices, Mesh):
            from mtfcore.device_pool import simulated_mesh

            self.check(devices)
            devices = simulated_mesh(devices)
        return NamedSharding(devices, self.partition_spec())

    def same_sets(self, other: Sharding) -> bool:
        """Equal but for the order of axes within a dimension, as the second paper's subscripts are.

        `other`: the sharding to compare with.

            >>> s.same_sets(s)
            True

        Raises `LayoutError` if it is no sharding.

        Source: arXiv 2211.05102, section 3.1.
        """
        if not isinstance(other, Sharding):
            raise LayoutError(f"same_sets: expected another Sharding, got {type(other).__name__}: {other!r:.200}")
        mine, theirs = ([set(on) for on in (*s.axes, s.partial)] for s in (self, other))
        return self.names == other.names and mine == theirs

    def without(self, axes: Axes) -> Sharding:
        """The same without these axes (the rules drop axes of size 1 on entry)."""
        if not any(axis in axes for axis in (*self.used(), *self.partial)):
            return self
        kept = tuple(tuple(axis for axis in on if axis not in axes) for on in self.axes)
        return Sharding.of(self.dims, kept, tuple(axis for axis in self.partial if axis not in axes))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]  # set beside the fields, which alone are compared and shown

    def __reduce__(self) -> tuple:
        return Sharding.of, (self.dims, self.axes, self.partial)  # hashes of texts differ between processes

    def __str__(self) -> str:
        return format_paper(self.names, self.axes, self.partial) or self.text()

    def text(self) -> str:
        """The placement in the form that reads back: `B L E:xyz partialsum:w`."""
        return format_items(self.names, self.axes, self.partial)

    def _sized(self) -> str:
        """Sizes and placement together, for messages: `batch:10, on batch:x`."""
        if not any(dim.size for dim in self.dims):
            return self.text()
        return f"{' '.join(map(str, self.dims))}' placed '{self.text()}"

    def __repr__(self) -> str:
        return f"Sharding({' '.join(map(str, self.dims))!r}, {self.text()!r})"

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        from mtfcore.rendering import render_sharding

        return render_sharding(self, path, subtree_renderer)


@lru_cache(maxsize=100_000)
def _made(dims: tuple[Dim, ...], axes: tuple[Axes, ...], partial: Axes) -> Sharding:
    """One object for each sharding that the rules ask for again and again."""
    return object.__new__(Sharding)._set(dims, axes, partial)
