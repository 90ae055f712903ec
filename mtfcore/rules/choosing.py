"""How an operation with several operands is cut over the mesh.

Per mesh axis an operation has one role for the axis:

    on a dimension   every operand with that dimension holds (or slices, free) its part; a contracted
                     dimension leaves partial sums, a kept one stays split in the result
    partial          the addends of one operand stay addends (products), or those of all (sums)
    idle             the devices along it repeat the same work

An axis without conflict keeps the role its operands give it, and no operand moves on it except by free slices.
Only conflicts are searched: an axis on two different dimensions, partial in two operands, or partial in one and
split in another. Order of preference: no repeated work, then bytes sent, FLOPs, number of moves, later dimension.
So the second paper's weight-stationary and weight-gathered layouts (arXiv 2211.05102, section 3.2) are not special
cases: the search moves weights, activations or both, whichever is least. Next file to read: `operations`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from mtfcore.dims import Dim
from mtfcore.errors import sure
from mtfcore.rules.moves import MeshItems, State
from mtfcore.rules.questions import Answer, Question
from mtfcore.rules.resharding import Path, send_share, within
from mtfcore.sharding import Axes, Sharding

IDLE = ("idle", "")
PARTIAL_SUM = "partial"
ON = "on"
Pair = tuple[tuple[Sharding, ...], Sharding, int]
Role = tuple[str, str | int]  # ("on", dimension) | ("partial", operand number, or -1 for all) | IDLE


@lru_cache(maxsize=100_000)
def choose(question: Question, mesh_items: MeshItems, item_bytes: tuple[int, ...]) -> Answer:
    """The best way to cut an operation; `item_bytes` are those of the operands, then of the result."""
    search = _Search(question, dict(mesh_items), item_bytes)
    for free, idle_allowed in ((question.free, False), (True, False), (True, True)):
        if answer := search.best(free, idle_allowed):
            return answer
    raise AssertionError(f"no way to place {question}: leaving every axis idle is always one")


class _Search:
    def __init__(self, question: Question, mesh: dict[str, int], item_bytes: tuple[int, ...]) -> None:
        self.q, self.mesh, self.items, self.bytes = question, mesh, tuple(mesh.items()), item_bytes
        self.splittable = [name for name in question.sizes if name not in question.whole]
        self.kept = {dim.name for dim in question.out}

    def best(self, free: bool, idle_allowed: bool) -> Answer | None:
        """The cheapest legal assignment of roles; None where there is none."""
        options = [self.options(axis, free, idle_allowed) for axis in self.mesh]
        leaves = [leaf for roles in itertools.product(*options) for leaf in self.leaves(roles)]
        if len(leaves) == 1:
            return self.evaluate(*leaves[0], math.inf)
        ranked = sorted((*self.bound(*leaf), number) for number, leaf in enumerate(leaves))
        best, best_rank = None, tuple[float, ...]([math.inf])
        for bound, flops, number in ranked:
            if (bound, flops) > best_rank[:2]:
                break
            if answer := self.evaluate(*leaves[number], best_rank[0]):
                rank = (answer.cost, flops, self.n_moves(answer), self.earliness(answer), number)
                if rank < best_rank:
                    best, best_rank = answer, rank
        return best

    def options(self, axis: str, free: bool, idle_allowed: bool) -> list[Role]:
        """The roles worth trying for one axis: one where nothing conflicts."""
        q, size = self.q, self.mesh[axis]
        held = list(dict.fromkeys(dim for s in q.operands for dim, on in s.on.items() if axis in on))
        partial_in = [number for number, s in enumerate(q.operands) if axis in s.partial]
        wanted = [dim for dim, on in q.want.on.items() if axis in on] if q.want else []
        cuts = [dim for dim in self.splittable if q.sizes[dim] % size == 0]
        only = {"first": 0, "second": 1}.get(q.linear)
        may_wait = [number for number in partial_in if q.linear == "product" or number == only]
        sums: list[Role] = [(PARTIAL_SUM, number) for number in may_wait]
        if q.linear == "sum" and partial_in:
            sums = [(PARTIAL_SUM, -1)]
        if not free:
            if not partial_in and len(held) == 1 and held[0] in cuts:
                return [(ON, held[0])]
            if not held and len(sums) == 1 and (q.linear == "sum" or len(partial_in) == 1):
                return sums
            if not held and not partial_in:
                return [(ON, wanted[0])] if wanted and wanted[0] in cuts else [IDLE]
        splits = [(ON, dim) for dim in cuts] + sums
        if (held or wanted) and splits and not idle_allowed:
            return splits
        return [*splits, IDLE]

    def leaves(self, roles: tuple[Role, ...]) -> Iterator[tuple[dict[str, Axes], dict[int, Axes], tuple[Role, ...]]]:
        """Each legal order of axes within the dimensions, for one assignment of roles."""
        on: dict[Any, list[str]] = {}
        partial: dict[Any, list[str]] = {}
        for axis, (kind, where) in zip(self.mesh, roles, strict=True):
            if kind == ON:
                on.setdefault(where, []).append(axis)
            elif kind == PARTIAL_SUM:
                partial.setdefault(where, []).append(axis)
        if any(len(axes) > 1 and self.q.sizes[dim] % self.parts(axes) for dim, axes in on.items()):
            return
        sums = {number: tuple(axes) for number, axes in partial.items()}
        orders = [self.orders(dim, axes) for dim, axes in on.items()]
        for chosen in itertools.product(*orders):
            yield dict(zip(on, chosen, strict=True)), sums, roles

    def orders(self, dim: str, axes: list[str]) -> list[Axes]:
        """Orders of the axes on one dimension: those that only slice; all where a conflict moves something anyway."""
        if len(axes) == 1:
            return [tuple(axes)]
        every = list(itertools.permutations(axes))
        holders = [s.on[dim] for s in self.q.operands if dim in s.on]
        slicing = [order for order in every if all(order[: len(on)] == on for on in holders)]
        if not slicing or self.q.free or any(len(self.options(axis, False, False)) > 1 for axis in axes):
            return every
        return slicing if self.q.want and dim in self.q.want.on else slicing[:1]

    def parts(self, axes: Axes | list[str]) -> int:
        return math.prod(self.mesh[axis] for axis in axes)

    def needs(self, on: dict[str, Axes], partial: dict[int, Axes]) -> tuple[Sharding, ...]:
        everywhere = partial.get(-1, ())
        return tuple(
            _lay(s.dims, on, partial.get(number, ()) or everywhere) for number, s in enumerate(self.q.operands)
        )

    def result(self, on: dict[str, Axes], roles: tuple[Role, ...]) -> Sharding:
        left = () if self.q.combines else tuple(
            axis
            for axis, (kind, where) in zip(self.mesh, roles, strict=True)
            if kind == PARTIAL_SUM or (kind == ON and where not in self.kept)
        )  # fmt: skip
        return _lay(self.q.out, on, left, self.q.whole)

    def pairs(self, needs: tuple[Sharding, ...], result: Sharding) -> list[Pair]:
        """Every reshard that this choice asks for: where the tensor lies now, where it must, bytes an element."""
        pairs = []
        for number, (need, size) in enumerate(zip(needs, self.bytes, strict=False)):
            sources = self.q.sources(number)
            if need not in sources:
                pairs.append((sources, need, size))
        if self.q.want is not None and result != self.q.want:
            pairs.append(((result,), self.q.want, self.bytes[-1]))
        return pairs

    def extra(self, on: dict[str, Axes], result: Sharding) -> float:
        """Bytes that no reshard pays: the reduction a partial result still owes, the all-reduce of a combine."""
        held = math.prod(_local(result, self.mesh)) * self.bytes[-1]
        owed = 0.0
        if self.q.want is None and result.partial:
            owed += held * (1 - 1 / self.parts(result.partial))
        if self.q.combines:
            combined = [axis for dim, axes in on.items() if dim not in self.kept for axis in axes]
            owed += 2 * held * (1 - 1 / self.parts(combined))
        return owed

    def bound(self, on: dict[str, Axes], partial: dict[int, Axes], roles: tuple[Role, ...]) -> tuple[float, int]:
        """Lower bound of the bytes, and the FLOPs (up to a factor that all choices share)."""
        result = self.result(on, roles)
        total = self.extra(on, result) + sum(map(self.least, self.pairs(self.needs(on, partial), result)))
        work = math.prod(self.q.sizes.values()) // math.prod(self.parts(axes) for axes in on.values())
        return total, work

    def least(self, pair: Pair) -> float:
        """Bytes that a reshard costs at the least."""
        sources, goal, size = pair
        held = math.prod(_local(goal, self.mesh)) * size
        return held * min(send_share(_state(start), _state(goal), self.items) for start in sources)

    def evaluate(
        self, on: dict[str, Axes], partial: dict[int, Axes], roles: tuple[Role, ...], limit: float
    ) -> Answer | None:
        """The exact cost of one choice; None as soon as it must exceed the limit."""
        needs, result = self.needs(on, partial), self.result(on, roles)
        pairs = self.pairs(needs, result)
        cost, least = self.extra(on, result), [self.least(pair) for pair in pairs]
        for number, pair in enumerate(pairs):
            left = (limit - cost - sum(least[number + 1 :])) * (1 + 1e-9)  # rounding may not cost an equal choice
            path = self.path(pair, left)
            if path is None:
                return None
            cost += path.cost
        return Answer(needs, result, cost)

    def path(self, pair: Pair, limit: float = math.inf) -> Path | None:
        """The cheapest way from where the tensor lies already; None where each sends more than the limit."""
        sources, goal, size = pair
        best = None
        for start in sources:
            path = within(limit, _state(start), _state(goal), start.shape, self.items, size)
            if path is not None and path.cost <= limit and (best is None or path.cost < best.cost):
                best, limit = path, path.cost
        return best

    def n_moves(self, answer: Answer) -> int:
        return sum(len(sure(self.path(pair)).moves) for pair in self.pairs(answer.needs, answer.result))

    def earliness(self, answer: Answer) -> int:
        """Less for results cut on later dimensions, the hidden ones, as the second paper wants."""
        last = len(answer.result.dims)
        return sum((last - place) * len(on) for place, on in enumerate(answer.result.axes))


def _state(s: Sharding) -> State:
    return State(s.axes, s.partial)


def _lay(dims: tuple[Dim, ...], on: dict[str, Axes], partial: Axes, whole: frozenset[str] = frozenset()) -> Sharding:
    axes = tuple(() if dim.name in whole else on.get(dim.name, ()) for dim in dims)
    return Sharding.of(dims, axes, partial)


def _local(sharding: Sharding, mesh: dict[str, int]) -> list[int]:
    return [
        sure(dim.size) // math.prod(mesh[axis] for axis in on)
        for dim, on in zip(sharding.dims, sharding.axes, strict=True)
    ]
