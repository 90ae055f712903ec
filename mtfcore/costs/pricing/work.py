"""What one step asks of a device, as types: the shape of its product, what it reads and what it writes.

    >>> works(prog)[2].product.depth                       # the dimensions that are summed away, and their axes
    ((Dim('hidden', 2048), ('cols',)),)

Next file to read: `step_work`, which finds them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from mtfcore.dims import Dim
from mtfcore.errors import sure
from mtfcore.mesh import Mesh
from mtfcore.sharding import Axes, Sharding
from mtfcore.steps import Step

Local = tuple[tuple[Dim, Axes], ...]  # some dimensions of one device's part: each size is divided by its axes


class Product(NamedTuple):
    """A local matrix product: in both operands and the result; in one of the operands; and what is summed over."""

    batch: Local
    rows: Local
    columns: Local
    depth: Local


class Access(NamedTuple):
    """A part of a tensor that is read or written: `name` is the program's input that it is, "" a value between."""

    sharding: Sharding
    dtype: str
    name: str


Loops = tuple[tuple[str, int], ...]


class Work(NamedTuple):
    """One step, its `times` multiplied by those of the loops around it, and what it asks of a device each time."""

    step: Step
    loops: Loops  # around it: the dimension of the stack ("" where there is none), and how many turns
    product: Product | None
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    joins: bool = False  # a gather that only another gather reads: they could be one over all axes


class Source(NamedTuple):
    """A value in memory that a chain of fused steps starts from, and what of it arrives at the chain's end."""

    value: tuple[int, int]  # program, number of the value
    whole: Access
    part: Access
    cuts: tuple[int, ...]  # the values that cut a part out of it


Sources = tuple[Source, ...]


def local_size(local: Local, mesh: Mesh) -> int:
    """The number of places along these dimensions on one device."""
    return math.prod(sure(dim.size) // mesh.group_size(on) for dim, on in local)
