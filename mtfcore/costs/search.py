"""Layout search: the meshes and layouts of least modelled time that fit in memory, with a proof or a gap.

    >>> found = mtf.search_layout(two_layers, "v2:4x4", sizes="batch:64 io:512 hidden:2048", dtype="bf16")
    >>> found.best.mesh, found.best.layout, found.is_optimal
    >>> print(found)                  # the best and the runners-up, and why the winner wins
    >>> found.compare("batch:all", "all:32")

Every mesh of one to three axes over the topology's devices (or those given) times every legal layout is the space.
Time is the first paper's model: FLOPs at the peak, then bytes sent over one link, added (`paper_time`). Each time that
is shown comes from `mtf.plan`; the search itself is branch and bound (`search_tree`). What the first paper left open:
"we hope to automate the search for the best layout" (arXiv 1811.02084, section 12). Next file to read: `search_result`.
"""

from __future__ import annotations

import gc
import math
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from mtfcore.costs.liveness import peak_memory
from mtfcore.costs.paper_time import MODELS, Seconds
from mtfcore.costs.search_bounds import Bounds
from mtfcore.costs.search_result import Candidate, Search
from mtfcore.costs.search_space import Space, as_layout
from mtfcore.costs.search_times import Rates, time_by_operation, time_of
from mtfcore.costs.search_tree import Branches, Leaf, Tree
from mtfcore.costs.search_walk import Walk
from mtfcore.costs.search_work import Work
from mtfcore.dims import DimsLike
from mtfcore.errors import LayoutError, LayoutWarning, nearest, refuse
from mtfcore.functions import Function
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.notation import as_size
from mtfcore.numbers import count, format_bytes
from mtfcore.ops import plain_number
from mtfcore.planning import plan
from mtfcore.sharding import Sharding
from mtfcore.steps import Program
from mtfcore.tensor import Graph
from mtfcore.topologies import Topology, topology

MOST_TRIED = 300  # layouts planned to find what comes closest, where nothing fits
PATIENCE = 4  # times as long as asked for until a first layout that fits is given up
SAME = 1e-9  # times closer than this are one time: only the order of additions differs
ALIKE = (1e-3, 1e-2)  # a layout as near as this in time and memory to a better one is not shown as a runner-up
FURTHER = 50  # layouts planned for the sake of runners-up, once the best is proved


def search_layout(
    fn: Function,
    topology: str | Topology,
    *,
    sizes: DimsLike = "",
    dtype: object = "f32",
    place: Mapping[str, str | Sharding] | None = None,
    mesh: Mesh | str | Iterable[Mesh | str] | None = None,
    memory: float | None = None,
    top: int = 5,
    seconds: float = 60.0,
    model: str = "paper",
) -> Search:
    """The `top` meshes and layouts of least modelled time for a named function on a slice of chips.

    `mesh` restricts the search to one mesh or several; `memory` is the bytes one device may use (all its memory, if not
    given); after `seconds` the best so far is returned with its gap (the search for a first one may take four times as
    long). Inputs that `place` fixes stay there.
    """
    problem = Problem.of(fn, topology, sizes, dtype, place, memory, model)
    meshes = problem.meshes(mesh)
    faults = [] if as_size(top) else [f"top is {top!r:.200}; expected how many layouts to show, at least 1"]
    patience = plain_number(seconds)
    if patience is None or not patience >= 0:
        faults.append(f"seconds is {seconds!r:.200}; expected for how long to search, a number of at least 0")
    refuse(faults, "search_layout")
    with _no_collector():
        return _Hunt(problem, meshes, top, seconds).result()


