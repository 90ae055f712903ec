"""What a compiled HLO text says: a module of computations of instructions, and how a line is cut.

An instruction keeps its operands and attributes as they are printed, split only when asked for: a schedule for a TPU
has kilobytes of them on each line. Lines are cut by balanced brackets, never by a pattern that expects one shape (such
a pattern misses every tuple-shaped all-to-all). What cannot be is an `Unreadable`, a ValueError with the line's number.
Next file to read: hlo_parse.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from mtfcore.counting import facts

MOST_DEVICES = 1 << 20  # of a module; a text that names more is damaged
_CLOSING = {"(": ")", "[": "]", "{": "}"}

# What taking a damaged instruction at its word ends in.
DAMAGED = (ValueError, IndexError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)


class Unreadable(ValueError):
    """A text that is not what a compiler prints; says in which line."""


@dataclass(frozen=True)
class Array:
    """One array of a shape: bf16[8,128]."""

    dtype: str
    dims: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        return 0 if self.dtype in ("token", "opaque") else facts.array_bytes(self.dims, self.dtype)


@dataclass(frozen=True)
class Instruction:
    name: str
    arrays: tuple[Array, ...]  # a tuple's arrays in order, however nested
    opcode: str
    inputs: str  # between the parentheses, as printed
    rest: str  # behind them: the attributes, as printed
    line: int

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Names of the operands; printed with their shapes or without."""
        return tuple(part.split()[-1].lstrip("%") for part in split(self.inputs) if part)

    @cached_property
    def attributes(self) -> dict[str, str]:
        pairs = (part.split("=", 1) for part in split(self.rest) if "=" in part)
        return {key.strip(): value.strip() for key, value in pairs}

    def refuse(self, what: str) -> Unreadable:
        return Unreadable(f"HLO line {self.line}, {self.opcode} %{self.name:.100}: {what:.600}")

    def attribute(self, key: str) -> str:
        """An attribute that it must have."""
        if key not in self.attributes:
            raise self.refuse(f"expected {key}=...")
        return self.attributes[key]


@dataclass
class Computation:
    name: str
    line: int
    instructions: dict[str, Instruction] = field(default_factory=dict)
    root: Instruction | None = None

    @property
    def result(self) -> Instruction:
        """What it returns; one without is refused as cut off."""
        if self.root is None:
            raise Unreadable(f"HLO line {self.line}: computation %{self.name} has no ROOT")
        return self.root

    @cached_property
    def parameters(self) -> dict[int, Instruction]:
        return {int(i.inputs): i for i in self.instructions.values() if i.opcode == "parameter"}

    def operand(self, instruction: Instruction, which: int) -> Instruction:
        if which >= len(instruction.operands):
            raise instruction.refuse(f"expected at least {which + 1} operands, found {len(instruction.operands)}")
        name = instruction.operands[which]
        if name not in self.instructions:
            raise instruction.refuse(f"operand {name!r} is not defined in computation %{self.name}")
        return self.instructions[name]


@dataclass
class Module:
    header: str
    computations: dict[str, Computation] = field(default_factory=dict)
    entry: Computation | None = None

    @property
    def start(self) -> Computation:
        """The computation that the module begins with; `parse` refuses a text without one."""
        if self.entry is None:
            raise Unreadable("HLO module without an ENTRY computation")
        return self.entry

    def devices(self) -> int:
        """All of them: partitions times replicas."""
        found = re.findall(r"\b(?:num_partitions|replica_count)=(\d{1,18})", self.header)
        number = prod(map(int, found))
        if number > MOST_DEVICES:
            raise Unreadable(f"HLO line 1: a module for {number:,} devices; expected at most {MOST_DEVICES:,}")
        return number

    def called(self, name: str, by: Instruction) -> Computation:
        if name.lstrip("%") not in self.computations:
            raise by.refuse(f"calls {name}, expected one of the computations above it")
        return self.computations[name.lstrip("%")]


def split(text: str) -> list[str]:
    """At the commas outside of brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for match in re.finditer(r'\\.|["()\[\]{},]', text):
        mark = match.group()
        if mark == '"':
            quoted = not quoted
        elif quoted or len(mark) > 1:
            continue
        elif mark == ",":
            if depth == 0:
                parts.append(text[start : match.start()].strip())
                start = match.end()
        else:
            depth += 1 if mark in _CLOSING else -1
    return [*parts, text[start:].strip()]


def closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` closes; -1 if it does not."""
    depth, quoted = 0, False
    for match in re.compile(r'\\.|["()]').finditer(text, start):
        mark = match.group()
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark in "()":
            depth += 1 if mark == "(" else -1
            if depth == 0:
                return match.start()
    return -1
