"""How long one collective takes on the links that its group has.

    >>> ring = Leg(4, True, 4.5e10, "links", 1e-6)           # four chips around, 45 GB/s a link one way, 1 µs a hop
    >>> took = collective("all_gather", 524_288, [ring])
    >>> took.seconds, took.label
    (1.7476...e-05, 'two-way ring, exact (K−1)/K, hop floor 2 µs')

What a group runs along is a list of legs, the axes of the grid that it spans (`wiring`). On each leg the bytes over the
busiest link are a closed form of `schedules.closed_forms`, which the schedules' hops are held against:

* joined ends: a ring, used both ways at once or one way; else a line, whose links carry in both directions anyway;
* behind a switch ("switch", "network") each device sends straight to each other one, at its own rate.

Over several legs *at once* every link works at the same time. A gather then ends when each set S of legs has carried
what it must, n_bytes·(∏ sizes of S − 1), with all the links of S together: the slowest set decides, and shares of the
data that take the legs in different orders reach exactly that (equal legs: 1/k of the time of one ring; `busy_axes`
lets only so many of S count). An
all-to-all is as slow as its slowest leg. *In turn* (`at_once=False`) one leg follows the other, in the best order.

A message needs at least `hop_seconds` a hop, so a collective never ends before its hops (the floor); and large-K
(`exact=False`) puts 1 for (K−1)/K, as papers do. Sizes, bytes and rates may be numpy arrays.

Sources: arXiv 2211.05102, appendix A.1 (rings); cuts of lines and rings: `closed_forms`.
Next file to read: `collective_words`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtfcore.costs.links.collective_words import words
from mtfcore.costs.links.numbers_or_arrays import Number, is_array, least, most, product
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.schedules import closed_forms
from mtfcore.traffic import COLLECTIVES, link_bytes

if TYPE_CHECKING:
    from mtfcore.costs.links.wiring import Leg

WAYS = ("both", "one")
ALGORITHMS = ("ring", "direct")


@dataclass(frozen=True)
class How:
    """By which algorithm: links used both ways or one way, (K−1)/K exact or 1, several legs at once or in turn."""

    way: str = "both"
    exact: bool = True
    at_once: bool = True
    busy_axes: int | None = None  # legs whose links work at the same time, at most; a calibrated constant of a chip
    link_share: float = 1.0  # of a link's rate that messages reach: a calibrated constant of a chip
    hop_share: float = 1.0  # of a hop's published time: to ask what shorter hops would gain


PLAIN = How()


@dataclass(frozen=True)
class Took:
    """The time of one collective: what the bytes need, what the hops need at least, and by which algorithm."""

    link_seconds: Number
    hop_seconds: Number  # the floor
    seconds: Number
    legs: tuple[Leg, ...]
    how: How

    @property
    def label(self) -> str:
        """Algorithm, exact or large-K, one way or both, hop floor: `two-way ring, exact (K−1)/K, hop floor 2 µs`."""
        return words(self.legs, self.how, self.hop_seconds)


@dataclass(frozen=True)
class Load:
    """What a permute puts on one leg: how many devices' blocks its busiest link carries, and how many hops one goes."""

    blocks: Number
    hops: Number


def collective(
    kind: str, n_bytes: Number, legs: Iterable[Leg], how: How = PLAIN, loads: Sequence[Load] | None = None
) -> Took:
    """Seconds of a collective of this kind; `n_bytes` is what one device holds before.

    `loads` says, leg by leg, what a permute or a halo exchange needs (`routing.loads`); without it every block goes
    to the next device along the last leg.
    """
    faults = [] if kind in COLLECTIVES else [f"no collective {kind!r:.100}; {nearest(kind, COLLECTIVES)}"]
    faults += [] if how.way in WAYS else [f"way is {how.way!r:.100}; {nearest(how.way, WAYS)}"]
    refuse(faults)
    legs = tuple(legs)
    if kind in ("permute", "halo_exchange"):
        return _routed(n_bytes, legs, how, loads)
    legs = tuple(leg for leg in legs if is_array(leg.size) or leg.size > 1)
    if kind == "all_to_all":
        return _joined([_exchange(n_bytes, leg, how) for leg in legs], legs, how)
    first = n_bytes if kind == "all_gather" else n_bytes / product([leg.size for leg in legs])
    return _spread(first, legs, how, 2 if kind == "all_reduce" else 1)


all_gather = functools.partial(collective, "all_gather")
reduce_scatter = functools.partial(collective, "reduce_scatter")
all_reduce = functools.partial(collective, "all_reduce")
all_to_all = functools.partial(collective, "all_to_all")
permute = functools.partial(collective, "permute")
halo_exchange = functools.partial(collective, "halo_exchange")


def sent_bytes(kind: str, n_bytes: int, group: int, algorithm: str = "ring") -> Any:
    """Bytes that one device sends; "direct" gives every device all that one holds, and an all-reduce sums there."""
    if algorithm not in ALGORITHMS:
        raise LayoutError(f"no algorithm {algorithm!r}; {nearest(algorithm, ALGORITHMS)}")
    return link_bytes("all_gather" if (kind, algorithm) == ("all_reduce", "direct") else kind, n_bytes, group)


# ---- gathers and sums: whatever one device holds reaches all others ---------------------------------------------


