"""A program without its collectives: each one a *stand-in* of the result's local shape that costs next to nothing.

    alone = without_collectives(prog)              # a Program whose steps are all local
    fn = function_of(alone, len(prog.inputs))      # of one device's arrays: inputs, buffers, a mark, coordinates

A stand-in is a buffer, made beforehand and only read. What would have been sent must still be computed, as a whole, and
what follows must wait for it, or the compiler would leave work out. So one element of it goes into a *mark*, a scalar
that is handed from stand-in to stand-in, through loops, and out; which element is said at run time, or that one alone
would be computed; and a barrier ties the buffer to the mark. The device's coordinates come at run time too, as on a
mesh. Compiled for TPU v4, shares of 540B keep every FLOP of the whole program, and the cycles of their fusions come
near its own. Next file to read: `share`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from mtfcore.errors import sure
from mtfcore.mesh import Mesh
from mtfcore.sharding import Sharding
from mtfcore.steps import Port, Program, Step

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
    whole = sure(step.body)
    body, n, own = without_collectives(whole), step.params["n_carry"], len(whole.inputs)
    *buffers, mark = body.inputs[own:]
    *results, last = body.outputs
    body = replace(body, inputs=(*body.inputs[:n], mark, *body.inputs[n:own], *buffers),
                   outputs=(*results[:n], last, *results[n:]))  # fmt: skip
    read, old = [state.buffer(port.sharding, port.dtype) for port in buffers], state.mark
    state.mark = state.value(MARK, "f32")
    made = [*step.outputs[:n], state.mark, *step.outputs[n:]]
    return replace(
        step, body=body, output=made[0], more=tuple(made[1:]), params={**step.params, "n_carry": n + 1},
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
        *own, coordinates = arrays
        before = STANDS.set(_standing(alone.mesh, coordinates))
        try:
            own = [_as_partial(mask, port, array, alone.mesh)
                   for port, array in zip(alone.inputs[:n_inputs], arrays[:n_inputs], strict=True)]  # fmt: skip
            return interpret(alone, [*own, *arrays[n_inputs:-1]])  # all but the coordinates
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


def shapes_of(alone: Program) -> list[Any]:
    """Shapes and types of all that a share is given, for tracing without arrays."""
    import jax
    import jax.numpy as jnp

    from mtfcore.dtypes import long_name

    parts = [jax.ShapeDtypeStruct(p.sharding.local_shape(alone.mesh), long_name(p.dtype)) for p in alone.inputs]
    return [*parts, jax.ShapeDtypeStruct((len(alone.mesh.names) + 1,), jnp.int32)]
