"""Operations that move a tensor, or make one: no operands that would have to meet first.

A reshape carries axes through or moves first; a reshard is a move; random numbers and indices are made where they are
wanted, so nothing is sent. Source: arXiv 1811.02084, section 6.1 (reshape). Next file to read: `operations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtfcore.errors import LayoutError
from mtfcore.rules.choosing import choose
from mtfcore.rules.questions import Question
from mtfcore.rules.reshaping import choose_reshape
from mtfcore.sharding import Axes, Sharding
from mtfcore.tensor import Like, Op

if TYPE_CHECKING:
    from mtfcore.planner import Planner


def plan_reshape(planner: Planner, number: int, op: Op) -> int:
    """Carry the axes through; move first where an axis would straddle a boundary."""
    (operand,) = op.inputs
    want = planner.resolve(op)
    size = planner.item_bytes(op)[-1]
    if want is not None and isinstance(op.out, Like):  # sums that wait go on waiting
        waiting = tuple(axis for axis in planner.placed[operand].partial if axis not in want.used())
        want = Sharding.of(want.dims, want.axes, waiting)
    start, result = choose_reshape(planner.placed[operand], op.params["cut"], want, planner.items, size)
    value = planner.need(operand, start, f"reshape can carry {planner.graph.label(operand)} as")
    value = planner.emit("reshape", [value], result, op.dtype, tensor=number, why="each device reshapes what it holds")
    return planner.finish(number, value, want)


def plan_reshard(planner: Planner, number: int, op: Op) -> int:
    """Only a move."""
    (operand,) = op.inputs
    goal = planner.resolve(op) or planner.placed[operand]
    if op.params.get("at_once"):
        _all_reduced(planner, operand, goal.partial)
    value = planner.need(operand, goal, "reshard asks for")
    value = planner.finish(number, value, None)
    planner.keep_home(number, planner.homes.get(operand, planner.placed[operand]))
    return value


def _all_reduced(planner: Planner, number: int, wait: Axes) -> None:
    """Add up a tensor's partial sums, but those that may wait, by one all-reduce: one more form in which it lies."""
    s = planner.placed[number]
    if due := tuple(axis for axis in s.partial if axis not in wait):
        why = "the sums are wanted by one collective, however few bytes more could save"
        after = Sharding.of(s.dims, s.axes, tuple(axis for axis in s.partial if axis in wait))
        planner.collective("all_reduce", planner.forms[number][s], after, due, {}, why, number)


def plan_settle(planner: Planner, number: int, op: Op) -> int:
    """Reduce partial sums in the cheapest way: reduce-scatter where a dimension divides, else all-reduce."""
    (operand,) = op.inputs
    s = planner.placed[operand]
    if not s.partial:
        return planner.finish(number, planner.need(operand, s, ""), None)
    answer = choose(Question((s,), op.dims, "none"), planner.items, planner.item_bytes(op))
    value = planner.need(operand, answer.needs[0], "what follows is not linear: partial sums are reduced first, to")
    return planner.finish(number, value, None)


def plan_made(planner: Planner, number: int, op: Op) -> int:
    """Constants and indices: every device makes its own, nothing is sent."""
    whole = Sharding.of(op.dims, ((),) * len(op.dims))
    why = "made where it is used"
    value = planner.emit(op.kind, [], whole, op.dtype, params=dict(op.params), tensor=number, why=why)
    return planner.finish(number, value, None)


def plan_random(planner: Planner, number: int, op: Op) -> int:
    """Random numbers: each device makes its own part where they are wanted, or else where the layout says; and again
    wherever they are used, for which the whole stands as a source that costs nothing."""
    whole = made_at(planner, number, Sharding.of(op.dims, ((),) * len(op.dims)))
    return planner.finish(number, whole, planner.resolve(op) or _as_laid_out(planner, op))


def _as_laid_out(planner: Planner, op: Op) -> Sharding | None:
    """Where the layout would place a tensor; nowhere in particular if it does not fit there."""
    try:
        return planner.layout.place(op.dims, planner.mesh).without(planner.ones)
    except LayoutError:
        return None


def made_at(planner: Planner, number: int, s: Sharding) -> int:
    """Make the part of a random tensor that lies so: nothing is sent, whatever else has been made of it."""
    op = planner.graph.ops[number]
    seed = planner.need(op.inputs[0], Sharding.of((), ()), "every device needs the seed")
    why = "made where it is used"
    return planner.emit("random", [seed], s, op.dtype, params=dict(op.params), tensor=number, why=why)
