"""What a counter reports: collectives, exact bytes and FLOPs, as small frozen records.

The idea: three readers (jaxprs, StableHLO, compiled HLO text) walk three languages and all end here, so their
answers can be compared line by line. Byte counts are exact: whole numbers, or fractions where a group does not
divide what a device holds. Nothing here knows the planner; that is the point, the counters check it.

    >>> sent_bytes("all_reduce", n_bytes=1024, group_size=4)      # a ring: reduce-scatter, then all-gather
    1536
    >>> Collective("all_gather", ("y",), 4, n_bytes=256, times=10).link_bytes
    768

Source of the formulas: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), appendix A.1, with the exact
(g-1)/g instead of its large-g limit. Next file to read: jaxprs.py.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod

Bytes = int | Fraction

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "broadcast")


def sent_bytes(kind: str, n_bytes: Bytes, group_size: int) -> Bytes:
    """Bytes that one device of a group sends once; `n_bytes` is what it holds before. A group of one sends nothing.

    `broadcast` (one device's block to all, as a pipeline along the group) is rare; a device passes on what it gets.
    """
    n, g = Fraction(n_bytes), group_size
    if kind not in KINDS:
        raise ValueError(f"unknown kind of collective {kind!r}; known: {', '.join(KINDS)}")
    if g < 1:
        raise ValueError(f"a group of {g} devices: expected at least 1")
    if g == 1:
        return 0
    share = Fraction(g - 1, g)
    factors = {"all_gather": Fraction(g - 1), "reduce_scatter": share, "all_reduce": 2 * share, "all_to_all": share}
    return plain(n * factors.get(kind, Fraction(1)))


def plain(number: Bytes) -> Bytes:
    """The same number as an `int` where it is whole."""
    return int(number) if Fraction(number).denominator == 1 else number


def dtype_bits(name: str) -> int:
    """Bits of an element, from its name in any of the three languages: bfloat16, bf16, f8E4M3FN, s4, pred, i1."""
    if name in ("bool", "pred", "i1"):
        return 8
    if "complex<" in name:
        return 2 * dtype_bits(name[name.index("<") + 1 : -1])
    digits = re.search(r"\d+", name)
    if digits is None:
        raise ValueError(f"cannot tell the size of an element of type {name!r}: expected a name such as bf16 or int32")
    return int(digits.group())


def array_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of one array; elements below 8 bits are packed."""
    return (prod(shape) * dtype_bits(dtype) + 7) // 8


def linked_devices(pairs: Iterable[Sequence[int]]) -> int:
    """The most devices that a permutation's (source, target) pairs tie together; 1 if every pair is an identity."""
    group: dict[int, set[int]] = {}
    for source, target in pairs:
        joined = group.get(source, {source}) | group.get(target, {target})
        group.update(dict.fromkeys(joined, joined))
    return max((len(g) for g in group.values()), default=1)


def groups_along(sizes: Mapping[str, int], axes: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The devices of a mesh, outermost axis first, in groups that differ only along these axes."""
    strides = {name: prod(list(sizes.values())[place + 1 :]) for place, name in enumerate(sizes)}

    def devices(names: Iterable[str]) -> list[int]:
        places = product(*(range(0, sizes[name] * strides[name], strides[name]) for name in names))
        return [sum(place) for place in places]

    first = devices(name for name in sizes if name not in axes)
    return tuple(tuple(one + other for other in devices(axes)) for one in first)


@dataclass(frozen=True)
class Collective:
    """One communicating operation of one array, as one device sees it."""

    kind: str
    axes: tuple = ()  # mesh axes; empty where the language has forgotten their names
    group_size: int = 1
    n_bytes: Bytes = 0  # what one device holds before
    times: int = 1  # how often it runs: the product of the loops around it
    dtype: str = ""
    where: str = ""
    groups: tuple[tuple[int, ...], ...] = field(default=(), compare=False, repr=False)  # of a permute: (from, to)

    @property
    def link_bytes(self) -> Bytes:
        """Bytes sent by one device each time it runs."""
        return sent_bytes(self.kind, self.n_bytes, self.group_size)

    def __str__(self) -> str:
        axes = f" over {' '.join(map(str, self.axes))}" if self.axes else ""
        return f"{self.times} x {self.kind}{axes} in groups of {self.group_size}: {self.link_bytes:,} B sent each"


@dataclass(frozen=True)
class Counts:
    """What a program does: its communication, its multiply-adds, and what the counter could not know.

    `flops` are those of dot products and convolutions, `elementwise_flops` one for each element that an arithmetic
    function gives or a reduction takes (None: not counted in this language). Both belong to `scope`. Where a program
    has a shard_map, the work outside of it, which is of the whole problem, is kept apart in the two `outside_…`.
    Groups of one and permutes that move nothing cost nothing; they are in `free`, not in `collectives`.
    """

    collectives: tuple[Collective, ...] = ()
    free: tuple[Collective, ...] = ()
    flops: int = 0
    elementwise_flops: int | None = 0
    outside_flops: int = 0
    outside_elementwise_flops: int = 0
    scope: str = "whole problem"  # or "per device"
    language: str = "jaxpr"  # or "stablehlo" or "hlo text"
    origin: str = "counted"  # "compiled" for a compiler's text
    notes: tuple[str, ...] = field(default=())

    @property
    def link_bytes(self) -> Bytes:
        """Bytes sent by one device in all, loops multiplied."""
        return plain(sum((c.times * c.link_bytes for c in self.collectives), Fraction(0)))

    def by_kind(self) -> dict[str, Bytes]:
        """Bytes sent by one device, for each kind of collective."""
        return _sums((c.kind, c) for c in self.collectives)

    def by_axes(self) -> dict[tuple, Bytes]:
        """Bytes sent by one device, for each set of mesh axes that talk together."""
        return _sums((c.axes, c) for c in self.collectives)

    def traffic(self) -> Counter:
        """(kind, group size, bytes held before) → times: what two counters, or a plan, must agree on."""
        total: Counter = Counter()
        for c in self.collectives:
            total[c.kind, c.group_size, c.n_bytes] += c.times
        return total

    def repeated(self, times: int) -> "Counts":
        """The same work `times` times over."""
        if times == 0:
            return replace(self, collectives=(), free=(), flops=0, elementwise_flops=0, outside_flops=0,
                           outside_elementwise_flops=0)  # fmt: skip
        longer = [tuple(replace(c, times=c.times * times) for c in part) for part in (self.collectives, self.free)]
        work = {name: getattr(self, name) * times for name in _WORK}
        return replace(self, collectives=longer[0], free=longer[1], **work)

    def weight(self) -> tuple:
        """What makes one branch dearer than another: bytes first, then FLOPs."""
        elementwise = (self.elementwise_flops or 0) + self.outside_elementwise_flops
        return (self.link_bytes, self.flops + self.outside_flops, elementwise)

    def __str__(self) -> str:
        from mtfcore.counting.show import text_table

        return text_table(self)

    def _repr_html_(self) -> str:
        from mtfcore.counting.show import html_table

        return html_table(self)


_WORK = ("flops", "elementwise_flops", "outside_flops", "outside_elementwise_flops")


def _sums(keyed: Iterator[tuple]) -> dict:
    total: dict = {}
    for key, c in keyed:
        total[key] = plain(total.get(key, 0) + Fraction(c.times * c.link_bytes))
    return total


def together(parts: Iterable[Counts]) -> Counts:
    """One after the other: everything adds, notes are kept once, one shard_map makes the whole `per device`."""
    parts = list(parts)
    work = {name: sum(getattr(p, name) for p in parts) for name in _WORK}
    return Counts(
        collectives=tuple(c for p in parts for c in p.collectives),
        free=tuple(c for p in parts for c in p.free),
        scope="per device" if any(p.scope == "per device" for p in parts) else "whole problem",
        notes=tuple(dict.fromkeys(n for p in parts for n in p.notes)),
        **work,
    )


def dearest(branches: Sequence[Counts], where: str) -> Counts:
    """One of several branches runs: the dearest stands for all, with a note unless they cost the same."""
    chosen = max(range(len(branches)), key=lambda i: branches[i].weight())
    if len({b.weight() for b in branches}) == 1:
        return branches[chosen]
    note = f"{where}: one of {len(branches)} branches runs; the dearest (number {chosen}) is counted"
    return replace(branches[chosen], notes=(*branches[chosen].notes, note))


def one(collective: Collective) -> Counts:
    """A single collective, sorted into those that cost something and those that are free."""
    costly = collective.link_bytes > 0
    return Counts(collectives=(collective,) if costly else (), free=() if costly else (collective,))


def work(flops: int, elementwise: int, inside: bool) -> Counts:
    """Arithmetic inside a shard_map (local shapes) or outside of one (global shapes)."""
    if inside:
        return Counts(flops=flops, elementwise_flops=elementwise)
    return Counts(outside_flops=flops, outside_elementwise_flops=elementwise)


def settled(counts: Counts, language: str) -> Counts:
    """The last word: without any shard_map, the work outside is all there is; with one, it is noted apart."""
    if counts.scope == "whole problem":
        return replace(counts, flops=counts.outside_flops, elementwise_flops=counts.outside_elementwise_flops,
                       outside_flops=0, outside_elementwise_flops=0, language=language)  # fmt: skip
    notes = counts.notes
    if counts.outside_flops or counts.outside_elementwise_flops:
        notes += (f"outside of shard_map, not in the totals, for the whole problem: {counts.outside_flops:,} FLOPs and "
                  f"{counts.outside_elementwise_flops:,} elementwise",)  # fmt: skip
    return replace(counts, notes=notes, language=language)
