"""Collectives as hops in time: who sends which piece to whom, at which step, over which link.

    from mtfcore import schedules

    plan = schedules.schedule("all_gather", (8,), "two_way", n_bytes=4096)
    plan.steps, plan.mean_sent_bytes, plan.busiest_link_bytes        # (4, 28672, 14336)
    for hop in plan.at(1): print(hop)                                # step 1: 0 → 1, block 0, 4096 bytes, stored
    schedules.replay(plan, arrays)                                   # the same hops on numpy arrays

Pure data: nothing here runs on a device. First file to read: `hops`.
"""

from mtfcore.schedules import closed_forms
from mtfcore.schedules.grid import WAYS, Link
from mtfcore.schedules.hops import Hop, Piece, Schedule
from mtfcore.schedules.making import KINDS, schedule
from mtfcore.schedules.placing import every_group, of_step
from mtfcore.schedules.replaying import ReplayError, advance, replay, start

__all__ = [
    "KINDS", "WAYS", "Hop", "Link", "Piece", "ReplayError", "Schedule", "advance", "closed_forms", "every_group",
    "of_step", "replay", "schedule", "start",
]  # fmt: skip
