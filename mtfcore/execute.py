"""The executor: interprets a program's steps on local arrays, inside `jax.shard_map`.

Nothing is decided here. Each step becomes the one JAX call that its kind names, on what this device holds, and the
shape that results is checked against the step's sharding. Next file to read: `runs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import jax.numpy as jnp
from jax import Array, lax, named_scope

from mtfcore.errors import sure
from mtfcore.kernels.basic import KERNELS
from mtfcore.kernels.call import Call
from mtfcore.mesh import Mesh
from mtfcore.permuting import halo_pairs, permute_axes, permute_pairs
from mtfcore.sharding import Axes
from mtfcore.steps import INPUT, OUTPUT, Program, Step, keeps_nan

Record = dict[tuple[int, ...], Array]  # path of a step → the value it made
# Where the device that runs stands along axes; another answer where one device's share runs alone (measuring.share).
STANDS: ContextVar[Callable[[Any], Any]] = ContextVar("stands", default=lax.axis_index)


def interpret(program: Program, inputs: Sequence[Array], record: Record | None = None) -> list[Array]:
    """Run every step on this device's parts; returns its parts of the outputs. `record` keeps every value."""
    env = {port.value: array for port, array in zip(program.inputs, inputs, strict=True)}
    if record is not None:
        record |= {(INPUT, number): array for number, array in enumerate(inputs)}
    for number, step in enumerate(program.steps):
        arrays = [env[value] for value in step.inputs]
        with named_scope(f"step{number}"):  # a compiler's text then says which step an instruction comes from
            results, inner = _do(step, arrays, program.mesh, record is not None)
        if record is not None:
            record |= {(number, *path): value for path, value in inner.items()}
        for value, result in zip(step.outputs, results, strict=True):
            expected = program.shardings[value].local_shape(program.mesh)
            assert result.shape == expected, f"{step!r} made {result.shape}, planned {expected}"
            env[value] = result
        if record is not None:
            record[(number,)] = results[0]
            record |= {(OUTPUT, number, place): results[place] for place in range(1, len(results))}
    return [env[port.value] for port in program.outputs]


def _do(step: Step, arrays: list[Array], mesh: Mesh, recording: bool) -> tuple[list[Array], Record]:
    """What a step makes, and what a loop keeps of its last turns."""
    if step.kind == "repeat":
        return _repeat(step, arrays, recording)
    made = _one(step, arrays, mesh)
    return [*made] if isinstance(made, tuple) else [made], {}


def _one(step: Step, arrays: list[Array], mesh: Mesh) -> Array:
    if step.kind in MOVES:
        return MOVES[step.kind](step, arrays[0], mesh)
    call = Call(
        tuple(s.names for s in step.before), step.after.names, step.after.local_shape(mesh), step.dtype, step.params,
        _start(step, mesh), *_part(step, mesh),
    )  # fmt: skip
    return KERNELS[step.kind](call, *arrays)


def _start(step: Step, mesh: Mesh) -> Any:
    """Where this device's part of a looked-up dimension begins, or the rows that it needs of what it holds."""
    if step.kind == "trim":
        own = _index(step.after.on[step.params["dim"]])
        return step.params["start"] + own * step.params["step"]
    if step.kind in ("part", "put"):
        return tuple(spot.first(_index, mesh) for spot in step.params["spots"])
    if step.kind not in ("gather", "scatter", "cumsum", "top_k", "write"):
        return 0
    table = {"gather": step.before[-1], "scatter": step.after}.get(step.kind, step.before[0])
    dim = step.params["dim"]
    on = table.on[dim]
    return _index(on) * table.local_shape(mesh)[table.names.index(dim)] if on else 0


def _part(step: Step, mesh: Mesh) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The sizes of the whole result, and where this device's part begins: random numbers depend on both."""
    if step.kind not in ("random", "dropout"):
        return (), ()
    s = step.after
    starts = [_index(on) * n if on else 0 for on, n in zip(s.axes, s.local_shape(mesh), strict=True)]
    return s.shape, tuple(starts)


