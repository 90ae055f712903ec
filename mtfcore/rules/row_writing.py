"""Writing rows into a tensor: it stays where it lies, and the rows are brought to it.

    cache B:x S K:y D, rows B N K D:y    the rows move to B:x N K:y D; each device writes those of its own sequences
    cache B S:x K D                      rows and places are whole; each device writes those that fall into its part

Source: the key and value cache of arXiv 2211.05102, section 2.1, which no step should copy. Next file to read:
`two_stages`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtfcore.notation import format_axes
from mtfcore.rules.two_stages import owes
from mtfcore.sharding import Sharding
from mtfcore.tensor import Op

if TYPE_CHECKING:
    from mtfcore.planner import Planner


def plan_write(planner: Planner, number: int, op: Op) -> int:
    """Bring rows and their places to the tensor, and write what falls into each device's part."""
    t, *others = op.inputs
    here, want = planner.settled(t), planner.resolve(op)
    values = [planner.need(t, here, "what is not written stays as it is, so sums are added up first")]
    for i in others:
        dims = planner.graph.ops[i].dims
        goal = Sharding.of(dims, tuple(here.on.get(dim.name, ()) for dim in dims))
        values.append(planner.need(i, goal, f"{planner.graph.label(t)} stays where it lies; brought to it:"))
    on = here.on[op.params["dim"]]
    parts = f"{op.params['dim']} is split over {format_axes(on)}: each device writes the rows that fall into its part"
    why = parts if on else "each device writes the rows of its part, and moves nothing else"
    made = Sharding.of(op.dims, tuple(here.on[dim.name] for dim in op.dims))
    value = planner.emit("write", values, made, op.dtype, params=dict(op.params), tensor=number, why=why)
    return planner.finish(number, value, None if owes(op) else want)
