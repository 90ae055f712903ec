"""How a collective runs, in words: what every cost of one must say.

    >>> words([Leg(4, True, 4.5e10, "links", 1e-6)], How(), hop_seconds=2e-6)
    'two-way ring, exact (K−1)/K, hop floor 2 µs'

Algorithm, one-way or both-way rate, exact or large-K ((K−1)/K taken as 1, as papers do), hop floor.
Next file to read: `routing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtfcore.costs.links.numbers_or_arrays import Number, is_array
from mtfcore.numbers import format_seconds

if TYPE_CHECKING:
    from mtfcore.costs.links.collectives import How
    from mtfcore.costs.links.wiring import Leg


def words(legs: Sequence[Leg], how: How, hop_seconds: Number) -> str:
    """All of it in one phrase."""
    if not legs:
        return "a group of one: nothing is sent"
    return f"{_algorithm(legs, how)}, {'exact (K−1)/K' if how.exact else 'large-K'}, {_floor(hop_seconds)}"


def _algorithm(legs: Sequence[Leg], how: How) -> str:
    """`two-way ring and two-way line over 2 axes at once`: a line's links always carry both ways."""
    names, ring = [], "two-way ring" if how.way == "both" else "one-way ring"
    for leg in legs:
        joined = [ring] * bool(np.any(leg.wraps)) + ["two-way line"] * (not np.all(leg.wraps))
        names += ["direct at the one-way rate"] if leg.direct else joined
    over = f" over {len(legs)} axes {_order(legs, how)}" if len(legs) > 1 else ""
    return " and ".join(dict.fromkeys(names)) + over


def _order(legs: Sequence[Leg], how: How) -> str:
    few = how.busy_axes is not None and how.busy_axes < len(legs)
    return "in turn" if not how.at_once else f"at once, {how.busy_axes} of them busy" if few else "at once"


def _floor(hop_seconds: Number) -> str:
    if is_array(hop_seconds):
        return "hop floor"
    return f"hop floor {format_seconds(hop_seconds)}" if hop_seconds else "no hop floor"
