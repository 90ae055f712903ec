"""Why one layout takes less time than another, in words: what lies elsewhere, and which steps that costs.

    >>> why(found.best, found.found[1])
    'takes 18.3% longer: hidden in 2 parts, not whole; sends 4 KiB more, 68.3 ns: 4 KiB for einsum(…, v) (all-reduce)'

The two programs are compared tensor by tensor: what is computed and what is sent to make or to move each. Everything
is modelled. This is the last file of the search; what it compares is written by `mtfcore.planner`. Next file to
read: `chips`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from mtfcore.costs.search.candidate import Candidate
from mtfcore.numbers import format_bytes, format_flops, format_seconds
from mtfcore.steps import Program, Step
from mtfcore.traffic import link_bytes

MOST_PARTS = 3


@dataclass
class Part:
    """What one tensor costs on one device: FLOPs to make it, bytes sent to make or move it, by which collectives."""

    flops: float = 0.0
    sent: float = 0.0
    kinds: set[str] = field(default_factory=set)


def parts(program: Program) -> dict[str, Part]:
    """Costs by tensor, repeats multiplied; tensors of one label stand together."""
    found: dict[str, Part] = defaultdict(Part)
    for label, step, times in _labelled(program, 1):
        part = found[label]
        part.flops += step.flops * times
        if step.is_collective and step.group > 1:
            part.sent += float(link_bytes(step.kind, step.n_bytes, step.group)) * times
            part.kinds.add(step.kind.replace("_", "-"))
    return found


def _labelled(program: Program, times: int) -> Iterator[tuple[str, Step, int]]:
    for step in program.steps:
        if step.tensor >= 0:
            yield program.graph.label(step.tensor), step, times * step.times
        if step.body is not None:
            yield from _labelled(step.body, times * step.times)


def why(winner: Candidate, other: Candidate) -> str:
    """One sentence: how much longer the other takes, what it places differently, and what that costs."""
    if (winner.layout, winner.mesh) == (other.layout, other.mesh):
        return "is the winner itself"
    slower = _slower(winner.seconds.total, other.seconds.total)
    said = [_places(winner, other), *_costs(winner, other), _memory(winner, other)]
    return f"{slower}: {'; '.join(part for part in said if part)}"


def _slower(ours: float, theirs: float) -> str:
    if not ours:  # no product and no collective: by the model it takes no time
        return "takes longer" if theirs else "takes as long"
    more = theirs / ours - 1
    return f"takes {more:.1%} longer" if more > 5e-5 else "takes as long" if more > -5e-5 else f"is {-more:.1%} faster"


def _places(winner: Candidate, other: Candidate) -> str:
    """Dimensions that are cut into another number of parts, or lie along other axes."""
    ours, theirs = _cuts(winner), _cuts(other)
    dims = [dim for dim in dict.fromkeys((*theirs, *ours)) if ours.get(dim, 1) != theirs.get(dim, 1)]
    said = [f"{dim} {_in_parts(theirs.get(dim, 1))}, not {_in_parts(ours.get(dim, 1), short=True)}" for dim in dims]
    return ", ".join(said) or "the same parts along other axes"


def _cuts(one: Candidate) -> dict[str, int]:
    return {dim: math.prod(one.mesh[axis] for axis in axes) for dim, axes in one.layout.rules}


def _in_parts(n: int, short: bool = False) -> str:
    return "whole" if n == 1 else str(n) if short else f"in {n} parts"


def _costs(winner: Candidate, other: Candidate) -> Iterator[str]:
    """The tensors that make most of the difference, in what is sent and what is computed."""
    ours, theirs = parts(winner.program), parts(other.program)
    labels = list(dict.fromkeys((*theirs, *ours)))
    sent = {label: theirs.get(label, Part()).sent - ours.get(label, Part()).sent for label in labels}
    total = sum(sent.values())
    if abs(other.seconds.communicate - winner.seconds.communicate) > 1e-6 * winner.seconds.total:
        largest = sorted((label for label in labels if sent[label] * total > 0), key=lambda n: -abs(sent[n]))[
            :MOST_PARTS
        ]
        named = [f"{format_bytes(abs(sent[n]))} for {n}{_kinds(theirs, ours, n)}" for n in largest]
        spent = format_seconds(abs(other.seconds.communicate - winner.seconds.communicate))
        yield f"sends {format_bytes(abs(total))} {_more(total)}, {spent}: {', '.join(named)}"
    flops = sum(part.flops for part in theirs.values()) - sum(part.flops for part in ours.values())
    if abs(flops) > 1e-6 * sum(part.flops for part in ours.values()):
        yield f"computes {format_flops(abs(flops))} {_more(flops)}{_repeated(winner, other) if flops > 0 else ''}"


def _kinds(theirs: dict[str, Part], ours: dict[str, Part], label: str) -> str:
    kinds = sorted(theirs.get(label, Part()).kinds or ours.get(label, Part()).kinds)
    return f" ({' and '.join(kinds)})" if kinds else ""


def _more(difference: float) -> str:
    return "more" if difference > 0 else "less"


def _repeated(winner: Candidate, other: Candidate) -> str:
    """Work that several devices do alike."""
    ours, theirs = parts(winner.program), parts(other.program)
    grown = {label: part.flops - ours.get(label, Part()).flops for label, part in theirs.items()}
    worst = max(grown, key=lambda label: grown[label])
    return f", most of it the same work of {worst} on several devices"


def _memory(winner: Candidate, other: Candidate) -> str:
    """Memory, if it differs by more than a hundredth."""
    difference = other.memory.total - winner.memory.total
    if abs(difference) < 0.01 * winner.memory.total:
        return ""
    fits = "" if other.fits else f", {format_bytes(other.memory.total - other.limit)} more than a device has"
    return f"holds {format_bytes(abs(difference))} {_more(difference)}{fits}"
