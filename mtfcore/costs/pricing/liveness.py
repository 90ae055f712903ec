"""How much memory a program needs on one device: what lives at its fullest moment, by what it is for.

    >>> sizes = "batch:64 io:512 hidden:1024"
    >>> memory = peak_memory(mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes=sizes, dtype="f32"))
    >>> memory.inputs, memory.between
    (2129920, 65536)

Inputs (parameters, optimizer state, data) live from start to end, outputs from when they are made; a value between is
freed after the last step that reads it. An output that updates an input of its own name element by element, or writes
rows into it, and lies as it does, takes over its memory, as new parameters do in a training step (`donate_argnums` of
JAX). A loop keeps what it carries, one turn's own values at their fullest, and what it hands out. Modelled: nothing
else is computed in place, and what a compiler keeps besides is not in it; so a real run may need less (buffers reused)
or more (padding). Next file to read: `search/layouts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mtfcore.numbers import format_bytes
from mtfcore.steps import Program, Step, held_bytes
from mtfcore.tensor import Graph, Op

ELEMENT_BY_ELEMENT = ("pointwise", "reshard", "settle")


@dataclass(frozen=True)
class Memory:
    """Bytes on one device at the fullest moment: inputs, outputs, and values between."""

    inputs: int
    outputs: int
    between: int
    fullest: str = ""  # the step at which most is alive, in words

    @property
    def total(self) -> int:
        """Bytes at the fullest moment."""
        return self.inputs + self.outputs + self.between

    def __str__(self) -> str:
        parts = [(part, getattr(self, part)) for part in ("inputs", "outputs", "between")]
        return ", ".join(f"{part} {format_bytes(n_bytes)}" for part, n_bytes in parts if n_bytes)


def peak_memory(program: Program) -> Memory:
    """What one device holds at the fullest moment of a program."""
    inputs = {port.value for port in program.inputs}
    outputs = {port.value for port in program.outputs} - inputs
    names = in_place(program)
    donated = {port.value for port in program.outputs if port.name in names}
    held = {value: _held(program, value) for value in program.shardings}
    own = {port.value for port in program.inputs if port.name in names}
    between, fullest = _fullest(program, inputs | outputs, own, held)
    return Memory(sum(held[v] for v in inputs), sum(held[v] for v in outputs - donated), between, fullest)


def in_place(program: Program) -> frozenset[str]:
    """Inputs whose memory the output of their name takes over: updated, and of the same placement and dtype."""
    new = updated(program.graph)
    old = {port.name: (port.sharding, port.dtype) for port in program.inputs if port.name in new}
    return frozenset(port.name for port in program.outputs if old.get(port.name) == (port.sharding, port.dtype))


@lru_cache(maxsize=16)
def updated(graph: Graph) -> frozenset[str]:
    """Outputs made from the input of their name element by element, w → w - rate * gradient, or by writing rows."""
    names = [name for name in graph.inputs if name in graph.outputs]
    return frozenset(name for name in names if graph.outputs[name] in _reached(graph, graph.inputs[name]))


def _reached(graph: Graph, old: int) -> set[int]:
    reached = {old}
    for number, op in enumerate(graph.ops):
        if op.dims == graph.ops[old].dims and reached.intersection(_made_over(graph, op)):
            reached.add(number)
    return reached


def _made_over(graph: Graph, op: Op) -> tuple[int, ...]:
    """The operands whose memory the result of an operation may take over: of a loop the carry that it updates."""
    if op.kind == "write":
        return op.inputs[:1]
    if op.kind not in ("repeat", "repeated"):
        return op.inputs if op.kind in ELEMENT_BY_ELEMENT else ()
    loop, place = (op, 0) if op.kind == "repeat" else (graph.ops[op.inputs[0]], op.params["place"])
    body = loop.params["body"]
    starts, ends = [*body.inputs.values()], [*body.outputs.values()]
    updates = place < loop.params["n_carry"] and ends[place] in _reached(body, starts[place])
    return (loop.inputs[place],) if updates else ()


def _fullest(program: Program, kept: set[int], own: set[int], held: dict[int, int]) -> tuple[int, str]:
    """Most bytes alive at once besides those kept, and the step at which that is; rows may be written into `own`."""
    last = {value: number for number, step in enumerate(program.steps) for value in step.inputs}
    kept = kept | _written_into(program, own, last)
    alive = most = 0
    fullest = ""
    for number, step in enumerate(program.steps):
        over = _summed_into(step, number, last) - kept
        alive += sum(held[value] for value in step.outputs if value not in kept) - sum(held[value] for value in over)
        now = alive + _inside(step)
        if now > most:
            most, fullest = now, step.label()
        done = {*step.inputs, *step.outputs} - kept - over
        alive -= sum(held[value] for value in done if last.get(value, number) == number)
    return most, fullest


def _summed_into(step: Step, number: int, last: dict[int, int]) -> set[int]:
    """Of rings beside products (`mtf.looped`): the sum or the result so far, in whose memory the next block lands."""
    grows = (step.kind == "put" and len(step.inputs) == 2) or (step.kind == "pointwise" and "loop" in step.params)
    return {step.inputs[0]} if grows and last[step.inputs[0]] == number else set()


def _written_into(program: Program, own: set[int], last: dict[int, int]) -> set[int]:
    """Values that are one's own memory with other rows in it: nobody reads what was there before."""
    own, handed_out = set(own), {port.value for port in program.outputs}
    for number, step in enumerate(program.steps):
        if step.kind == "write" and (old := step.inputs[0]) in own and last[old] == number and old not in handed_out:
            own.add(step.output)
    return own


def _inside(step: Step) -> int:
    """Bytes that one turn of a loop adds at its fullest: its parts of the stacks and its own values."""
    if step.body is None:
        return 0
    body = step.body
    n_carry = step.params.get("n_carry", 1)
    own = [port for port in body.inputs[n_carry:] if port.value in body.shardings]
    parts = own[: step.params.get("n_stacked", 0)]
    carries = {port.value for port in body.inputs[:n_carry]}
    held = {value: _held(body, value) for value in body.shardings}
    between, _ = _fullest(body, {port.value for port in body.inputs}, carries, held)
    return between + sum(held[port.value] for port in parts)


def _held(program: Program, value: int) -> int:
    return held_bytes(program.shardings[value], program.mesh, program.dtypes[value])
