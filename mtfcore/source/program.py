"""The same program in plain JAX, as a person would write it by hand: nothing of this library is needed to run it.

    print(mtf.plan(two_layers, mesh, layout, sizes="batch:64 io:512 hidden:2048").source())

The printed text runs as it stands, gives the same values and lowers to the same collectives as the executor. Every
line that communicates says what it does to the placement, `# B E:xyz → B E:x`; so do those that leave addends of a
sum. This module only writes text: it does not import JAX. Next file to read: `around`.
"""

from __future__ import annotations

import textwrap

from mtfcore.errors import sure
from mtfcore.mesh import Mesh
from mtfcore.sharding import Sharding
from mtfcore.source.around import packed, results, specs, tuple_text
from mtfcore.source.lines import INDENT, WRITERS, aligned, dtype_name, masked, ordered, quoted, shape_text, zero
from mtfcore.source.names import Names
from mtfcore.source.random import RANDOM
from mtfcore.source.row_writing import write_lines
from mtfcore.source.spatial import SPATIAL
from mtfcore.source.stages import STAGES, WITH_NAN
from mtfcore.steps import MOVES, Program, Step, keeps_nan

WIDTH = 108
_HEAD = '''\
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

# {size} devices; to try it on a CPU alone, set JAX_NUM_CPU_DEVICES={size} before Python starts
mesh = jax.make_mesh({shape}, {names}, axis_types=({auto},) * {count})

{specs}

{helpers}
@jax.jit
@jax.shard_map(mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
def {name}({arguments}):
    """What one device does, with its own part of every array."""
{body}


def place(*arrays):
    """Put whole arrays onto the mesh: each device receives its own part, before anything runs."""
    return [jax.device_put(array, NamedSharding(mesh, spec)) for array, spec in zip(arrays, in_specs, strict=True)]


# {results} = {name}(*place({arguments}))
'''


def source(program: Program) -> str:
    """A program as the text of a Python module with one function, named as the program's."""
    mesh, names = program.mesh, Names(program)
    arguments = [names[port.value] for port in program.inputs]
    body = [*_masked_inputs(program, names), *statements(program, names), *_returned(program, names)]
    return _HEAD.format(
        size=mesh.size, shape=shape_text([*mesh.shape.values()]),
        names=tuple_text([f'"{name}"' for name in mesh.names]),
        auto="AxisType.Auto", count=len(mesh.names), specs="\n".join(specs(program, arguments)), name=names.function,
        helpers=WITH_NAN if any(map(keeps_nan, program.walk())) else "",
        arguments=", ".join(arguments), body=textwrap.indent("\n".join(body), INDENT), results=results(program),
    )  # fmt: skip


# ---- the body ---------------------------------------------------------------------------------------------------


def statements(program: Program, names: Names, indent: int = 1) -> list[str]:
    """The lines of every step, in order; constants that are written where they are used have none."""
    lines: list[str] = []
    for step in program.steps:
        if step.output in names.literals:
            continue
        operands = [names[value] for value in step.inputs]
        if step.kind == "repeat":
            lines += _repeat(step, operands, names, indent)
        elif step.kind in IN_LINES:
            lines += IN_LINES[step.kind](step, operands, names, program.mesh)
        else:
            write = (WRITERS | SPATIAL | RANDOM | STAGES)[step.kind]
            statement = f"{names[step.output]} = {write(step, operands, program.mesh)}"
            lines += _commented(statement, _comment(step), WIDTH - len(INDENT) * indent)
    return lines


def _comment(step: Step) -> str:
    """The placement before and after, where it is worth a word: moves, and addends left behind."""
    fn = step.params.get("fn", "sum")
    if step.kind == "halo_exchange":  # the placement stays, the rows are a neighbour's
        distance = step.params["distance"]
        return f"{step.arrow()}, from {abs(distance)} {'before' if distance > 0 else 'behind'}"
    if step.kind in MOVES:
        return step.arrow() + (f", the {fn} over {' '.join(step.axes)}" if fn != "sum" else "")
    added = [axis for axis in step.after.partial if all(axis not in s.partial for s in step.before)]
    return f"→ {step.after.text()}, addends of a sum" if added and step.kind in ("einsum", "gather", "scatter") else ""


def _commented(statement: str, comment: str, width: int) -> list[str]:
    """A comment behind its line, or before it where the line would get too long."""
    if comment and len(statement) + len(comment) + 4 <= width:
        return [f"{statement}  # {comment}"]
    lines = textwrap.wrap(statement, width, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)
    return [f"# {comment}", *lines] if comment else lines


def _gather(step: Step, operands: list[str], names: Names, mesh: Mesh) -> list[str]:
    """Look up rows of the part at hand; ids of rows that lie elsewhere give zeros."""
    (ids, table), (id_name, table_name), dim = step.before, operands, step.params["dim"]
    size, on = table.local_shape(mesh)[table.names.index(dim)], table.on[dim]
    shared = [name for name in ids.names if name in table.names]
    rest = [name for name in table.names if name != dim and name not in shared]
    row, found = names.free("row"), names.free("found")
    cast = "" if names.program.dtypes[step.inputs[0]] == "i32" else ".astype(jnp.int32)"
    start = f" - lax.axis_index({quoted(on)}) * {size}" if on else ""
    lengths = dict(zip(ids.names, ids.local_shape(mesh), strict=True))
    index = [aligned(f"jnp.arange({lengths[name]})", (name,), _from(name, ids)) for name in shared]
    index.append(f"jnp.clip({row}, 0, {size - 1})")
    picked = f"{ordered(table_name, table.names, [*shared, dim, *rest])}[{', '.join(index)}]"
    known = f"{found}[..., {', '.join(['None'] * len(rest))}]" if rest else found
    result = ordered(f"jnp.where({known}, {picked}, {zero(step.dtype)})", [*ids.names, *rest], step.after.names)
    return [
        *_commented(f"{row} = {id_name}{cast}{start}", f"this device holds {size} of {dim}" if on else "", WIDTH),
        f"{found} = ({row} >= 0) & ({row} < {size})",
        *_commented(f"{names[step.output]} = {result}", _comment(step), WIDTH - len(INDENT)),
    ]


