"""State that stays on the devices from call to call: parameters, optimizer state, caches.

    run = mtf.simulate(step)
    state = run.put({"w": w, "m": m})                    # numpy arrays → jax arrays, laid as the program's inputs
    for tokens in batches:
        out = run.resident(**state, tokens=tokens)        # jax arrays, laid as the program's outputs
        state = {"w": out["w"], "m": out["m"]}            # nothing came to this computer and went back
    w = run.fetch(out["w"])                               # numpy again

A result that a program leaves as a partial sum has no one value on any device, so it is refused here instead of being
summed by a collective that the plan does not show. Next file to read: `whole`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtfcore.arrays import named_arrays
from mtfcore.device_pool import launch
from mtfcore.dtypes import long_name
from mtfcore.errors import nearest, refuse
from mtfcore.steps import Port, Program

if TYPE_CHECKING:
    from mtfcore.runs import Run


def put(run: Run, arrays: Mapping[str, Any], owned: bool = False) -> dict[str, Any]:
    """Whole arrays by input name → the same on the run's devices, laid as the program says; not all need be given.

    `owned`: nobody will write into these arrays any more, so their memory may serve as it is.
    """
    return placed(run, named_arrays(run.program, (), arrays, every=False), owned)


def call(run: Run, args: tuple[Any, ...], kwargs: Mapping[str, Any], donate: Sequence[str] = ()) -> Any:
    """One run from arrays on the devices (others are put there) to arrays on the devices."""
    donate = (donate,) if isinstance(donate, str) else tuple(donate)
    refuse(_unsettled(run.program) + _not_donatable(run.program, donate), f"resident run of {run.program.name}")
    arrays = placed(run, named_arrays(run.program, args, kwargs))
    ordered = [arrays[port.name] for port in run.program.inputs]
    results = launch(run.donating(donate), *ordered, jax_mesh=run.jax_mesh)
    from mtfcore.runs import unpack

    return unpack(run.program.graph, results)


def fetch(results: Any) -> Any:
    """jax arrays, alone or in tuples and dictionaries, as numpy arrays that belong to the caller."""
    if isinstance(results, Mapping):
        return {name: fetch(value) for name, value in results.items()}
    if isinstance(results, (tuple, list)):
        return type(results)(map(fetch, results))
    return np.array(results)


def placed(run: Run, arrays: Mapping[str, Any], owned: bool = False) -> dict[str, Any]:
    """Each array where the program wants that input; those that lie there already are not touched."""
    import jax

    ports = {port.name: port for port in run.program.inputs}
    found = {}
    for name, value in arrays.items():
        wanted = input_sharding(run, ports[name])
        if not (isinstance(value, jax.Array) and value.dtype == long_name(ports[name].dtype)):
            # A copy, since on the CPU JAX may keep reading the memory of the array that it was given.
            value = (np.asarray if owned else np.array)(value, dtype=_numpy_dtype(ports[name].dtype))
        here = isinstance(value, jax.Array) and value.sharding.is_equivalent_to(wanted, value.ndim)
        found[name] = value if here else launch(jax.device_put, value, wanted)
    return found


def input_sharding(run: Run, port: Port) -> Any:
    from jax.sharding import NamedSharding

    from mtfcore.sharding import Sharding

    return NamedSharding(run.jax_mesh, Sharding.of(port.sharding.dims, port.sharding.axes).partition_spec())


def _numpy_dtype(dtype: str) -> Any:
    import jax.numpy as jnp

    return jnp.dtype(long_name(dtype))  # numpy alone does not know bfloat16


def _unsettled(program: Program) -> list[str]:
    """A fault for each output left as a partial sum, with what settles it."""
    return [
        f"result {port.name} is a partial sum over {', '.join(port.sharding.partial)}, so no device holds its value; "
        f"ask for it summed, e.g. out='{' '.join(port.sharding.names)}', or use mtf.settle"
        for port in program.outputs
        if port.sharding.partial
    ]


def _not_donatable(program: Program, donate: Sequence[str]) -> list[str]:
    """A fault for each donated input whose memory no result can take over."""
    ports = {port.name: port for port in program.inputs}
    takers = [(port.sharding, port.dtype) for port in program.outputs]
    faults = []
    for name in donate:
        form = (ports[name].sharding, ports[name].dtype) if name in ports else None
        if form is None:
            faults.append(f"donate names {name!r}; {nearest(name, ports)}")
        elif form in takers:
            takers.remove(form)
        else:
            faults.append(f"input {name} ({form[0].text()}, {form[1]}) cannot be donated: no result has its shape, "
                          "dtype and place")  # fmt: skip
    return faults
