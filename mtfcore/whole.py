"""The two ways to run a named function on whole arrays.

`single(prog)` is the oracle: the same operations with plain `jax.numpy`, no mesh and no collectives.
`partitioned(prog)` is the compiler's way: whole arrays whose placements are the plan's sharding constraints; which
collectives run is then XLA's choice (the papers' baseline). Both walk the graph, not the steps.
Next file to read: `counting`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mtfcore.arrays import check_arrays, no_numbers
from mtfcore.device_pool import launch, simulated_mesh
from mtfcore.dims import Dim
from mtfcore.dtypes import canonical, is_float, long_name
from mtfcore.errors import expect, refuse, sure
from mtfcore.functions import Function
from mtfcore.platforms import settle
from mtfcore.runs import expect_program, unpack
from mtfcore.steps import Program
from mtfcore.tensor import Graph, Op

Constrain = Callable[[Graph, int, Any], Any]


def run_graph(graph: Graph, inputs: Sequence[Any], constrain: Constrain | None = None) -> list[Any]:
    """Every operation on whole arrays, in order; `constrain(graph, number, array)` may pin each result."""
    env = dict(zip(graph.inputs.values(), inputs, strict=True))
    loops: dict[int, list[Any]] = {}
    for number, op in enumerate(graph.ops):
        if op.kind == "input":
            continue
        if op.kind == "repeat":
            loops[number] = _repeat(op, [env[i] for i in op.inputs], constrain)
            env[number] = loops[number][0]
        elif op.kind == "repeated":
            env[number] = loops[op.inputs[0]][op.params["place"]]
        else:
            env[number] = _apply(graph, op, [env[i] for i in op.inputs], constrain is not None)
        if constrain:
            env[number] = constrain(graph, number, env[number])
    return [env[number] for number in graph.outputs.values()]


def _apply(graph: Graph, op: Op, arrays: list[Any], partitioned: bool) -> Any:
    from mtfcore.kernels.basic import KERNELS
    from mtfcore.kernels.call import Call
    from mtfcore.kernels.spatial import BY_TAPS

    if op.kind in ("reshard", "settle"):
        return arrays[0]
    names = tuple(graph.ops[i].names for i in op.inputs)
    call = Call(names, op.names, tuple(sure(dim.size) for dim in op.dims), op.dtype, op.params)
    kernels = KERNELS | BY_TAPS if partitioned else KERNELS
    return kernels[op.kind](call, *arrays)


def _repeat(op: Op, arrays: list[Any], constrain: Constrain | None) -> list[Any]:
    from jax import lax

    n_carry, n_stacked, body = op.params["n_carry"], op.params["n_stacked"], op.params["body"]
    carry, stacked = arrays[:n_carry], arrays[n_carry : n_carry + n_stacked]
    captured = arrays[n_carry + n_stacked :]

    def turn(carry: list[Any], parts: list[Any]) -> tuple[list[Any], list[Any]]:
        results = run_graph(body, [*carry, *parts, *captured], constrain)
        return results[:n_carry], results[n_carry:]

    after, outputs = lax.scan(turn, carry, stacked, length=op.params["n"], reverse=op.params["reverse"])
    return [*after, *outputs]


class WholeRun:
    """A program's function on whole arrays; call it like a `Run`."""

    def __init__(self, program: Program, fn: Callable, jax_mesh: Any = None) -> None:
        import jax

        self.program, self.fn, self.compiled, self.jax_mesh = program, fn, jax.jit(fn), jax_mesh

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on whole arrays; returns numpy arrays."""
        results = launch(self.compiled, *check_arrays(self.program, args, kwargs), jax_mesh=self.jax_mesh)
        return unpack(self.program.graph, [np.asarray(result) for result in results])


def single(program: Program) -> WholeRun:
    """The oracle: plain `jax.numpy` on whole arrays on one device.

    `program`: what `mtf.plan` gave, of which only the function counts. Called with whole numpy arrays.
    """
    graph = expect_program(program).graph
    return WholeRun(program, lambda *arrays: run_graph(graph, arrays))


def partitioned(program: Program, jax_mesh: Any = None) -> WholeRun:
    """The compiler's way: sharding constraints where the plan places each tensor; XLA chooses the collectives.

    `program`: what `mtf.plan` gave, of which only placements count; `jax_mesh`: a `jax.sharding.Mesh`, by default of
    simulated devices. The result is called with whole numpy arrays, as `mtf.simulate` is.
    """
    import jax

    expect_program(program)
    if jax_mesh is not None:
        expect(jax_mesh, jax.sharding.Mesh, "a jax.sharding.Mesh")
    mesh = simulated_mesh(program.mesh) if jax_mesh is None else jax_mesh
    placements = _placements(program)

    def constrain(graph: Graph, number: int, array: Any) -> Any:
        placed = placements.get((id(graph), number))
        if placed is None or placed.partial:  # a constraint cannot say partial sums
            return array
        return jax.lax.with_sharding_constraint(array, jax.sharding.NamedSharding(mesh, placed.partition_spec()))

    def fn(*arrays: Any) -> list[Any]:
        numbers = program.graph.inputs.values()
        placed = [constrain(program.graph, n, a) for n, a in zip(numbers, arrays, strict=True)]
        return run_graph(program.graph, placed, constrain)

    return WholeRun(program, fn, mesh)


def _placements(program: Program) -> dict[tuple[int, int], Any]:
    found = {(id(program.graph), number): s for number, s in program.placed.items()}
    for step in program.steps:
        found |= _placements(step.body) if step.body else {}
    return found


def call_on_arrays(fn: Function, arguments: Mapping[str, Any]) -> Any:
    """A named function called on plain arrays: sizes come from the arrays, the result is the oracle's."""
    settle()
    import jax.numpy as jnp

    given = {name: value for name, value in arguments.items() if name in fn.arguments}
    why = {name: no_numbers(value, fn.dtypes.get(name)) for name, value in given.items()}
    refuse([f"argument {name} {fault}" for name, fault in why.items() if fault], f"call of {fn.__name__}")
    said = {name: long_name(dtype) for name, dtype in fn.dtypes.items()}
    arrays = {name: jnp.asarray(value, said.get(name)) for name, value in given.items()}
    options = {name: value for name, value in arguments.items() if name not in fn.arguments}
    sizes = _sizes(fn, arrays)
    dtypes = {name: canonical(array.dtype) for name, array in arrays.items()}
    floats = [dtype for dtype in dtypes.values() if is_float(dtype)]
    dtype = floats[0] if floats else "f32"
    graph = Function(fn.call, dtypes).trace([Dim(*pair) for pair in sizes.items()], dtype, **options)
    results = [np.asarray(result) for result in run_graph(graph, [arrays[name] for name in graph.inputs])]
    return unpack(graph, results)


def _sizes(fn: Function, arrays: Mapping[str, Any]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    faults = []
    for name, dims in fn.arguments.items():
        shape = arrays[name].shape
        if len(shape) != len(dims):
            faults.append(f"argument {name} has {len(shape)} dimensions {shape}, expected '{' '.join(map(str, dims))}'")
            continue
        for dim, size in zip(dims, shape, strict=True):
            if sizes.setdefault(dim.name, dim.size or size) != size:
                faults.append(f"{dim.name} has sizes {sizes[dim.name]} and {size} (in {name})")
    refuse(faults, f"call of {fn.__name__}")
    return sizes
