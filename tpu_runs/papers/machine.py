"""One program for one slice, as data: what a record names, and all that is needed to compile it again.

    >>> one = Machine("palm-540b/decode/64@2079/...", "inference", "v4:4x4x4", {"model": "palm-540b", ...})
    >>> one.program()                                   # planned; nothing is compiled yet
    <Program decode …>

`kind` is the module of this package whose `program(params)` plans it. Next file to read: `inference`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtfcore.steps import Program

KINDS = ("inference", "training")


@dataclass(frozen=True)
class Machine:
    """A program and a slice. Names are unique and without spaces: parts joined by "/", the most telling first."""

    name: str
    kind: str
    topology: str
    params: Mapping[str, Any] = field(hash=False)  # plain JSON
    wiring: str = ""  # how the mesh lies on the slice; "": as `mtf.price` lays it
    partitioned: bool = False  # whole arrays for the compiler's partitioner
    timeline: bool = False  # whether its record keeps a picture of one layer

    def program(self) -> Program:
        """The planned program."""
        return importlib.import_module(f"tpu_runs.papers.{self.kind}").program(self.params)

    def asked(self) -> dict[str, Any]:
        """Plain JSON from which `machine_of` makes it again: the parameters of its record."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"params": dict(self.params)}


def machine_of(asked: Mapping[str, Any]) -> Machine:
    """From a record's parameters."""
    return Machine(**asked)
