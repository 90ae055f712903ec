"""One device's share of a program: its own steps at their exact local shapes, with the collectives left out.

    found = mtf.measure(prog, share=True, topology="v4:4x4x4")    # one chip runs what each of 64 would compute
    found.median, found.share.modelled_link_seconds, found.total_seconds     # measured, modelled, and both together

`cutting` takes the collectives out; that what is left has the FLOPs of the plan is counted before every measurement.
The links' time is modelled by `mtf.price` and stands beside the measured one, never hidden in it; what rings beside
products hide (`mtf.looped`) is left away. Next file to read: `usable`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mtfcore.chips import Chip
from mtfcore.dims import Dim
from mtfcore.errors import sure
from mtfcore.measuring import places
from mtfcore.measuring.checking import ORACLE_BYTES, ORACLE_FLOPS, WrongAnswer, compared, cpu_device
from mtfcore.measuring.cutting import function_of, shapes_of, without_collectives
from mtfcore.measuring.measured import Share
from mtfcore.measuring.subject import Subject, carried_places
from mtfcore.mesh import Mesh
from mtfcore.sharding import Sharding
from mtfcore.steps import Port, Program, held_bytes
from mtfcore.topologies import Topology, legal
from mtfcore.topologies import topology as as_topology

DEVICE = 0  # whose share: all do the same work


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
        tuple(program.inputs[place].name for place in own),
        lambda results: _checked(program, alone, fn, given, results, device),
        peak_memory(program).total + n_bytes, _share(program, device, topology, model, n_bytes),
    )  # fmt: skip


def _arrays(alone: Program, n_inputs: int, given: Mapping[str, Any] | None, formats: Sequence[Any]) -> list[Any]:
    """The device's parts of the inputs, the buffers, a mark, and its coordinates with a 0 behind them."""
    import jax
    import numpy as np

    from mtfcore.device_pool import launch
    from mtfcore.measuring.filling import fill_parts

    begin = 0 if given is None else n_inputs
    parts = [_part(port, sure(given)[port.name], alone.mesh) for port in alone.inputs[:begin]]
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


def _checked(
    program: Program, alone: Program, fn: Callable, given: Mapping[str, Any] | None, results: Any, device: Any
) -> dict[str, Any]:
    """A chip's results against the same steps on this computer's CPU, where that is quick; `mtf.single` knows no share.

    That they are the steps of the plan is counted in what runs, everywhere.
    """
    flops = _counted(program, alone, fn)
    cpu = _cpu_beside(program, device)
    if cpu is None:
        words = "a share has no answer of its own; its FLOPs, counted in what runs, are the plan's"
        return {"against": words, "error": None, "tolerance": None, "flops": flops}
    expected = _on(cpu, alone, len(program.inputs), fn, given)
    ports = [replace(port, sharding=_whole_part(port, program.mesh)) for port in program.outputs]
    words = "the same steps on the CPU"
    own = results[: len(ports)]
    return compared(replace(program, outputs=tuple(ports)), own, expected, words, device.platform) | {"flops": flops}


def _counted(program: Program, alone: Program, fn: Callable) -> int:
    """The share's FLOPs, which are the plan's."""
    from mtfcore.counting import count

    found = count(fn, *shapes_of(alone))
    if found.flops != program.flops() or found.collectives:
        raise WrongAnswer(
            f"{program.name}: one device's share has {found.flops:,} FLOPs and {len(found.collectives)} collectives, "
            f"planned are {program.flops():,} and none, so no time is shown"
        )
    return found.flops


def _cpu_beside(program: Program, device: Any) -> Any:
    """This computer's CPU, if the share ran elsewhere and is small enough for it."""
    small = program.memory() <= ORACLE_BYTES and program.flops() <= ORACLE_FLOPS
    return cpu_device() if device.platform != "cpu" and small else None


def _on(device: Any, alone: Program, n_inputs: int, fn: Callable, given: Mapping[str, Any] | None) -> list[Any]:
    """The program's results of the share on a device."""
    import jax
    import numpy as np

    from mtfcore.device_pool import launch

    at = jax.sharding.SingleDeviceSharding(device)
    arrays = _arrays(alone, n_inputs, given, [at] * (len(alone.inputs) + 1))
    return [np.asarray(result) for result in launch(jax.jit(fn), *arrays)[:-1]]


def _whole_part(port: Port, mesh: Mesh) -> Sharding:
    """One device's part as if it were all."""
    sizes = zip(port.sharding.dims, port.sharding.local_shape(mesh), strict=True)
    return Sharding.of(tuple(Dim(dim.name, size) for dim, size in sizes), ((),) * len(port.sharding.dims))


# ---- the links, modelled ----------------------------------------------------------------------------------------


def _share(program: Program, device: Any, topology: Any, model: Any, n_bytes: int) -> Share:
    """What was left out; as the links' seconds those that are exposed, so that local steps and these add up."""
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
    """The same of a chip's record; of chips behind switches the one with fewest nodes."""
    fitting = [Topology(of, grid) for grid in legal(of) if math.prod(grid) * of.devices == mesh.size]
    return min(fitting, key=lambda found: _stretch(found.grid, of), default=None)


def _stretch(grid: tuple[int, ...], of: Chip) -> list[int]:
    return sorted(grid, reverse=True) if of.kind == "TPU" else [len(grid), *grid]
