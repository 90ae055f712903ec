"""A program to test, as data: inputs, lines, mesh, layout, places. It prints as the Python that repeats it.

    Case("x:2 y:2", (Input("a", (("A", 4), ("B", 2)), "A:x B"),), (Line(("h1",), "relu", ("a",)),), ("h1",))

`Case.build` makes the named function out of the same text that is printed; `Case.expected` evaluates the lines with
the numpy reference. Next file to read: checking.py.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from core.sweep.reference import Ref
from core.sweep.reference_shapes import CALLS

import mtfcore as mtf

Operand = str | float | tuple
IMPORT = "import mtfcore as mtf\n\n"


@dataclass(frozen=True)
class Input:
    """An argument: dimensions with sizes, where it lies (None: as the layout says), dtype (None: the program's)."""

    name: str
    dims: tuple[tuple[str, int], ...]
    place: str | None = None
    dtype: str | None = None
    wide: bool = False  # every element different, or small numbers that stay exact longer

    @property
    def text(self) -> str:
        return " ".join(f"{name}:{size}" for name, size in self.dims)

    def ref(self, dtype: str) -> Ref:
        """Whole numbers in an order that no two slices share, the same on every machine."""
        shape, dtype = tuple(size for _, size in self.dims), self.dtype or dtype
        random = np.random.default_rng(zlib.crc32(f"{self.name} {self.text}".encode()))
        n = int(np.prod(shape))
        if dtype == "bool":
            value = random.random(shape) < 0.5
        elif self.wide and n <= 64:
            value = (random.permutation(n) - n // 2).reshape(shape)
        else:
            value = random.integers(-4, 5, shape)
        value = value if dtype in ("bool", "i32") else value.astype(float)
        return Ref(tuple(name for name, _ in self.dims), value, np.zeros(shape), dtype)


@dataclass(frozen=True)
class Line:
    """`results = mtf.call(*operands, **more)`; for a repeat the lines of its block and its arguments besides."""

    results: tuple[str, ...]
    call: str
    operands: tuple[Operand, ...]
    more: tuple[tuple[str, Any], ...] = ()
    block: tuple[Line, ...] = ()
    arguments: tuple[str, ...] = ()

    def text(self) -> str:
        if self.call == "repeat":
            return self._repeat()
        words = [_word(o) for o in self.operands] + [f"{key}={_word(value, True)}" for key, value in self.more]
        return f"{', '.join(self.results)} = mtf.{self.call}({', '.join(words)})"

    def _repeat(self) -> str:
        start, n, *stacked = self.operands
        inner = "".join(f"\n        {line.text()}" for line in self.block)
        name, last = f"block_{self.results[0]}", self.block[-1].results[0]
        head = f"def {name}({', '.join(self.arguments)}):{inner}\n        return {last}\n"
        return f"{head}    {self.results[0]} = mtf.repeat({name}, {n}, [{', '.join(stacked)}], {start})"

    def reads(self) -> set[str]:
        """Every name that it reads, those in its block too."""
        words = [o for operand in self.operands for o in (operand if isinstance(operand, tuple) else (operand,))]
        return {w for w in words if isinstance(w, str)}.union(*[line.reads() for line in self.block])

    def evaluate(self, env: dict[str, Ref]) -> dict[str, Ref]:
        """The results by name, from the numpy reference."""
        if self.call == "repeat":
            return self._looped(env)
        operands = [_looked_up(o, env) for o in self.operands]
        places = ("at", "search", "follow")  # these say where things lie, not what they are
        found = CALLS[self.call](*operands, **{key: value for key, value in self.more if key not in places})
        return dict(zip(self.results, found if isinstance(found, tuple) else (found,), strict=True))

    def _looped(self, env: dict[str, Ref]) -> dict[str, Ref]:
        start, n, *stacked = self.operands
        carry = env[start]
        for turn in range(n):
            parts = [_entry(env[name], turn) for name in stacked]
            inner = env | dict(zip(self.arguments, [carry, *parts], strict=True))
            for line in self.block:
                inner |= line.evaluate(inner)
            carry = inner[self.block[-1].results[0]]
        return {self.results[0]: carry}


def _entry(t: Ref, turn: int) -> Ref:
    return replace(t, names=t.names[1:], value=t.value[turn], error=t.error[turn], mass=t.mass[turn])


def _looked_up(operand: Operand, env: dict[str, Ref]) -> Any:
    if isinstance(operand, tuple):
        return tuple(env[name] for name in operand)
    return env[operand] if isinstance(operand, str) and operand in env else operand


def _word(operand: Any, quoted: bool = False) -> str:
    if isinstance(operand, tuple) and not quoted:
        return f"[{', '.join(operand)}]"
    name = isinstance(operand, str) and operand.islower()  # dimensions are capitals
    return operand if name and not quoted else repr(operand)


@dataclass(frozen=True, repr=False)
class Case:
    """A named function with everything that its plan needs."""

    mesh: str
    inputs: tuple[Input, ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    layout: str = ""
    dtype: str = "f32"
    search: bool = False

    def source(self) -> str:
        """The named function, as Python."""
        dtypes = {given.name: given.dtype for given in self.inputs if given.dtype}
        head = f"@mtf.function(dtypes={dtypes})" if dtypes else "@mtf.function"
        arguments = ", ".join(f'{given.name}: "{given.text}"' for given in self.inputs)
        body = "".join(f"    {line.text()}\n" for line in self.lines)
        return f"{head}\ndef program({arguments}):\n{body}    return {', '.join(self.outputs)}\n"

    def script(self) -> str:
        """All that repeats this case."""
        place = {given.name: given.place for given in self.inputs if given.place is not None}
        more = f", place={place}, dtype={self.dtype!r}" + (", search=True" if self.search else "")
        return f"{IMPORT}{self.source()}\nprog = mtf.plan(program, {self.mesh!r}, {self.layout!r}{more})\n"

    __repr__ = script

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Hypothesis prints the shrunk failure as the script, too."""
        printer.text("\n" + self.script())

    def build(self) -> mtf.Program:
        """Run the printed script and hand out the plan."""
        found: dict[str, Any] = {}
        exec(compile(self.script(), "<case>", "exec"), found)
        return found["prog"]

    def arrays(self) -> list[np.ndarray]:
        return [given.ref(self.dtype).value for given in self.inputs]

    def expected(self) -> list[Ref]:
        """The right values of the outputs."""
        env = {given.name: given.ref(self.dtype) for given in self.inputs}
        for line in self.lines:
            env |= line.evaluate(env)
        return [env[name] for name in self.outputs]
