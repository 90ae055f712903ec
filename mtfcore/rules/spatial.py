"""Shift, windows and convolutions: how they are cut, and which rows travel for it.

A convolution can be had in two ways along a split dimension: take the neighbours' rows of the operand first, or
compute what one's own rows give and hand the neighbours their share of the result. Both cost as many rows, so the
thinner of the two tensors travels: with it a backward sends no more than `jax.grad` of the forward would.
Next file to read: `mtfcore.kernels.spatial`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtfcore.errors import LayoutError
from mtfcore.rules.choosing import choose
from mtfcore.rules.halo import Piece, Site, extended, handed_back, pieced
from mtfcore.rules.questions import Question
from mtfcore.sharding import Sharding
from mtfcore.spatial import Reach
from mtfcore.tensor import Like, Op

if TYPE_CHECKING:
    from mtfcore.planner import Planner


def plan_spatial(planner: Planner, number: int, op: Op) -> int:
    """Windows and convolutions, and the gradients of both."""
    reaches = op.params["reaches"]
    want = _wanted(planner, op, reaches)
    needs, result, want = _cut(planner, op, want, reaches)
    values = [
        planner.need(i, s, f"{op.kind} takes {planner.graph.label(i)} as")
        for i, s in zip(op.inputs, (_whole_along(planner, op.inputs[0], needs[0], reaches), *needs[1:]), strict=True)
    ]
    sites = {r: Site(planner, number, r.dim, needs[0].on[r.dim]) for r in reaches if needs[0].on[r.dim]}
    sent = [planner.sharding_of(values[0]).on[site.dim] for site in sites.values()]
    costs = [0 if _was_sent(planner, value) else _row(planner, need, reaches) for value, need in zip(values, needs)]
    second = costs[1] if op.kind == "conv_kernel" else _row(planner, result, reaches)
    thinner = sites and all(sent) and second < costs[0]
    if op.kind == "conv" and thinner:
        value = _then_handed_back(planner, number, op, values, result, sites)
    elif op.kind == "conv_kernel" and thinner:
        value = _first_extended(planner, number, op, values[::-1], result, sites, turned=True)
    else:
        value = _first_extended(planner, number, op, values, result, sites)
    return planner.finish(number, value, want)


def _was_sent(planner: Planner, value: int) -> bool:
    """Whether neighbours have rows of this value already."""
    return any(kind in ("edge", "halo_exchange") and values == (value,) for kind, values, *_ in planner.exchanged)


def _row(planner: Planner, s: Sharding, reaches: Sequence[Reach]) -> int:
    """How many elements stand at one place in space."""
    along = {reach.dim for reach in reaches}
    local = zip(s.names, planner.local_shape(s), strict=True)
    return math.prod(size for name, size in local if name not in along)


def _cut(
    planner: Planner, op: Op, want: Sharding | None, reaches: Sequence[Reach]
) -> tuple[tuple[Sharding, ...], Sharding, Sharding | None]:
    """Where each operand lies during the operation, where the result then lies, and where it goes."""
    question = Question(
        tuple(planner.placed[i] for i in op.inputs), op.dims, "product", want,
        frozenset(reach.by for reach in reaches), free=planner.search,
        halo=tuple((reach.dim, reach.before + reach.after) for reach in reaches),
        forms=tuple(planner.other_forms(i) for i in op.inputs),
        owes=isinstance(op.out, Like) and not op.out.whole,
    )  # fmt: skip
    needs, result, _ = choose(question, planner.items, planner.item_bytes(op))
    return needs, result, question.goal


def _wanted(planner: Planner, op: Op, reaches: Sequence[Reach]) -> Sharding | None:
    """Where the result is wanted; a size that stopped dividing can be kept by other zeros."""
    try:
        return planner.resolve(op)
    except LayoutError as error:
        changed = [reach.dim for reach in reaches if not _keeps_size(reach)]
        if op.kind == "conv_kernel" or not changed or "does not divide" not in str(error):
            raise
        raise LayoutError(f"{error}; or keep the size of {' and '.join(changed)}: padding='same'") from None


def _keeps_size(reach: Reach) -> bool:
    return reach.before + reach.after == reach.size - 1


def _whole_along(planner: Planner, tensor: int, need: Sharding, reaches: Sequence[Reach]) -> Sharding:
    """The operand, whole along the spatial dimensions if that costs nothing: then no rows need to be sent."""
    dims = {reach.dim for reach in reaches}
    whole = Sharding.of(need.dims, tuple(() if d.name in dims else on for d, on in zip(need.dims, need.axes)),
                        need.partial)  # fmt: skip
    forms = planner.forms[tensor]
    return whole if any(planner.distance(form, whole, forms[form]) == 0 for form in forms) else need


def _first_extended(
    planner: Planner, number: int, op: Op, values: list[int], result: Sharding, sites: dict[Reach, Site],
    turned: bool = False,
) -> int:  # fmt: skip
    """The neighbours' rows come first. `turned`: a kernel's gradient from extended cotangents, found back to front."""
    values, local = list(values), []
    for reach in op.params["reaches"]:
        own = reach.backwards if turned else reach
        values[0], left = extended(sites[reach], values[0], own) if reach in sites else (values[0], own)
        local.append(left)
    turn = {"flip": turned} if op.kind == "conv_kernel" else {}
    split = " and ".join(site.dim for site in sites.values())
    why = f"with the rows around it each device works on its own part of {split}" if split else "no rows are missing"
    return planner.emit(
        op.kind, values, result, op.dtype, params={**op.params, "reaches": tuple(local), **turn}, tensor=number,
        flops=_flops(planner, op, values, result, local), why=why,
    )  # fmt: skip


def _then_handed_back(
    planner: Planner, number: int, op: Op, values: list[int], result: Sharding, sites: dict[Reach, Site]
) -> int:
    """Each device computes all that its own rows give, then hands the neighbours their share."""
    local = [r._replace(before=r.size - 1, after=r.size - 1) if r in sites else r for r in op.params["reaches"]]
    longer = result
    for reach, site in sites.items():
        longer = site.resized(longer, site.rows(values[0]) + reach.size - 1)
    value = planner.emit(
        op.kind, values, longer, op.dtype, params={**op.params, "reaches": tuple(local)}, tensor=number,
        flops=_flops(planner, op, values, longer, local), why="all that a device's own rows give, those around it too",
    )  # fmt: skip
    for reach, site in sites.items():
        value = handed_back(site, value, reach, planner.local_shape(result)[result.names.index(site.dim)])
    return value


def _flops(planner: Planner, op: Op, values: Sequence[int], result: Sharding, local: Sequence[Reach]) -> int:
    """2 a multiply-add of one device; zeros beyond the border that no device sends are no work."""
    if len(values) < 2:
        return 0
    shardings = [planner.sharding_of(values[0]), planner.sharding_of(values[1]), result]
    x, w, out = (dict(zip(s.names, planner.local_shape(s), strict=True)) for s in shardings)
    adds = 1
    for r in local:
        kernel, made = (w[r.by], out[r.dim]) if op.kind == "conv" else (w[r.dim], out[r.by])
        small, large = sorted((made, kernel))
        adds *= _meetings(x[r.dim], small, large, r.before)
    spatial = {name for reach in local for name in (reach.dim, reach.by)}
    return 2 * adds * math.prod(size for name, size in {**x, **w, **out}.items() if name not in spatial)


def _meetings(size: int, few: int, many: int, before: int) -> int:
    """Pairs (i, k) of a result and a kernel element whose i + k - before is an element at hand."""
    return sum(max(0, min(many, size + before - k) - max(0, before - k)) for k in range(few))


def plan_overlap(planner: Planner, number: int, op: Op) -> int:
    """Add the windows up locally, then hand what belongs to the neighbours back to them."""
    (reach,), (operand,) = op.params["reaches"], op.inputs
    (need,), result, want = _cut(planner, op, _wanted(planner, op, (reach,)), (reach,))
    value = planner.need(operand, need, f"overlap takes {planner.graph.label(operand)} as")
    site = Site(planner, number, reach.dim, need.on[reach.dim])
    split = bool(site.on)
    made = site.resized(result, site.rows(value) + reach.size - 1) if split else result
    local = reach._replace(before=0, after=0) if split else reach
    value = planner.emit(op.kind, [value], made, op.dtype, params={**op.params, "reaches": (local,)}, tensor=number,
                         why="each device adds up its own windows")  # fmt: skip
    if split:
        rows = planner.local_shape(result)[result.names.index(reach.dim)]
        value = handed_back(site, value, reach.backwards, rows)
    return planner.finish(number, value, want)


def plan_shift(planner: Planner, number: int, op: Op) -> int:
    """On a split dimension a device's new rows lie with one or two others; its own fill the rest."""
    dim, by, wrap = op.params["dim"], op.params["by"], op.params["wrap"]
    (operand,) = op.inputs
    (need,), result, want = _cut(planner, op, planner.resolve(op), (Reach(dim, "", abs(by) + 1, abs(by), 0),))
    value = planner.need(operand, need, f"shift takes {planner.graph.label(operand)} as")
    site = Site(planner, number, dim, need.on[dim])
    rows, size = site.rows(value), op.dims[op.names.index(dim)].size
    if not site.on or by == 0 or (not wrap and abs(by) == size):
        params = {**op.params, "by": max(-rows, min(by, rows))}
        value = planner.emit("shift", [value], result, op.dtype, params=params, tensor=number,
                             why="each device shifts what it holds")  # fmt: skip
        return planner.finish(number, value, want)
    far, rest = divmod(by, rows)  # rows come from `far` and `far + 1` places before
    pieces = [*([Piece(far + 1, rows - rest, rows)] if rest else []), Piece(far, 0, rows - rest)]
    return planner.finish(number, pieced(site, value, pieces, wrap), want)
