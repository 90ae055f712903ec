"""Rows written into a tensor as lines of plain JAX: where they go, then one scatter.

    row = at - lax.axis_index("x") * 256  # this device holds 256 of S
    row = jnp.where((row >= 0) & (row < 256), row, 256)
    k = cache.at[:, jnp.arange(8)[:, None], row].set(new, mode="drop", unique_indices=True)

Next file to read: `source/program`.
"""

from __future__ import annotations

from mtfcore.mesh import Mesh
from mtfcore.row_writing import picked
from mtfcore.source.lines import aligned, ordered, quoted
from mtfcore.source.names import Names
from mtfcore.steps import Step


def write_lines(step: Step, operands: list[str], names: Names, mesh: Mesh) -> list[str]:
    """The statements of one write."""
    (t, rows, at), (t_name, rows_name, at_name), dim = step.before, operands, step.params["dim"]
    size, on = t.local_shape(mesh)[t.names.index(dim)], t.on[dim]
    cast = "" if names.program.dtypes[step.inputs[2]] == "i32" else ".astype(jnp.int32)"
    row = names.free("row")
    index = {dim: row}
    for place, (name, length) in enumerate(zip(at.names, at.local_shape(mesh), strict=True)):
        if name in t.names:
            index[name] = aligned(f"jnp.arange({length})", (name,), at.names[place:])
    entries = [index.get(name, ":") for name in t.names]
    while entries[-1] == ":":
        entries.pop()
    put = ordered(rows_name, rows.names, picked(t.names, at.names, dim))
    start = f" - lax.axis_index({quoted(on)}) * {size}  # this device holds {size} of {dim}" if on else ""
    return [
        f"{row} = {at_name}{cast}{start}",
        f"{row} = jnp.where(({row} >= 0) & ({row} < {size}), {row}, {size})",
        f'{names[step.output]} = {t_name}.at[{", ".join(entries)}].set({put}, mode="drop", unique_indices=True)',
    ]
