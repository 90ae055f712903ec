"""`mtf.looped(program)`: collectives beside products become rings of permutes that run while blocks are multiplied.

    >>> prog = mtf.plan(two_layers, "x:4", "hidden:x", sizes="batch:64 io:512 hidden:2048", place={"x": "batch io:x"})
    >>> mtf.looped(prog).collectives()[:2]
    [<Step permute over x, +1 on the ring: batch io:x → batch io:x>, <Step permute over x, -1 on the ring: …>]

The result is an ordinary program: it runs, is drawn, counted and priced like any other. Every all-gather that only
products read and every reduce-scatter of a product is replaced, inside loops too; a device sends as many bytes as
before (`rings`). Values differ from the plain program's only by the order of sums: not at all where nothing is summed,
by a few roundings of the type that is summed in otherwise. Next file to read: `paying`.
"""

from __future__ import annotations

import dataclasses

from mtfcore.errors import LayoutError, refuse
from mtfcore.overlap.chains import Chain, Where, chain_of
from mtfcore.overlap.gathering import Gathering
from mtfcore.overlap.rewriting import How, Writer
from mtfcore.overlap.rings import check
from mtfcore.overlap.scattering import Scattering, why_not
from mtfcore.steps import Program, Step

KINDS = ("all_gather", "reduce_scatter")


def looped(
    program: Program, ways: int = 2, form: str = "throughput", where: Where | None = None, rows: int = 512
) -> Program:
    """The program with its gathers before products, and its reduce-scatters behind them, as rings of permutes.

    `ways`: blocks go one way round or both; `form`: "throughput" (g − 1 rounds) or "latency" (half as many, or log₂ g);
    `where` says of a collective whether it is wanted. Over several axes the innermost ones go by rings without products
    until a block that is multiplied has at least `rows` rows. Refuses a program in which nothing can be looped.
    """
    if not isinstance(program, Program):
        raise LayoutError(f"looped: expected a program, as mtf.plan makes it, got {type(program).__name__}")
    refuse(check(ways, form, rows), "looped")
    if where is not None and not callable(where):
        raise LayoutError(f"looped: where is {where!r:.100}; expected a function of a step: is it wanted?")
    wanted = where or (lambda step: True)
    found = _rewritten(program, How(ways, form, rows), wanted)
    if found is program:
        why = refused(program, wanted) or ["it has no all-gather and no reduce-scatter"]
        refuse(why, f"looped: nothing in {program.name} can be looped")
    return found


def refused(program: Program, where: Where | None = None) -> list[str]:
    """Of every gather and reduce-scatter that stays as it is, a sentence that says why."""
    wanted, found = where or (lambda step: True), []
    for step in program.steps:
        if step.body is not None:
            found += refused(step.body, where)
    writer = Writer(program, How())
    _, why = _chains(writer, wanted)
    for step in program.steps:
        if step.kind == "reduce_scatter":
            why[step.output] = why_not(writer, step) if wanted(step) else "it is not wanted"
    said = [(step, why.get(step.output)) for step in program.steps if step.kind in KINDS]
    return found + [f"{step.label()} ({step.arrow()}): {reason}" for step, reason in said if reason]


def _rewritten(program: Program, how: How, where: Where) -> Program:
    """The program itself where nothing changes."""
    steps = tuple(_inside(step, how, where) for step in program.steps)
    if any(new is not old for new, old in zip(steps, program.steps, strict=True)):
        program = dataclasses.replace(program, steps=steps)
    return _scattered(_gathered(program, how, where), how, where)


def _inside(step: Step, how: How, where: Where) -> Step:
    if step.body is None:
        return step
    body = _rewritten(step.body, how, where)
    return step if body is step.body else dataclasses.replace(step, body=body)


# ---- gathers ----------------------------------------------------------------------------------------------------


def _gathered(program: Program, how: How, where: Where) -> Program:
    writer = Writer(program, how)
    chains, _ = _chains(writer, where)
    if not chains:
        return program
    for chain in chains:
        gathering = Gathering(writer, chain)
        for step, _, _ in chain.readers:
            writer.planned[step.output] = gathering.write
    for step in program.steps:
        writer.keep(step)
    return writer.finished()


def _chains(writer: Writer, where: Where) -> tuple[list[Chain], dict[int, str]]:
    """Chains that do not share a product, those that send most first; and why other gathers are left as they are."""
    found, why, inside = [], {}, set()
    gathers = [step for step in writer.program.steps if step.kind == "all_gather"]
    for step in reversed(gathers):  # a chain is found from its end
        if step.output in inside:
            continue
        chain = chain_of(writer, step, where) if where(step) else "it is not wanted"
        if isinstance(chain, str):
            why[step.output] = chain
        else:
            found.append(chain)
            inside |= {inner.output for inner in chain.gathers}
    chosen: list[Chain] = []
    for chain in sorted(found, key=lambda chain: -sum(step.link_bytes for step in chain.gathers)):
        if reason := _clash(writer, chain, chosen):
            why |= {step.output: reason for step in chain.gathers}
        else:
            chosen.append(chain)
    return chosen, why


def _clash(writer: Writer, chain: Chain, chosen: list[Chain]) -> str:
    """Why a chain cannot be looped beside those chosen before, or nothing."""
    if any(chain.products & other.products for other in chosen):
        return "a product that reads it is looped over its other operand"
    needs = {id(one): [other for other in (*chosen, chain) if other is not one and one.needs(writer) & other.products]
             for one in (*chosen, chain)}  # fmt: skip
    pending, seen = list(needs[id(chain)]), set()
    while pending:  # all products of a chain are made at once, so chains must not need each other in a circle
        now = pending.pop()
        if now is chain:
            return "its products and those of another gather need each other"
        if id(now) not in seen:
            seen.add(id(now))
            pending += needs[id(now)]
    return ""


# ---- reduce-scatters --------------------------------------------------------------------------------------------


def _scattered(program: Program, how: How, where: Where) -> Program:
    writer = Writer(program, how)
    found = [s for s in program.steps if s.kind == "reduce_scatter" and where(s) and not why_not(writer, s)]
    if not found:
        return program
    for step in found:
        writer.planned[step.output] = Scattering(writer, step).write
    for step in program.steps:
        writer.keep(step)
    return writer.finished()
