"""The spatial steps as lines of plain JAX, as `source/lines` has those of the others.

    halo_exchange over x of height   →   h1 = lax.ppermute(h1, "x", [(0, 1), (1, 2), (2, 3)])
    extend of height                 →   x = jnp.concatenate([h1, x, h2], axis=1)

Next file to read: `source/program`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mtfcore.mesh import Mesh
from mtfcore.permuting import halo_pairs, permute_axes
from mtfcore.source.lines import Operands, called, ordered, place_of, quoted, shape_text
from mtfcore.spatial import roles
from mtfcore.steps import Step


def _cut(operand: str, place: int, start: int, stop: int) -> str:
    return f"{operand}[{', '.join([':'] * place + [f'{start}:{stop}'])}]"


def _padded(operand: str, rank: int, place: int, before: int, after: int) -> str:
    if not before and not after:
        return operand
    widths = [(before, after) if axis == place else (0, 0) for axis in range(rank)]
    return called("jnp.pad", operand, str(widths))


def _halo_exchange(step: Step, operands: Operands, mesh: Mesh) -> str:
    return called("lax.ppermute", operands[0], quoted(permute_axes(step, mesh)), str(halo_pairs(step, mesh)))


def _edge(step: Step, operands: Operands, mesh: Mesh) -> str:
    place, start = place_of(step), step.params["start"]
    return _cut(operands[0], place, start, start + step.after.local_shape(mesh)[place])


def _extend(step: Step, operands: Operands, mesh: Mesh) -> str:
    place, rank = place_of(step), len(step.after.dims)
    joined = called("jnp.concatenate", f"[{', '.join(operands)}]", f"axis={place}")
    return _padded(joined if len(operands) > 1 else operands[0], rank, place, *step.params["zeros"])


def _trim(step: Step, operands: Operands, mesh: Mesh) -> str:
    place, first, by = place_of(step), step.params["start"], step.params["step"]
    on = step.after.on[step.params["dim"]]
    start = f"{first} + lax.axis_index({quoted(on)}) * {by}".removeprefix("0 + ")
    return called(
        "lax.dynamic_slice_in_dim", operands[0], start, str(step.after.local_shape(mesh)[place]), f"axis={place}"
    )


def _shift(step: Step, operands: Operands, mesh: Mesh) -> str:
    place, by = place_of(step), step.params["by"]
    if step.params["wrap"]:
        return called("jnp.roll", operands[0], str(by), f"axis={place}")
    size = step.after.local_shape(mesh)[place]
    kept = _cut(operands[0], place, max(-by, 0), size - max(by, 0)) if by else operands[0]
    return _padded(kept, len(step.after.dims), place, max(by, 0), max(-by, 0))


def _windows(step: Step, operands: Operands, mesh: Mesh) -> str:
    (before,), (reach,) = step.before, step.params["reaches"]
    place, names = before.names.index(reach.dim), step.after.names
    size = step.after.local_shape(mesh)[names.index(reach.dim)]
    whole = _padded(operands[0], len(before.dims), place, reach.before, reach.after)
    cut = f"[{', '.join([':'] * place + [f'i : i + {size}'])}]"
    stacked = called("jnp.stack", f"[{whole}{cut} for i in range({reach.size})]", "axis=-1")
    return ordered(stacked, (*before.names, reach.by), names)


def _overlap(step: Step, operands: Operands, mesh: Mesh) -> str:
    (before,), (reach,) = step.before, step.params["reaches"]
    last = before.names.index(reach.by)
    rest = [name for name in before.names if name != reach.by]
    place, size = rest.index(reach.dim), before.local_shape(mesh)[before.names.index(reach.dim)]
    column = f"{operands[0]}[{', '.join([':'] * last + ['i'])}]"
    widths = [f"(i, {reach.size - 1} - i)" if axis == place else "(0, 0)" for axis in range(len(rest))]
    total = f"sum(jnp.pad({column}, [{', '.join(widths)}]) for i in range({reach.size}))"
    stop = size + reach.size - 1 - reach.after
    cut = f"({total}){_cut('', place, reach.before, stop)}" if reach.before or reach.after else total
    return ordered(cut, rest, step.after.names)


def _fold(step: Step, operands: Operands, mesh: Mesh) -> str:
    place, start, rank = place_of(step), step.params["start"], len(step.after.dims)
    size = step.after.local_shape(mesh)[place]
    terms = [_cut(operands[0], place, start, start + size)]
    for name, s, side in zip(operands[1:], step.before[1:], step.params["sides"], strict=True):
        gap = size - s.local_shape(mesh)[place]
        terms.append(_padded(name, rank, place, *((0, gap) if side == "first" else (gap, 0))))
    return " + ".join(terms)


def _conv(step: Step, operands: Operands, mesh: Mesh) -> str:
    w, reaches = operands[1], step.params["reaches"]
    if step.params["flip"]:
        places = tuple(step.before[1].names.index(reach.by) for reach in reaches)
        w = called("jnp.flip", w, f"axis={places}")
    return _convolved(step, operands[0], w, [(reach.dim, reach.by, reach.dim) for reach in reaches], mesh)


def _conv_kernel(step: Step, operands: Operands, mesh: Mesh) -> str:
    reaches = step.params["reaches"]
    x, w = operands
    found = _convolved(step, x, w, [(reach.dim, reach.dim, reach.by) for reach in reaches], mesh)
    places = tuple(step.after.names.index(reach.by) for reach in reaches)
    return called("jnp.flip", found, f"axis={places}") if step.params["flip"] else found


def _convolved(step: Step, x: str, w: str, slides: list[tuple[str, str, str]], mesh: Mesh) -> str:
    """The call of `lax.conv_general_dilated`; reshapes only where dimensions have to be merged for it."""
    of_x, of_w, of_out = zip(*slides, strict=True)
    (left, right), after = step.before, step.after
    part = roles(left.names, right.names, after.names, [*of_x, *of_w])
    of_left, of_right, made = (dict(zip(s.names, s.local_shape(mesh), strict=True)) for s in (left, right, after))

    def merged(names: Sequence[str]) -> int:
        return math.prod((of_right | of_left)[name] for name in names)

    inputs, features = [*part.group, *part.summed], [*part.group, *part.features]
    lhs = ordered(x, left.names, [*part.batch, *of_x, *inputs])
    rhs = ordered(w, right.names, [*of_w, *part.summed, *features])
    if (len(part.batch), len(inputs)) != (1, 1):
        lhs += f".reshape{shape_text([merged(part.batch), *[of_left[n] for n in of_x], merged(inputs)])}"
    if (len(part.summed), len(features)) != (1, 1):
        rhs += f".reshape{shape_text([*[of_right[n] for n in of_w], merged(part.summed), merged(features)])}"
    letters = "".join("DHW"[-len(slides) :])
    pads = [(reach.before, reach.after) for reach in step.params["reaches"]]
    groups = [f"feature_group_count={merged(part.group)}"] if part.group else []
    result = called(
        "lax.conv_general_dilated", lhs, rhs, str((1,) * len(slides)), str(pads),
        f'dimension_numbers=("N{letters}C", "{letters}IO", "N{letters}C")', *groups,
    )  # fmt: skip
    names = [*part.batch, *of_out, *features]
    if (len(part.batch), len(features)) != (1, 1):
        result += f".reshape{shape_text([made[name] for name in names])}"
    return ordered(result, names, after.names)


SPATIAL: dict[str, Callable[[Step, Operands, Mesh], str]] = {
    "halo_exchange": _halo_exchange, "edge": _edge, "extend": _extend, "trim": _trim, "shift": _shift,
    "windows": _windows, "overlap": _overlap, "fold": _fold, "conv": _conv, "conv_kernel": _conv_kernel,
}  # fmt: skip
