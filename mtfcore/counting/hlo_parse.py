"""Compiled HLO text → computations of instructions, line by line.

The idea: the printed form is one instruction a line,

    %name = SHAPE opcode(OPERANDS), attribute=value, ...

where SHAPE may be a tuple and carries layout and tiling, `bf16[8,128]{1,0:T(8,128)(2,1)S(1)}`. A line is split by
balanced brackets, never by a pattern that expects one shape (such a pattern misses every tuple-shaped all-to-all).
Attributes are split only when asked for: a schedule for a TPU has kilobytes of them on each line.
What cannot be read is an `Unreadable`, a ValueError with the line's number. Next file to read: hlo_text.py.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from mtfcore.counting import facts

MOST_DEVICES = 1 << 20  # of a module; a text that names more is damaged
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_NAME = re.compile(r"\s*(ROOT\s+)?%?([^\s=(]+)\s+=\s+")
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{[^}]*\})?")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_COMPUTATION = re.compile(r"(ENTRY\s+)?%?([^\s(]+)\s*(\(.*)?\{\s*$")
_TABLE_LINE = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames|\d+\s+[\"{].*)\s*$")
_INDEX_COMMENT = re.compile(r"/\*index=\d+\*/")


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


def parse(text: str) -> Module:
    """All of a module's text. Anything that is neither header, table, computation nor instruction is refused."""
    module, current = None, None
    for number, line in enumerate(text.splitlines(), 1):
        line = _INDEX_COMMENT.sub("", line) if "/*" in line else line
        bare = line.strip()
        if not bare or bare.startswith("//"):
            continue
        if module is None:
            module = _header(bare, number)
        elif current is None:
            current = _open_computation(bare, number, module)
        elif bare.startswith("}"):
            _close(current, number)
            current = None
        else:
            _add(_instruction(line, number), bare.startswith("ROOT"), current)
    return _complete(module, current)


def _header(line: str, number: int) -> Module:
    if not line.startswith("HloModule"):
        raise Unreadable(
            f"HLO line {number}: expected 'HloModule NAME, ...', found {line[:60]!r}. "
            "Give the text that compiled.as_text() prints."
        )
    return Module(line)


def _open_computation(line: str, number: int, module: Module) -> Computation | None:
    match = _COMPUTATION.match(line)
    if match is None:
        if _TABLE_LINE.match(line):
            return None
        raise Unreadable(f"HLO line {number}: expected a computation '%name (...) -> ... {{', found {line[:60]!r}")
    computation = Computation(match.group(2), number)
    if computation.name in module.computations:
        raise Unreadable(f"HLO line {number}: a second computation named %{computation.name}")
    module.computations[computation.name] = computation
    if match.group(1):
        module.entry = computation
    return computation


def _close(computation: Computation, number: int) -> None:
    if not computation.instructions:
        raise Unreadable(f"HLO line {number}: computation %{computation.name} ends without any instruction")
    # Older texts mark no ROOT in computations of one instruction.
    computation.root = computation.root or list(computation.instructions.values())[-1]


def _add(instruction: Instruction, is_root: bool, computation: Computation) -> None:
    computation.instructions[instruction.name] = instruction
    if is_root:
        computation.root = instruction


def _complete(module: Module | None, unfinished: Computation | None) -> Module:
    if module is None:
        raise Unreadable("empty text: expected HLO that starts 'HloModule NAME, ...'")
    if unfinished is not None:
        where = f"HLO line {unfinished.line}"
        raise Unreadable(f"{where}: computation %{unfinished.name} is not closed; the text is cut off")
    if module.entry is None:
        raise Unreadable(
            f"HLO without an ENTRY computation; it has {', '.join(module.computations)[:300] or 'none at all'}"
        )
    return module


def _instruction(line: str, number: int) -> Instruction:
    def refuse(expected: str, at: int) -> Unreadable:
        return Unreadable(f"HLO line {number}: expected {expected}, found {line[at : at + 60].strip()!r}")

    name = _NAME.match(line)
    if name is None:
        raise refuse("an instruction '%name = shape opcode(...)'", 0)
    start = name.end()
    end = closing(line, start) + 1 if line[start : start + 1] == "(" else _end(_ARRAY.match(line, start))
    if end <= 0:
        raise refuse("a shape such as bf16[8,128]{1,0}", start)
    opcode = _OPCODE.match(line, end)
    last = closing(line, opcode.end() - 1) if opcode else -1
    if opcode is None or last < 0:
        raise refuse("'opcode(operands)' behind the shape", end)
    arrays = tuple(_array(m, number) for m in _ARRAY.finditer(line[start:end]))
    return Instruction(name.group(2), arrays, opcode.group(1), line[opcode.end() : last], line[last + 1 :], number)


def _end(match: re.Match | None) -> int:
    return match.end() if match else -1


def _array(match: re.Match, number: int) -> Array:
    sizes = [size.strip().removeprefix("<=") for size in match.group(2).split(",") if size.strip()]
    if not all(size.isdigit() and len(size) < 20 for size in sizes):
        raise Unreadable(f"HLO line {number}: shape {match.group()}: expected a known size in every dimension")
    return Array(match.group(1), tuple(map(int, sizes)))
