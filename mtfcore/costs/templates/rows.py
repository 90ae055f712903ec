"""The rows of a template: what plans of the same structure have in common, with names where they have numbers.

    >>> template = Template.of(prog, planned("batch:192 io:2560 hidden:14336"))        # prog at other sizes
    >>> row = template.rows[0]
    >>> row.label, [str(volume) for volume in row.product]        # batch, rows, columns and depth of a product
    ('einsum', ['1', 'batch/rows', 'hidden/cols', 'io'])
    >>> template.row_of_step                                     # relu is computed where its result is used: -1
    (0, -1, 1, 2)

A row is a step that costs something. Every amount in it is a `Volume`: a product of local sizes, each an expression of
named sizes divided by the mesh axes that split it. Steps that ask for the same are one row with a count, such as the
keys and the values of attention. Plans whose steps differ in more than sizes are refused, naming the first difference.
Next file to read: `template`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mtfcore.costs.pricing.work import Access, Local, Work
from mtfcore.costs.templates.sizes import Expression, Meanings
from mtfcore.dtypes import itemsize
from mtfcore.errors import LayoutError, refuse, sure
from mtfcore.sharding import Axes, Sharding
from mtfcore.steps import Program, Step
from mtfcore.tensor import Graph, Op


class Local1(NamedTuple):
    """One dimension of one device's part: its size, and the mesh axes that divide it."""

    size: Expression
    axes: Axes

    def __str__(self) -> str:
        return "/".join([str(self.size), *self.axes])


class Volume(NamedTuple):
    """A number times local sizes: `2 · B/x · L · E`."""

    factor: int
    sizes: tuple[Local1, ...]

    def __str__(self) -> str:
        return " · ".join([*([str(self.factor)] if self.factor != 1 or not self.sizes else []), *map(str, self.sizes)])


class Traffic(NamedTuple):
    """Bytes that a step reads or writes; of the program's input `name`, or a value between ("")."""

    n_bytes: Volume
    name: str


@dataclass(frozen=True)
class Row:
    """Equal steps of a template: what one of them asks of a device, how often each runs, and how many there are."""

    kind: str
    dtype: str
    axes: Axes  # of a collective: its group, outermost first
    turns: Volume  # how often it runs
    product: tuple[Volume, ...]  # batch, rows, columns, depth; empty where there is none
    n_bytes: Volume | None  # of a collective: what one device holds before
    traffic: tuple[Traffic, ...]
    joins: bool = False  # a gather that only another gather reads
    moved: tuple = ()  # of a permute or an exchange: axes by dimension before and after, and how far
    label: str = dataclasses.field(default="", compare=False)
    step: Step | None = dataclasses.field(default=None, compare=False)  # in the first plan
    count: int = dataclasses.field(default=1, compare=False)

    def __str__(self) -> str:
        return f"{self.label}: {self.step.arrow()}" if self.step else self.label


def rows_of(plans: Sequence[Sequence[Work]], meanings: Meanings) -> tuple[tuple[Row, ...], tuple[int, ...]]:
    """The rows, and for every step of the plans its row (-1: it costs nothing by itself)."""
    _same_structure(plans)
    found: dict[Row, int] = {}
    rows: list[Row] = []
    faults: list[str] = []
    row_of_step = [-1] * len(plans[0])
    for place, works in enumerate(zip(*plans, strict=True)):
        if not _costs(works[0]):
            continue
        try:
            row = _row(works, meanings)
        except LayoutError as error:
            faults.append(str(error))
            continue
        row_of_step[place] = number = found.setdefault(row, len(rows))
        if number == len(rows):
            rows.append(row)
        else:
            rows[number] = dataclasses.replace(rows[number], count=rows[number].count + 1)
    refuse(faults, "a template")
    return tuple(rows), tuple(row_of_step)


def _costs(work: Work) -> bool:
    return bool(work.step.flops or work.step.is_collective or work.reads or work.writes)


