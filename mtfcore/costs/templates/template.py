"""A plan with names in place of numbers: what its steps ask of a device, for arrays of sizes and of meshes at once.

    >>> template = Template.of(prog, planned("batch:192 io:2560 hidden:14336"))        # prog at other sizes
    >>> sizes, mesh = {"batch": 64 * np.arange(1, 513), "io": 512, "hidden": 2048}, {"rows": 4, "cols": [[2], [4]]}
    >>> template.evaluate(sizes, mesh).flops.shape             # rows (kinds of steps), then whatever sizes broadcast to
    (3, 2, 512)

Planning takes milliseconds, which is too slow for a slider over a hundred thousand configurations, and the steps stay
the same where only sizes change: so one structure is planned a few times at different sizes, `sizes` finds what the
numbers mean, and here they are worked out for arrays, in whole numbers (exact up to 2^53). A mesh axis of size
1 sends nothing, as in a plan. Where sizes do not divide, or a planner would choose otherwise, a template cannot know
the better plan: `divides` says where the former is so. Next file to read: `work_out`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtfcore.costs.pricing.rates import Rates
from mtfcore.costs.pricing.step_work import works
from mtfcore.costs.templates.routes import Routes
from mtfcore.costs.templates.rows import Row, input_sizes, off_graph, rows_of
from mtfcore.costs.templates.sizes import AXIS, SIZE, Meanings, Symbol, apart
from mtfcore.costs.templates.timing import Legs, Timed, timed
from mtfcore.costs.templates.work_out import Sheet
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.steps import Program

Sizes = Mapping[str, Any]  # name → a whole number, or an array of them


@dataclass(frozen=True, eq=False)
class Template:
    """The steps of a plan that cost something, as rows, and the names that they are written in."""

    name: str
    rows: tuple[Row, ...]
    row_of_step: tuple[int, ...]  # of each of `works(program)`: its row, -1 where it costs nothing by itself
    meanings: Meanings
    any_mesh: bool  # whether mesh axes may have any size, though the plans did not vary them

    @classmethod
    def planned(
        cls, plan: Callable[[dict[str, int]], Program], sizes: Mapping[str, int], fixed: Iterable[str] = ()
    ) -> Template:
        """From what `plan` gives at these sizes and at others (`sizes.apart`), but for those `fixed`."""
        tries = (dict(sizes), apart(sizes, fixed))
        return cls.of(*map(plan, tries))

    @classmethod
    def of(cls, *programs: Program, sizes: Sequence[Mapping[str, int]] | None = None) -> Template:
        """From plans of one structure at different sizes.

        A size that all plans share is taken to be fixed. Meshes need not differ, but where a planner makes sizes of its
        own (top_k of a split dimension). `sizes`, one mapping a plan, adds names that no input of the program has, or
        has with two sizes.
        """
        if not programs or not all(isinstance(program, Program) for program in programs):
            raise LayoutError(f"a template is made of programs, such as mtf.plan gives, got {programs!r:.200}")
        if len({program.mesh.names for program in programs}) > 1:
            raise LayoutError("plans on meshes of other axes have no template in common: "
                              f"{', '.join(str(program.mesh) for program in programs)}")  # fmt: skip
        more = sizes or [{}] * len(programs)
        known = [
            input_sizes([port.sharding for port in p.inputs]) | dict(s) for p, s in zip(programs, more, strict=True)
        ]
        shared = [name for name in known[0] if all(name in each for each in known)]
        meanings = Meanings.of([{name: each[name] for name in shared} for each in known],
                               [dict(program.mesh.axes) for program in programs])  # fmt: skip
        steps = [works(program) for program in programs]
        rows, row_of_step = rows_of(steps, meanings)
        return cls(programs[0].name, rows, row_of_step, meanings, not off_graph(programs[0], steps[0]))

    @cached_property
    def sheet(self) -> Sheet:
        """The rows as a list of array operations."""
        return Sheet.of(self.rows)

    def evaluate(self, sizes: Sizes, mesh: Sizes, *, fast_memory: Any = np.inf) -> Evaluated:
        """What every row asks of one device at these sizes, which broadcast together.

        `fast_memory` is the bytes below which a value between stays on the device. Sizes that the plans did not vary
        may be left out.
        """
        given = self._given(sizes, mesh)
        shape = np.broadcast_shapes(*[np.shape(value) for value in (*given.values(), fast_memory)])
        return Evaluated(self, self.sheet, self.sheet.work_out(given, fast_memory), shape)

    def seconds(self, sizes: Sizes, mesh: Sizes, rates: Rates, legs: Legs, routes: Routes | None = None) -> Timed:
        """The time of every row on a device with these rates; `legs(axes)`: what a collective runs along.

        A permute needs to know more of the grid (`routes`).
        """
        return timed(self.evaluate(sizes, mesh, fast_memory=rates.fast_memory_bytes), rates, legs, routes)

    def _given(self, sizes: Sizes, mesh: Sizes) -> dict[Symbol, Any]:
        given = {Symbol(SIZE, name): sizes[name] for name in sizes} | {Symbol(AXIS, name): mesh[name] for name in mesh}
        known, faults = self.meanings.known, []
        for symbol, value in given.items():
            if symbol not in known:
                names = [other.name for other in known if other.kind == symbol.kind]
                faults.append(f"no {symbol.kind} {symbol.name!r}; {nearest(symbol.name, names)}")
            elif not self._may_be_any(symbol) and np.any(np.not_equal(value, known[symbol][0])):
                faults.append(f"{symbol.kind} {symbol.name} is {known[symbol][0]} in every plan of this template; "
                              "give it a plan with another")  # fmt: skip
            elif np.any(np.less(value, 1)) or np.any(np.not_equal(value, np.floor(value))):
                faults.append(f"{symbol.kind} {symbol.name} is {value!r:.100}; expected whole numbers of at least 1")
        missing = [symbol for symbol in known if symbol not in given and self._may_be_any(symbol)]
        faults += [f"no value for {symbol.kind} {symbol.name}" for symbol in missing]
        refuse(faults, f"template of {self.name}")
        return {symbol: np.asarray(given[symbol], float)[()] if symbol in given else float(known[symbol][0])
                for symbol in known}  # fmt: skip

    def _may_be_any(self, symbol: Symbol) -> bool:
        """Sizes that the plans vary; a mesh axis that cuts something in them, where no size depends on the mesh."""
        axis = symbol.kind == AXIS and self.any_mesh and self.meanings.known[symbol][0] > 1
        return axis or symbol in self.meanings.varied

    def __repr__(self) -> str:
        return f"<Template {self.name}: {len(self.rows)} rows of {', '.join(s.name for s in self.meanings.varied)}>"


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What the rows of a template ask of one device: arrays of shape (rows, *shape of the sizes)."""

    template: Template
    sheet: Sheet
    values: list[Any]
    shape: tuple[int, ...]

    def stacked(self, amounts: Sequence[Any]) -> np.ndarray:
        """One amount a row, each broadcast to all settings."""
        made = np.empty((len(amounts), *self.shape))
        for place, amount in enumerate(amounts):
            made[place] = amount
        return made

    def _rows(self, registers: Sequence[int]) -> np.ndarray:
        return self.stacked([self.values[register] for register in registers])

    @cached_property
    def times(self) -> np.ndarray:
        """How often a step of the row runs, for all the steps of the row together."""
        return self._rows(self.sheet.times)

    @cached_property
    def flops(self) -> np.ndarray:
        """FLOPs, each time."""
        return self._rows(self.sheet.flops)

    @cached_property
    def hbm_bytes(self) -> np.ndarray:
        """Bytes between HBM and the device, each time."""
        return self._rows(self.sheet.hbm_bytes)

    @cached_property
    def n_bytes(self) -> np.ndarray:
        """Of a collective: bytes that one device holds before, each time; none in a group of one."""
        return self._rows(self.sheet.n_bytes)

    @cached_property
    def group(self) -> np.ndarray:
        """Of a collective: the devices in its group."""
        return self._rows(self.sheet.group)

    @cached_property
    def divides(self) -> np.ndarray:
        """Whether every size is a whole number on every device."""
        found = np.ones(self.shape, bool)
        for register in self.sheet.divided:
            value = self.values[register]
            found &= value == np.floor(value)
        return found

    def read_bytes(self) -> dict[str, np.ndarray]:
        """Bytes read from HBM in all, by the program's input that they are of; "" are values between."""
        found = {}
        for name, entries in self.sheet.read_by_name.items():
            found[name] = np.zeros(self.shape)
            for n_bytes, times in entries:
                found[name] += self.values[n_bytes] * self.values[times]
        return found