def _repeat(step: Step, arrays: list[Array], recording: bool) -> tuple[list[Array], Record]:
    n_carry, n_stacked = step.params["n_carry"], step.params["n_stacked"]
    carry, stacked = arrays[:n_carry], arrays[n_carry : n_carry + n_stacked]
    captured = arrays[n_carry + n_stacked :]

    # XLA for TPUs merges taking a layer's entry with taking a block of its rows, and then lays whole stacks of whole
    # numbers anew in every turn: 1.9 s instead of 0.1 s for a decode step of 540B.
    body = sure(step.body)
    blocks = any(inner.kind == "part" for inner in body.steps)

    def apart(entry: Array) -> Array:
        return lax.optimization_barrier(entry) if blocks and entry.dtype == jnp.int8 else entry

    def turn(carry: list[Array], parts: list[Array]) -> tuple[list[Array], tuple[list[Array], Record]]:
        inner: Record | None = {} if recording else None
        results = interpret(body, [*carry, *map(apart, parts), *captured], inner)
        return results[:n_carry], (results[n_carry:], inner or {})

    after, (outputs, record) = lax.scan(turn, carry, stacked, length=step.times, reverse=step.params["reverse"])
    return [*after, *outputs], record


def _index(axes: Axes | str) -> Array:
    return STANDS.get()(axes)


# ---- moves: one JAX call each -----------------------------------------------------------------------------------


def _slice(step: Step, array: Array, mesh: Mesh) -> Array:
    (place,), parts = step.params["places"], mesh.group_size(step.axes)
    size = array.shape[place] // parts
    return lax.dynamic_slice_in_dim(array, _index(step.axes) * size, size, place)


def _mask(step: Step, array: Array, mesh: Mesh) -> Array:
    return jnp.where(_index(step.axes) == 0, array, jnp.zeros((), array.dtype))


def _all_gather(step: Step, array: Array, mesh: Mesh) -> Array:
    return lax.all_gather(array, step.axes, axis=step.params["places"][0], tiled=True)


def _reduce_scatter(step: Step, array: Array, mesh: Mesh) -> Array:
    return lax.psum_scatter(array, step.axes, scatter_dimension=step.params["places"][0], tiled=True)


def _all_reduce(step: Step, array: Array, mesh: Mesh) -> Array:
    by = {"sum": lax.psum, "max": lax.pmax, "min": lax.pmin}[step.params.get("fn", "sum")]
    if array.dtype == bool:  # bool has no collective of its own: one byte a truth value
        return by(array.astype(jnp.uint8), step.axes).astype(bool)
    if keeps_nan(step):
        return _with_nan(by, array, step.axes)
    return by(array, step.axes)


def _with_nan(by: Callable, array: Array, axes: Axes) -> Array:
    """Largest or smallest floats, NaN wherever one is, as jnp.max has it. A collective of floats may lose it (XLA's on
    CPU does), so what travels are whole numbers of as many bits that stand in the same order."""
    whole = jnp.dtype(f"int{8 * array.dtype.itemsize}")
    ends = jnp.iinfo(whole)

    def turned(bits: Array) -> Array:  # negative floats rise as their bits fall; its own inverse
        return jnp.where(bits < 0, bits ^ jnp.array(ends.max, whole), bits)

    worst = jnp.array(ends.max if by is lax.pmax else ends.min, whole)  # both are the bits of a NaN
    sent = jnp.where(jnp.isnan(array), worst, turned(lax.bitcast_convert_type(array, whole)))
    return lax.bitcast_convert_type(turned(by(sent, axes)), array.dtype)


def _all_to_all(step: Step, array: Array, mesh: Mesh) -> Array:
    gives, receives = step.params["places"]
    # XLA for CPUs sends blocks one by one, and refuses to when it knows one to be zeros and lays that out otherwise
    array = lax.optimization_barrier(array)
    return lax.all_to_all(array, step.axes, split_axis=receives, concat_axis=gives, tiled=True)


def _permute(step: Step, array: Array, mesh: Mesh) -> Array:
    return lax.ppermute(array, permute_axes(step, mesh), permute_pairs(step, mesh))


def _halo_exchange(step: Step, array: Array, mesh: Mesh) -> Array:
    return lax.ppermute(array, permute_axes(step, mesh), halo_pairs(step, mesh))


MOVES: dict[str, Callable[[Step, Array, Mesh], Array]] = {
    "slice": _slice, "mask": _mask, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce, "all_to_all": _all_to_all, "permute": _permute, "halo_exchange": _halo_exchange,
}  # fmt: skip
