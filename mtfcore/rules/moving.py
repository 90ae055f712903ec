"""From one sharding to another as steps: the moves of a shortest path.

Next file to read: `operations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtfcore.notation import format_axes
from mtfcore.rules.moves import State
from mtfcore.rules.resharding import shortest
from mtfcore.sharding import Sharding

if TYPE_CHECKING:
    from mtfcore.planner import Planner


def reshard_steps(planner: Planner, value: int, start: Sharding, goal: Sharding, why: str, tensor: int) -> int:
    """Emit the moves of a shortest path; returns the value that lies at `goal`."""
    size = planner.bytes_of(planner.dtype_of(value))
    path = shortest(State(start.axes, start.partial), State(goal.axes, goal.partial), start.shape, planner.items, size)
    here = start
    for move in path.moves:
        there = Sharding.of(start.dims, *move.state)
        params = {"dims": tuple(start.names[d] for d in move.dims), "places": move.dims}
        said = f"{why} {goal.text() or '()'}"
        if move.kind == "slice" and not set(move.axes) & set(goal.used()):
            said += f": the copies along {format_axes(move.axes)} share the work, so that fewer bytes travel in all"
        value = planner.collective(move.kind, value, there, move.axes, params, said, tensor)
        here = there
    assert here == goal, f"the path from {start!r} ends at {here!r}, not {goal!r}"
    return value
