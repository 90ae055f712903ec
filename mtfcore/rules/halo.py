"""Spatial operations on split dimensions: border rows travel to the neighbours, then each device works alone.

    edge           the rows at the border of one's part: a tensor of its own, cut over the same axes
    halo_exchange  each device hands its edge to the neighbour that needs it; no partner, no rows: zeros
    extend         received rows and one's own, joined: parts that overlap
    trim           where the result is shorter or longer than the operand: the rows that this device's part needs

A halo wider than the neighbour's whole part takes a second exchange, from two devices away, and so on. In two
dimensions the second one's edges are taken from parts that are extended already, so corners arrive too. Source: the
first paper's outlook (arXiv 1811.02084, section 8). Next file to read: `mtfcore.spatial_kernels`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from mtfcore.dims import Dim
from mtfcore.errors import LayoutError
from mtfcore.rules.choosing import Question, choose
from mtfcore.sharding import Axes, Sharding
from mtfcore.spatial import Reach
from mtfcore.steps import held_bytes
from mtfcore.tensor import Op

if TYPE_CHECKING:
    from mtfcore.planning import Planner


class Piece(NamedTuple):
    """Rows start … stop - 1 of the part of the device `distance` places before (behind, if negative)."""

    distance: int
    start: int
    stop: int


def plan_spatial(planner: Planner, number: int, op: Op) -> int:
    """Windows and convolutions: bring the operands, extend the first one, compute locally."""
    reaches = op.params["reaches"]
    want = _wanted(planner, op, reaches)
    operands = tuple(planner.placed[i] for i in op.inputs)
    free = planner.search
    halo = tuple((reach.dim, reach.before + reach.after) for reach in reaches)
    question = Question(
        operands, op.dims, "product", want, frozenset(reach.by for reach in reaches), free=free, halo=halo
    )
    needs, result, _ = choose(question, planner.items, planner.item_bytes(op))
    whole = _whole_along(planner, op.inputs[0], needs[0], reaches)
    values = [
        planner.need(i, s, f"{op.kind} takes {planner.graph.label(i)} as")
        for i, s in zip(op.inputs, (whole, *needs[1:]), strict=True)
    ]
    local = []
    for reach in reaches:
        values[0], done = _extended(planner, number, values[0], reach, needs[0].on[reach.dim])
        local.append(done)
    value = planner.emit(
        op.kind, values, result, op.dtype, params={**op.params, "reaches": tuple(local)}, tensor=number,
        flops=_flops(planner, op, values, result, local), why=_why(reaches, needs[0]),
    )  # fmt: skip
    return planner.finish(number, value, want)


def _wanted(planner: Planner, op: Op, reaches: tuple[Reach, ...]) -> Sharding | None:
    try:
        return planner.resolve(op)
    except LayoutError as error:
        shrunk = [reach for reach in reaches if reach.before + reach.after != reach.size - 1]
        if not shrunk or "does not divide" not in str(error):
            raise
        names = " and ".join(reach.dim for reach in shrunk)
        raise LayoutError(f"{error}; or keep the size of {names}: padding='same'") from None


def _whole_along(planner: Planner, tensor: int, need: Sharding, reaches: tuple[Reach, ...]) -> Sharding:
    """The operand, whole along the spatial dimensions where some device needs nothing sent for it."""
    dims = {reach.dim for reach in reaches}
    axes = tuple(() if dim.name in dims else on for dim, on in zip(need.dims, need.axes, strict=True))
    whole = Sharding.of(need.dims, axes, need.partial)
    forms = planner.forms[tensor]
    return whole if any(planner.distance(form, whole, forms[form]) == 0 for form in forms) else need


def _why(reaches: tuple[Reach, ...], need: Sharding) -> str:
    split = [reach.dim for reach in reaches if need.on[reach.dim]]
    if split:
        return f"with its neighbours' rows along {' and '.join(split)} each device works on its own part"
    return f"{' and '.join(reach.dim for reach in reaches)} whole: no rows are missing"


def _flops(planner: Planner, op: Op, values: list[int], result: Sharding, local: list[Reach]) -> int:
    """2 a multiply-add of one device; zeros beyond the border that no device sends are no work."""
    if len(values) < 2:
        return 0
    shapes = [
        dict(zip(s.names, planner.local_shape(s), strict=True))
        for s in (planner.sharding_of(values[0]), planner.sharding_of(values[1]), result)
    ]
    x, w, out = shapes
    adds = 1
    for reach in local:
        kernel, made = (w[reach.by], out[reach.dim]) if op.kind == "conv" else (w[reach.dim], out[reach.by])
        adds *= _meetings(x[reach.dim], kernel, made, reach.before)
    spatial = {name for reach in reaches_of(local) for name in reach}
    others = {name: size for shape in shapes for name, size in shape.items() if name not in spatial}
    return 2 * adds * math.prod(others.values())


def reaches_of(local: list[Reach]) -> list[tuple[str, str]]:
    """The names that take part along space, for each direction."""
    return [(reach.dim, reach.by) for reach in local]


def _meetings(size: int, kernel: int, made: int, before: int) -> int:
    """Pairs of a result and a kernel element that meet an element at hand."""
    return sum(0 <= i + k - before < size for i in range(made) for k in range(kernel))


# ---- the exchange -----------------------------------------------------------------------------------------------


def _extended(planner: Planner, number: int, value: int, reach: Reach, on: Axes) -> tuple[int, Reach]:
    """The operand with all rows that each device needs along one dimension, and what is left to pad locally."""
    here = planner.sharding_of(value)
    size = here.dims[here.names.index(reach.dim)].size
    parts = planner.mesh.group_size(on)
    if parts == 1:
        return value, reach
    made = (size + reach.before + reach.after - reach.size + 1) // parts
    if not here.on[reach.dim]:  # whole everywhere already: nothing has to be sent
        value = _joined(planner, number, [value], reach.dim, (), (reach.before, reach.after))
        start, step = 0, made
    else:
        rows = size // parts
        less = rows - made  # the result's rows drift from the operand's by this, from device to device
        before = max(0, reach.before + max(0, (parts - 1) * less))
        after = max(0, reach.size - 1 - reach.before - min(less, parts * less))
        value = _gathered(planner, number, value, reach.dim, on, before, after)
        start, step = before - reach.before, -less
    if step:
        value = _trimmed(planner, number, value, reach.dim, on, made + reach.size - 1, start, step)
    return value, reach._replace(before=0, after=0)


def _gathered(planner: Planner, number: int, value: int, dim: str, on: Axes, before: int, after: int) -> int:
    """One's own rows with `before` rows of the devices before and `after` of those behind."""
    here = planner.sharding_of(value)
    rows = planner.local_shape(here)[here.names.index(dim)]
    far = math.ceil(before / rows), math.ceil(after / rows)
    pieces = [Piece(k, rows - min(rows, before - (k - 1) * rows), rows) for k in range(far[0], 0, -1)]
    pieces += [Piece(0, 0, rows)]
    pieces += [Piece(-k, 0, min(rows, after - (k - 1) * rows)) for k in range(1, far[1] + 1)]
    return _pieced(planner, number, value, dim, on, pieces, wrap=False)


