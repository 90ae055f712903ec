"""Where a result is wanted, made exact and checked: what the planner asks before it looks for steps.

Next file to read: `choosing`.
"""

from __future__ import annotations

from mtfcore.errors import LayoutError, refuse
from mtfcore.sharding import Sharding


def summable(s: Sharding, dtype: str) -> Sharding:
    """The sharding itself; refuses partial sums of truth values."""
    if s.partial and dtype == "bool":
        raise LayoutError(f"tensor '{s}' is bool, which has no sums, and so no partial ones; leave partialsum out")
    return s


def exact(dims: tuple, given: str | Sharding) -> Sharding:
    """The sharding of a tensor of these dimensions that a text or another sharding gives."""
    if not isinstance(given, Sharding):
        return Sharding(dims, given)
    sizes = {dim.name: dim.size for dim in dims}
    other = [dim for dim in given.dims if dim.name in sizes and dim.size not in (None, sizes[dim.name])]
    refuse([f"{dim.name} has size {sizes[dim.name]}, the sharding given says {dim}" for dim in other])
    return Sharding(dims, given.text())
