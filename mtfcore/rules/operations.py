"""One function an operation: from where its operands lie to steps.

Most operations are *mapped*: decide how the operation is cut (`choosing`), bring each operand there (`resharding`),
compute locally, and bring the result where it is wanted. What differs is data: which dimensions must be whole, and
how partial sums may pass. Source: arXiv 1811.02084, section 6. Next file to read: `mtfcore.planner`, which calls
these; then `mtfcore.execute`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from mtfcore.elementwise import ELEMENTWISE
from mtfcore.errors import refuse, sure
from mtfcore.notation import format_axes
from mtfcore.rules.choosing import choose
from mtfcore.rules.looping import plan_repeat, plan_repeated
from mtfcore.rules.moved_or_made import plan_made, plan_random, plan_reshape, plan_reshard, plan_settle
from mtfcore.rules.moves import State
from mtfcore.rules.questions import Question
from mtfcore.rules.resharding import shortest
from mtfcore.rules.row_writing import plan_write
from mtfcore.rules.spatial import plan_overlap, plan_shift, plan_spatial
from mtfcore.rules.two_stages import TWO_STAGES, owes
from mtfcore.sharding import Axes, Sharding
from mtfcore.steps import held_bytes
from mtfcore.tensor import Like, Op

if TYPE_CHECKING:
    from mtfcore.planner import Planner

ALONG = {  # the dimension in params["dim"] must be whole; how partial sums may pass
    "window": "product", "pad": "none", "cumsum": "product", "top_k": "none", "concat": "sum",
}  # fmt: skip
LINEAR = {
    "einsum": "product", "gather": "second", "scatter": "second", "reduce": "none", "settle": "none",
    "dropout": "first", **ALONG,
}  # gather: in the table, not in the ids  # fmt: skip


def linear(op: Op) -> str:
    """How partial sums may pass through an operation."""
    if op.kind == "pointwise":
        return ELEMENTWISE[op.params["fn"]].linear
    if op.kind == "pad":
        return "product" if op.params["value"] == 0 else "none"
    return LINEAR[op.kind]


def plan_mapped(planner: Planner, number: int, op: Op) -> int:
    """Einsum, elementwise, gather and the operations along one dimension."""
    operands = tuple(planner.placed[i] for i in op.inputs)
    want = planner.resolve(op)
    pins = op.params.get("at")
    if pins:
        needs, result = _pinned(planner, number, op, pins)
    elif want is not None and _grows(op, operands) and not planner.search:
        needs, result, want = _filled(op, operands, want)
    else:
        whole = frozenset([op.params["dim"]]) if op.kind in ALONG else frozenset()
        free = planner.search or op.params.get("search", False)
        forms = tuple(planner.other_forms(i) for i in op.inputs)
        question = Question(operands, op.dims, linear(op), want, whole, op.kind == "reduce", free, forms=forms)
        needs, result, want = _answered(planner, op, question)
    values = [planner.need(i, s, _reason(planner, op, i)) for i, s in zip(op.inputs, needs, strict=True)]
    value = planner.emit(
        op.kind, values, result, op.dtype, params=dict(op.params), flops=_flops(planner, op, needs), tensor=number,
        why=_why(planner, op, needs, result),
    )  # fmt: skip
    if op.kind == "reduce":
        value = _combine(planner, number, op, needs[0], value)
    return planner.finish(number, value, want)


def _answered(planner: Planner, op: Op, question: Question) -> tuple[tuple[Sharding, ...], Sharding, Sharding | None]:
    """How it is cut, where the result then lies, and where it goes now: a cotangent's sums may wait for others."""
    size, like = planner.item_bytes(op), op.out if isinstance(op.out, Like) else None
    if like is not None and question.want is not None and (not like.whole or like.later is not None):
        needs, result, _ = choose(dataclasses.replace(question, owes=True), planner.items, size)
        if not like.whole or _waits(planner, like, result, question.want, size[-1]):
            return needs, result, None
    needs, result, _ = choose(question, planner.items, size)
    return needs, result, question.want


def _waits(planner: Planner, like: Like, result: Sharding, want: Sharding, size: int) -> bool:
    """Whether sums are cheaper to reduce in the cotangents that are made of this one."""
    axes = tuple(axis for axis in result.partial if axis not in want.used())
    if not axes or result.axes != want.axes:
        return False
    states = State(result.axes, result.partial), State(want.axes, want.partial)
    now = shortest(*states, result.shape, planner.items, size).cost
    held = sum(_share(planner, want, planner.home(like.graph, n), like.graph.ops[n].dtype) for n in sure(like.later))
    return 2 * held * (1 - 1 / planner.mesh.group_size(axes)) <= now


def _share(planner: Planner, made: Sharding, home: Sharding, dtype: str) -> float:
    """Bytes of a later cotangent, less for what is reduced anyway: a sum over more axes then costs little more."""
    anyway = [axis for name, on in made.on.items() if name not in home.on for axis in on if axis not in home.used()]
    return held_bytes(home, planner.mesh, dtype) / planner.mesh.group_size(tuple(anyway))


def _grows(op: Op, operands: tuple[Sharding, ...]) -> bool:
    """Whether copies fill a result that is larger than every operand."""
    return op.kind == "pointwise" and all(len(s.dims) < len(op.dims) for s in operands)


