"""Inputs for a measurement, made on the devices themselves: each device only its own part, whatever the size.

    arrays = fill(prog, places)           # the inputs in order, each where and as its place says
    numpy_of(prog)["w"]                   # the very same numbers on this computer

A number depends on its place in the whole array alone (a hash of its indices), so that values tell devices apart, and
they are whole numbers times a power of two: exact in every type, and equal on every platform. Indices stay within the
tables that they look into. Next file to read: `checking`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtfcore.dtypes import is_float, long_name
from mtfcore.errors import sure
from mtfcore.steps import Port, Program
from mtfcore.tensor import Graph

if TYPE_CHECKING:
    import numpy as np

LOOKS_INTO = {"gather": 0, "scatter": 0, "write": 2}  # operation → which operand holds indices
ID_LIMIT = 16  # indices of which nothing is known stay below this
SMALL = 3  # the largest whole number in place of an int8 weight


def fill(program: Program, formats: Sequence[Any]) -> list[Any]:
    """All inputs of a program, whole, each where and as its format (or sharding) says."""
    return _made(program, [(port, port.sharding.shape) for port in program.inputs], formats)


def fill_parts(program: Program, ports: Sequence[Port], formats: Sequence[Any]) -> list[Any]:
    """One device's part of these inputs; at its local shapes every part is filled as if it were whole."""
    return _made(program, [(port, port.sharding.local_shape(program.mesh)) for port in ports], formats)


def on_device(program: Program, device: Any) -> list[Any]:
    """The same whole arrays on one device: what the oracle is given."""
    import jax

    return fill(program, [jax.sharding.SingleDeviceSharding(device)] * len(program.inputs))


def _made(program: Program, wanted: Sequence[tuple[Port, tuple[int, ...]]], formats: Sequence[Any]) -> list[Any]:
    import jax

    from mtfcore.device_pool import launch

    limits = index_limits(program.graph)
    make = jax.jit(lambda: [_values(port, shape, limits) for port, shape in wanted], out_shardings=list(formats))
    return launch(make) if wanted else []


def numpy_of(program: Program) -> dict[str, np.ndarray]:
    """The same as numpy arrays of this computer."""
    import jax
    import numpy as np

    made = on_device(program, jax.devices("cpu")[0])
    return {port.name: np.asarray(array) for port, array in zip(program.inputs, made, strict=True)}


def _values(port: Port, shape: tuple[int, ...], limits: Mapping[str, int]) -> Any:
    """An array by the hash of its indices: floats about -1 … 1 over the root of the largest dimension."""
    import jax.numpy as jnp

    bits = _hashed(shape, zlib.crc32(port.name.encode()))
    dtype = jnp.dtype(long_name(port.dtype))
    if port.dtype == "bool":
        return (bits & 1).astype(dtype)
    if port.dtype == "u8" or port.name in limits or not (is_float(port.dtype) or port.dtype == "i8"):
        return (bits % jnp.uint32(limits.get(port.name, ID_LIMIT))).astype(dtype)
    if port.dtype == "i8":
        return ((bits % jnp.uint32(2 * SMALL + 1)).astype(jnp.int32) - SMALL).astype(dtype)
    whole = (bits % jnp.uint32(255)).astype(jnp.int32) - 127
    return whole.astype(dtype) * jnp.asarray(scale_of(port.sharding.shape), dtype)


def scale_of(shape: tuple[int, ...]) -> float:
    """A power of two: vectors are about 1, the entries of a matrix so small that products keep their size."""
    wide = max(shape, default=1) if len(shape) > 1 else 1
    return 2.0 ** (-6 - round(math.log2(math.sqrt(wide))))


def _hashed(shape: tuple[int, ...], seed: int) -> Any:
    """u32 of every place."""
    import jax.numpy as jnp
    from jax import lax

    bits = jnp.full(shape, seed, jnp.uint32)
    for place in range(len(shape)):
        bits = (bits ^ lax.broadcasted_iota(jnp.uint32, shape, place)) * jnp.uint32(0x9E3779B1)
        bits = bits ^ (bits >> 15)
    bits = bits * jnp.uint32(0x85EBCA6B)
    return bits ^ (bits >> 13)


def index_limits(graph: Graph) -> dict[str, int]:
    """Input → below what its numbers stay, for inputs that are used as indices: the smallest table's rows."""
    found: dict[str, int] = {}
    for name, size in _looked_up(graph):
        found[name] = min(size, found.get(name, size))
    return found


def _looked_up(graph: Graph) -> Iterator[tuple[str, int]]:
    """(input, rows of a table) of every look-up, also within loops."""
    for op in graph.ops:
        if op.kind in LOOKS_INTO:
            ids = op.inputs[LOOKS_INTO[op.kind]]
            into = graph.ops[op.inputs[1]].dims if op.kind == "gather" else op.dims
            size = sure(next(dim.size for dim in into if dim.name == op.params["dim"]))
            yield from ((name, size) for name in _inputs_of(graph, ids))
        if op.kind == "repeat":
            body = op.params["body"]
            outer = dict(zip(body.inputs, op.inputs, strict=True))
            for name, size in _looked_up(body):
                yield from ((found, size) for found in _inputs_of(graph, outer[name]))


def _inputs_of(graph: Graph, number: int) -> Iterator[str]:
    """The input of whole numbers that a tensor is, seen through what only moves or casts it."""
    op = graph.ops[number]
    if op.kind == "input":
        yield op.params["name"]
    elif len(op.inputs) == 1 and op.kind in ("reshard", "settle", "reshape", "window", "pointwise", "transpose"):
        yield from _inputs_of(graph, op.inputs[0])
