"""What each step of a program asks of one device: the shape of its product, and what it reads from and writes to HBM.

    >>> prog = mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes="batch:64 io:512 hidden:2048")
    >>> [(work.step.kind, [access.name for access in work.reads]) for work in works(prog) if work.step.flops]
    [('einsum', ['x', 'w']), ('einsum', ['', 'v'])]

Element by element steps, casts, slices and reshapes are computed where their result is used: they cost nothing by
themselves, and who uses them reads what they read, the inputs of the program in the type in which these are stored (so
int8 weights are read as int8). Everything else makes a value that lies in memory: it goes to HBM, written once and read
at each use, only where it is larger than the device's fast memory. Modelled: a compiler may fuse more or less.

Both `price` and the templates take HBM bytes from here. Next file to read: `constants`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from mtfcore.costs.pricing.work import Access, Loops, Product, Source, Sources, Work, local_size
from mtfcore.errors import sure
from mtfcore.mesh import Mesh
from mtfcore.sharding import Sharding
from mtfcore.steps import Program, Step, held_bytes

FUSED = ("pointwise", "reshape", "slice", "mask", "window", "part", "pad", "concat", "shift", "edge", "extend", "trim",
         "dropout", "constant", "index", "random")  # fmt: skip
CUTTING = ("slice", "window", "part", "edge", "trim")  # only a part of the operand is read


def works(program: Program) -> tuple[Work, ...]:
    """Every step in the order of `program.walk()`, but for the loops themselves."""
    inputs = [_stored(program, port.value, port.sharding, port.dtype, port.name) for port in program.inputs]
    return tuple(_works(program, inputs, ()))


def hbm_bytes(work: Work, mesh: Mesh, fast_memory_bytes: float) -> int:
    """Bytes between HBM and the device each time: inputs, and values between that the fast memory cannot hold."""
    moved = [(access.name, held_bytes(access.sharding, mesh, access.dtype)) for access in (*work.reads, *work.writes)]
    return sum(n_bytes for name, n_bytes in moved if name or n_bytes > fast_memory_bytes)


# ---- one walk: what every value is made of ----------------------------------------------------------------------


def _works(program: Program, inputs: Sequence[Sources], loops: Loops) -> Iterator[Work]:
    sources: dict[int, Sources] = {port.value: found for port, found in zip(program.inputs, inputs, strict=True)}
    handed_out = {port.value for port in program.outputs}
    joining, onto = _joining(program), _onto(program)
    for step in program.steps:
        if step.body is not None:
            inner = list(_body_inputs(step, sources))
            yield from _works(step.body, inner, (*loops, (_stack_name(step), step.times)))
        else:
            work = _work(step, loops, sources, handed_out, program.mesh)._replace(joins=step.output in joining)
            more = _joined(sources.get(onto.get(step.output, -1), ()), program.mesh)
            yield work._replace(reads=(*work.reads, *more))
            if step.inputs and step.inputs[-1] in onto:  # the sum lies in memory, and was written with the product
                sources[step.output] = _stored(program, step.output, step.after, step.dtype)
                continue
        if _is_fused(step, program.mesh) and step.output not in handed_out:
            found = [_through(source, step, place) for place, n in enumerate(step.inputs) for source in sources[n]]
            sources[step.output] = tuple(dict.fromkeys(found))
            continue
        name = _home(step, sources) if step.kind == "write" else ""
        for value in step.outputs:
            sources[value] = _stored(program, value, program.shardings[value], program.dtypes[value], name)


def _is_fused(step: Step, mesh: Mesh) -> bool:
    """Whether a step is computed where its result is used; so is a sum cut into single addends."""
    if step.kind != "einsum" or len(step.before) != 1:
        return step.kind in FUSED
    before = step.before[0]
    added = tuple((dim, on) for dim, on in zip(before.dims, before.axes, strict=True) if dim.name not in step.after.on)
    left = [dim.name for dim in before.dims if dim.name in step.after.on]
    cut = all(on for _, on in added) and local_size(added, mesh) == 1
    return cut and left == [dim.name for dim in step.after.dims]  # and it is not transposed


def _joining(program: Program) -> set[int]:
    """The values that a gather makes and only another gather reads."""
    readers: dict[int, set[str]] = {port.value: {"output"} for port in program.outputs}
    for step in program.steps:
        for value in step.inputs:
            readers.setdefault(value, set()).add(step.kind)
    gathered = [step.output for step in program.steps if step.kind == "all_gather"]
    return {value for value in gathered if readers.get(value) == {"all_gather"}}


def _onto(program: Program) -> dict[int, int]:
    """Products that rings add up as they are made (`mtf.looped`): its value → the sum that it is added to."""
    made = {step.output for step in program.steps if step.kind == "einsum"}
    adds = [step for step in program.steps if step.kind == "pointwise" and "loop" in step.params]
    return {step.inputs[1]: step.inputs[0] for step in adds if step.inputs[1] in made}


def _work(step: Step, loops: Loops, sources: dict[int, Sources], handed_out: set[int], mesh: Mesh) -> Work:
    times = math.prod(turns for _, turns in loops)
    step = dataclasses.replace(step, times=step.times * times) if times > 1 else step
    if step.is_collective or (_is_fused(step, mesh) and step.output not in handed_out):
        return Work(step, loops, None, (), ())
    made = Access(_settled(step.after), step.dtype, "")
    if step.kind == "gather":  # as many rows as it returns
        return Work(step, loops, None, (made,), (made,))
    if step.kind == "write":  # in place: of what it writes into only the rows change
        rows, at = (_joined(sources[n], mesh) for n in step.inputs[1:])
        return Work(step, loops, None, (*rows, *at), (Access(step.before[1], step.dtype, _home(step, sources)),))
    if step.kind == "put":  # in place: only the rows that are written
        made = Access(_settled(step.before[-1]), step.dtype, "")
        return Work(step, loops, None, _joined(sources[step.inputs[-1]], mesh), (made,))
    reads = _joined([source for n in step.inputs for source in sources[n]], mesh)
    return Work(step, loops, _product(step), reads, (made,))


def _home(step: Step, sources: dict[int, Sources]) -> str:
    """The input of the program in whose memory rows are written, "" where that is a value between."""
    lies = sources[step.inputs[0]]
    return lies[0].whole.name if len(lies) == 1 else ""


def _product(step: Step) -> Product | None:
    if step.kind != "einsum" or len(step.before) < 2:
        return None
    left, right = step.before
    dims = {dim.name: (dim, on) for s in step.before for dim, on in zip(s.dims, s.axes, strict=True)}

    roles = {name: (name in left.on, name in right.on, name in step.after.on) for name in dims}
    parts = ((True, True, True), (True, False, True), (False, True, True), (True, True, False))
    return Product(*[tuple(dims[name] for name, role in roles.items() if role == part) for part in parts])


def _stored(program: Program, value: int, s: Sharding, dtype: str, name: str = "") -> Sources:
    access = Access(_settled(s), dtype, name)
    return (Source((id(program), value), access, access, ()),)


def _settled(s: Sharding) -> Sharding:
    """Without partial sums, which say nothing about the bytes of a part."""
    return Sharding.of(s.dims, s.axes) if s.partial else s


def _joined(sources: Sequence[Source], mesh: Mesh) -> tuple[Access, ...]:
    """Each value once: the part that is read; where different parts are, these or all of it, whichever is less."""
    by_value: dict[tuple[int, int], dict[tuple[int, ...], Source]] = {}
    for source in sources:
        by_value.setdefault(source.value, {}).setdefault(source.cuts, source)
    return tuple(access for parts in by_value.values() for access in _least([*parts.values()], mesh))


def _least(sources: Sequence[Source], mesh: Mesh) -> list[Access]:
    """Of one value: its parts, unless they come to as much as all of it."""
    parts, whole = [source.part for source in sources], sources[0].whole
    if len(parts) == 1:
        return parts
    n_bytes = sum(held_bytes(part.sharding, mesh, part.dtype) for part in parts)
    return parts if n_bytes < held_bytes(whole.sharding, mesh, whole.dtype) else [whole]


def _through(source: Source, step: Step, place: int) -> Source:
    """What of a value is still read behind a fused step."""
    before, part = step.before[place], source.part
    if step.kind in CUTTING:
        s = _restricted(part.sharding, before, step.after)
        return source._replace(part=part._replace(sharding=s), cuts=(*source.cuts, step.output))
    if step.kind == "reshape" and (part.sharding.dims, part.sharding.axes) == (before.dims, before.axes):
        return source._replace(part=part._replace(sharding=_settled(step.after)))
    return source


def _restricted(s: Sharding, before: Sharding, after: Sharding) -> Sharding:
    """The same cut of a tensor that broadcasts: only along dimensions that it has, as the step found them."""
    was, new = ({d.name: (d, on) for d, on in zip(t.dims, t.axes, strict=True)} for t in (before, after))
    parts = [new[d.name] if was.get(d.name) == (d, on) else (d, on) for d, on in zip(s.dims, s.axes, strict=True)]
    return Sharding.of(tuple(dim for dim, _ in parts), tuple(on for _, on in parts))


# ---- loops ------------------------------------------------------------------------------------------------------


def _body_inputs(step: Step, sources: dict[int, Sources]) -> Iterator[Sources]:
    """What is carried lies in memory, in that of an input if it only gains rows; of a stack each turn reads one entry;
    the rest is as it is outside."""
    n_carry, body = step.params["n_carry"], sure(step.body)
    for place, (value, port) in enumerate(zip(step.inputs, body.inputs, strict=True)):
        if place < n_carry:
            lies = sources[value]
            name = lies[0].whole.name if len(lies) == 1 and _only_written(body, place) else ""
            yield _stored(body, port.value, port.sharding, port.dtype, name)
        elif place < n_carry + step.params["n_stacked"]:
            over = step.before[place].dims[0].name
            entries = [(_entry(source.whole, over), _entry(source.part, over)) for source in sources[value]]
            yield tuple(s._replace(whole=w, part=p) for s, (w, p) in zip(sources[value], entries, strict=True))
        else:
            yield sources[value]


def _only_written(body: Program, place: int) -> bool:
    """Whether a turn hands on a carry as it was, but for rows that it writes."""
    into = {step.output: step.inputs[0] for step in body.steps if step.kind == "write"}
    value = body.outputs[place].value
    while value in into:
        value = into[value]
    return value == body.inputs[place].value


def _stack_name(step: Step) -> str:
    return step.before[step.params["n_carry"]].dims[0].name if step.params["n_stacked"] else ""


def _entry(access: Access, over: str) -> Access:
    """One entry of a stack; what has not the stack's dimension is the same for all."""
    kept = [(d, on) for d, on in zip(access.sharding.dims, access.sharding.axes, strict=True) if d.name != over]
    return access._replace(sharding=Sharding.of(tuple(d for d, _ in kept), tuple(on for _, on in kept)))
