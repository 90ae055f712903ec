"""Which compiled collective carries which planned one.

    >>> [match] = matches(planned(prog), report.collectives)
    >>> match.planned[0].step.label(), match.compiled[0].kind
    ('reduce_scatter over x into F', 'all_reduce')

Every step has its number in the names of what is lowered from it, and a compiler mostly keeps names: those are matched
first. Where it wrote an instruction anew the name is gone, and what is sent along the same axes, as many bytes and as
often, is the same data. What fits nothing stands alone: planned and gone, or added. Next file to read: `differences`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mtfcore.compiling.collectives import Sent
from mtfcore.counting.facts import Bytes
from mtfcore.mesh import Mesh
from mtfcore.steps import Program, Step

PADDED = 2.0  # parts that are made whole tiles grow by less than this: 36 rows become 48


@dataclass(frozen=True, eq=False)
class Planned:
    """One collective of the plan: its number in the program's table, the step, how often it runs."""

    number: str
    step: Step
    times: int
    axes: tuple[str, ...]  # in the mesh's order

    @property
    def kind(self) -> str:
        """The kind that a compiler knows: a halo exchange is a permute to it."""
        return "permute" if self.step.kind == "halo_exchange" else self.step.kind

    @property
    def link_bytes(self) -> Bytes:
        """Bytes that one device sends each time."""
        return self.step.link_bytes


@dataclass(eq=False)
class Match:
    """Planned collectives and the compiled ones that carry them; one side may be empty."""

    planned: list[Planned] = field(default_factory=list)
    compiled: list[Sent] = field(default_factory=list)


def planned(program: Program, mesh: Mesh | None = None, prefix: str = "", times: int = 1) -> Iterator[Planned]:
    """Every collective of a program that sends something, in order, numbered as in its table."""
    mesh = mesh or program.mesh
    for number, step in enumerate(program.steps):
        if step.body is not None:
            yield from planned(step.body, mesh, f"{prefix}{number}.", times * step.times)
        elif step.is_collective and step.group > 1 and step.link_bytes:
            axes = tuple(name for name in mesh.names if name in step.axes)
            yield Planned(f"{prefix}{number}", step, times * step.times, axes)


def matches(plan: Iterable[Planned], compiled: Sequence[Sent]) -> list[Match]:
    """The plan in its order, each with what carries it; then what was added."""
    pairing = _Pairing(list(plan), list(compiled))
    pairing.by_name()
    for alike in (_same, _other_times, _padded):
        pairing.by_size(alike)
    pairing.edges()
    return pairing.found()


class _Pairing:
    """Links between the two sides, found in several passes."""

    def __init__(self, plan: list[Planned], compiled: list[Sent]) -> None:
        self.plan, self.compiled = plan, compiled
        self.links: list[tuple[Planned, Sent]] = []
        self.open: list[tuple[Sent, int]] = []  # arrays that nothing is known of, with their bytes

    def by_name(self) -> None:
        numbers = {p.number: p for p in self.plan}
        for sent in self.compiled:
            named = numbers.get(sent.step)
            rest = list(sent.parts)
            if named and set(sent.axes) <= set(named.axes):
                self.links.append((named, sent))
                rest = _without(rest, named.step.n_bytes) if len(rest) > 1 else []
            self.open += [(sent, n_bytes) for n_bytes in rest]

    def by_size(self, alike: Callable[[Planned, Sent, int], bool]) -> None:
        left = []
        for sent, n_bytes in self.open:
            linked = {id(p) for p, _ in self.links}
            fits = [p for p in self.plan if id(p) not in linked and alike(p, sent, n_bytes)]
            if fits:
                self.links.append((min(fits, key=lambda p: _unlike(p, sent, n_bytes)), sent))
            else:
                left.append((sent, n_bytes))
        self.open = left

    def edges(self) -> None:
        """A permute beside a padded reduce-scatter moves what the padding shifted; or it is a piece of what is left."""
        linked = {id(p) for p, _ in self.links}
        padded = [p for p, sent in self.links if _is_padded(p, sent)]
        left = [p for p in self.plan if id(p) not in linked]
        rest = []
        for sent, n_bytes in self.open:
            near = [p for p in (*padded, *left) if p.axes and set(sent.axes) <= set(p.axes)]
            fits = [p for p in near if p.times == sent.times or p in left] if sent.kind == "permute" else []
            if fits:
                self.links.append((fits[0], sent))
            else:
                rest.append((sent, n_bytes))
        self.open = rest

    def found(self) -> list[Match]:
        """Everything that is linked, directly or through another, as one match."""
        of: dict[int, Match] = {}
        for p in self.plan:
            _join(of, p, [sent for other, sent in self.links if other is p])
        for sent in self.compiled:
            _join(of, sent, [p for p, other in self.links if other is sent])
        result = list({id(of[id(one)]): of[id(one)] for one in (*self.plan, *self.compiled)}.values())
        for match in result:
            match.planned = [p for p in self.plan if of[id(p)] is match]
            match.compiled = [sent for sent in self.compiled if of[id(sent)] is match]
        return result


def _join(of: dict[int, Match], one: object, others: Sequence[object]) -> None:
    group = [of[id(other)] for other in (one, *others) if id(other) in of]
    match = group[0] if group else Match()
    for key, old in list(of.items()):
        if any(old is joined for joined in group):
            of[key] = match
    of.update({id(other): match for other in (one, *others)})


def _unlike(p: Planned, sent: Sent, n_bytes: int) -> tuple[bool, int]:
    return p.kind != sent.kind, abs(n_bytes - p.step.n_bytes)


def _same(p: Planned, sent: Sent, n_bytes: int) -> bool:
    return p.axes == sent.axes and p.times == sent.times and p.step.n_bytes == n_bytes


def _other_times(p: Planned, sent: Sent, n_bytes: int) -> bool:
    return p.axes == sent.axes and p.kind == sent.kind and p.step.n_bytes == n_bytes


def _padded(p: Planned, sent: Sent, n_bytes: int) -> bool:
    same = p.axes == sent.axes and p.times == sent.times and p.kind == sent.kind
    return same and p.step.n_bytes < n_bytes <= PADDED * p.step.n_bytes


def _is_padded(p: Planned, sent: Sent) -> bool:
    return p.kind == sent.kind and any(p.step.n_bytes < part <= PADDED * p.step.n_bytes for part in sent.parts)


def _without(parts: list[int], one: int) -> list[int]:
    place = parts.index(one) if one in parts else 0
    return parts[:place] + parts[place + 1 :]
