"""A collective as hops in time: which piece goes over which link at which step. Pure data, for drawing and pricing.

    >>> plan = schedules.schedule("all_gather", (4,), "ring", n_bytes=100)
    >>> print(plan.at(1)[0])
    step 1: 0 → 1, block 0, 100 bytes, stored
    >>> plan.steps, plan.max_sent_bytes, plan.busiest_link_bytes
    (3, 300, 300)

Devices are positions in the group, 0 … g-1, unless the schedule was placed on a mesh (`of_step`).
Next file to read: `grid`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from mtfcore.numbers import count
from mtfcore.schedules.grid import Link

Bytes = int | Fraction
ROUTED = ("all_to_all", "permute", "halo_exchange")  # each piece has one sender and one receiver


class Piece(NamedTuple):
    """What travels: one part of one block.

    `block` is the number of the block in the whole array (all-gather, reduce-scatter, all-reduce), or the position of
    the device that the block comes from; then `target` is the position of the one that it is for.
    """

    block: int
    part: int = 0
    target: int | None = None

    def __str__(self) -> str:
        whose = f"{self.block}" if self.target is None else f"{self.block}→{self.target}"
        return f"{f'part {self.part} of ' if self.part else ''}block {whose}"


class Hop(NamedTuple):
    """One message: at a step some pieces go over one link, all together; the receiver stores or adds them."""

    time: int  # the step, from 1
    source: int
    target: int
    pieces: tuple[Piece, ...]
    n_bytes: Bytes
    link: Link
    combine: str  # "store" or "add"
    parts: int = 1  # every block is cut into so many

    def __str__(self) -> str:
        done = {"store": "stored", "add": "added"}[self.combine]
        return f"step {self.time}: {self.source} → {self.target}, {self.label()}, {self.n_bytes} bytes, {done}"

    def label(self) -> str:
        """The pieces in words: `block 3`, `1/2 of block 3`, `blocks 2→4, 2→5` (from 2, for 4 and 5)."""
        found = Counter((piece.block, piece.target) for piece in self.pieces)
        names = [f"{block}" if target is None else f"{block}→{target}" for block, target in found]
        share = Fraction(max(found.values()), self.parts)
        return f"{f'{share} of ' if share < 1 else ''}block{'s' if len(names) > 1 else ''} {', '.join(names)}"


@dataclass(frozen=True, eq=False)
class Schedule:
    """All hops of one collective in one group of devices, ordered by step."""

    kind: str
    sizes: tuple[int, ...]
    ways: tuple[str, ...]
    n_bytes: int  # what one device holds before
    parts: int  # every block is cut into so many equal parts
    piece_bytes: Bytes  # of one part of one block: exact, a fraction where it does not divide
    hops: tuple[Hop, ...]
    name: str
    source: str  # where the algorithm is described
    devices: tuple[int, ...]  # position in the group → the number by which hops call the device
    pairs: tuple[tuple[int, int], ...] = ()  # permute: (from, to), as positions

    @property
    def group(self) -> int:
        """How many devices take part."""
        return len(self.devices)

    @property
    def steps(self) -> int:
        """How many steps it takes; all messages of a step travel at the same time."""
        return self.hops[-1].time if self.hops else 0

    @cached_property
    def by_step(self) -> tuple[tuple[Hop, ...], ...]:
        """The hops of each step, in order."""
        found: list[list[Hop]] = [[] for _ in range(self.steps)]
        for hop in self.hops:
            found[hop.time - 1].append(hop)
        return tuple(map(tuple, found))

    def at(self, step: int) -> tuple[Hop, ...]:
        """The hops of one step, counted from 1."""
        return self.by_step[step - 1]

    # ---- bytes -------------------------------------------------------------------------------------------------

    @cached_property
    def sent_bytes(self) -> dict[int, Bytes]:
        """Bytes that each device sends, those that it only passes on included."""
        return self._bytes(self.devices, ((hop.source, len(hop.pieces)) for hop in self.hops))

    @property
    def max_sent_bytes(self) -> Bytes:
        """Bytes of the device that sends most."""
        return max(self.sent_bytes.values())

    @property
    def mean_sent_bytes(self) -> Bytes:
        """Bytes that a device sends on average: on a line the inner ones send more."""
        return plain(Fraction(sum(self.sent_bytes.values())) / self.group)

    @cached_property
    def payload_bytes(self) -> dict[int, Bytes]:
        """Bytes that each device sends of its own: what leaves it, without what it passes on for others.

        Only where pieces have one sender and one receiver is that less than `sent_bytes`.
        """
        if self.kind not in ROUTED:
            return self.sent_bytes
        place = {device: position for position, device in enumerate(self.devices)}
        own = ((hop.source, sum(piece.block == place[hop.source] for piece in hop.pieces)) for hop in self.hops)
        return self._bytes(self.devices, own)

    @cached_property
    def link_bytes(self) -> dict[Link, Bytes]:
        """Bytes over each directed link that carries anything, in the order of devices."""
        links = sorted({hop.link for hop in self.hops})
        return self._bytes(links, ((hop.link, len(hop.pieces)) for hop in self.hops))

    @property
    def busiest_link_bytes(self) -> Bytes:
        """Bytes over the directed link that carries most."""
        return max(self.link_bytes.values(), default=0)

    def _bytes(self, keys: Iterable[Any], counts: Iterable[tuple[Any, int]]) -> dict[Any, Bytes]:
        """Pieces counted by key, as bytes."""
        total = dict.fromkeys(keys, 0)
        for key, pieces in counts:
            total[key] += pieces
        return {key: plain(self.piece_bytes * pieces) for key, pieces in total.items()}

    # ---- time --------------------------------------------------------------------------------------------------

    @cached_property
    def time_bytes(self) -> Bytes:
        """Time in link units: bytes that pass one after another, the largest message of each step."""
        return plain(self.piece_bytes * sum(max(len(hop.pieces) for hop in hops) for hops in self.by_step))

    def seconds(self, link_bytes_per_second: float, hop_seconds: float = 0.0) -> float:
        """Modelled time: in each step the largest message at one link's one-way rate, or the least time of a hop."""
        largest = (max(hop.n_bytes for hop in hops) for hops in self.by_step)
        return sum(max(float(n_bytes) / link_bytes_per_second, hop_seconds) for n_bytes in largest)

    # ---- elsewhere ---------------------------------------------------------------------------------------------

    def placed(self, devices: Sequence[int]) -> Schedule:
        """The same schedule with the devices at each position called by these numbers."""
        call = dict(zip(self.devices, devices, strict=True))
        hops = (
            hop._replace(
                source=call[hop.source],
                target=call[hop.target],
                link=hop.link._replace(source=call[hop.source], target=call[hop.target]),
            )
            for hop in self.hops
        )
        return dataclasses.replace(self, hops=tuple(hops), devices=tuple(devices))

    def __repr__(self) -> str:
        sizes = "x".join(map(str, self.sizes))
        return f"<Schedule {self.name} on {sizes}: {count(self.steps, 'step')}, {count(len(self.hops), 'hop')}>"


def plain(n_bytes: Bytes) -> Bytes:
    """A whole number where it is one, an exact fraction otherwise."""
    return int(n_bytes) if Fraction(n_bytes).denominator == 1 else Fraction(n_bytes)
