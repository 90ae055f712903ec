"""Layout search: the meshes and layouts of least modelled time that fit in memory, with a proof or a gap.

    >>> found = mtf.search_layout(two_layers, "v2:4x4", sizes="batch:64 io:512 hidden:2048", dtype="bf16")
    >>> found.best.mesh, found.best.layout, found.is_optimal
    >>> print(found)                  # the best and the runners-up, and why the winner wins
    >>> found.compare("batch:all", "all:32")

Every mesh of one to three axes over the topology's devices (or those given) times every legal layout is the space.
Time is the first paper's model: FLOPs at the peak, then bytes sent over one link, added (`paper_time`). Each time that
is shown comes from `mtf.plan`; the search itself is branch and bound (`tree`). An automated search for the best
layout is the future work that the first paper names (arXiv 1811.02084, section 11). Next file to read: `hunt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mtfcore.costs.search.hunt import Hunt, no_collector
from mtfcore.costs.search.problem import Problem
from mtfcore.costs.search.result import Search
from mtfcore.dims import DimsLike
from mtfcore.errors import refuse
from mtfcore.functions import Function
from mtfcore.mesh import Mesh
from mtfcore.notation import as_size
from mtfcore.ops import plain_number
from mtfcore.sharding import Sharding
from mtfcore.topologies import Topology


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

    `fn`: a named function; `topology`: "v2:16x16"; `sizes` and `dtype` as in `mtf.plan`; `model`: that of time, as in
    `mtf.price`. The result has the layouts with their seconds (modelled), and a proof that none is better, or a gap.

    Raises `LayoutError` for a slice that is none, meshes of other sizes, or no layout that fits.

    Source: arXiv 1811.02084, section 11, names the problem.
    """
    problem = Problem.of(fn, topology, sizes, dtype, place, memory, model)
    meshes = problem.meshes(mesh)
    faults = [] if as_size(top) else [f"top is {top!r:.200}; expected how many layouts to show, at least 1"]
    patience = plain_number(seconds)
    if patience is None or not patience >= 0:
        faults.append(f"seconds is {seconds!r:.200}; expected for how long to search, a number of at least 0")
    refuse(faults, "search_layout")
    with no_collector():
        return Hunt(problem, meshes, top, seconds).result()