def _pieced(planner: Planner, number: int, value: int, dim: str, on: Axes, pieces: list[Piece], wrap: bool) -> int:
    """Fetch each piece and join them in order; pieces from beyond the last device are zeros."""
    parts = planner.mesh.group_size(on)
    zeros, found = [0, 0], []
    for piece in pieces:
        if abs(piece.distance) >= parts and not wrap:
            zeros[piece.distance < 0] += piece.stop - piece.start
        else:
            found.append(_fetched(planner, number, value, dim, on, piece, wrap))
    return _joined(planner, number, found, dim, on, tuple(zeros))


def _fetched(planner: Planner, number: int, value: int, dim: str, on: Axes, piece: Piece, wrap: bool) -> int:
    here, parts = planner.sharding_of(value), planner.mesh.group_size(on)
    place = here.names.index(dim)
    rows = piece.stop - piece.start
    after = _resized(here, dim, parts * rows)
    if rows < planner.local_shape(here)[place]:
        which = "first" if piece.start == 0 else "last" if piece.stop == planner.local_shape(here)[place] else "inner"
        value = planner.emit(
            "edge", [value], after, planner.dtype_of(value), params={"dim": dim, "start": piece.start}, tensor=number,
            why=f"the {which} {rows} of each part of {dim}",
        )  # fmt: skip
    if piece.distance % parts == 0:
        return value
    where = "before" if piece.distance > 0 else "behind"
    steps = f" ({abs(piece.distance)} places)" if abs(piece.distance) > 1 else ""
    return exchanged(
        planner, number, value, dim, on, piece.distance, wrap, f"each device needs rows of the one {where} it{steps}"
    )


def exchanged(
    planner: Planner, number: int, value: int, dim: str, on: Axes, distance: int, wrap: bool, why: str
) -> int:
    """Every device receives what the one `distance` places before it holds."""
    here, dtype = planner.sharding_of(value), planner.dtype_of(value)
    return planner.emit(
        "halo_exchange", [value], here, dtype, axes=on, group=planner.mesh.group_size(on),
        n_bytes=held_bytes(here, planner.mesh, dtype), params={"dims": (dim,), "distance": distance, "wrap": wrap},
        why=why, tensor=number,
    )  # fmt: skip


def _joined(planner: Planner, number: int, values: list[int], dim: str, on: Axes, zeros: tuple[int, int]) -> int:
    if len(values) == 1 and not any(zeros):
        return values[0]
    shardings = [planner.sharding_of(value) for value in values]
    parts = planner.mesh.group_size(on)
    size = sum(s.dims[s.names.index(dim)].size for s in shardings) + parts * sum(zeros)
    why = f"joined along {dim}, so the parts overlap" if on else f"zeros on both sides of {dim}"
    return planner.emit(
        "extend", values, _resized(shardings[0], dim, size), planner.dtype_of(values[0]),
        params={"dim": dim, "zeros": zeros}, tensor=number, why=why,
    )  # fmt: skip


