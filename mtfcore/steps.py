"""Steps and programs: what a plan is made of, what runs, what is drawn and what is priced.

A `Step` is one local computation or one collective, with the shardings before and after. A `Program` is the
steps of one function on one mesh. Executor, drawings and costs all read these and nothing else.

    >>> print(mtf.plan(two_layers, mesh, layout, sizes="batch:64 io:512 hidden:2048").table())

Next file to read: `rules.moves`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mtfcore.dtypes import is_float, itemsize
from mtfcore.errors import sure
from mtfcore.mesh import Mesh
from mtfcore.notation import format_axes
from mtfcore.numbers import count
from mtfcore.sharding import Axes, Sharding
from mtfcore.traffic import COLLECTIVES, Traffic, link_bytes, split_by_axis

MOVES = ("slice", "mask", *COLLECTIVES)
INPUT = -1  # in the path of a recorded value: (INPUT, n) is the n-th input of the program, or of a loop's body
OUTPUT = -2  # and (OUTPUT, step, n) the n-th value that a loop makes, the first being that of (step,)


@dataclass(frozen=True, eq=False)
class Step:
    """One local computation or collective; sizes and FLOPs are those of one device, once."""

    kind: str
    inputs: tuple[int, ...]  # the values it reads, numbered within the program
    output: int
    before: tuple[Sharding, ...]
    after: Sharding
    dtype: str
    params: Mapping[str, Any] = field(default_factory=dict)
    axes: Axes = ()  # of a collective: the mesh axes of its group, outermost first
    group: int = 1
    n_bytes: int = 0  # of a collective: bytes held by one device before
    flops: int = 0
    why: str = ""
    tensor: int = -1  # the tensor of the function that this step makes, moves or needs
    body: Program | None = None  # of a repeat
    times: int = 1  # how often it runs
    more: tuple[int, ...] = ()  # of a repeat: the values it makes besides `output`

    @property
    def outputs(self) -> tuple[int, ...]:
        """Every value that it makes: one, but for loops."""
        return (self.output, *self.more)

    @property
    def link_bytes(self) -> int | Fraction:
        """Bytes that one device sends each time."""
        return link_bytes(self.kind, self.n_bytes, self.group)

    @property
    def is_collective(self) -> bool:
        return self.kind in COLLECTIVES

    def arrow(self) -> str:
        """Shardings before and after in our notation: `B E:x , E:x F → B F partialsum:x`."""
        return f"{listed([s.text() or '()' for s in self.before])} → {self.after.text() or '()'}"

    def label(self) -> str:
        """What it does in a few words: `reduce_scatter over x into F`."""
        dims = self.params.get("dims", ())
        word = {"all_gather": "of", "reduce_scatter": "into", "slice": "of", "halo_exchange": "of"}.get(self.kind)
        fn = self.params.get("fn", "sum")
        kind = f"{self.kind} ({fn})" if self.kind == "all_reduce" and fn != "sum" else self.kind
        if self.kind in MOVES:
            tail = f" {word} {', '.join(dims)}" if word and dims else ""
            if self.kind == "all_to_all":
                tail = f" from {dims[0]} to {dims[1]}"
            if self.kind == "permute" and "distance" in self.params:
                tail = f", {self.params['distance']:+d} on the ring"
            return f"{kind} over {format_axes(self.axes)}{tail}"
        if self.kind in ("edge", "extend", "trim", "fold"):
            return f"{self.kind} of {self.params['dim']}"
        if self.kind == "repeat":
            return f"repeat {sure(self.body).name} x {self.times}"
        if self.kind == "reduce":  # over a split dimension each device's result differs until the all-reduce
            parted = any(on and name not in self.after.names for s in self.before for name, on in s.on.items())
            return f"{self.params['fn']}{' of each part' if parted else ''}"
        if self.kind in ("part", "put"):
            return f"{self.kind} of {', '.join(spot.dim for spot in self.params['spots'])}"
        stage = f" {self.params['stage']}" if "stage" in self.params else ""
        return str(self.params["fn"]) if self.kind == "pointwise" else f"{self.kind}{stage}"

    def __repr__(self) -> str:
        return f"<Step {self.label()}: {self.arrow()}>"

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        from mtfcore.rendering import render_step

        return render_step(self, path, subtree_renderer)


@dataclass(frozen=True)
class Port:
    """An input or output of a program: its name, the value's number, where it lies, its dtype."""

    name: str
    value: int
    sharding: Sharding
    dtype: str


