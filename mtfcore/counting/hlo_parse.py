"""Compiled HLO text → computations of instructions, line by line.

The idea: the printed form is one instruction a line,

    %name = SHAPE opcode(OPERANDS), attribute=value, ...

where SHAPE may be a tuple and carries layout and tiling, `bf16[8,128]{1,0:T(8,128)(2,1)S(1)}`.
What cannot be read is refused with the line's number. Next file to read: hlo_text.py.
"""

import re

from mtfcore.counting.hlo_module import Array, Computation, Instruction, Module, Unreadable, closing

_NAME = re.compile(r"\s*(ROOT\s+)?%?([^\s=(]+)\s+=\s+")
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{[^}]*\})?")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_COMPUTATION = re.compile(r"(ENTRY\s+)?%?([^\s(]+)\s*(\(.*)?\{\s*$")
_TABLE_LINE = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames|\d+\s+[\"{].*)\s*$")
_INDEX_COMMENT = re.compile(r"/\*index=\d+\*/")


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
