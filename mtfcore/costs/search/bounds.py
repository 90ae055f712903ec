"""A lower bound of a layout's time that needs no plan: the work its axes can share at the best, and the sums it owes.

A mesh axis takes part in a product only if it lies on a dimension of its scope (`scopes`; the planner's
rule: an axis without conflict keeps its role, and what a layout wants is where a result then lies). So

    FLOPs of one device   ≥  Σ over products: all its FLOPs / (sizes of the axes on its scope)
    bytes it sends        ≥  Σ over products that contract a split dimension: (g-1)/g of what it holds of the result
                           + Σ over stacks of a loop that are split turn by turn: (g-1)/g of what it holds of the stack
    bytes it holds        ≥  its inputs + the largest result with its operands

the second because each device then has an addend only, and at least a reduce-scatter over those g devices is due where
the result is wanted reduced; the third because each turn needs its entry on every device. A dimension that is not
placed yet counts with all axes left to it for what helps, and with none for what hurts.

And the search learns: what an operation asked for in one plan, computing and sending, it asks for again wherever the
dimensions of its reach lie alike (`Group`). The search checks the bound on every layout that it plans, and claims no
proof if it was ever too high. Source: arXiv 1811.02084, section 6 (which einsum needs which all-reduce). Next file to
read: `walk`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mtfcore.costs.search.scopes import Dims
from mtfcore.costs.search.times import Rates
from mtfcore.costs.search.work import Work
from mtfcore.mesh import Mesh
from mtfcore.sharding import Axes


@dataclass
class Group:
    """Operations of one reach: what bounds say of them, and what they were seen to take, place by place."""

    dims: tuple[int, ...]
    seconds: dict[tuple[int, ...], float] = field(default_factory=dict)  # scope → seconds if one device did it all
    sums: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = field(default_factory=dict)
    seen: dict[tuple[Axes, ...], float] = field(default_factory=dict)

    def key(self, chosen: Sequence[tuple[int, Axes]]) -> tuple[Axes, ...]:
        return tuple(chosen[dim][1] for dim in self.dims)


class Bounds:
    """Lower bounds for the layouts of one mesh. Places are masks of axes, dimensions numbers, for speed."""

    def __init__(self, mesh: Mesh, dims: Sequence[str], work: Work, rates: Rates) -> None:
        sizes, n = list(mesh.shape.values()), len(mesh.axes)
        self.parts = [math.prod(sizes[k] for k in range(n) if mask >> k & 1) for mask in range(1 << n)]
        number = {dim: k for k, dim in enumerate(dims)}

        def numbers(names: Dims) -> tuple[int, ...]:
            return tuple(sorted(number[name] for name in names if name in number))

        groups: dict[tuple[int, ...], Group] = {}
        for reach in work.reaches.values():
            groups.setdefault(numbers(reach), Group(numbers(reach)))
        self.group_of = {at: groups[numbers(reach)] for at, reach in work.reaches.items()}
        for p in work.products:
            group, key = groups[numbers(p.reach)], (numbers(p.contracted), numbers(p.result))
            if p.flops:
                scope = numbers(p.scope)
                group.seconds[scope] = group.seconds.get(scope, 0.0) + p.flops / rates.peak(p.dtype)
            if p.n_bytes and key[0]:
                group.sums[key] = group.sums.get(key, 0.0) + p.n_bytes / rates.link_bytes_per_second
        self.groups = list(groups.values())
        self.inputs = [(numbers(names), n_bytes) for names, n_bytes in work.inputs]
        self.alive = [(numbers(scope), n_bytes) for scope, n_bytes in work.alive.items()]

    def time(self, least: Sequence[int], most: Sequence[int], helping: int = 0) -> float:
        """Seconds at the least: `least` are the axes surely on each dimension, `most` those that may be."""
        return sum(
            self._group_time(group, least, most, helping) for group in self.groups if group.seconds or group.sums
        )

    def time_seen(
        self, chosen: Sequence[tuple[int, Axes]], least: Sequence[int], most: Sequence[int], helping: int = 0
    ) -> float:
        """The same, with what groups were seen to take where all their dimensions are chosen."""
        total, depth = 0.0, len(chosen)
        for group in self.groups:
            seen = group.seen.get(group.key(chosen)) if not group.dims or group.dims[-1] < depth else None
            if seen is not None:
                total += seen
            elif group.seconds or group.sums:
                total += self._group_time(group, least, most, helping)
        return total

    def _group_time(self, group: Group, least: Sequence[int], most: Sequence[int], helping: int) -> float:
        total, parts = 0.0, self.parts
        for scope, seconds in group.seconds.items():
            mask = helping
            for dim in scope:
                mask |= most[dim]
            total += seconds / parts[mask]
        for (contracted, result), seconds in group.sums.items():
            split, cut = 0, helping
            for dim in contracted:
                split |= least[dim]
            if split & ~helping:
                for dim in result:
                    cut |= most[dim]
                total += seconds / parts[cut] * (1 - 1 / parts[split & ~helping])
        return total

    def learn(self, chosen: Sequence[tuple[int, Axes]], seconds: Mapping[tuple[int, int], float]) -> None:
        """Note what each group took in a plan: (graph, number of the operation) → seconds."""
        taken = {id(group): 0.0 for group in self.groups}
        for at, spent in seconds.items():
            taken[id(self.group_of[at])] += spent
        for group in self.groups:
            key = group.key(chosen)
            group.seen[key] = min(taken[id(group)], group.seen.get(key, math.inf))

    def memory(self, most: Sequence[int], helping: int = 0) -> float:
        """Bytes on one device at the least: the inputs, and what some one operation makes and reads."""
        held = sum(n_bytes / self._share(dims, most, 0) for dims, n_bytes in self.inputs)
        return held + max((n_bytes / self._share(dims, most, helping) for dims, n_bytes in self.alive), default=0.0)

    def _share(self, dims: tuple[int, ...], most: Sequence[int], helping: int) -> int:
        mask = helping
        for dim in dims:
            mask |= most[dim]
        return self.parts[mask]
