"""The collectives of a compiled text: what each device sends, with whom, over which mesh axes, how often, and when.

    >>> report.collectives[3]
    <all_reduce over x of 1.12 MiB x 118: %all-reduce.8>

Shapes are those of one device. Devices are numbered as the mesh numbers them, so groups tell the mesh axes. Next file
to read: `matching`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mtfcore.compiling.schedule import Schedule, Slot
from mtfcore.counting.facts import Bytes, sent_bytes
from mtfcore.counting.hlo_text import collective
from mtfcore.errors import sure
from mtfcore.mesh import Mesh
from mtfcore.notation import format_axes
from mtfcore.numbers import format_bytes

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Sent:
    """One collective instruction as compiled."""

    kind: str
    axes: tuple[str, ...]  # the mesh axes along which its groups differ, in the mesh's order
    whole: bool  # False: groups are parts of those axes
    group: int
    parts: tuple[int, ...]  # bytes that one device holds before, of each array it sends
    dtypes: tuple[str, ...]
    times: int
    is_async: bool  # starts, and ends later: other work may run meanwhile
    name: str
    step: str  # the planned step that its text names; empty where the compiler dropped that
    groups: Groups
    wrapper: str = ""  # the fusion around it, where a compiler gave it one

    @property
    def n_bytes(self) -> int:
        """Bytes that one device holds before, all arrays together."""
        return sum(self.parts)

    @property
    def link_bytes(self) -> Bytes:
        """Bytes that one device sends each time."""
        return sent_bytes(self.kind, self.n_bytes, self.group)

    @property
    def where(self) -> str:
        """The mesh axes in words."""
        if not self.axes:
            return "one device"
        return format_axes(self.axes) + ("" if self.whole else f" (parts of {self.group})")

    def __repr__(self) -> str:
        turns = f" x {self.times}" if self.times > 1 else ""
        return f"<{self.kind} over {self.where} of {format_bytes(self.n_bytes)}{turns}: %{self.name}>"


def collectives(schedule: Schedule, mesh: Mesh) -> list[Sent]:
    """All that a schedule sends, in its order; groups of one device are left out."""
    found = [_sent(slot, schedule, mesh) for slot in schedule.slots if slot.kind]
    return [sent for sent in found if sent.group > 1]


def _sent(slot: Slot, schedule: Schedule, mesh: Mesh) -> Sent:
    counts = collective(slot.instruction, sure(slot.kind), slot.home, schedule.module)
    arrays = (*counts.collectives, *counts.free)
    groups = arrays[0].groups
    axes, whole = axes_of(groups, mesh)
    whole = whole or slot.kind == "permute"  # pairs, not groups
    wrapper = slot.inside.name if slot.inside else ""
    return Sent(
        _kind(slot), axes, whole, arrays[0].group_size, tuple(int(a.n_bytes) for a in arrays),
        tuple(a.dtype for a in arrays), slot.times, slot.is_async, slot.instruction.name, _step(slot),
        groups, wrapper,
    )  # fmt: skip


def _kind(slot: Slot) -> str:
    """A TPU's fusion of an all-reduce and the slice of each device's own part is a reduce-scatter."""
    calls = slot.inside.attributes.get("calls", "") if slot.inside else ""
    return "reduce_scatter" if calls.lstrip("%").startswith("all-reduce-scatter") else sure(slot.kind)


def _step(slot: Slot) -> str:
    """The step it was lowered from: of what it says and its wrapper, the wrapper first where several may share it."""
    outer = Slot(slot.inside, slot.home).step if slot.inside else ""
    is_shared = slot.inside is not None and slot.inside.opcode == "async-start"
    return (outer if is_shared else "") or slot.step or outer


def axes_of(groups: Groups | Sequence[Sequence[int]], mesh: Mesh) -> tuple[tuple[str, ...], bool]:
    """The mesh axes along which devices of one group differ, and whether groups are the whole of those axes."""
    used: set[str] = set()
    for group in groups:
        places = np.array(np.unravel_index(np.array(group), [size for _, size in mesh.axes]))
        used |= {name for name, row in zip(mesh.names, places, strict=True) if len(set(row.tolist())) > 1}
    axes = tuple(name for name in mesh.names if name in used)
    size = mesh.group_size(axes)
    return axes, all(len(group) == size for group in groups)


def total_link_bytes(sent: Iterable[Sent]) -> Bytes:
    """Bytes that one device sends in all, loops multiplied."""
    total = sum((Fraction(one.times * one.link_bytes) for one in sent), Fraction(0))
    return int(total) if total.denominator == 1 else total
