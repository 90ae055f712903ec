"""One device's share of a program: its own steps at their exact local shapes, with the collectives left out.

    found = mtf.measure(prog, share=True, topology="v4:4x4x4")    # one chip runs what each of 64 would compute
    found.median, found.share.modelled_link_seconds, found.total_seconds     # measured, modelled, and both together

Each collective becomes a *stand-in*: a buffer of the result's local shape, made beforehand. Into its first element goes
one of what would have been sent, so that every result depends on all that came before it, the compiler can leave
nothing out, and the cost is that of one element: inside loops the buffer is carried from turn to turn and changed where
it lies. Which element is said at run time, or the compiler would compute that one alone. The device's coordinates come
at run time too, as on a mesh. That the FLOPs are those of the plan is counted before every measurement.

The links' time is modelled by `mtf.price` and stands beside it, never hidden in it; what rings beside products hide
(`mtf.looped`) is left away. Next file to read: `calibrating`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mtfcore.measuring import places
from mtfcore.measuring.checking import WrongAnswer
from mtfcore.measuring.measured import Share
from mtfcore.measuring.timing import Subject, carried_places
from mtfcore.mesh import Mesh
from mtfcore.sharding import Sharding
from mtfcore.steps import Port, Program, Step, held_bytes
from mtfcore.topologies import Topology, legal
from mtfcore.topologies import topology as as_topology

DEVICE = 0  # whose share: all do the same work


@dataclass(frozen=True)
class Buffer:
    """What stands in for a collective: its values in the program before and after, and how large a part it is."""

    before: int
    after: int
    sharding: Sharding
    dtype: str


# ---- the program without its collectives ------------------------------------------------------------------------


def without_collectives(program: Program) -> tuple[Program, tuple[Buffer, ...]]:
    """The same local steps; each collective is a stand-in whose buffer is one more input, and one more result."""
    fresh = itertools.count(max(program.shardings, default=0) + 1)
    steps: list[Step] = []
    buffers: list[Buffer] = []
    for step in program.steps:
        made, needed = _stood_in(step, fresh)
        steps.append(made)
        buffers += needed
    inputs = (*program.inputs, *(_port(n, b.before, b) for n, b in enumerate(buffers)))
    outputs = (*program.outputs, *(_port(n, b.after, b) for n, b in enumerate(buffers)))
    values = {value: b for b in buffers for value in (b.before, b.after)}
    shardings = {**{value: b.sharding for value, b in values.items()}, **program.shardings}
    dtypes = {**{value: b.dtype for value, b in values.items()}, **program.dtypes}
    made = replace(program, steps=tuple(steps), inputs=inputs, outputs=outputs, shardings=shardings, dtypes=dtypes)
    return made, tuple(buffers)


def _port(number: int, value: int, buffer: Buffer) -> Port:
    return Port(f"stand-in {number}", value, buffer.sharding, buffer.dtype)


def _stood_in(step: Step, fresh: Iterator[int]) -> tuple[Step, list[Buffer]]:
    """A step without collectives, and the buffers that it needs."""
    if step.body is not None:
        return _loop(step, fresh)
    if not step.is_collective:
        return step, []
    buffer = Buffer(next(fresh), step.output, step.after, step.dtype)
    before = (step.before[0], step.after)
    return replace(step, kind="stand_in", inputs=(step.inputs[0], buffer.before), before=before), [buffer]


def _loop(step: Step, fresh: Iterator[int]) -> tuple[Step, list[Buffer]]:
    """A loop that carries its turns' buffers, behind what it carries itself."""
    body, inner = without_collectives(step.body)
    n, own, made = step.params["n_carry"], len(step.body.inputs), len(step.body.outputs)
    body = replace(
        body,
        inputs=(*body.inputs[:n], *body.inputs[own:], *body.inputs[n:own]),
        outputs=(*body.outputs[:n], *body.outputs[made:], *body.outputs[n:made]),
    )
    buffers = [Buffer(next(fresh), next(fresh), b.sharding, b.dtype) for b in inner]
    first, *more = (*step.outputs[:n], *(b.after for b in buffers), *step.outputs[n:])
    return replace(
        step, body=body, output=first, more=tuple(more), params={**step.params, "n_carry": n + len(buffers)},
        inputs=(*step.inputs[:n], *(b.before for b in buffers), *step.inputs[n:]),
        before=(*step.before[:n], *(b.sharding for b in buffers), *step.before[n:]),
    ), buffers  # fmt: skip


def stand_in(call: Any, fed: Any, buffer: Any) -> Any:
    """The kernel: the buffer, with one element of what would have been sent."""
    from jax import lax

    from mtfcore.execute import STANDS

    at = STANDS.get()(())  # of no axes: 0, but only the device knows
    fed = lax.optimization_barrier(fed)  # it is made as a whole, where the compiler heeds that until the end
    one = lax.dynamic_slice(fed, [at] * fed.ndim, [1] * fed.ndim).reshape((1,) * buffer.ndim)
    return lax.dynamic_update_slice(buffer, one.astype(buffer.dtype), [at] * buffer.ndim)


