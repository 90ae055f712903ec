"""A sharding as JAX writes it, read and written: `PartitionSpec("rows", None)` is `batch:rows io`.

    >>> mtf.Sharding("batch:64 io:512", "batch:rows io").partition_spec()
    PartitionSpec('rows', None)

Next file to read: `layout`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtfcore.dims import Dim
from mtfcore.errors import LayoutError, refuse
from mtfcore.notation import NAME_RULE, format_items, is_name, looks_like_run
from mtfcore.placing import Axes

if TYPE_CHECKING:
    from jax.sharding import PartitionSpec


def read(dims: tuple[Dim, ...], spec: object) -> tuple[tuple[Axes, ...], Axes]:
    """The axes of each dimension, none for entries that are missing; and those that JAX calls unreduced."""
    entries = _entries(spec)
    if len(entries) > len(dims):
        names = ", ".join(dim.name for dim in dims) or "(none)"
        raise LayoutError(f"{spec} has {len(entries)} entries for the {len(dims)} dimensions {names}")
    axes: list[Any]
    axes = [() if entry is None else (entry,) if isinstance(entry, str) else entry for entry in entries]
    partial = tuple(sorted(getattr(spec, "unreduced", ())))
    faults = [
        f"{axis!r:.200} cannot name a mesh axis: {NAME_RULE}, and no run such as 'xyz'"
        for on in (*axes, partial)
        for axis in (on if isinstance(on, (tuple, list)) else (on,))
        if not is_name(axis) or looks_like_run(axis)
    ]
    refuse(faults, f"{spec!r:.200}")
    return (*axes, *[()] * (len(dims) - len(axes))), partial


def _entries(spec: object) -> tuple[object, ...]:
    found = getattr(spec, "partitions", spec)  # a spec with unreduced axes does not iterate
    if not isinstance(found, (tuple, list)):
        raise LayoutError(f"expected a PartitionSpec such as P('x', None), got {type(spec).__name__}: {spec!r:.200}")
    return tuple(found)


def written(names: tuple[str, ...], axes: tuple[Axes, ...], partial: Axes, text: str) -> PartitionSpec:
    """The spec; refuses partial sums. `text` is the tensor as messages name it."""
    if partial:
        raise LayoutError(
            f"no PartitionSpec is made for the partial sums of '{text}'; reduce them first, "
            f"e.g. mtf.reshard(t, '{format_items(names, axes)}')"
        )
    from jax.sharding import PartitionSpec

    return PartitionSpec(*[None if not on else on[0] if len(on) == 1 else on for on in axes])
