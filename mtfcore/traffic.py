"""How many bytes a collective sends, and along which mesh axes.

    >>> link_bytes("all_reduce", 1024, 4)                  # a ring: reduce-scatter, then all-gather
    1536

Source: arXiv 2211.05102, appendix A.1, with (K-1)/K kept exact. Next file to read: `steps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

from mtfcore.mesh import Mesh

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "halo_exchange")


def link_bytes(kind: str, n_bytes: int, group: int) -> int | Fraction:
    """Bytes that one device sends in a collective of a group, holding `n_bytes` before (ring algorithms, exact).

    Source: arXiv 2211.05102, appendix A.1, with (K-1)/K kept exact. A group of one sends nothing.
    """
    if group == 1 or kind not in COLLECTIVES:
        return 0
    if kind == "all_gather":
        return n_bytes * (group - 1)
    sent = Fraction(n_bytes) if kind in ("permute", "halo_exchange") else Fraction(n_bytes * (group - 1), group)
    sent = 2 * sent if kind == "all_reduce" else sent
    return int(sent) if sent.denominator == 1 else sent


class Traffic(float):
    """Bytes sent by one device: a number (the total) that also knows its parts, `.by_axis` and `["x"]`."""

    by_axis: dict[str, float]

    def __new__(cls, by_axis: Mapping[str, float | Fraction]) -> Traffic:
        self = super().__new__(cls, sum(by_axis.values()))
        self.by_axis = {axis: plain_bytes(sent) for axis, sent in by_axis.items()}
        return self

    def __getnewargs__(self) -> tuple:
        return (self.by_axis,)  # for copies and pickles

    @property
    def total(self) -> float:
        return plain_bytes(Fraction(float(self)))

    def __getitem__(self, axis: str) -> float:
        return self.total if axis == "total" else self.by_axis[axis]


def plain_bytes(number: float | Fraction) -> float | int:
    """Exact bytes, which may be a fraction, as JSON has numbers: whole ones stay whole."""
    return int(number) if number == int(number) else float(number)


class Sends(Protocol):
    """What tells how bytes fall on axes: a planned collective, or a compiled one."""

    @property
    def kind(self) -> str: ...
    @property
    def axes(self) -> tuple[str, ...]: ...
    @property
    def link_bytes(self) -> int | Fraction: ...


def split_by_axis(step: Sends, mesh: Mesh) -> dict[str, Fraction]:
    """How a collective's bytes fall on its axes; the sum is exactly `step.link_bytes`."""
    if step.kind in ("permute", "halo_exchange"):  # neighbours along several axes mostly differ in the innermost
        return {step.axes[0 if step.kind == "permute" else -1]: Fraction(step.link_bytes)}
    total, done, parts = Fraction(step.link_bytes), 1, {}
    for axis in step.axes:  # outermost first: n(k-1)/k of all, then the same of what is left
        size = mesh[axis]
        parts[axis] = Fraction(size - 1, done * size)
        done *= size
    whole = sum(parts.values())
    return {axis: total * part / whole if whole else Fraction(0) for axis, part in parts.items()}