@dataclass(frozen=True, eq=False)
class Program:
    """The steps of one named function on one mesh. Built by `mtf.plan`."""

    name: str
    mesh: Mesh
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    steps: tuple[Step, ...]
    graph: Any  # the function's operations before any placement (mtfcore.tensor.Graph)
    placed: Mapping[int, Sharding]  # tensor of the graph → where it lies when made
    dtypes: Mapping[int, str]  # value → dtype
    shardings: Mapping[int, Sharding]  # value → where it lies
    layout: Any = None

    def walk(self, times: int = 1) -> Iterator[Step]:
        """Every step in order, those inside repeats after their repeat, with `times` multiplied."""
        for step in self.steps:
            yield dataclasses.replace(step, times=step.times * times) if times > 1 else step
            if step.body is not None:
                yield from step.body.walk(times * step.times)

    def collectives(self) -> list[Step]:
        """Every collective in order; `step.times` says how often it runs."""
        return [step for step in self.walk() if step.is_collective]

    def flops(self) -> int:
        """FLOPs of one device (modelled): 2 a multiply-add of einsums, repeats multiplied."""
        return sum(step.flops * step.times for step in self.walk())

    def link_bytes(self) -> Traffic:
        """Bytes sent by one device (modelled), in total and by mesh axis.

        A group over several axes is divided as its ring phases are, outermost axis first; a permute counts on
        the first axis it changes, a halo exchange on its innermost one.
        """
        by_axis: dict[str, Fraction] = {axis: Fraction(0) for axis in self.mesh.names}
        for step in self.collectives():
            for axis, sent in split_by_axis(step, self.mesh).items():
                by_axis[axis] += sent * step.times
        return Traffic(by_axis)

    def memory(self) -> int:
        """Bytes of inputs, outputs and every value between, on one device: an upper bound (modelled)."""
        return sum(s.bytes_per_device(self.mesh, self.dtypes[value]) for value, s in self.shardings.items())

    def table(self) -> Any:
        """The steps as a table: a text, an HTML table in a notebook, and `.rows`."""
        from mtfcore.tables import program_table

        return program_table(self)

    def source(self) -> str:
        """The same program as plain JAX that a reader would write by hand (no mtfcore in it)."""
        from mtfcore.source.program import source

        return source(self)

    def __repr__(self) -> str:
        kinds = [step.kind for step in self.collectives()]
        steps, collectives = count(len(self.steps), "step"), count(len(kinds), "collective")
        return f"<Program {self.name} on {self.mesh}: {steps}, {collectives}>"

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        from mtfcore.rendering import render_program

        return render_program(self, path, subtree_renderer)


def keeps_nan(step: Step) -> bool:
    """Whether an all-reduce by max or min must say so where one device has NaN; what softmax takes out need not."""
    fn = step.params.get("fn", "sum")
    return step.kind == "all_reduce" and fn != "sum" and is_float(step.dtype) and not step.params.get("flat")


def listed(operands: Sequence[str], most: int = 4) -> str:
    """Operands in one line; of a loop, which may read dozens, the first few."""
    more = f" , and {len(operands) - most} more" if len(operands) > most else ""
    return (" , ".join(operands[:most]) or "-") + more


def held_bytes(sharding: Sharding, mesh: Mesh, dtype: str) -> int:
    """Bytes of one device's part, without the checks of `Sharding.bytes_per_device` (the rules have made them)."""
    n = itemsize(dtype)
    for dim, on in zip(sharding.dims, sharding.axes, strict=True):
        n *= sure(dim.size)
        for axis in on:
            n //= mesh[axis]
    return n
