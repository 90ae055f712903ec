"""What a compiler did otherwise than planned, in words, for one planned collective or several that became one.

    >>> difference(match)
    Difference(words=('all-reduce',), why='all_reduce and keep the own part, not reduce_scatter: sends twice as much')

`words` are few and fixed, for tests and pictures; `why` is the sentence for people. Every match that is not exactly as
planned has at least one word. Next file to read: `timing`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from mtfcore.compiling.collectives import Sent, total_link_bytes
from mtfcore.compiling.matching import Match, Planned
from mtfcore.counting.facts import Bytes, dtype_bits
from mtfcore.dtypes import long_name
from mtfcore.numbers import count, format_bytes

WORDS = {
    "combined": "several planned collectives travel in one instruction",
    "all-reduce": "an all-reduce does the work of another collective",
    "in phases": "one planned collective runs as several, along one axis after the other or in pieces",
    "padded": "parts are made whole tiles, so more bytes travel",
    "permutes": "a collective is taken apart into permutes",
    "turned": "another kind of collective gives the same result",
    "moved": "it runs more or less often, such as once before a loop instead of in every turn",
    "other type": "elements travel in another type",
    "gone": "no instruction is left of it",
    "added": "nothing of the kind is planned",
}


class Difference(NamedTuple):
    """Words of `WORDS`, none if all is as planned, and a sentence."""

    words: tuple[str, ...]
    why: str


def difference(match: Match) -> Difference:
    """How the compiled side of a match differs from the planned one."""
    if not match.compiled:
        return Difference(("gone",), "no instruction is left of it: its result is not needed, or another's serves")
    if not match.planned:
        (sent, *_) = match.compiled
        return Difference(("added",), f"the compiler added {_a(sent.kind)} over {sent.where}")
    found = [*_combined(match), *_phases(match)]
    for p in match.planned:
        carriers = _carriers(p, match)
        for look in (_kind, _size, _times, _dtype):
            found += [one for one in look(p, carriers) if one not in found]
    return Difference(tuple(dict.fromkeys(word for word, _ in found)), "; ".join(why for _, why in found))


def sent_bytes(match: Match) -> tuple[Bytes, Bytes]:
    """Bytes that one device sends in all: as planned, as compiled."""
    plan = sum((Fraction(p.times * p.link_bytes) for p in match.planned), Fraction(0))
    return int(plan) if plan.denominator == 1 else plan, total_link_bytes(match.compiled)


def _combined(match: Match) -> list[tuple[str, str]]:
    if len(match.planned) < 2:
        return []
    numbers = " and ".join(p.number for p in match.planned)
    return [("combined", f"steps {numbers} travel in one {match.compiled[0].kind}")]


def _phases(match: Match) -> list[tuple[str, str]]:
    main = [sent for sent in match.compiled if not _is_edge(sent, match)]
    if len(main) < 2 or len(match.planned) > 1:
        return []
    (p,) = match.planned
    if p.kind != "permute" and all(sent.kind == "permute" for sent in main):
        return []  # `_kind` says it
    return [("in phases", "runs as " + ", then ".join(f"{sent.kind} over {sent.where}" for sent in main))]


def _is_edge(sent: Sent, match: Match) -> bool:
    """A permute that only mends what padding shifted."""
    return sent.kind == "permute" and any(p.kind != "permute" for p in match.planned) and len({
        other.kind for other in match.compiled}) > 1  # fmt: skip


def _carriers(p: Planned, match: Match) -> list[Sent]:
    """The instructions that carry one planned collective, those that name it first."""
    named = [sent for sent in match.compiled if sent.step == p.number]
    return named or [sent for sent in match.compiled if not _is_edge(sent, match)] or match.compiled


def _kind(p: Planned, carriers: list[Sent]) -> list[tuple[str, str]]:
    kinds = {sent.kind for sent in carriers}
    if kinds == {p.kind} or (p.kind in kinds and len(kinds) == 1):
        return []
    if kinds == {"permute"}:
        return [("permutes", f"{p.kind} taken apart into {count(len(carriers), 'permute')}")]
    if kinds == {"all_reduce"} and p.kind == "reduce_scatter":
        why = "all_reduce and keep the own part, not reduce_scatter: sends twice as much"
        return [("all-reduce", why)]
    if kinds == {"all_reduce"} and p.kind == "all_gather":
        return [("all-reduce", "the own part set into zeros, then all_reduce, not all_gather: sends twice as much")]
    other = kinds - {p.kind}
    return [("turned", f"{' and '.join(sorted(other))}, not {p.kind}")] if other else []


def _size(p: Planned, carriers: list[Sent]) -> list[tuple[str, str]]:
    most = max((part for sent in carriers if sent.kind == p.kind for part in sent.parts), default=0)
    alone = len(carriers) == 1 and len(carriers[0].parts) == 1
    if not alone or most <= p.step.n_bytes:
        return []
    return [("padded", f"{format_bytes(most)} instead of {format_bytes(p.step.n_bytes)}, parts made whole tiles")]


def _times(p: Planned, carriers: list[Sent]) -> list[tuple[str, str]]:
    times = sum(sent.times for sent in carriers) if len({s.kind for s in carriers}) == 1 else carriers[0].times
    alike = {sent.times for sent in carriers}
    if p.times in alike or times == p.times:
        return []
    where = "moved out of the loop" if max(alike) < p.times else "not shared"
    return [("moved", f"{where}: runs {max(alike)} times instead of {p.times}")]


def _dtype(p: Planned, carriers: list[Sent]) -> list[tuple[str, str]]:
    bits = dtype_bits(long_name(p.step.dtype))
    other = {name for sent in carriers for name in sent.dtypes if dtype_bits(name) != bits}
    return [("other type", f"in {', '.join(sorted(other))} instead of {p.step.dtype}")] if other else []


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
