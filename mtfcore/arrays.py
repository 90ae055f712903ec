"""The arrays that a run is given: refused with words where they are not what the program's inputs say.

Next file to read: `runs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mtfcore.dtypes import is_float, long_name
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.platforms import settle
from mtfcore.steps import Port, Program


def check_arrays(program: Program, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    """The input arrays in order, in the program's dtypes; refuses missing, unknown and misshapen ones at once."""
    given = named_arrays(program, args, kwargs)
    settle()
    import jax.numpy as jnp

    return [jnp.asarray(given[port.name], long_name(port.dtype)) for port in program.inputs]


def named_arrays(
    program: Program, args: tuple[Any, ...], kwargs: Mapping[str, Any], every: bool = True
) -> dict[str, Any]:
    """Input name → array as it was given, checked; `every` refuses a missing one too."""
    ports = {port.name: port for port in program.inputs}
    faults = [f"{len(args)} arrays given, the inputs are {', '.join(ports)}"] if len(args) > len(ports) else []
    given = dict(zip(ports, args, strict=False))
    faults += [f"input {name!r} is given twice" for name in kwargs if name in given]
    given |= kwargs
    faults += [f"no input {name!r}; {nearest(name, ports)}" for name in given if name not in ports]
    for name, port in ports.items():
        if name in given:
            faults += _misfit(port, given[name])
        elif every:
            faults.append(f"input {name} ({' '.join(map(str, port.sharding.dims))}) is missing")
    refuse(faults, f"run of {program.name}")
    _check_wide(program)
    return given


def _misfit(port: Port, value: Any) -> list[str]:
    expected = " ".join(map(str, port.sharding.dims))
    if why := no_numbers(value, port.dtype):
        return [f"input {port.name} ({f'{expected}, ' if expected else ''}{port.dtype}) {why}"]
    if np.shape(value) != port.sharding.shape:
        return [f"input {port.name} has shape {np.shape(value)}, expected {port.sharding.shape} ({expected})"]
    return []


def no_numbers(value: Any, dtype: str | None = None) -> str:
    """What keeps a value from being an array of numbers that a dtype can hold, in words; nothing where it is one."""
    import jax.numpy as jnp

    try:
        is_array = hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type)
        array = value if is_array else np.asarray(value)
    except ValueError:
        return "is no array: its rows have different lengths"
    is_kind = [jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_)]
    if not any(is_kind):
        return f"is {array.dtype if value is array else type(value).__name__}, expected an array of real numbers"
    if np.ma.is_masked(value):
        return "has masked values, and a run would read what lies below the mask; fill them first: array.filled(0)"
    if dtype is None or is_float(dtype) or array.dtype == long_name(dtype):
        return ""
    array = np.asarray(array)
    with np.errstate(invalid="ignore"):
        cut = array[array.astype(long_name(dtype)) != array]
    return f"holds {cut[0]}, which {dtype} cannot hold; convert it first, e.g. with numpy.astype" if cut.size else ""


def _check_wide(program: Program) -> None:
    """JAX makes 64-bit types of 32 bits without a word of ours, unless it is told otherwise."""
    import jax

    wide = sorted({dtype for dtype in program.dtypes.values() if dtype in ("f64", "i64")})
    if wide and not jax.config.read("jax_enable_x64"):
        raise LayoutError(
            f"{program.name} uses {', '.join(wide)}, which JAX would cut to 32 bits; plan it with f32 and i32, or run "
            "jax.config.update('jax_enable_x64', True) first"
        )