def _scatter(step: Step, operands: list[str], names: Names, mesh: Mesh) -> list[str]:
    """Add rows up in the part at hand; those whose ids lie elsewhere are dropped."""
    (ids, rows), (id_name, rows_name), table, dim = step.before, operands, step.after, step.params["dim"]
    size, on = table.local_shape(mesh)[table.names.index(dim)], table.on[dim]
    shared = [name for name in ids.names if name in table.names]
    own = [name for name in ids.names if name not in shared]
    rest = [name for name in table.names if name != dim and name not in shared]
    lengths = dict(zip(table.names, table.local_shape(mesh), strict=True))
    start = f" - lax.axis_index({quoted(on)}) * {size}" if on else ""
    cast = "" if names.program.dtypes[step.inputs[0]] == "i32" else ".astype(jnp.int32)"
    row = names.free("row")
    index = [aligned(f"jnp.arange({lengths[name]})", (name,), (*shared[shared.index(name) :], *own)) for name in shared]
    index.append(f"jnp.where(({row} >= 0) & ({row} < {size}), {row}, {size})")
    shape = shape_text([lengths[name] for name in (*shared, dim, *rest)])
    added = ordered(rows_name, rows.names, [*shared, *own, *rest])
    made = f'jnp.zeros({shape}, {dtype_name(step.dtype)}).at[{", ".join(index)}].add({added}, mode="drop")'
    result = ordered(made, [*shared, dim, *rest], table.names)
    first = f"{row} = {ordered(id_name, ids.names, [*shared, *own])}{cast}{start}"
    return [
        *_commented(first, f"this device holds {size} of {dim}" if on else "", WIDTH),
        *_commented(f"{names[step.output]} = {result}", _comment(step), WIDTH - len(INDENT)),
    ]


IN_LINES = {"gather": _gather, "scatter": _scatter, "write": write_lines}


def _from(name: str, s: Sharding) -> tuple[str, ...]:
    """The dimensions from this one on: an index along it broadcasts over those behind."""
    return s.names[s.names.index(name) :]


def _repeat(step: Step, operands: list[str], names: Names, indent: int) -> list[str]:
    """A loop: the body as a function of what it carries and this turn's entry of every stacked array."""
    inner, n_carry, count = names.inside(step), step.params["n_carry"], step.params["n_stacked"]
    loop = sure(step.body)
    ports = [inner[port.value] for port in loop.inputs[: n_carry + count]]
    carries, parts = ports[:n_carry], ports[n_carry:]
    turn, entry = inner.function, names.free("parts")
    carry = carries[0] if n_carry == 1 else names.free("carry")
    results = [inner[port.value] for port in loop.outputs]
    made = [names[value] for value in step.outputs]
    body = [f"{_targets(carries)} = {carry}"] if n_carry != 1 and carries else []
    body += [f"{_targets(parts)} = {entry}"] if count else []
    body += [*statements(loop, inner, indent + 1), f"return {_pair(results, n_carry)}"]
    stacked = tuple_text(operands[n_carry : n_carry + count]) if count else "None"
    start = operands[0] if n_carry == 1 else tuple_text(operands[:n_carry])
    backwards = ", reverse=True" if step.params["reverse"] else ""
    call = f"lax.scan({turn}, {start}, {stacked}, length={step.times}{backwards})"
    return [
        "",
        f"def {turn}({carry}, {entry}):  # one turn of {step.times}",
        *textwrap.indent("\n".join(body), INDENT).splitlines(),
        "",
        f"{_pair(made, n_carry, '_')} = {call}",
    ]


def _targets(names: list[str]) -> str:
    return ", ".join(names) if len(names) > 1 else tuple_text(names)


def _pair(results: list[str], n_carry: int, nothing: str = "None") -> str:
    """What a turn hands on, and what it gives out: `h, None` or `(h, k), (y,)`."""
    carries, outputs = results[:n_carry], results[n_carry:]
    first = carries[0] if n_carry == 1 else tuple_text(carries) if carries else "()"
    return f"{first}, {tuple_text(outputs) if outputs else nothing}"


def _masked_inputs(program: Program, names: Names) -> list[str]:
    """An input placed as a partial sum arrives whole: one device keeps it, the others start with zeros."""
    lines = []
    for port in program.inputs:
        if partial := port.sharding.partial:
            name, before = names[port.value], Sharding.of(port.sharding.dims, port.sharding.axes)
            comment = f"{before.text() or '()'} → {port.sharding.text()}"
            lines += _commented(f"{name} = {masked(name, partial, port.dtype)}", comment, WIDTH - len(INDENT))
    return lines


def _returned(program: Program, names: Names) -> list[str]:
    """The return line; addends of a sum are stacked along one new dimension for each axis still to be summed."""
    values, stacked = [], []
    for port in program.outputs:
        partial = port.sharding.partial
        index = f"[{', '.join(['None'] * len(partial))}]" if partial else ""
        values.append(names[port.value] + index)
        stacked += [names[port.value]] if partial else []
    note = f"# {', '.join(stacked)}: addends, stacked in front; their sum is the result"
    return [*([note] if stacked else []), f"return {packed(program, values)}"]


# ---- around the body --------------------------------------------------------------------------------------------
