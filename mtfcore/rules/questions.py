"""The question how an operation is cut, and an answer: what the search of `choosing` is asked.

    >>> Question((x, w), out=(Dim("B", 8), Dim("F", 8)), linear="product").sizes
    {'B': 8, 'E': 1024, 'F': 8}

Next file to read: `choosing`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from mtfcore.dims import Dim
from mtfcore.errors import sure
from mtfcore.sharding import Sharding


@dataclass(frozen=True)
class Question:
    """What has to be decided for one operation; hashable, so answers are kept."""

    operands: tuple[Sharding, ...]
    out: tuple[Dim, ...]
    linear: str  # how partial sums may pass: in one ("product"), in the "first" or "second" only, in all ("sum")
    want: Sharding | None = None
    whole: frozenset[str] = frozenset()  # dimensions that no axis may cut during the operation
    combines: bool = False  # contracted dimensions are combined at once (max, min), never left partial
    free: bool = False  # search every axis, not only conflicts
    halo: tuple[tuple[str, int], ...] = ()  # rows of the first operand that neighbours send along a dimension
    forms: tuple[tuple[Sharding, ...], ...] = ()  # where else each operand lies already
    owes: bool = False  # the result stays where it is made: whoever adds it up with others brings it there

    @property
    def goal(self) -> Sharding | None:
        """Where the result goes now."""
        return None if self.owes else self.want

    def sources(self, operand: int) -> tuple[Sharding, ...]:
        """Every form of an operand, the usual one first."""
        return (self.operands[operand], *self.forms[operand]) if self.forms else (self.operands[operand],)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Every dimension that takes part, operands first, with its size; of two sizes what divides both counts."""
        dims = [dim for s in self.operands for dim in s.dims] + [dim for dim in self.out if dim.name not in self.whole]
        found: dict[str, int] = {}
        for dim in dims:
            found[dim.name] = math.gcd(found.get(dim.name, 0), sure(dim.size))
        return found


class Answer(NamedTuple):
    """Where each operand must lie, where the result then lies, and the bytes sent for it (with what is still owed)."""

    needs: tuple[Sharding, ...]
    result: Sharding
    cost: float
