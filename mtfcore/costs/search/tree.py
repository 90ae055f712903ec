"""Branch and bound over layouts: dimension by dimension, the most promising partial layout first.

A node places some dimensions of one mesh; its bound holds for every layout below it (`bounds`). The node of
least bound is opened next; a node that places all dimensions is planned for real. As soon as the least bound left is
no less than the best time found, the best is optimal: that is the proof. Stopped before that, the difference is the
gap. Next file to read: `space`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mtfcore.costs.search.bounds import Bounds
from mtfcore.costs.search.space import Space
from mtfcore.errors import sure
from mtfcore.mesh import Mesh
from mtfcore.sharding import Axes


@dataclass(frozen=True)
class Leaf:
    """One complete layout of one mesh."""

    mesh: Mesh
    places: Mapping[str, Axes]
    bound: float  # seconds it takes at the least
    node: tuple = ()
    branches: Branches | None = None

    def learn(self, seconds: Mapping[tuple[int, int], float]) -> None:
        """Tell its tree what each operation took in its plan."""
        sure(self.branches).bounds.learn(self.node, seconds)


class Branches:
    """The tree of one mesh: for each dimension its places, as masks, and which dimensions exclude each other."""

    def __init__(self, space: Space, mesh: Mesh, dims: Sequence[str], bounds: Bounds) -> None:
        self.space, self.mesh, self.dims, self.bounds = space, mesh, dims, bounds
        bit = {name: 1 << k for k, name in enumerate(mesh.names)}
        self.places = [[(sum(bit[a] for a in axes), axes) for axes in space.places(dim, mesh)] for dim in dims]
        self.apart = [[k for k, other in enumerate(dims) if other in space.neighbours(dim)] for dim in dims]
        self.helping = sum(bit[name] for name in space.named if name in bit)
        self.open = [0] * len(dims)
        for k, places in enumerate(self.places):
            for mask, _ in places:
                self.open[k] |= mask

    def masks(self, chosen: Sequence[tuple[int, Axes]]) -> tuple[list[int], list[int]]:
        """Axes surely on each dimension, and axes that may be, once the first dimensions are chosen."""
        least = [mask for mask, _ in chosen] + [0] * (len(self.dims) - len(chosen))
        most = least[:]
        for k in range(len(chosen), len(self.dims)):
            taken = 0
            for other in self.apart[k]:
                taken |= least[other]
            most[k] = self.open[k] & ~taken
        return least, most

    def bound(self, chosen: Sequence[tuple[int, Axes]]) -> float:
        """Least seconds of a node, by all that is known now."""
        return self.bounds.time_seen(chosen, *self.masks(chosen), self.helping)

    def below(self, chosen: tuple[tuple[int, Axes], ...]) -> Iterator[tuple[float, float, tuple]]:
        """Each legal choice for the next dimension: least seconds, least bytes of inputs, and the node."""
        k, taken = len(chosen), 0
        for other in self.apart[k]:
            taken |= chosen[other][0] if other < k else 0
        used = [axis for _, axes in chosen for axis in axes]
        for mask, axes in self.places[k]:
            if mask & taken or not self.space.is_first_of_its_kind([*used, *axes], self.mesh):
                continue
            node = (*chosen, (mask, axes))
            least, most = self.masks(node)
            yield self.bounds.time(least, most, self.helping), self.bounds.memory(most, self.helping), node


@dataclass
class Tree:
    """All meshes' trees together, opened from the least bound up."""

    branches: Sequence[Branches]
    most_bytes: float
    by_memory: bool = False  # least bytes of inputs first, instead of least time
    opened: int = 0
    too_big: int = 0  # nodes cut because inputs alone do not fit
    least_too_big: float = float("inf")
    heap: list = field(default_factory=list)
    ties: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        for branch in self.branches:
            self._push(branch, 0.0, ())

    def _push(self, branch: Branches, bound: float, node: tuple) -> None:
        heapq.heappush(self.heap, (bound, -len(node), next(self.ties), branch, node))

    @property
    def least(self) -> float:
        """No layout that has not been handed out takes less than this."""
        return self.heap[0][0] if self.heap else float("inf")

    def leaves(self, limit: Callable[[], float], is_time_up: Callable[[], bool]) -> Iterator[Leaf]:
        """Complete layouts in order of their bounds, until the bound reaches `limit()` or time is up."""
        while self.heap and self.least < limit() and not is_time_up():
            bound, _, _, branch, node = heapq.heappop(self.heap)
            if not self.by_memory and (known := branch.bound(node)) > bound * (1 + 1e-12):
                if known < limit():
                    self._push(branch, known, node)
                continue
            if len(node) == len(branch.dims):
                places = dict(zip(branch.dims, (axes for _, axes in node), strict=True))
                yield Leaf(branch.mesh, places, bound, node, branch)
                continue
            self.opened += 1
            for time_bound, n_bytes, child in branch.below(node):
                if n_bytes > self.most_bytes:
                    self.too_big += 1
                    self.least_too_big = min(self.least_too_big, n_bytes)
                elif (bound := n_bytes if self.by_memory else time_bound) < limit():
                    self._push(branch, bound, child)
