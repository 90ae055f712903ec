"""The rows of a template as a short list of array operations, each amount worked out once.

    >>> sheet = Template.of(prog, planned("batch:192 io:2560 hidden:14336")).sheet      # prog at other sizes
    >>> given = {"batch": np.array([64, 128]), "io": 512, "hidden": 2048}, {"rows": 4, "cols": 2}
    >>> symbols = {Symbol(kind, name): n for kind, of in zip((SIZE, AXIS), given) for name, n in of.items()}
    >>> sheet.work_out(symbols, fast_memory=1.3e8)[sheet.flops[0]]                      # FLOPs of the first row
    array([16777216., 33554432.])

Rows share most of what they are made of: B/x · L stands in nearly all. So each quotient, product and sum is one
operation on *registers*, and one that has been made before is used again. Sizes that are plain numbers make registers
that are plain numbers, and smaller arrays smaller ones. Next file to read: `timing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtfcore.costs.templates.rows import Local1, Row, Traffic, Volume
from mtfcore.costs.templates.sizes import AXIS, Expression, Symbol, Term
from mtfcore.sharding import Axes

LARGEST_FREED = 31 << 20  # bytes; 32 MiB are the most that count


def keep_memory() -> None:
    """Have the C library keep what arrays give back, up to twice the largest one freed so far (glibc's `mallopt`).

    It would return it to the system after each operation and fetch it again, which takes ten times as long as the
    operation itself on arrays of 10,000 numbers. The array made here is never touched, so it costs no memory.
    """
    array = np.empty(LARGEST_FREED, np.uint8)
    del array


keep_memory()

Operation = tuple[Callable[..., Any], int, int]  # what to do with the values of two registers


@dataclass(eq=False)
class Sheet:
    """Operations on registers, and in which registers the amounts of each row lie."""

    inputs: dict[Symbol, int] = field(default_factory=dict)
    numbers: dict[float, int] = field(default_factory=dict)
    operations: list[tuple[int, *Operation]] = field(default_factory=list)
    known: dict[Operation, int] = field(default_factory=dict)
    fast_memory: int = 0  # the register of the fast memory's bytes
    size: int = 1
    divided: list[int] = field(default_factory=list)  # registers that must be whole numbers
    times: list[int] = field(default_factory=list)
    flops: list[int] = field(default_factory=list)
    product: list[tuple[int, ...]] = field(default_factory=list)
    hbm_bytes: list[int] = field(default_factory=list)
    n_bytes: list[int] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    read_by_name: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Sheet:
        """Write the operations of all rows."""
        sheet = cls()
        for row in rows:
            sheet.add(row)
        return sheet

    def work_out(self, given: Mapping[Symbol, Any], fast_memory: Any) -> list[Any]:
        """The value of every register."""
        values: list[Any] = [None] * self.size
        values[self.fast_memory] = fast_memory
        for symbol, register in self.inputs.items():
            values[register] = given[symbol]
        for number, register in self.numbers.items():
            values[register] = number
        for register, do, left, right in self.operations:
            values[register] = do(values[left], values[right])
        return values

    # ---- writing it

    def add(self, row: Row) -> None:
        """Append the amounts of one row."""
        times = self.times_number(self.volume(row.turns), row.count)
        product = tuple(map(self.volume, row.product))
        flops = self.number(0)
        if product:
            flops = self.times_number(self.product_of(product), 2)
        group = self.parts(row.axes)
        n_bytes = self.number(0) if row.n_bytes is None else self.apply(sent_if, self.volume(row.n_bytes), group)
        traffic = [self.moved(each) for each in row.traffic]
        for each, register in zip(row.traffic, traffic, strict=True):
            self.read_by_name.setdefault(each.name, []).append((register, times))
        self.times.append(times)
        self.product.append(product)
        self.flops.append(flops)
        self.hbm_bytes.append(self.sum_of(traffic))
        self.n_bytes.append(n_bytes)
        self.group.append(group)

    def apply(self, do: Callable[..., Any], left: int, right: int) -> int:
        """The register of an operation, written the first time."""
        operation = (do, left, right)
        if operation not in self.known:
            self.known[operation] = self.new()
            self.operations.append((self.known[operation], *operation))
        return self.known[operation]

    def new(self) -> int:
        """A register that nothing else uses."""
        self.size += 1
        return self.size - 1

    def number(self, value: float) -> int:
        """The register of a number."""
        if value not in self.numbers:
            self.numbers[value] = self.new()
        return self.numbers[value]

    def symbol(self, symbol: Symbol) -> int:
        """The register of a named size or axis."""
        if symbol not in self.inputs:
            self.inputs[symbol] = self.new()
        return self.inputs[symbol]

    def times_number(self, register: int, value: float) -> int:
        """A register times a number."""
        return register if value == 1 else self.apply(np.multiply, register, self.number(value))

    def product_of(self, registers: Sequence[int]) -> int:
        """Their product, without ones, in an order in which products share their beginnings."""
        left = sorted(register for register in registers if register != self.numbers.get(1))
        made = left[0] if left else self.number(1)
        for register in left[1:]:
            made = self.apply(np.multiply, made, register)
        return made

    def sum_of(self, registers: Sequence[int]) -> int:
        """Their sum."""
        left = sorted(registers)
        made = left[0] if left else self.number(0)
        for register in left[1:]:
            made = self.apply(np.add, made, register)
        return made

    def parts(self, axes: Axes) -> int:
        """Into how many parts these mesh axes cut something."""
        return self.product_of([self.symbol(Symbol(AXIS, axis)) for axis in axes])

    def volume(self, volume: Volume) -> int:
        """A product of local sizes."""
        return self.times_number(self.product_of(list(map(self.local, volume.sizes))), volume.factor)

    def local(self, local: Local1) -> int:
        """A size on one device."""
        whole = self.expression(local.size)
        if not local.axes:
            return whole
        part = self.apply(np.divide, whole, self.parts(local.axes))
        if part not in self.divided:
            self.divided.append(part)
        return part

    def expression(self, expression: Expression) -> int:
        """A size of a whole tensor."""
        made = self.sum_of(list(map(self.term, expression.terms)))
        if any(term.factor.denominator > 1 or min((p for _, p in term.powers), default=1) < 0
               for term in expression.terms) and made not in self.divided:  # fmt: skip
            self.divided.append(made)
        return made

    def term(self, term: Term) -> int:
        """A product of powers, whole numbers first."""
        over = [self.symbol(symbol) for symbol, power in term.powers for _ in range(power)]
        under = [self.symbol(symbol) for symbol, power in term.powers for _ in range(-power)]
        made = self.times_number(self.product_of(over), term.factor.numerator)
        below = self.times_number(self.product_of(under), term.factor.denominator)
        return made if below == self.numbers.get(1) else self.apply(np.divide, made, below)

    def moved(self, traffic: Traffic) -> int:
        """Bytes to or from HBM: none of a value between that the fast memory holds."""
        n_bytes = self.volume(traffic.n_bytes)
        return n_bytes if traffic.name else self.apply(beyond, n_bytes, self.fast_memory)


def beyond(n_bytes: Any, fast_memory: Any) -> Any:
    """Bytes of what the fast memory cannot hold."""
    return n_bytes * (n_bytes > fast_memory)


def sent_if(n_bytes: Any, group: Any) -> Any:
    """Bytes of a collective; none in a group of one."""
    return n_bytes * (group > 1)