def _filled(
    op: Op, operands: tuple[Sharding, ...], want: Sharding
) -> tuple[tuple[Sharding, ...], Sharding, Sharding | None]:
    """What is small moves to where the large result is wanted, so that the result never does."""
    waits = isinstance(op.out, Like) and not op.out.whole
    partial: Axes = ()
    if len(operands) == 1 and linear(op) == "product":
        may = [axis for axis in operands[0].partial if axis not in want.used()]
        partial = tuple(axis for axis in may if waits or axis in want.partial)
    needs = tuple(Sharding.of(s.dims, tuple(want.on[name] for name in s.names), partial) for s in operands)
    return needs, Sharding.of(op.dims, want.axes, partial), None if waits else want


def _combine(planner: Planner, number: int, op: Op, need: Sharding, value: int) -> int:
    """After a local max or min over a split dimension: all-reduce by that function."""
    over = tuple(axis for name, on in need.on.items() if name not in op.names for axis in on)
    if not over:
        return value
    fn = op.params["fn"]
    why = f"each device has the {fn} of its own part"
    params = {key: op.params[key] for key in ("fn", "flat") if key in op.params}
    return planner.collective("all_reduce", value, planner.sharding_of(value), over, params, why, number)


def _pinned(planner: Planner, number: int, op: Op, pins: tuple) -> tuple[tuple[Sharding, ...], Sharding]:
    """The shardings that `at` fixes; refuses those that do not fit together in one local product."""
    checked = [pin.check(planner.mesh) if pin else planner.placed[i] for i, pin in zip(op.inputs, pins, strict=True)]
    needs = tuple(need.without(planner.ones) for need in checked)
    on, faults = dict[str, Axes](), list[str]()
    for need, i in zip(needs, op.inputs, strict=True):
        label = planner.graph.label(i)
        faults += [
            f"{label} has {name} on '{format_axes(axes) if axes else 'nothing'}', another operand on "
            f"'{format_axes(on[name]) if on[name] else 'nothing'}'"
            for name, axes in need.on.items()
            if on.setdefault(name, axes) != axes
        ]
    axes = [axis for on_dim in on.values() for axis in on_dim] + [axis for need in needs for axis in need.partial]
    faults += [f"mesh axis {a!r} has two roles at once" for a in dict.fromkeys(axes) if axes.count(a) > 1]
    refuse(faults, f"at= of {planner.graph.label(number)}")
    left = [axis for name, on_dim in on.items() if name not in op.names for axis in on_dim]
    left += [axis for need in needs for axis in need.partial]
    partial = tuple(axis for axis in planner.sizes if axis in left)
    return needs, Sharding.of(op.dims, tuple(on.get(name, ()) for name in op.names), partial)


def _flops(planner: Planner, op: Op, needs: tuple[Sharding, ...]) -> int:
    """2 a multiply-add of one device; a dimension that only one operand has and the result lacks is summed before."""
    if op.kind != "einsum" or len(needs) < 2:
        return 0
    local = {n: size for s in needs for n, size in zip(s.names, planner.local_shape(s), strict=True)}
    return 2 * math.prod(local[n] for n in local if n in op.names or all(n in s.on for s in needs))


def _reason(planner: Planner, op: Op, operand: int) -> str:
    return f"{op.params.get('fn', op.kind)} takes {planner.graph.label(operand)} as"


def _why(planner: Planner, op: Op, needs: tuple[Sharding, ...], result: Sharding) -> str:
    """What the local step does along each mesh axis, in words."""
    if not planner.explains:
        return ""
    said, seen = [], set()
    for name, on in dict(item for s in needs for item in s.on.items()).items():
        if on and name not in op.names:
            effect = f"each device has the {op.params['fn']} of its part" if op.kind == "reduce" else "partial sums"
            said.append(f"{name} is contracted and split over {format_axes(on)}: {effect}")
            seen |= {*on}
    for name, on in result.on.items():
        if on:
            said.append(f"{name} is split over {format_axes(on)}")
            seen |= {*on}
    if waiting := tuple(axis for axis in result.partial if axis not in seen):
        said.append(f"still a partial sum over {format_axes(waiting)}")
    if idle := tuple(axis for axis in planner.sizes if axis not in seen and axis not in result.partial):
        said.append(f"the same work on all {planner.mesh.group_size(idle)} devices along {format_axes(idle)}")
    return "; ".join(said)


def plan_along(planner: Planner, number: int, op: Op) -> int:
    """cumsum and top_k: in two stages where that sends less than making the dimension whole."""
    want = planner.resolve(op)
    value = TWO_STAGES[op.kind](planner, number, op, want)
    if value is None:
        return plan_mapped(planner, number, op)
    return planner.finish(number, value, None if owes(op) else want)


PLANNERS: dict[str, Callable[[Planner, int, Op], int]] = {
    **dict.fromkeys(("einsum", "pointwise", "gather", "scatter", "reduce", *ALONG), plan_mapped),
    **dict.fromkeys(TWO_STAGES, plan_along),
    "reshape": plan_reshape,
    "reshard": plan_reshard,
    "settle": plan_settle,
    "constant": plan_made,
    "index": plan_made,
    "random": plan_random,
    "dropout": plan_mapped,
    "write": plan_write,
    "repeat": plan_repeat,
    "shift": plan_shift,
    **dict.fromkeys(("windows", "conv", "conv_kernel"), plan_spatial),
    "overlap": plan_overlap,
    "repeated": plan_repeated,
}
