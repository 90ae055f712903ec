"""Who passes which block to whom, and when: the rounds of a ring, as data.

Every device of a group begins with its own block, `back` 0. After a hop of distance d it holds what the device d places
before it held, so a block that was s back is s + d back then. All that a gather needs is every back from 0 to g − 1:

    >>> rounds(4, ways=1, form="throughput")
    ((Hop(back=0, distance=1),), (Hop(back=1, distance=1),), (Hop(back=2, distance=1),))
    >>> rounds(4, ways=2, form="latency")
    ((Hop(back=0, distance=1), Hop(back=0, distance=-1)), (Hop(back=1, distance=1),))

throughput, one way    g − 1 rounds to the next device
throughput, both ways  the block is cut in halves, which go round in opposite directions: g − 1 rounds
latency, both ways     the whole block goes half way round in each direction: ⌊g/2⌋ rounds
latency, one way       doubling: in round r all that is held goes 2^r places on: ⌈log₂ g⌉ rounds. On a ring of wires a
                       hop passes 2^r links and its messages share them, so this one is for switches

A device sends n_bytes·(g − 1) in all four, as in the plain gather. A reduce-scatter is the same in reverse time, hops
turned round: what was passed on is then added up, n_bytes·(g − 1)/g, as in the plain one. Sources: Wang et al.
(ASPLOS 2023), uni- and bidirectional; arXiv 2211.05102, section 3.5. Next file to read: `spots`.
"""

from __future__ import annotations

from typing import NamedTuple

from mtfcore.errors import nearest

FORMS = ("throughput", "latency")


class Hop(NamedTuple):
    """The block that came from `back` places before is sent `distance` places on."""

    back: int
    distance: int


Rounds = tuple[tuple[Hop, ...], ...]


def rounds(group: int, ways: int = 2, form: str = "throughput", turn: int = 1) -> Rounds:
    """The hops of each round; those of one round can be under way at the same time. `turn` is −1 for the other half."""
    if form == "throughput":
        return tuple((Hop(turn * step % group, turn),) for step in range(group - 1))
    return _doubling(group) if ways == 1 else _half_way(group)


def _half_way(group: int) -> Rounds:
    """Both neighbours pass on what they have, until the two sides meet."""
    found = []
    for step in range(group // 2):
        ahead, behind = Hop(step, 1), Hop(-step % group, -1)
        found.append((ahead, behind) if 2 * (step + 1) < group else (ahead,))
    return tuple(found)


def _doubling(group: int) -> Rounds:
    """All that is held goes on, twice as far each time; in the last round only what is still missing."""
    found, have = [], 1
    while have < group:
        found.append(tuple(Hop(back, have) for back in range(min(have, group - have))))
        have += len(found[-1])
    return tuple(found)


def turns(ways: int, form: str) -> tuple[int, ...]:
    """The direction of each part of a block: two halves only where both go all the way round."""
    return (1, -1) if ways == 2 and form == "throughput" else (1,)


def check(ways: object, form: object, rows: object) -> list[str]:
    """Faults of what was asked for."""
    faults = [] if type(ways) is int and ways in (1, 2) else [f"ways is {ways!r:.100}; 1 or 2 directions of the ring"]
    if not isinstance(form, str) or form not in FORMS:
        faults.append(f"form is {form!r:.100}; {nearest(str(form), FORMS)}")
    if type(rows) is not int or rows < 1:
        faults.append(f"rows is {rows!r:.100}; a whole number of at least 1")
    return faults
