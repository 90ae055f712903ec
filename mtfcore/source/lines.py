"""One step as the line of plain JAX that a person would write for it.

    all_gather over yz of E     →   x = lax.all_gather(x, ("y", "z"), axis=1, tiled=True)
    einsum B E , E F → B F      →   h1 = jnp.einsum("BE,EF->BF", x, w)

Each writer gets the step, the names of its operands and the mesh, and returns an expression. Sizes are written as
numbers, since each device's part has one fixed shape. Next file to read: `source/program`, which puts lines together.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence

from mtfcore.dtypes import long_name
from mtfcore.mesh import Mesh
from mtfcore.permuting import permute_axes, permute_pairs
from mtfcore.sharding import Axes, Sharding
from mtfcore.source.names import number_text
from mtfcore.steps import Step, keeps_nan

INDENT = "    "
Operands = Sequence[str]

POINTWISE = {
    "add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "divide": "{} / {}", "identity": "{}",
    "barrier": "lax.optimization_barrier({})", "stop_gradient": "lax.stop_gradient({})",
    "maximum": "jnp.maximum({}, {})", "minimum": "jnp.minimum({}, {})", "power": "jnp.power({}, {})",
    "relu": "jnp.maximum({}, 0)", "gelu": "jax.nn.gelu({})", "silu": "jax.nn.silu({})",
    "sigmoid": "jax.nn.sigmoid({})", "tanh": "jnp.tanh({})", "exp": "jnp.exp({})", "log": "jnp.log({})",
    "sqrt": "jnp.sqrt({})", "rsqrt": "lax.rsqrt({})", "square": "jnp.square({})",
    "sin": "jnp.sin({})", "cos": "jnp.cos({})", "absolute": "jnp.abs({})",
    "equal": "{} == {}", "less": "{} < {}", "greater": "{} > {}", "logical_and": "{} & {}",
    "logical_or": "{} | {}", "logical_not": "~{}", "where": "jnp.where({}, {}, {})", "cast": "{}",
    "sort_key": "jnp.where({0} < 0, lax.bitcast_convert_type({0}, jnp.int32) ^ 0x7FFFFFFF, "
                "lax.bitcast_convert_type(jnp.abs({0}), jnp.int32))",
    "fold_in": "jax.random.key_data(jax.random.fold_in(jax.random.key({}), {}))[0].astype(jnp.int32)",
}  # fmt: skip


def quoted(axes: Axes) -> str:
    """Mesh axes as JAX takes them: `"x"` or `("y", "z")`."""
    return f'"{axes[0]}"' if len(axes) == 1 else f"({', '.join(f'{axis!r}' for axis in axes)})".replace("'", '"')


def dtype_name(dtype: str) -> str:
    """A dtype as jax.numpy names it."""
    return "jnp.bool_" if dtype == "bool" else f"jnp.{long_name(dtype)}"


def zero(dtype: str) -> str:
    return "False" if dtype == "bool" else "0"


def called(name: str, *more: str) -> str:
    return f"{name}({', '.join(more)})"


# ---- moves ------------------------------------------------------------------------------------------------------


def _slice(step: Step, operands: Operands, mesh: Mesh) -> str:
    (place,) = step.params["places"]
    size = str(step.after.local_shape(mesh)[place])
    start = f"lax.axis_index({quoted(step.axes)}) * {size}"
    return called("lax.dynamic_slice_in_dim", operands[0], start, size, f"axis={place}")


def _mask(step: Step, operands: Operands, mesh: Mesh) -> str:
    return masked(operands[0], step.axes, step.dtype)


def masked(name: str, axes: Axes, dtype: str) -> str:
    """A whole value as an addend of a sum: the first device along the axes keeps it, the others hold zeros."""
    return called("jnp.where", f"lax.axis_index({quoted(axes)}) == 0", name, zero(dtype))


def _all_gather(step: Step, operands: Operands, mesh: Mesh) -> str:
    (place,) = step.params["places"]
    return called("lax.all_gather", operands[0], quoted(step.axes), f"axis={place}", "tiled=True")


def _reduce_scatter(step: Step, operands: Operands, mesh: Mesh) -> str:
    (place,) = step.params["places"]
    return called("lax.psum_scatter", operands[0], quoted(step.axes), f"scatter_dimension={place}", "tiled=True")


def _all_reduce(step: Step, operands: Operands, mesh: Mesh) -> str:
    fn = {"sum": "lax.psum", "max": "lax.pmax", "min": "lax.pmin"}[step.params.get("fn", "sum")]
    if step.dtype == "bool":  # truth values travel as bytes
        return called(fn, f"{operands[0]}.astype(jnp.uint8)", quoted(step.axes)) + ".astype(jnp.bool_)"
    if keeps_nan(step):
        return called("with_nan", fn, operands[0], quoted(step.axes))
    return called(fn, operands[0], quoted(step.axes))


def _all_to_all(step: Step, operands: Operands, mesh: Mesh) -> str:
    gives, takes = step.params["places"]
    return called(
        "lax.all_to_all", operands[0], quoted(step.axes), f"split_axis={takes}", f"concat_axis={gives}", "tiled=True"
    )


def _permute(step: Step, operands: Operands, mesh: Mesh) -> str:
    return called("lax.ppermute", operands[0], quoted(permute_axes(step, mesh)), str(permute_pairs(step, mesh)))


# ---- local computations -----------------------------------------------------------------------------------------


def _einsum(step: Step, operands: Operands, mesh: Mesh) -> str:
    before, after = step.before, step.after
    gone = [name for name in before[0].names if name not in after.names]
    in_order = tuple(name for name in before[0].names if name in after.names) == after.names
    if len(operands) == 1 and not gone:
        return ordered(operands[0], before[0].names, after.names)
    if len(operands) == 1 and in_order and step.dtype in ("f32", "f64"):
        return called("jnp.sum", operands[0], f"axis={_places(before[0], gone)}")
    letter = letters([name for s in before for name in s.names])
    spelled = ["".join(letter[name] for name in s.names) for s in (*before, after)]
    return called("jnp.einsum", f'"{",".join(spelled[:-1])}->{spelled[-1]}"', *operands)


def letters(names: Sequence[str]) -> dict[str, str]:
    """One letter a dimension for einsum: its own initial where that is free."""
    found: dict[str, str] = {}
    for name in sorted(dict.fromkeys(names), key=lambda name: len(name) > 1):  # a one-letter name keeps its letter
        choices = [name[0], name[0].swapcase(), *name, *string.ascii_letters]
        found[name] = next(c for c in choices if c in string.ascii_letters and c not in found.values())
    return found


def _places(s: Sharding, names: Sequence[str]) -> str:
    places = [s.names.index(name) for name in names]
    return str(places[0]) if len(places) == 1 else str(tuple(places))


def ordered(operand: str, names: Sequence[str], wanted: Sequence[str]) -> str:
    """An operand with its dimensions in the order of `wanted`."""
    order = [list(names).index(name) for name in wanted if name in names]
    if order == sorted(order):
        return operand
    return f"{operand}.T" if order == [1, 0] else f"{operand}.transpose({', '.join(map(str, order))})"


def aligned(operand: str, names: Axes, out_names: Axes) -> str:
    """An operand that broadcasts by position: reordered, with a None where it lacks a dimension of the result."""
    entries = [":" if name in names else "None" for name in out_names]
    while entries and entries[0] == "None":  # dimensions missing in front broadcast by themselves
        entries.pop(0)
    index = f"[{', '.join(entries)}]" if "None" in entries else ""
    return ordered(operand, names, out_names) + index


def _pointwise(step: Step, operands: Operands, mesh: Mesh) -> str:
    fn, names = step.params["fn"], step.after.names
    parts = [aligned(operand, s.names, names) for operand, s in zip(operands, step.before, strict=True)]
    result = POINTWISE[fn].format(*_typed(step, parts))
    if fn == "cast":
        result = f"{result}.astype({dtype_name(step.dtype)})"
    if set(names) <= {name for s in step.before for name in s.names}:
        return result
    return called("jnp.broadcast_to", result, shape_text(step.after.local_shape(mesh)))


def _typed(step: Step, parts: list[str]) -> list[str]:
    """Numbers take the dtype of the arrays beside them; where there are none (`where(c, 1.0, 0.0)`) they say theirs."""
    first = 1 if step.params["fn"] == "where" else 0
    literal = [not s.dims and _is_number(part) for part, s in zip(parts, step.before, strict=True)]
    if not all(literal[first:]):
        return parts
    return parts[:first] + [f"{dtype_name(step.dtype)}({part})" for part in parts[first:]]


def _is_number(text: str) -> bool:
    return not text.isidentifier() or text in ("True", "False")


def shape_text(shape: Sequence[int]) -> str:
    return str(tuple(shape))


def _reduce(step: Step, operands: Operands, mesh: Mesh) -> str:
    (s,), fn = step.before, step.params["fn"]
    fn = {"max": "any", "min": "all"}[fn] if step.dtype == "bool" else fn
    kept = [name for name in s.names if name in step.after.names]
    result = called(f"jnp.{fn}", operands[0], f"axis={_places(s, [name for name in s.names if name not in kept])}")
    return ordered(result, kept, step.after.names)


def place_of(step: Step) -> int:
    """Where the dimension along which a step works stands in its first operand."""
    return step.before[0].names.index(step.params["dim"])


def _window(step: Step, operands: Operands, mesh: Mesh) -> str:
    start, place = step.params["start"], place_of(step)
    return f"{operands[0]}[{', '.join([':'] * place + [f'{start}:{start + step.after.shape[place]}'])}]"


def _part(step: Step, operands: Operands, mesh: Mesh) -> str:
    found, names = operands[0], step.before[0].names
    for spot in step.params["spots"]:
        found = called("lax.dynamic_slice_in_dim", found, spot.text(mesh), str(spot.size), f"{names.index(spot.dim)}")
    return found


def _put(step: Step, operands: Operands, mesh: Mesh) -> str:
    zeros = called("jnp.zeros", shape_text(step.after.local_shape(mesh)), dtype_name(step.dtype))
    whole, value = operands if len(operands) == 2 else (zeros, operands[0])
    starts = {spot.dim: spot.text(mesh) for spot in step.params["spots"]}
    where = ", ".join(starts.get(name, "0") for name in step.after.names)
    return called("lax.dynamic_update_slice", whole, value, f"({where}{',' * (len(step.after.names) == 1)})")


def _pad(step: Step, operands: Operands, mesh: Mesh) -> str:
    place, value = place_of(step), step.params["value"]
    widths = [(0, 0)] * len(step.after.dims)
    before = step.params.get("before", 0)
    widths[place] = (before, step.after.shape[place] - step.before[0].shape[place] - before)
    return called("jnp.pad", operands[0], str(widths), f"constant_values={number_text(value, step.dtype)}")


def _concat(step: Step, operands: Operands, mesh: Mesh) -> str:
    parts = [ordered(name, s.names, step.after.names) for name, s in zip(operands, step.before, strict=True)]
    return called("jnp.concatenate", f"[{', '.join(parts)}]", f"axis={step.after.names.index(step.params['dim'])}")


def _reshape(step: Step, operands: Operands, mesh: Mesh) -> str:
    return f"{operands[0]}.reshape({shape_text(step.after.local_shape(mesh))})"


def _constant(step: Step, operands: Operands, mesh: Mesh) -> str:
    return called("jnp.array", number_text(step.params["value"], step.dtype), dtype_name(step.dtype))


def _index(step: Step, operands: Operands, mesh: Mesh) -> str:
    return called("jnp.arange", str(step.after.shape[0]), f"dtype={dtype_name(step.dtype)}")


WRITERS: dict[str, Callable[[Step, Operands, Mesh], str]] = {
    "slice": _slice, "mask": _mask, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce, "all_to_all": _all_to_all, "permute": _permute, "einsum": _einsum,
    "pointwise": _pointwise, "reduce": _reduce, "window": _window, "part": _part,
    "put": _put, "pad": _pad, "concat": _concat,
    "reshape": _reshape, "constant": _constant, "index": _index,
}  # fmt: skip