def function_of(alone: Program, n_inputs: int) -> Callable:
    """The share as a function of its arrays: the program's inputs, the buffers, the device's coordinates."""
    from mtfcore.execute import STANDS, interpret
    from mtfcore.execute import _mask as mask
    from mtfcore.kernels.basic import KERNELS
    from mtfcore.runs import _as_partial

    KERNELS.setdefault("stand_in", stand_in)

    def local(*arrays: Any) -> list[Any]:
        *arrays, coordinates = arrays
        before = STANDS.set(_standing(alone.mesh, coordinates))
        try:
            own = [_as_partial(mask, port, array, alone.mesh)
                   for port, array in zip(alone.inputs[:n_inputs], arrays[:n_inputs], strict=True)]  # fmt: skip
            return interpret(alone, [*own, *arrays[n_inputs:]])
        finally:
            STANDS.reset(before)

    return local


def _standing(mesh: Mesh, coordinates: Any) -> Callable[[Any], Any]:
    """`lax.axis_index` of one device: its coordinates, and a 0 for no axes, all known at run time only."""
    own = {name: coordinates[place] for place, name in enumerate(mesh.names)}

    def index(axes: Any) -> Any:
        number = coordinates[-1]
        for axis in (axes,) if isinstance(axes, str) else axes:
            number = number * mesh[axis] + own[axis]
        return number

    return index


# ---- to be timed ------------------------------------------------------------------------------------------------


def share_of(program: Program, given: Mapping[str, Any] | None, device: Any, topology: Any, model: Any) -> Subject:
    """What `measure` runs of a program on a single device."""
    from mtfcore.costs.pricing.liveness import peak_memory

    alone, buffers = without_collectives(program)
    n_inputs, n_results = len(program.inputs), len(program.outputs)
    names, own = [port.name for port in program.inputs], carried_places(program)
    carried = own | {n_inputs + n: n_results + n for n in range(len(buffers))}
    n_bytes = sum(held_bytes(b.sharding, program.mesh, b.dtype) for b in buffers)
    share = _share(program, device, topology, model, n_bytes)
    fn = function_of(alone, n_inputs)
    return Subject(
        program, [device], None, fn, lambda: _arrays(alone, n_inputs, given, device), carried,
        tuple(names[place] for place in own), lambda results: _counted(program, alone, fn),
        peak_memory(program).total + n_bytes, share,
    )  # fmt: skip


def _arrays(alone: Program, n_inputs: int, given: Mapping[str, Any] | None, device: Any) -> list[Any]:
    """The device's parts of the inputs, the buffers, and its coordinates with a 0 behind them."""
    import jax
    import numpy as np

    from mtfcore.device_pool import launch
    from mtfcore.measuring.filling import fill_parts

    made = fill_parts(alone, alone.inputs[0 if given is None else n_inputs :], device)
    own = [] if given is None else [_part(port, given[port.name], alone.mesh) for port in alone.inputs[:n_inputs]]
    at = alone.mesh.coordinates(DEVICE)
    numbers = np.array([*(at[name] for name in alone.mesh.names), 0], np.int32)
    return [*(launch(jax.device_put, part, device) for part in own), *made, launch(jax.device_put, numbers, device)]


def _part(port: Port, array: Any, mesh: Mesh) -> Any:
    import jax.numpy as jnp
    import numpy as np

    from mtfcore.dtypes import long_name

    whole = Sharding.of(port.sharding.dims, port.sharding.axes)
    return np.asarray(array)[whole.slices(mesh, DEVICE)].astype(jnp.dtype(long_name(port.dtype)))


def _counted(program: Program, alone: Program, fn: Callable) -> dict[str, Any]:
    """A share has no answer to compare; that it computes what the plan says is counted in what runs."""
    from mtfcore.counting import count

    found = count(fn, *shapes_of(alone))
    if found.flops != program.flops() or found.collectives:
        raise WrongAnswer(
            f"{program.name}: one device's share has {found.flops:,} FLOPs and {len(found.collectives)} collectives, "
            f"planned are {program.flops():,} and none, so no time is shown"
        )
    words = "a share has no answer of its own; its FLOPs, counted in what runs, are the plan's"
    return {"against": words, "error": None, "tolerance": None, "flops": found.flops}


def shapes_of(alone: Program) -> list[Any]:
    """Shapes and types of all that a share is given, for tracing without arrays."""
    import jax
    import jax.numpy as jnp

    from mtfcore.dtypes import long_name

    parts = [jax.ShapeDtypeStruct(p.sharding.local_shape(alone.mesh), long_name(p.dtype)) for p in alone.inputs]
    return [*parts, jax.ShapeDtypeStruct((len(alone.mesh.names) + 1,), jnp.int32)]


# ---- the links, modelled ----------------------------------------------------------------------------------------


def _share(program: Program, device: Any, topology: Any, model: Any, n_bytes: int) -> Share:
    left_out = sum(step.times for step in program.collectives())
    of = as_topology(topology) if topology is not None else slice_for(program.mesh, device.device_kind)
    if of is None:
        return Share(str(program.mesh), left_out, None, buffer_bytes=n_bytes)
    from mtfcore.costs.pricing.price import price

    cost = price(program, of, model=model)
    return Share(str(program.mesh), left_out, cost.exposed_seconds, str(of), str(model), n_bytes)


def slice_for(mesh: Mesh, device_kind: str) -> Topology | None:
    """The most cubic slice of these chips that has as many devices as the mesh; None where there is none."""
    of = places.chip_of(device_kind)
    if of is None:
        return None
    fitting = [Topology(of, grid) for grid in legal(of) if math.prod(grid) * of.devices == mesh.size]
    return min(fitting, key=_length, default=None)


def _length(of: Topology) -> Sequence[int]:
    return sorted(of.grid, reverse=True)
