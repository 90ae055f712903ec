"""What stands around the body of a printed program: where inputs and outputs lie, and how several values are returned.

    in_specs = (P("rows", None), P(None, "cols"))

Next file to read: `rendering`.
"""

from __future__ import annotations

from mtfcore.mesh import Mesh
from mtfcore.sharding import Sharding
from mtfcore.source.lines import INDENT, dtype_name, quoted
from mtfcore.steps import Port, Program


def specs(program: Program, arguments: list[str]) -> list[str]:
    """Where each input and output lies, a line for each input."""
    lines = ["in_specs = ("]
    for name, port in zip(arguments, program.inputs, strict=True):
        lines.append(f"{INDENT}{_spec(port.sharding)},  # {name}: {_described(port, program.mesh)}")
    outputs = [_spec(port.sharding, stacked=True) for port in program.outputs]
    ports = program.outputs
    told = [port.name if str(port.name).isprintable() else repr(port.name) for port in ports]
    described = [
        f"# {name}: {_described(port, program.mesh)}" for name, port in zip(told, program.outputs, strict=True)
    ]
    return [*lines, ")", *described, f"out_specs = {packed(program, outputs)}"]


def _described(port: Port, mesh: Mesh) -> str:
    """`x: batch:rows io, float32[64, 512] of which a device holds [16, 512]`"""
    s, dtype = port.sharding, dtype_name(port.dtype).removeprefix("jnp.").rstrip("_")
    return f"{s.text() or 'one number'}, {dtype}{list(s.shape)}, {list(s.local_shape(mesh))} on each device"


def _spec(s: Sharding, stacked: bool = False) -> str:
    front = s.partial if stacked else ()
    entries = [(axis,) for axis in front] + list(s.axes)
    return f"P({', '.join(quoted(on) if on else 'None' for on in entries)})"


def tuple_text(words: list[str]) -> str:
    """A tuple as Python writes it."""
    return f"({', '.join(words)}{',' * (len(words) == 1)})"


def _kind(program: Program) -> str:
    """Whether the function returned one tensor, a tuple or a dictionary."""
    return {"dict": "dictionary"}.get(program.graph.returns, program.graph.returns)


def packed(program: Program, values: list[str]) -> str:
    """The values as the function returned them: one, a tuple or a dictionary."""
    kind = _kind(program)
    if kind == "one":
        return values[0]
    if kind == "tuple":
        return tuple_text(values)
    pairs = zip(program.outputs, values, strict=True)
    return "{" + ", ".join(f"{_key(port.name)}: {value}" for port, value in pairs) + "}"


def _key(name: object) -> str:
    """The key of a result in a dictionary, as Python writes it."""
    plain = isinstance(name, str) and name.isprintable() and not set(name) & {'"', "\\"}
    return f'"{name}"' if plain else repr(name)


def results(program: Program) -> str:
    """The names to which a caller may give what is returned."""
    return ", ".join(port.name for port in program.outputs) if _kind(program) != "dictionary" else "results"
