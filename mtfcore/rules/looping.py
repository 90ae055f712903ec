"""Loops: one turn is planned, and its steps run as one scan.

What is carried lies the same at the start and the end of every turn. A tensor of the stack, or one read from
outside, goes in with every form in which it already lies, and every output comes out with every form that the turn
made of it; `pruning` then drops what nothing reads. So a backward loop finds weights and activations gathered as
the forward loop left them. Next file to read: `pruning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtfcore.dims import Dim
from mtfcore.sharding import Sharding
from mtfcore.tensor import Op

if TYPE_CHECKING:
    from mtfcore.planner import Planner

Forms = list[tuple[Sharding, int]]  # where a tensor lies, and the value that lies there; the usual one first


def plan_repeat(planner: Planner, number: int, op: Op) -> int:
    """Plan the body once; returns the value of the first carry after the last turn."""
    n_carry, n_stacked = op.params["n_carry"], op.params["n_stacked"]
    carries = [planner.settled(i) for i in op.inputs[:n_carry]]
    stacks = [_stack_forms(planner, i) for i in op.inputs[n_carry : n_carry + n_stacked]]
    outside = [_forms(planner, i) for i in op.inputs[n_carry + n_stacked :]]
    inside = [[Sharding.of(s.dims[1:], s.axes[1:], s.partial) for s, _ in forms] for forms in stacks]
    inside += [[s for s, _ in forms] for forms in outside]
    if op.params["sums"]:
        carries = _with_sums(planner, op, carries, inside)
    starts = zip(op.inputs[:n_carry], carries, strict=True)
    values = [planner.need(i, s, "the loop carries its value as") for i, s in starts]
    values += [value for forms in (*stacks, *outside) for _, value in forms]
    sub = planner.inner(op.params["body"])
    program = sub.program([*[[s] for s in carries], *inside], carries)
    made = [_stacked(port.sharding, op.params["over"], place < n_carry) for place, port in sub.by_place]
    outputs = [planner.new_value(s, port.dtype) for s, (_, port) in zip(made, sub.by_place, strict=True)]
    params = {"n_carry": n_carry, "n_stacked": sum(map(len, stacks)), "reverse": op.params["reverse"]}
    planner.emit_loop(values, outputs, params, number, program, op.params["n"])
    found: dict[int, Forms] = {}
    for s, value, (place, _) in zip(made, outputs, sub.by_place, strict=True):
        found.setdefault(place, []).append((s, value))
    planner.loops[number] = found
    return _lies(planner, number, found[0])


def _with_sums(planner: Planner, op: Op, carries: list[Sharding], inside: list[list[Sharding]]) -> list[Sharding]:
    """Where a turn only adds to a carry, it may wait as the partial sum that the turn makes: reduced once, at the end.

    Planned once to see what that is.
    """
    body = op.params["body"]
    trial = planner.inner(body)
    trial.program([*[[s] for s in carries], *inside], carries)
    made = [trial.placed[number] for number in body.outputs.values()]
    waits = {k for k in op.params["sums"] if made[k].axes == carries[k].axes and made[k].partial}
    return [made[k] if k in waits else s for k, s in enumerate(carries)]


def plan_repeated(planner: Planner, number: int, op: Op) -> int:
    """A further result of a loop: nothing is left to do."""
    return _lies(planner, number, planner.loops[op.inputs[0]][op.params["place"]])


def _lies(planner: Planner, number: int, forms: Forms) -> int:
    planner.forms[number], planner.placed[number] = dict(forms), forms[0][0]
    return forms[0][1]


def _forms(planner: Planner, number: int) -> Forms:
    """Every form of a tensor, the one in which it was placed first."""
    known, usual = planner.forms[number], planner.placed[number]
    return [(usual, known[usual]), *[(s, value) for s, value in known.items() if s != usual]]


def _stack_forms(planner: Planner, number: int) -> Forms:
    """The forms of a stacked tensor in which no axis cuts the stack; where there is none, one is made."""
    whole = [(s, value) for s, value in _forms(planner, number) if not s.axes[0]]
    if whole:
        return whole
    s = planner.placed[number]
    loose = Sharding.of(s.dims, ((), *s.axes[1:]), s.partial)
    return [(loose, planner.need(number, loose, "each turn takes one whole entry of the stack, so it lies as"))]


def _stacked(s: Sharding, over: Dim, carried: bool) -> Sharding:
    return s if carried else Sharding.of((over, *s.dims), ((), *s.axes), s.partial)