def _row(works: Sequence[Work], meanings: Meanings) -> Row:
    step, first = works[0].step, works[0]
    if step.flops and first.product is None:
        raise LayoutError(f"{step.label()}: its work is no product of sizes; plan and price each size")
    volume = lambda locals_, factor=1: _volume(locals_, factor, meanings)  # noqa: E731
    held = [_access(Access(each.step.before[0], each.step.dtype, "")) for each in works] if step.is_collective else []
    pairs = zip(*[(*work.reads, *work.writes) for work in works], strict=True)
    return Row(
        step.kind, step.dtype, step.axes,
        turns=_turns(works, meanings),
        product=tuple(map(volume, zip(*[w.product for w in works], strict=True))) if step.flops else (),
        n_bytes=volume(held, itemsize(step.dtype)) if held else None,
        traffic=tuple(Traffic(volume([_access(a) for a in same], itemsize(same[0].dtype)), same[0].name)
                      for same in pairs),
        joins=first.joins, moved=_moved(step), label=step.label(), step=step,
    )  # fmt: skip


def _moved(step: Step) -> tuple:
    """What decides the way of blocks that have one sender and one receiver."""
    if step.kind not in ("permute", "halo_exchange", "all_to_all"):
        return ()
    return (step.before[0].axes, step.after.axes, step.params.get("distance"), step.params.get("wrap"))


def _access(access: Access) -> Local:
    return tuple(zip(access.sharding.dims, access.sharding.axes, strict=True))


def _volume(locals_: Sequence[Local], factor: int, meanings: Meanings) -> Volume:
    """What the same dimensions of every plan have in common."""
    sizes = []
    for same in zip(*locals_, strict=True):
        size = meanings.solve(tuple(dim.size for dim, _ in same), same[0][0].name)
        sizes.append(Local1(size, tuple(sorted(same[0][1]))))
    return _simplified(factor, sizes)


def _turns(works: Sequence[Work], meanings: Meanings) -> Volume:
    loops = zip(*[work.loops for work in works], strict=True)
    found = [meanings.solve(tuple(turns for _, turns in same), same[0][0]) for same in loops]
    return _simplified(1, [Local1(turns, ()) for turns in found])


def _simplified(factor: int, sizes: Sequence[Local1]) -> Volume:
    """Numbers joined, names in one order, so that equal amounts are equal."""
    left = []
    for local in sizes:
        number = local.size.constant
        if number is None or local.axes:
            left.append(local)
        else:
            factor *= int(number)
    return Volume(factor, tuple(sorted(left, key=str)))


# ---- plans of one structure -------------------------------------------------------------------------------------


def _same_structure(plans: Sequence[Sequence[Work]]) -> None:
    first = [_shape(work) for work in plans[0]]
    for number, plan in enumerate(plans[1:], 2):
        other = [_shape(work) for work in plan]
        if first != other:
            raise LayoutError(f"plans 1 and {number} differ in more than sizes: {_difference(first, other)}")


def _difference(first: list[tuple], other: list[tuple]) -> str:
    for place, (a, b) in enumerate(zip(first, other, strict=False)):
        if a != b:
            return f"step {place} is '{a[0]}: {a[1]}' in one, '{b[0]}: {b[1]}' in the other"
    return f"the one has {len(first)} steps, the other {len(other)}"


def _shape(work: Work) -> tuple:
    """All of a step but its sizes."""
    step = work.step
    accesses = [(access.sharding.names, access.sharding.axes, access.dtype, access.name)
                for access in (*work.reads, *work.writes)]  # fmt: skip
    loops = tuple(name for name, _ in work.loops)
    return (step.label(), step.arrow(), step.kind, step.inputs, step.axes, step.dtype, loops, tuple(accesses))


def off_graph(program: Program, works: Sequence[Work]) -> list[str]:
    """Dimensions that no tensor of the function has: their sizes are the planner's, and may depend on the mesh."""
    known = {dim for op in _ops(program.graph) for dim in op.dims}
    used = [dim for work in works for s in (*work.step.before, work.step.after) for dim in s.dims]
    return [str(dim) for dim in dict.fromkeys(used) if dim not in known]


def _ops(graph: Graph) -> Iterator[Op]:
    for op in graph.ops:
        yield op
        if op.kind == "repeat":
            yield from _ops(op.params["body"])


def input_sizes(shardings: Sequence[Sharding]) -> dict[str, int]:
    """The named sizes of a program's inputs; a name that has two sizes there means nothing by itself."""
    found: dict[str, set[int]] = {}
    for s in shardings:
        for dim in s.dims:
            found.setdefault(dim.name, set()).add(sure(dim.size))
    return {name: sizes.pop() for name, sizes in found.items() if len(sizes) == 1}
