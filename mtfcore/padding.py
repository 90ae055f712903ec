"""Sizes that do not divide: padded on request, with a mask that keeps sums, softmax and losses right.

    w = mtf.pad_to(w, "words", 8, into="vocab")             # words:50 → vocab:56, zeros behind
    real = mtf.valid("vocab", 50, like=w)                   # bool[vocab], true for the first 50
    p = mtf.softmax(mtf.einsum(x, w, out="batch vocab"), "vocab", mask=real)

Nothing is ever padded by itself. The price is shown: `mtf.padding_share(program)`, and under the program's table.
That sizes must divide is a limit of the first paper's code (arXiv 1811.02084, section 5). Next file to read: `loops`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mtfcore.dims import Dim, parse_dims
from mtfcore.elementwise import less
from mtfcore.errors import LayoutError, expect, nearest, refuse, sure
from mtfcore.lookups import index
from mtfcore.notation import as_size, is_name
from mtfcore.ops import apply, expect_tensor
from mtfcore.reshapes import pad
from mtfcore.rules.reshaping import groups
from mtfcore.steps import Program, Step, held_bytes
from mtfcore.tensor import Graph, Tensor


def pad_to(
    t: Tensor, dim: str, parts: int, into: str | None = None, value: float = 0.0, out: str | None = None
) -> Tensor:
    """Filled up with `value` to the next size that divides into `parts`; `into` gives the longer dimension a name.

    A name of its own is the way to lay out only what is padded: rules about `into` do not touch the original.

    `t`: a tensor; `dim`: one of its dimensions. `out`: its dimensions, and where it lies if that is said exactly
    ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for `parts` below 1. What padding costs: `mtf.padding_share`.

        >>> mtf.pad_to(x, "io", 3)
        pad(x)[batch:8, io:6]
    """
    size = expect_tensor(t).size(dim)
    if (parts_ := as_size(parts)) is None:
        raise LayoutError(f"pad_to of {t!r}: parts is {parts!r:.200}; expected a whole number of at least 1")
    longer = -(-size // parts_) * parts_
    if into is not None and (not isinstance(into, str) or into != dim):
        t, dim = _renamed(t, dim, into), into
    return _marked(pad(t, dim, longer, value, out), dim, size, longer)


def _renamed(t: Tensor, old: str, new: str) -> Tensor:
    """Under the new name already, wherever it lies: what the layout says of that name counts once it is longer."""
    faults = [] if is_name(new) else [f"into is {new!r:.200}; expected one new name, such as 'vocab'"]
    refuse(faults, f"pad_to of {t!r}")
    refuse([f"{new!r} is one of its dimensions already"] if new in t.names else [], f"pad_to of {t!r}")
    dims = tuple(Dim(new, d.size) if d.name == old else d for d in t.dims)
    return apply("reshape", [t], dims, t.dtype, None, cut=groups(t.dims, dims))


def _marked(t: Tensor, dim: str, real: int, size: int) -> Tensor:
    """Note in the graph how many of the elements are real."""
    if real < size:
        t.graph.padded[dim] = min(real, t.graph.padded.get(dim, real))
    return t


def valid(dim: str | Dim, real: int, like: Tensor) -> Tensor:
    """True for the first `real` elements of a dimension, False for its padding: a mask for sums, softmax and losses.

    `dim`: a dimension, with its size if `like` lacks it; `like`: any tensor of the function. The result is bool[dim].

    Raises `LayoutError` for a `real` that is not 1 to the size.

        >>> mtf.valid("io", 3, x)
        less(…, …)[io:4]
    """
    (named,) = parse_dims([dim])
    known = {d.name: d for d in expect_tensor(like).dims}
    found = known.get(named.name, named) if named.size is None else named
    found = like.graph.size(found)
    if found.size is None:
        what = f"valid: the size of {named.name!r} is not known; write e.g. valid('{named.name}:56', 50, like)"
        raise LayoutError(f"{what}; {nearest(named.name, known)}")
    number = as_size(real)
    if number is None or number > found.size:
        raise LayoutError(f"valid: real is {real!r:.200}; expected 1 to {found.size}, the size of {found.name}")
    return _marked(less(index(found, like), number), found.name, number, found.size)


# ---- the price --------------------------------------------------------------------------------------------------


class PaddingShare(NamedTuple):
    """Which part of a program's work and memory is padding (modelled)."""

    real: dict[str, tuple[int, int]]  # dimension → (real size, padded size)
    flops: float  # share of one device's FLOPs
    memory: float  # share of the bytes of inputs, outputs and every value between

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {real} of {size}" for name, (real, size) in self.real.items())
        if not sizes:
            return "nothing is padded"
        return f"padding ({sizes}): {self.flops:.1%} of the FLOPs and {self.memory:.1%} of the bytes held, modelled"


