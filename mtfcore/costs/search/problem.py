"""What a layout search is asked: a function with sizes, a slice, a limit of memory; refused here where it cannot be.

Next file to read: `candidate`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from mtfcore.costs.first_paper.paper_time import MODELS, Seconds
from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.costs.search.candidate import Candidate
from mtfcore.costs.search.space import Space
from mtfcore.costs.search.times import Rates, time_of
from mtfcore.dims import DimsLike
from mtfcore.errors import LayoutError, LayoutWarning, nearest, refuse
from mtfcore.functions import Function
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.numbers import count
from mtfcore.planning import plan
from mtfcore.sharding import Sharding
from mtfcore.steps import Program
from mtfcore.tensor import Graph
from mtfcore.topologies import Topology, topology


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
        if not isinstance(model, str) or model not in MODELS:
            raise LayoutError(f"no model of time {model!r:.100}; {nearest(model, MODELS)}")
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
        several = given if isinstance(given, Iterable) and not isinstance(given, (str, Mesh)) else [given]
        meshes = [Mesh(one) for one in several]
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
