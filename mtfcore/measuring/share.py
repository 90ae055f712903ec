"""One device's share of a program: its own steps at their exact local shapes, with the collectives left out.

    found = mtf.measure(prog, share=True, topology="v4:4x4x4")    # one chip runs what each of 64 would compute
    found.median, found.share.modelled_link_seconds, found.total_seconds     # measured, modelled, and both together

`cutting` takes the collectives out; that what is left has the FLOPs of the plan is counted before every measurement.
The links' time is modelled by `mtf.price` and stands beside the measured one, never hidden in it; what rings beside
products hide (`mtf.looped`) is left away. Next file to read: `calibrating`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtfcore.chips import Chip
from mtfcore.measuring import places
from mtfcore.measuring.checking import WrongAnswer
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
    """The same of a chip's record; of chips behind switches the one with fewest nodes."""
    fitting = [Topology(of, grid) for grid in legal(of) if math.prod(grid) * of.devices == mesh.size]
    return min(fitting, key=lambda found: _stretch(found.grid, of), default=None)


def _stretch(grid: tuple[int, ...], of: Chip) -> list[int]:
    return sorted(grid, reverse=True) if of.kind == "TPU" else [len(grid), *grid]