def _spread(block: Number, legs: tuple[Leg, ...], how: How, times: int) -> Took:
    """All-gather of a block a device; a reduce-scatter is the same walk backwards, an all-reduce both (`times` 2)."""
    floors = [times * _hops(leg, how) * _hop_seconds(leg, how) for leg in legs]
    if how.at_once:
        link = times * block * _at_once(legs, how)
        return Took(link, sum(floors), most([link, sum(floors)]), legs, how)
    orders = itertools.permutations(range(len(legs))) if _unequal(legs) else [range(len(legs))]
    tries = [_in_turn(times * block, [legs[k] for k in order], [floors[k] for k in order], how) for order in orders]
    link, seconds = (least(column) for column in zip(*tries, strict=True))
    return Took(link, sum(floors), seconds, legs, how)


def _at_once(legs: tuple[Leg, ...], how: How) -> Number:
    """Seconds a byte of one device's block: the set of legs that takes longest for what must cross it."""
    sets = (some for n in range(1, len(legs) + 1) for some in itertools.combinations(legs, n))
    return most([_others(product([leg.size for leg in s]), how) / _together(s, how) for s in sets])


def _together(legs: tuple[Leg, ...], how: How) -> Number:
    """Bytes a second over legs that work at once: all of them, or the fastest few."""
    rates = [_rate(leg, how) for leg in legs]
    if how.busy_axes is None or len(rates) <= how.busy_axes:
        return sum(rates)
    return np.sort(np.stack(np.broadcast_arrays(*rates)), axis=0)[-how.busy_axes :].sum(0)[()]


def _in_turn(block: Number, legs: Sequence[Leg], floors: Sequence[Number], how: How) -> tuple[Number, Number]:
    """Seconds of links, and with each leg's floor, of one leg after the other: blocks grow on the way."""
    link = seconds = 0.0
    for leg, floor in zip(legs, floors, strict=True):
        took = block * _others(leg.size, how) / _rate(leg, how)
        link, seconds, block = link + took, seconds + most([took, floor]), block * leg.size
    return link, seconds


def _others(group: Number, how: How) -> Number:
    """How many blocks a device must get: those of the others, or in the large-K form all (none in a group of one)."""
    return group - 1 if how.exact else group - (group == 1)


def _rate(leg: Leg, how: How) -> Number:
    """Bytes a second that a device gets along a leg: on a two-way ring over two links at once."""
    links = 1 if leg.direct else _by_way(leg, how, lambda way: 2 if way == "two_way" else 1)
    return _link_rate(leg, how) * links


# ---- blocks with one sender and one receiver --------------------------------------------------------------------


def _exchange(n_bytes: Number, leg: Leg, how: How) -> tuple[Number, Number]:
    """All-to-all along one leg: seconds of its links and of its hops."""

    def share(way: str) -> Number:
        above, below = closed_forms.ratio("all_to_all", leg.size, way)
        return above / below

    blocks = (leg.size - 1) / leg.size if leg.direct else _by_way(leg, how, share)
    return n_bytes * blocks / _link_rate(leg, how), _hops(leg, how) * _hop_seconds(leg, how)


def _routed(n_bytes: Number, legs: tuple[Leg, ...], how: How, loads: Sequence[Load] | None) -> Took:
    """Blocks that go where they are sent: the busiest link of each leg decides."""
    loads = _to_the_next(legs) if loads is None else loads
    pairs = [
        (n_bytes * load.blocks / _link_rate(leg, how), load.hops * _hop_seconds(leg, how))
        for leg, load in zip(legs, loads, strict=True)
    ]
    moved = [k for k, load in enumerate(loads) if is_array(load.blocks) or load.blocks]
    return _joined([pairs[k] for k in moved], tuple(legs[k] for k in moved), how)


def _to_the_next(legs: Sequence[Leg]) -> list[Load]:
    """Every block goes one hop along the last leg that has more than one member."""
    found: list[Load] = []
    alone: Any = True  # or one for each case
    for leg in reversed(legs):
        here = (leg.size > 1) & alone
        found, alone = [Load(here, here), *found], alone & (leg.size == 1)
    return found


def _joined(pairs: Sequence[tuple[Number, Number]], legs: tuple[Leg, ...], how: How) -> Took:
    """Legs of which each has its own bytes: the slowest at once, or the sum in turn."""
    floor = sum(hops for _, hops in pairs)
    if how.at_once:
        link = most([link for link, _ in pairs])
        return Took(link, floor, most([link, floor]), legs, how)
    return Took(sum(link for link, _ in pairs), floor, sum(most(pair) for pair in pairs), legs, how)


# ---- rings, lines, switches -------------------------------------------------------------------------------------


def _link_rate(leg: Leg, how: How) -> Number:
    return leg.bytes_per_second * how.link_share


def _hop_seconds(leg: Leg, how: How) -> Number:
    return leg.hop_seconds * how.hop_share


def _hops(leg: Leg, how: How) -> Number:
    """Hops to the farthest member; through a switch one is enough."""
    if leg.direct:
        return 1 * (leg.size > 1)
    return _by_way(leg, how, lambda way: closed_forms.hops("all_gather", leg.size, way))


def _by_way(leg: Leg, how: How, value: Callable[[str], Number]) -> Number:
    """What a closed form says on this leg: a ring where the ends are joined, else a line."""
    around = "two_way" if how.way == "both" else "ring"
    if is_array(leg.wraps):
        return np.where(leg.wraps, value(around), value("line"))
    return value(around if leg.wraps else "line")


def _unequal(legs: Sequence[Leg]) -> bool:
    """Whether the order of legs matters: with equal rates every order takes as long."""
    rates = {(leg.bytes_per_second, leg.wraps, leg.direct) for leg in legs if not is_array(leg.bytes_per_second)
             and not is_array(leg.wraps)}  # fmt: skip
    return len(legs) > 1 and (len(rates) != 1 or any(map(_has_arrays, legs)))


def _has_arrays(leg: Leg) -> bool:
    return is_array(leg.bytes_per_second) or is_array(leg.wraps)