@contextmanager
def _no_collector() -> Iterator[None]:
    """Python's collector walks all that a search keeps, again and again, a third of its time, and finds nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@dataclass
class Problem:
    """What is searched: a function with sizes, a slice, and how much memory a device may use."""

    fn: Function
    slice: Topology
    sizes: DimsLike
    dtype: object
    place: Mapping[str, str | Sharding]
    memory: float
    rates: Rates
    graph: Graph = field(init=False)
    space: Space = field(init=False)

    @classmethod
    def of(
        cls, fn: Function, where: str | Topology, sizes: DimsLike = "", dtype: object = "f32",
        place: Mapping[str, str | Sharding] | None = None, memory: float | None = None, model: str = "paper",
    ) -> Problem:  # fmt: skip
        """As `search_layout` takes them; refuses what cannot be."""
        if not isinstance(fn, Function):
            raise LayoutError(f"expected a function made with @mtf.function, got {type(fn).__name__} {fn!r:.200}")
        if model not in MODELS:
            raise LayoutError(f"no model of time {model!r}; {nearest(model, MODELS)}")
        where = topology(where)
        limit = where.hbm_bytes_per_device if memory is None else memory
        if not isinstance(limit, (int, float)) or isinstance(limit, bool) or not limit > 0:
            raise LayoutError(f"search_layout: memory is {memory!r:.200}; expected bytes on one device, e.g. 8 * 2**30")
        rates = Rates(where.peak_flops_per_device, where.link_bytes_per_second)
        problem = cls(fn, where, sizes, dtype, {} if place is None else place, limit, rates)
        problem.check()
        return problem

    def check(self) -> None:
        """Refuse unknown sizes and inputs before a search over them."""
        self.graph = self.fn.trace(self.sizes, self.dtype)
        names, inputs = self.graph.dim_names(), self.graph.inputs
        if not isinstance(self.place, Mapping):
            raise LayoutError(f"place: expected e.g. {{'x': 'batch:rows io'}}, got {self.place!r:.200}")
        faults = [f"place: no input {name!r}; {nearest(name, inputs)}" for name in self.place if name not in inputs]
        refuse(faults, f"search_layout of {self.graph.name}")
        for name in [name for name in self.graph.sizes if name not in names]:
            said = f"size of {name!r} ignored, no tensor has it ({nearest(name, names)})"
            warnings.warn(said, LayoutWarning, stacklevel=5)
        self.space = Space.of(self.graph, self.place)

    def meshes(self, given: Mesh | str | Iterable[Mesh | str] | None) -> list[Mesh]:
        """The meshes to search: those given, each of as many devices as the slice has, or every factoring."""
        if given is None:
            return self.space.meshes(self.slice.devices) or self._refuse_named()
        several = isinstance(given, Iterable) and not isinstance(given, (str, Mesh))
        meshes = [Mesh(one) for one in given] if several else [Mesh(given)]
        wrong = [
            f"mesh '{mesh}' names {count(mesh.size, 'device')}" for mesh in meshes if mesh.size != self.slice.devices
        ]
        options = "', '".join(str(one) for one in self.space.meshes(self.slice.devices)[:4])
        refuse([f"{w}, {self.slice} has {self.slice.devices}; e.g. '{options}'" for w in wrong], "search_layout")
        return meshes

    def _refuse_named(self) -> NoReturn:
        axes = ", ".join(sorted(self.space.named))
        example = f"mesh='{min(self.space.named)}:{self.slice.devices}'"
        raise LayoutError(
            f"search_layout: {self.graph.name} names mesh axis {axes}; give the meshes to search, e.g. {example}"
        )

    def plan(self, mesh: Mesh, layout: Layout) -> Program:
        """The real plan, as `mtf.plan` makes it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LayoutWarning)
            return plan(self.fn, mesh, layout, sizes=self.sizes, place=self.place, dtype=self.dtype)

    def candidate(self, mesh: Mesh, layout: Layout) -> Candidate:
        """A layout with its plan, time and memory."""
        program = self.plan(mesh, layout)
        work, sent = time_of(program, self.rates)
        return Candidate(mesh, layout, program, Seconds(work, sent), peak_memory(program), self.memory)


@dataclass
class _Hunt:
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
            near = (abs(a - b) / max(a, b, 1e-300) for a, b in zip(other, entry[:2], strict=False))
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
