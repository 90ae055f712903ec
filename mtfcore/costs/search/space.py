"""What a layout search ranges over: meshes of so many devices, and for each the legal places of every dimension.

    >>> [str(mesh) for mesh in factorings(8)]
    ['all:8', 'rows:2 cols:4', 'rows:2 cols:2 planes:2']

A mesh is one way to write the number of devices as a product of one to three axes; names carry no meaning, so the same
sizes in another order are the same mesh, and layouts that differ by a renaming of equally large axes are one layout.
Where names do carry meaning (an input's `place`, a sharding written inside the function) nothing is collapsed for
those axes. A layout is legal where no tensor that it places has one axis twice and every size divides. Source: arXiv
1811.02084, sections 4 and 5. Next file to read: `scopes`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mtfcore.errors import sure
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.sharding import Axes, Sharding
from mtfcore.tensor import LAYOUT, Graph, Op

NAMES = {0: (), 1: ("all",), 2: ("rows", "cols"), 3: ("rows", "cols", "planes")}
MOST_AXES = 3


def factorings(devices: int, most_axes: int = MOST_AXES, ordered: bool = False) -> list[Mesh]:
    """Every mesh of so many devices: sizes from 2 up, smallest first; `ordered` keeps their orders apart."""
    if devices == 1:
        return [Mesh("all:1")]
    sizes = [found for n in range(1, most_axes + 1) for found in _products(devices, n)]
    if ordered:
        sizes = [order for found in sizes for order in sorted(set(itertools.permutations(found)))]
    return [Mesh(zip(NAMES[len(found)], found, strict=True)) for found in sizes]


def _products(number: int, n: int, least: int = 2) -> Iterator[tuple[int, ...]]:
    """The ways to write a number as n factors in rising order."""
    if n == 1:
        if number >= least:
            yield (number,)
        return
    for first in range(least, math.isqrt(number) + 1):
        if number % first == 0:
            yield from ((first, *rest) for rest in _products(number // first, n - 1, first))


def graphs(graph: Graph) -> Iterator[Graph]:
    """A graph and those of the loops inside it."""
    yield graph
    for op in graph.ops:
        if "body" in op.params:
            yield from graphs(op.params["body"])


def by_layout(op: Op) -> bool:
    """Whether the layout places the result; random numbers it places even where nobody asks."""
    return op.out == LAYOUT or (op.kind == "random" and op.out is None)


@dataclass(frozen=True)
class Space:
    """The legal layouts of a function: which dimensions a layout can place, and which stand in one tensor."""

    sizes: Mapping[str, tuple[int, ...]]  # dimension → the sizes it has in tensors that a layout places
    together: frozenset[frozenset[str]]  # pairs of dimensions that some placed tensor has both of
    named: frozenset[str]  # axes whose names the function or `place` uses

    @classmethod
    def of(cls, graph: Graph, place: Mapping[str, object] | None = None) -> Space:
        """Read off a graph: a layout places inputs that `place` does not, and results that are wanted by name only."""
        place = place or {}
        tensors = [graph.ops[n].dims for name, n in graph.inputs.items() if name not in place]
        tensors += [op.dims for part in graphs(graph) for op in part.ops if by_layout(op)]
        sizes: dict[str, set[int]] = {}
        for dim in itertools.chain.from_iterable(tensors):
            sizes.setdefault(dim.name, set()).add(sure(dim.size))
        pairs = {frozenset(pair) for dims in tensors for pair in itertools.combinations([d.name for d in dims], 2)}
        return cls({name: tuple(sorted(of)) for name, of in sizes.items()}, frozenset(pairs), _named(graph, place))

    @cached_property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    def meshes(self, devices: int, most_axes: int = MOST_AXES) -> list[Mesh]:
        """Every factoring; where axes are named in the function, in every order, and only those that have them."""
        meshes = factorings(devices, most_axes, ordered=bool(self.named))
        return [mesh for mesh in meshes if self.named <= set(mesh.names)]

    def places(self, dim: str, mesh: Mesh) -> list[Axes]:
        """Where one dimension may lie: nowhere, or on axes, outermost first, that divide each of its sizes."""
        axes = [(name, size) for name, size in mesh.axes if size > 1]
        orders = [order for n in range(len(axes) + 1) for order in itertools.permutations(axes, n)]
        return [
            tuple(name for name, _ in order)
            for order in orders
            if all(size % math.prod(part for _, part in order) == 0 for size in self.sizes[dim])
        ]

    def neighbours(self, dim: str) -> frozenset[str]:
        """The dimensions that may not share an axis with this one."""
        return frozenset().union(*(pair for pair in self.together if dim in pair)) - {dim}

    def is_first_of_its_kind(self, used: Iterable[str], mesh: Mesh) -> bool:
        """Whether axes are taken into use in order among those of one size: one of all renamings of equal axes."""
        seen: list[str] = []
        for axis in used:
            if axis not in seen:
                seen.append(axis)
        for size in set(mesh.shape.values()):
            alike = [name for name, part in mesh.axes if part == size and name not in self.named]
            taken = [axis for axis in seen if axis in alike]
            if taken != alike[: len(taken)]:
                return False
        return True

    def layouts(self, mesh: Mesh) -> Iterator[dict[str, Axes]]:
        """Every legal layout of a mesh, one of each renaming, one by one: for tests and small cases."""
        yield from self._extend({}, mesh, [(dim, self.places(dim, mesh), self.neighbours(dim)) for dim in self.dims])

    def _extend(self, chosen: dict[str, Axes], mesh: Mesh, left: list) -> Iterator[dict[str, Axes]]:
        if not left:
            yield dict(chosen)
            return
        (dim, places, apart), *rest = left
        taken = {axis for other in apart for axis in chosen.get(other, ())}
        for axes in places:
            chosen[dim] = axes
            used = itertools.chain.from_iterable(chosen.values())
            if taken.isdisjoint(axes) and self.is_first_of_its_kind(used, mesh):
                yield from self._extend(chosen, mesh, rest)
        chosen.pop(dim, None)


def as_layout(places: Mapping[str, Axes]) -> Layout:
    """A layout of the dimensions that lie on something."""
    return Layout([(dim, axes) for dim, axes in places.items() if axes])


def _named(graph: Graph, place: Mapping[str, Any]) -> frozenset[str]:
    """Axes that are meant by their names: in `place`, in exact shardings, in `at=`."""
    given = [s if isinstance(s, Sharding) else Sharding(graph.ops[graph.inputs[n]].dims, s) for n, s in place.items()]
    for part in graphs(graph):
        for op in part.ops:
            given += [s for s in (op.out, *(op.params.get("at") or ())) if isinstance(s, Sharding)]
    return frozenset(axis for s in given for axis in (*s.used(), *s.partial))
