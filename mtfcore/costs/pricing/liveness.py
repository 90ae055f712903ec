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
from mtfcore.tensor import Graph

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
    between, fullest = _fullest(program, inputs | outputs, held)
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
        into = op.inputs[:1] if op.kind == "write" else op.inputs if op.kind in ELEMENT_BY_ELEMENT else ()
        if op.dims == graph.ops[old].dims and reached.intersection(into):
            reached.add(number)
    return reached


def _fullest(program: Program, kept: set[int], held: dict[int, int]) -> tuple[int, str]:
    """Most bytes alive at once besides those kept, and the step at which that is."""
    last = {value: number for number, step in enumerate(program.steps) for value in step.inputs}
    alive = most = 0
    fullest = ""
    for number, step in enumerate(program.steps):
        alive += sum(held[value] for value in step.outputs if value not in kept)
        now = alive + _inside(step)
        if now > most:
            most, fullest = now, step.label()
        done = {*step.inputs, *step.outputs} - kept
        alive -= sum(held[value] for value in done if last.get(value, number) == number)
    return most, fullest


def _inside(step: Step) -> int:
    """Bytes that one turn of a loop adds at its fullest: its parts of the stacks and its own values."""
    if step.body is None:
        return 0
    body = step.body
    own = [port for port in body.inputs[step.params.get("n_carry", 1) :] if port.value in body.shardings]
    parts = own[: step.params.get("n_stacked", 0)]
    held = {value: _held(body, value) for value in body.shardings}
    between, _ = _fullest(body, {port.value for port in body.inputs}, held)
    return between + sum(held[port.value] for port in parts)


def _held(program: Program, value: int) -> int:
    return held_bytes(program.shardings[value], program.mesh, program.dtypes[value])
