"""One device's share of a program: its own steps at their exact local shapes, with the collectives left out.

    found = mtf.measure(prog, share=True, topology="v4:4x4x4")    # one chip runs what each of 64 would compute
    found.median, found.share.modelled_link_seconds, found.total_seconds     # measured, modelled, and both together

Each collective becomes a *stand-in*: a buffer of the result's local shape, made beforehand and only read. What would
have been sent must still be computed, as a whole, and what follows must wait for it, or the compiler would leave work
out. So one element of it goes into a *mark*, a scalar that is handed from stand-in to stand-in, through loops, and out;
which element is said at run time, or that one alone would be computed; and a barrier ties the buffer to the mark. The
device's coordinates come at run time too, as on a mesh. That the FLOPs are those of the plan is counted before every
measurement. (Compiled for TPU v4, shares of 540B keep every FLOP of the whole program, and the cycles of their fusions
come within some percent of it; where gathers follow each other, copies make them more.)

The links' time is modelled by `mtf.price` and stands beside it, never hidden in it; what rings beside products hide
(`mtf.looped`) is left away. Next file to read: `calibrating`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mtfcore.chips import Chip
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
MARK = Sharding("")  # a scalar, the same everywhere


@dataclass
class _Cutting:
    """The state of a program whose collectives are being taken out: its values, its buffers, the latest mark."""

    fresh: Iterator[int]
    mark: int
    shardings: dict[int, Sharding]
    dtypes: dict[int, str]
    buffers: list[Port] = field(default_factory=list)
    from_links: set[int] = field(default_factory=set)  # values that would have come over links

    def value(self, sharding: Sharding, dtype: str) -> int:
        """A new value of the program."""
        number = next(self.fresh)
        self.shardings[number], self.dtypes[number] = sharding, dtype
        return number

    def buffer(self, sharding: Sharding, dtype: str) -> int:
        """What stands in for one result: never for two, or what is made of both might be made once."""
        settled = Sharding.of(sharding.dims, sharding.axes)
        value = self.value(settled, dtype)
        self.buffers.append(Port(f"stand-in {len(self.buffers)}", value, settled, dtype))
        return value


# ---- the program without its collectives ------------------------------------------------------------------------


def without_collectives(program: Program) -> Program:
    """The same local steps, each collective a stand-in. Behind its own inputs come the buffers and the first mark;
    behind its own results the last mark."""
    fresh = itertools.count(max(program.shardings, default=0) + 1)
    state = _Cutting(fresh, -1, {**program.shardings}, {**program.dtypes})
    first = state.mark = state.value(MARK, "f32")
    steps = tuple(_stood_in(step, state) for step in program.steps)
    return replace(
        program, steps=steps, shardings=state.shardings, dtypes=state.dtypes,
        inputs=(*program.inputs, *state.buffers, Port("mark", first, MARK, "f32")),
        outputs=(*program.outputs, Port("mark", state.mark, MARK, "f32")),
    )  # fmt: skip


def _stood_in(step: Step, state: _Cutting) -> Step:
    if step.body is not None:
        return _loop(step, state)
    if not step.is_collective:
        return step
    sent, dtype = step.inputs[0], state.dtypes[step.output]
    after, old = state.buffer(step.after, dtype), state.mark
    state.mark = state.value(MARK, "f32")
    computed = (sent,) if sent not in state.from_links else ()
    state.from_links.add(step.output)
    before = (step.after, MARK, *(step.before if computed else ()))
    return replace(step, kind="stand_in", inputs=(after, old, *computed), before=before, more=(state.mark,))


def _loop(step: Step, state: _Cutting) -> Step:
    """A loop that carries the mark behind what it carries itself, and reads its turns' buffers."""
    body, n, own = without_collectives(step.body), step.params["n_carry"], len(step.body.inputs)
    *buffers, mark = body.inputs[own:]
    *results, last = body.outputs
    body = replace(body, inputs=(*body.inputs[:n], mark, *body.inputs[n:own], *buffers),
                   outputs=(*results[:n], last, *results[n:]))  # fmt: skip
    read, old = [state.buffer(port.sharding, port.dtype) for port in buffers], state.mark
    state.mark = state.value(MARK, "f32")
    first, *more = (*step.outputs[:n], state.mark, *step.outputs[n:])
    return replace(
        step, body=body, output=first, more=tuple(more), params={**step.params, "n_carry": n + 1},
        inputs=(*step.inputs[:n], old, *step.inputs[n:], *read),
        before=(*step.before[:n], MARK, *step.before[n:], *(port.sharding for port in buffers)),
    )  # fmt: skip


def stand_in(call: Any, buffer: Any, mark: Any, *sent: Any) -> tuple[Any, Any]:
    """The kernel: the buffer as it is, and a mark that knows what would have been sent; neither without the other."""
    import jax.numpy as jnp
    from jax import lax

    from mtfcore.execute import STANDS

    at = STANDS.get()(())  # of no axes: 0, but only the device knows
    for whole in sent:
        whole = lax.optimization_barrier(whole)  # made as it would be sent, not only as it is read here
        mark = mark + lax.dynamic_slice(whole, [at] * whole.ndim, [1] * whole.ndim).reshape(()).astype(jnp.float32)
    return lax.optimization_barrier((buffer, mark))


def function_of(alone: Program, n_inputs: int) -> Callable:
    """The share as a function of its arrays: the program's inputs, the buffers, a mark, the device's coordinates."""
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
    import jax

    from mtfcore.costs.pricing.liveness import peak_memory

    alone, n_inputs = without_collectives(program), len(program.inputs)
    own, fn = carried_places(program), function_of(alone, n_inputs)
    buffers = alone.inputs[n_inputs:]
    n_bytes = sum(held_bytes(port.sharding, program.mesh, port.dtype) for port in buffers)
    shapes, at = shapes_of(alone), jax.sharding.SingleDeviceSharding(device)
    return Subject(
        program, [device], None, fn, shapes, [at] * len(shapes),
        lambda formats: _arrays(alone, n_inputs, given, formats), own,
        tuple(program.inputs[place].name for place in own), lambda results: _counted(program, alone, fn),
        peak_memory(program).total + n_bytes, _share(program, device, topology, model, n_bytes),
    )  # fmt: skip


def _arrays(alone: Program, n_inputs: int, given: Mapping[str, Any] | None, formats: Sequence[Any]) -> list[Any]:
    """The device's parts of the inputs, the buffers, a mark, and its coordinates with a 0 behind them."""
    import jax
    import numpy as np

    from mtfcore.device_pool import launch
    from mtfcore.measuring.filling import fill_parts

    begin = 0 if given is None else n_inputs
    parts = [_part(port, given[port.name], alone.mesh) for port in alone.inputs[:begin]]
    own = [launch(jax.device_put, part, at) for part, at in zip(parts, formats, strict=False)]
    made = fill_parts(alone, alone.inputs[begin:], formats[begin:-1])
    at = alone.mesh.coordinates(DEVICE)
    numbers = np.array([*(at[name] for name in alone.mesh.names), 0], np.int32)
    return [*own, *made, launch(jax.device_put, numbers, formats[-1])]


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
    return None if of is None else slice_for_chip(mesh, of)


def slice_for_chip(mesh: Mesh, of: Chip) -> Topology | None:
    """The same of a chip's record."""
    fitting = [Topology(of, grid) for grid in legal(of) if math.prod(grid) * of.devices == mesh.size]
    return min(fitting, key=lambda found: sorted(found.grid, reverse=True), default=None)
