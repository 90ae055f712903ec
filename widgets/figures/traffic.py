"""A collective's hops as plain JSON: what moves in each step, what links have carried, what devices hold.

    >>> f = traffic_facts("all_gather", (("x", 8),), "ring", 1 << 20)
    >>> f["steps"], f["held"][1][3], f["sent"]
    (7, '00zz0000', 7340032)

Everything is read off `mtfcore.schedules`, whose hops a test replays; bytes are modelled. In `held` there is one
letter for each block: 0 is none, z all of it (of a sum: all addends), `-` something that waits for another device.
Next file to read: `traffic_words`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from mtfcore import schedules
from mtfcore.errors import LayoutError
from mtfcore.schedules import Piece, Schedule
from mtfcore.schedules.hops import ROUTED
from mtfcore.traffic import link_bytes, plain_bytes
from widgets.numbers import count

Facts = dict[str, Any]
Axes = tuple[tuple[str, int], ...]
MOST_DEVICES, MOST_AXES = 64, 3
MOST_CELLS = 16  # devices up to which each block is drawn by itself
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
NAMES = {
    "all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "all_reduce": "all-reduce",
    "all_to_all": "all-to-all", "halo_exchange": "halo exchange", "permute": "permute",
}  # fmt: skip


@functools.lru_cache(maxsize=32)
def planned(kind: str, axes: Axes, way: str, at_once: bool = True) -> Schedule:
    """The schedule of one byte a device on a mesh of these axes; refused where this picture has no room for it."""
    sizes = [size for _, size in axes]
    group = math.prod(sizes)
    if group > MOST_DEVICES or len(sizes) > MOST_AXES:
        raise LayoutError(
            f"this mesh has {count(group, 'device')} on {count(len(sizes), 'axis', 'axes')}; this picture draws up to "
            f"{MOST_DEVICES} devices on up to {MOST_AXES} axes"
        )
    return schedules.schedule(kind, sizes, way, 1, at_once=at_once)


def traffic_facts(kind: str, axes: Axes, way: str, n_bytes: int, at_once: bool = True) -> Facts:
    """Every step of a collective whose devices hold `n_bytes` before. Parts are shared between calls: read only."""
    plan = planned(kind, axes, way, at_once)
    own, busiest = max(plan.payload_bytes.values()), plan.busiest_link_bytes
    of_one_byte = {"sent": plan.mean_sent_bytes, "payload": own, "busiest": busiest}
    return {
        **_facts(plan),
        "way": way,
        "mesh": [list(axis) for axis in axes],
        "n_bytes": n_bytes,
        "piece_bytes": plain_bytes(_piece_bytes(plan) * n_bytes),
        **{name: plain_bytes(value * n_bytes) for name, value in of_one_byte.items()},
        "closed": plain_bytes(link_bytes(kind, n_bytes, plan.group)),
    }


@functools.lru_cache(maxsize=32)
def _facts(plan: Schedule) -> Facts:
    """What does not depend on how many bytes there are."""
    links = {link: number for number, link in enumerate(sorted({hop.link for hop in plan.hops}))}
    states = _states(plan)
    drawn = states if plan.group <= MOST_CELLS else []
    return {
        "kind": plan.kind,
        "name": plan.name,
        "n_devices": plan.group,
        "steps": plan.steps,
        "source": plan.source,
        "links": [[link.source, link.target, link.axis, link.direction] for link in links],
        "moves": [[_move(hop, links) for hop in hops] for hops in plan.by_step],
        "held": [[_blocks(plan, place, held) for place, held in enumerate(state)] for state in drawn],
        "counts": [[len(held) for held in state] for state in states],
    }


def _move(hop: schedules.Hop, links: Mapping[schedules.Link, int]) -> list[Any]:
    """Which link, how many pieces, which block (the first of several), stored or added."""
    names = list(dict.fromkeys(f"{p.block}" if p.target is None else f"{p.block}→{p.target}" for p in hop.pieces))
    return [links[hop.link], len(hop.pieces), names[0] + ("…" if len(names) > 1 else ""), hop.combine]


def _piece_bytes(plan: Schedule) -> Fraction:
    """All pieces of a schedule are of one size."""
    return Fraction(plan.hops[0].n_bytes) / len(plan.hops[0].pieces) if plan.hops else Fraction(0)


def _states(plan: Schedule) -> list[list[Mapping[Piece, np.ndarray]]]:
    """What each device holds after each step: the hops replayed on ones, so that a sum counts its addends."""
    whole = np.ones(plan.group * plan.parts)
    edges = (np.ones(plan.parts), np.ones(plan.parts))
    state = schedules.start(plan, [edges if plan.kind == "halo_exchange" else whole] * plan.group)
    states: list[list[Mapping[Piece, np.ndarray]]] = [[dict(held) for held in state]]
    for hops in plan.by_step:
        schedules.advance(plan, state, hops)
        states.append([dict(held) for held in state])
    return states


def _blocks(plan: Schedule, place: int, held: Mapping[Piece, np.ndarray]) -> str:
    """One letter for each block that a device may hold."""
    letters = ["0"] * plan.group
    if plan.kind in ROUTED:
        for piece in held:
            if piece.target == place or letters[piece.block] == "0":
                letters[piece.block] = "z" if piece.target == place else "-"
        return "".join(letters)
    full = plan.parts * (1 if plan.kind == "all_gather" else plan.group)
    addends = [0.0] * plan.group
    for piece, values in held.items():
        addends[piece.block] += float(values[0])
    return "".join(DIGITS[round(35 * n / full)] for n in addends)


def carried(facts: Facts, hop: int) -> list[float]:
    """Bytes that each link has carried after so many steps."""
    so_far = [0.0] * len(facts["links"])
    for moves in facts["moves"][:hop]:
        for link, pieces, *_ in moves:
            so_far[link] += pieces * facts["piece_bytes"]
    return so_far
