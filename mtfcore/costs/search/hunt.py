"""One layout search from start to end: plan the most promising layouts, keep those that fit and are quickest.

    Hunt(problem, meshes, top=5, seconds=60).result()          # what `mtf.search_layout` calls

The tree hands out complete layouts in the order of their bounds; each is planned, its time taken, and what its
operations took is told to the bounds. The hunt ends when nothing left can be better, or time is up. Next file to read:
`tree`.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.costs.search.bounds import Bounds
from mtfcore.costs.search.problem import Problem
from mtfcore.costs.search.result import Search
from mtfcore.costs.search.space import as_layout
from mtfcore.costs.search.times import time_by_operation, time_of
from mtfcore.costs.search.tree import Branches, Leaf, Tree
from mtfcore.costs.search.walk import Walk
from mtfcore.costs.search.work import Work
from mtfcore.errors import LayoutError
from mtfcore.mesh import Mesh
from mtfcore.numbers import format_bytes

MOST_TRIED = 300  # layouts planned to find what comes closest, where nothing fits
PATIENCE = 4  # times as long as asked for until a first layout that fits is given up
SAME = 1e-9  # times closer than this are one time: only the order of additions differs
ALIKE = (1e-3, 1e-2)  # a layout as near as this in time and memory to a better one is not shown as a runner-up
FURTHER = 50  # layouts planned for the sake of runners-up, once the best is proved


@dataclass
class Hunt:
    """One search: the tree, the plans kept, and the best so far."""

    problem: Problem
    meshes: list[Mesh]
    top: int
    seconds: float
    started: float = field(default_factory=time.perf_counter)
    best: list[tuple[float, float, int, str, Leaf]] = field(default_factory=list)  # time, bytes, rules, text
    closest: tuple[float, Leaf] | None = None  # fewest bytes of those that do not fit
    planned: int = 0
    unfit: int = 0
    broken: int = 0  # layouts whose bound was too high
    ties: int = 0
    refused: LayoutError | None = None  # why the planner refused a layout of the space, the last time
    proved_after: int = 0  # layouts planned until the best was proved

    def tree(self, by_memory: bool = False) -> Tree:
        problem = self.problem
        work = Work.of(problem.graph, problem.place)
        dims = sorted(problem.space.dims, key=lambda dim: (-_weight(dim, work), dim))
        branches = [
            Branches(problem.space, mesh, dims, Bounds(mesh, dims, work, problem.rates)) for mesh in self.meshes
        ]
        return Tree(branches, float("inf") if by_memory else problem.memory, by_memory)

    def result(self) -> Search:
        tree, walks = self.tree(), {mesh: Walk(self.problem.graph, mesh, self.problem.place) for mesh in self.meshes}
        for leaf in tree.leaves(self.limit, lambda: self.is_done(tree.least)):
            self.weigh(leaf, walks[leaf.mesh])
        if not self.best:
            raise self.nothing_fits(walks, is_certain=not tree.heap)
        found = [self.problem.candidate(leaf.mesh, as_layout(leaf.places)) for *_, leaf in self.best]
        least = 0.0 if self.broken else min(tree.least, self.best[0][0])
        return Search(
            self.problem, tuple(self.meshes), tuple(found), least, self.planned, tree.opened, self.unfit + tree.too_big,
            self.ties, tree.least >= self.limit() or not tree.heap,
        )  # fmt: skip

    def is_time_up(self) -> bool:
        passed = time.perf_counter() - self.started
        return passed > (self.seconds if self.best else PATIENCE * self.seconds + 10)

    def limit(self) -> float:
        """Layouts that must take this long are of no interest."""
        return self.best[-1][0] if len(self.best) == self.top else math.inf

    def is_done(self, least: float) -> bool:
        """Whether time is up, or the best is proved and enough has been planned for runners-up."""
        if self.best and least >= self.best[0][0]:
            self.proved_after = self.proved_after or self.planned
            return self.planned >= self.proved_after + FURTHER or self.is_time_up()
        return self.is_time_up()

    def weigh(self, leaf: Leaf, walk: Walk) -> None:
        """Plan one layout and keep it if it is among the best that fit."""
        layout = as_layout(leaf.places)
        try:
            program = walk.program(layout)
        except LayoutError as error:  # what only a plan can tell: pins that do not fit, pieces that do not divide
            self.refused = error
            return
        self.planned += 1
        seconds = sum(time_of(program, self.problem.rates))
        self.broken += seconds < leaf.bound * (1 - SAME)
        leaf.learn(time_by_operation(program, self.problem.rates, walk.asked))
        if seconds >= self.limit() * (1 + SAME):
            return
        n_bytes = peak_memory(program).total
        if n_bytes > self.problem.memory:
            self.unfit += 1
            self.closest = min(self.closest or (n_bytes, leaf), (n_bytes, leaf), key=lambda pair: pair[0])
            return
        self.keep((seconds, n_bytes, sum(map(len, leaf.places.values())) + len(leaf.mesh.axes), str(layout), leaf))

    def keep(self, entry: tuple[float, float, int, str, Leaf]) -> None:
        """Of layouts alike in time and memory the quickest stands for all; of equal ones the plainest."""
        for place, other in enumerate(self.best):
            near = (abs(a - b) / max(a, b, 1e-300) for a, b in zip(other[:2], entry[:2], strict=True))
            if all(far <= alike for far, alike in zip(near, ALIKE, strict=True)):
                self.ties += 1
                equal = abs(other[0] - entry[0]) <= SAME * other[0]
                better = min(other, entry, key=lambda one: one[1:4] if equal else one[:4])
                self.best[place] = better
                self.best.sort(key=lambda one: one[:4])
                return
        self.best = sorted([*self.best, entry], key=lambda one: one[:4])[: self.top]

    def nothing_fits(self, walks: Mapping[Mesh, Walk], is_certain: bool) -> LayoutError:
        """The layout found that needs least memory, and by how much it is too much."""
        name, room = f"search_layout of {self.problem.graph.name} on {self.problem.slice}", self.problem.memory
        tree, started = self.tree(by_memory=True), self.planned
        for leaf in tree.leaves(lambda: self.closest[0] if self.closest else math.inf, lambda: False):
            self.weigh(leaf, walks[leaf.mesh])
            if self.planned - started == MOST_TRIED:
                break
        if self.closest is None:
            return self.refused or LayoutError(f"{name}: no legal layout")
        n_bytes, leaf = self.closest
        best = self.problem.candidate(leaf.mesh, as_layout(leaf.places))
        said = "nothing fits" if is_certain else f"found none that fits in {PATIENCE} x {self.seconds} s + 10 s,"
        return LayoutError(
            f"{name}: {said} in {format_bytes(room)} a device; closest is layout '{best.layout}' on mesh '{best.mesh}' "
            f"with {format_bytes(n_bytes)}, {format_bytes(n_bytes - room)} too much ({best.memory}); "
            "use more chips, smaller sizes, or a narrower dtype"
        )


def _weight(dim: str, work: Work) -> float:
    """How much work depends on where a dimension lies: the heaviest is placed first."""
    scoped = sum(p.flops for p in work.products if dim in p.scope)
    return scoped + sum(p.n_bytes for p in work.products if dim in p.contracted)


@contextmanager
def no_collector() -> Iterator[None]:
    """Python's collector walks all that a search keeps, again and again, a third of its time, and finds nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
