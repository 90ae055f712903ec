"""top_k and cumsum along a split dimension, where the whole need not be gathered.

    top_k of a vocabulary over x:8    each device's own k, gathered: 8·k candidates; of those the k largest
    cumsum over x:8                   each device's own sums; its last row is gathered: 8 rows; those before are added

Chosen where it sends less than bringing the whole dimension together. Candidates stand in the order of the devices,
so of equal ones the first still wins. Next file to read: `operations`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mtfcore.dims import Dim
from mtfcore.errors import sure
from mtfcore.rules.choosing import choose
from mtfcore.rules.moving import reshard_steps
from mtfcore.rules.questions import Answer, Question
from mtfcore.sharding import Axes, Sharding
from mtfcore.steps import held_bytes
from mtfcore.tensor import Like, Op

if TYPE_CHECKING:
    from mtfcore.planner import Planner


class Candidates(NamedTuple):
    """The k largest of every part, and where they stand in the whole: values, by number."""

    values: int
    places: int


def top_k_in_two(planner: Planner, number: int, op: Op, want: Sharding | None) -> int | None:
    """The value that holds the result, or None where one stage sends no more."""
    (operand,), dim, k = op.inputs, op.params["dim"], op.params["k"]
    s = planner.placed[operand]
    parts = planner.mesh.group_size(s.on[dim])
    rows = sure(s.dims[s.names.index(dim)].size) // parts
    if parts == 1 or k >= rows or s.partial:
        return None
    found = resized(s, dim, parts * k)
    answer = _together(planner, op, found, want)
    if answer.cost >= _one_stage(planner, op, want).cost:
        return None
    local = _candidates(planner, number, op, found, rows)
    moved = Candidates(*[_brought(planner, number, v, s) for v, s in zip(local, answer.needs, strict=True)])
    part = op.params["part"]
    why = f"of {parts} times {k} candidates the {k} largest"
    return planner.emit(
        "top_k", [moved.values] if part == 0 else list(moved), answer.result, op.dtype, tensor=number, why=why,
        params={**op.params, "stage": "of the candidates"},
    )  # fmt: skip


def _together(planner: Planner, op: Op, found: Sharding, want: Sharding | None) -> Answer:
    """Where the candidates meet: values and places, both cut the same way."""
    size = planner.item_bytes(op)
    question = Question((found, found), op.dims, "none", want, frozenset([op.params["dim"]]))
    return choose(question, planner.items, (size[0], planner.bytes_of("i32"), size[-1]))


def _one_stage(planner: Planner, op: Op, want: Sharding | None, linear: str = "none") -> Answer:
    operands, forms = (planner.placed[op.inputs[0]],), (planner.other_forms(op.inputs[0]),)
    question = Question(operands, op.dims, linear, want, frozenset([op.params["dim"]]), forms=forms, owes=owes(op))
    return choose(question, planner.items, planner.item_bytes(op))


def _candidates(planner: Planner, number: int, op: Op, found: Sharding, rows: int) -> Candidates:
    """Each device's own k; the values and the places of one top_k share them."""
    operand, k, dim = op.inputs[0], op.params["k"], op.params["dim"]
    why = f"the {k} largest of the {rows} that each device holds"
    value = planner.need(operand, planner.placed[operand], "")

    def local(part: int, dtype: str) -> int:
        params = {"dim": dim, "k": k, "part": part, "stage": "of each part"}
        key = ("top_k", operand, dim, k, part)
        emit = lambda: planner.emit("top_k", [value], found, dtype, params=params, tensor=number, why=why)  # noqa: E731
        return _once(planner, key, emit)

    return Candidates(local(0, planner.dtype_of(value)), local(1, "i32"))


def _brought(planner: Planner, number: int, value: int, goal: Sharding) -> int:
    """A value moved to a place, once for all that want it there."""
    here, why = planner.sharding_of(value), "only the candidates are brought together, as"
    key = ("moved", value, goal)
    return _once(planner, key, lambda: reshard_steps(planner, value, here, goal, why, number))


def _once(planner: Planner, key: tuple, make: Callable[[], int]) -> int:
    """The value that a key stands for, made the first time."""
    if key not in planner.exchanged:
        planner.exchanged[key] = make()
    return planner.exchanged[key]


def cumsum_in_two(planner: Planner, number: int, op: Op, want: Sharding | None) -> int | None:
    """The value that holds the result, or None where one stage sends no more."""
    (operand,), dim = op.inputs, op.params["dim"]
    forms = (planner.other_forms(operand),)
    question = Question((planner.placed[operand],), op.dims, "product", want, forms=forms, owes=owes(op))
    needs, result, cost = choose(question, planner.items, planner.item_bytes(op))
    parts = planner.mesh.group_size(result.on[dim])
    sent = (parts - 1) * held_bytes(resized(result, dim, parts), planner.mesh, op.dtype)
    if parts == 1 or cost + sent >= _one_stage(planner, op, want, "product").cost:
        return None
    value = planner.need(operand, needs[0], "cumsum takes each part of it as")
    value = planner.emit(
        "cumsum", [value], result, op.dtype, tensor=number, params={"dim": dim, "stage": "of each part"},
        why=f"{dim} is split over {parts} devices: each sums up its own part",
    )  # fmt: skip
    totals = _totals(planner, number, value, dim, result.on[dim])
    return planner.emit(
        "cumsum", [value, totals], result, op.dtype, tensor=number, params={"dim": dim, "stage": "with those before"},
        why="the totals of all parts before one's own are added",
    )  # fmt: skip


def _totals(planner: Planner, number: int, value: int, dim: str, on: Axes) -> int:
    """The last row of every part's running sums, all of them on every device."""
    here, parts = planner.sharding_of(value), planner.mesh.group_size(on)
    rows = planner.local_shape(here)[here.names.index(dim)]
    ends = resized(here, dim, parts)
    if rows > 1:
        value = planner.emit(
            "edge", [value], ends, planner.dtype_of(value), params={"dim": dim, "start": rows - 1}, tensor=number,
            why="the last of its running sums is the total of a part",
        )  # fmt: skip
    axes = tuple(() if name == dim else axes for name, axes in ends.on.items())
    goal = Sharding.of(ends.dims, axes, ends.partial)
    return reshard_steps(planner, value, ends, goal, "only the parts' totals are brought together, as", number)


def owes(op: Op) -> bool:
    """Whether the result is added up with others, and may stay where it is made until then."""
    return isinstance(op.out, Like) and not op.out.whole


def resized(s: Sharding, dim: str, size: int) -> Sharding:
    """The same placement of a tensor whose dimension has another size."""
    return Sharding.of(tuple(Dim(d.name, size) if d.name == dim else d for d in s.dims), s.axes, s.partial)


TWO_STAGES = {"top_k": top_k_in_two, "cumsum": cumsum_in_two}