def padding_share(program: Program, real: Mapping[str, int] | None = None) -> PaddingShare:
    """How much of a program's FLOPs and memory goes into padding.

    Real sizes are those that `pad_to` and `valid` told; `real={"heads": 48}` tells of inputs that came padded. Padding
    is followed by the name of its dimension: where that is merged with another, its share is no longer seen.

    Raises `LayoutError` for names that no tensor has and numbers beyond their size.
    """
    expect(program, Program, "a program made by mtf.plan")
    expect({} if real is None else real, Mapping, 'real sizes by name, such as {"heads": 48}')
    graphs = list(_graphs(program.graph))
    every = [(dim.name, sure(dim.size)) for graph in graphs for op in graph.ops for dim in op.dims]
    filled = {name: number for graph in graphs for name, number in graph.padded.items()} | dict(real or {})
    refuse(_faults(filled, dict(every)), f"padding_share of {program.name}")
    longest = {name: max(size for other, size in every if other == name) for name in filled}
    flops, memory = _Total(filled, longest), _Total(filled, longest)
    for step in program.walk():
        flops.add(step.flops * step.times, _names(step))
    for part in _programs(program):
        for value, s in part.shardings.items():
            memory.add(held_bytes(s, part.mesh, part.dtypes[value]), {d.name: sure(d.size) for d in s.dims})
    return PaddingShare({name: (filled[name], longest[name]) for name in filled}, flops.share(), memory.share())


def _faults(filled: Mapping[str, object], sizes: Mapping[str, int]) -> list[str]:
    unknown = [name for name in filled if name not in sizes]
    wrong = [n for n in filled if n in sizes and not 1 <= (as_size(filled[n]) or 0) <= sizes[n]]
    return [f"real names {name!r}, which no tensor has; {nearest(name, sizes)}" for name in unknown] + [
        f"{name} has {sizes[name]} elements, so 1 to {sizes[name]} are real, not {filled[name]!r:.200}"
        for name in wrong
    ]


class _Total:
    """A sum of which the part that padding takes is known."""

    def __init__(self, real: Mapping[str, int], size: Mapping[str, int]) -> None:
        self.real, self.size, self.all, self.needed = real, size, 0.0, 0.0

    def add(self, amount: float, dims: Mapping[str, int]) -> None:
        padded = [name for name in self.real if dims.get(name) == self.size[name]]  # what is shorter has no padding
        self.all += amount
        self.needed += amount * math.prod(self.real[name] / self.size[name] for name in padded)

    def share(self) -> float:
        return 1 - self.needed / self.all if self.all else 0.0


def _names(step: Step) -> dict[str, int]:
    return {dim.name: sure(dim.size) for s in (*step.before, step.after) for dim in s.dims}


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for op in graph.ops:
        if isinstance(body := op.params.get("body"), Graph):
            yield from _graphs(body)


def _programs(program: Program) -> Iterator[Program]:
    yield program
    for step in program.steps:
        if step.body is not None:
            yield from _programs(step.body)