def _trimmed(planner: Planner, number: int, value: int, dim: str, on: Axes, rows: int, start: int, step: int) -> int:
    here = planner.sharding_of(value)
    resized = _resized(here, dim, planner.mesh.group_size(on) * rows)
    axes = tuple(on if name == dim else kept for name, kept in zip(here.names, here.axes, strict=True))
    return planner.emit(
        "trim", [value], Sharding.of(resized.dims, axes, here.partial), planner.dtype_of(value),
        params={"dim": dim, "start": start, "step": step}, tensor=number,
        why=f"the {rows} of {dim} that this device's part of the result needs",
    )  # fmt: skip


def _resized(s: Sharding, dim: str, size: int) -> Sharding:
    return Sharding.of(tuple(Dim(dim, size) if d.name == dim else d for d in s.dims), s.axes, s.partial)


# ---- shift ------------------------------------------------------------------------------------------------------


def plan_shift(planner: Planner, number: int, op: Op) -> int:
    """On a split dimension a device's new rows lie with one or two others; its own fill the rest."""
    dim, by, wrap = op.params["dim"], op.params["by"], op.params["wrap"]
    (operand,) = op.inputs
    want = planner.resolve(op)
    question = Question(
        (planner.placed[operand],), op.dims, "product", want, free=planner.search, halo=((dim, abs(by)),)
    )
    needs, result, _ = choose(question, planner.items, planner.item_bytes(op))
    value = planner.need(operand, needs[0], f"shift takes {planner.graph.label(operand)} as")
    on = needs[0].on[dim]
    rows = planner.local_shape(needs[0])[op.names.index(dim)]
    if not on or by == 0 or (not wrap and abs(by) == op.dims[op.names.index(dim)].size):
        params = {**op.params, "by": max(-rows, min(by, rows))}
        value = planner.emit("shift", [value], result, op.dtype, params=params, tensor=number,
                             why=f"{dim} whole: each device shifts what it holds")  # fmt: skip
        return planner.finish(number, value, want)
    far, rest = divmod(by, rows)  # rows come from `far` and `far + 1` places before
    pieces = [Piece(far + 1, rows - rest, rows)] * bool(rest) + [Piece(far, 0, rows - rest)]
    value = _pieced(planner, number, value, dim, on, pieces, wrap)
    return planner.finish(number, value, want)


# ---- the way back -----------------------------------------------------------------------------------------------


def plan_overlap(planner: Planner, number: int, op: Op) -> int:
    """Add the windows up locally, then hand what belongs to the neighbours back to them: a halo exchange turned round.

    Where the sizes differ the dimension is made whole, since the parts of operand and result would not lie together.
    """
    (reach,), (operand,) = op.params["reaches"], op.inputs
    want = planner.resolve(op)
    whole = {reach.by} | ({reach.dim} if reach.before + reach.after != reach.size - 1 else set())
    question = Question(
        (planner.placed[operand],), op.dims, "product", want, frozenset(whole), free=planner.search,
        halo=((reach.dim, (reach.before + reach.after) / reach.size),),
    )  # fmt: skip
    needs, result, _ = choose(question, planner.items, planner.item_bytes(op))
    value = planner.need(operand, needs[0], f"overlap takes {planner.graph.label(operand)} as")
    on = needs[0].on[reach.dim]
    local = reach._replace(before=0, after=0) if on else reach
    parts = planner.mesh.group_size(on)
    rows = planner.local_shape(result)[op.names.index(reach.dim)]
    made = _resized(result, reach.dim, parts * (rows + reach.size - 1)) if on else result
    value = planner.emit(op.kind, [value], made, op.dtype, params={**op.params, "reaches": (local,)}, tensor=number,
                         why="each device adds up its own windows")  # fmt: skip
    if on:
        value = _folded(planner, number, value, reach, on, rows, result)
    return planner.finish(number, value, want)


def _folded(planner: Planner, number: int, value: int, reach: Reach, on: Axes, rows: int, result: Sharding) -> int:
    """Send the rows beyond one's part to the devices whose they are, and add what comes."""
    dim, before, after, parts = reach.dim, reach.before, reach.after, planner.mesh.group_size(on)
    received, sides = [], []
    for k in range(1, min(parts - 1, math.ceil(before / rows)) + 1):
        piece = Piece(-k, max(0, before - k * rows), before - (k - 1) * rows)
        received.append(_fetched(planner, number, value, dim, on, piece, wrap=False))
        sides.append("last")
    for k in range(1, min(parts - 1, math.ceil(after / rows)) + 1):
        start = before + k * rows
        piece = Piece(k, start, min(start + rows, before + rows + after))
        received.append(_fetched(planner, number, value, dim, on, piece, wrap=False))
        sides.append("first")
    params = {"dim": dim, "start": before, "sides": tuple(sides)}
    return planner.emit("fold", [value, *received], result, planner.dtype_of(value), params=params, tensor=number,
                        why="each device adds what its neighbours found for its rows")  # fmt: skip
