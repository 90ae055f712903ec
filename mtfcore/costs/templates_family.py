"""Many settings of one planned function: sorted into structures, one template for each, planned when first needed.

    family = Family(plan, divided=("B", "H"))                  # plan(sizes, mesh) → Program
    for template, members in family.groups(sizes, mesh):
        found[members] = template.seconds(*family.at(members, sizes, mesh), rates, legs).total

Which steps a plan has depends on more than the function: axes of size 1 drop out, axes go where they divide, what is
cut to a single row moves otherwise, and of two axes that are gathered the smaller goes first. Settings that agree in
all this are taken to have one structure, and a size on which it turns out to depend besides is kept apart value by
value. What else a planner decides by counting bytes is decided as for a group's first setting. Next file to read:
`inference`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtfcore.costs.templates import Template
from mtfcore.costs.templates_sizes import apart
from mtfcore.errors import LayoutError
from mtfcore.steps import Program

Settings = Mapping[str, Any]  # name → a whole number, or an array of them
Pins = tuple[tuple[str, int], ...]  # sizes that a structure turned out to depend on, and their values
Plan = Callable[[dict[str, int], dict[str, int]], Program]
Group = tuple[Template, np.ndarray]
TRIES = 2  # ways to hand out primes before one size is suspected


@dataclass(eq=False)
class Family:
    """Templates of one function by structure. `divided`: the sizes whose parts decide where axes go.

    `fixed` sizes are those that a structure may depend on in other ways, such as a length of 1.
    """

    plan: Plan
    divided: Sequence[str]
    fixed: Sequence[str] = ()
    known: dict[tuple[int, Pins], Template | str] = field(default_factory=dict)  # or the size that decides

    def groups(self, sizes: Settings, mesh: Settings, keys: np.ndarray | None = None) -> Iterator[Group]:
        """Each structure's template, and the settings that have it, by number when all are broadcast and made flat.

        Families of the same `divided` and `fixed` sizes have the same `keys`, which may be worked out once.
        """
        keys = (self.keys(sizes, mesh) if keys is None else keys).ravel()
        found, group = np.unique(keys, return_inverse=True)
        for number, key in enumerate(found):
            yield from self._groups((int(key), ()), np.flatnonzero(group == number), sizes, mesh)

    def _groups(self, key: tuple[int, Pins], members: np.ndarray, sizes: Settings, mesh: Settings) -> Iterator[Group]:
        """The settings of one key, by the value of a size where the structure depends on it."""
        if key not in self.known:
            one = [{name: int(np.ravel(value)[0]) for name, value in each.items()}
                   for each in self.at(members[:1], sizes, mesh)]  # fmt: skip
            self.known[key] = self._planned(*one, (*self.fixed, *dict(key[1])))
        found = self.known[key]
        if isinstance(found, Template):
            yield found, members
            return
        values = np.broadcast_to(self.at(members, sizes, mesh)[0][found], members.shape)
        for value in np.unique(values):
            yield from self._groups((key[0], (*key[1], (found, int(value)))), members[values == value], sizes, mesh)

    def _planned(self, sizes: dict[str, int], mesh: dict[str, int], fixed: tuple[str, ...]) -> Template | str:
        """From plans at these sizes and at others; else the size whose change makes another structure."""
        first = self.plan(sizes, mesh)
        suspects = [name for name in dict.fromkeys((*self.divided, *sizes)) if name in sizes and name not in fixed]
        tries = [(fixed, turn) for turn in range(TRIES)] + [((*fixed, name), 0) for name in suspects]
        for held, turn in tries:
            try:
                found = Template.of(first, self.plan(apart(sizes, held, mesh.values(), turn), mesh))
            except LayoutError as error:
                fault = error
            else:
                return found if held == fixed else held[-1]
        raise LayoutError(f"no template of {first.name} for {sizes} on mesh {mesh}: {fault}")

    def at(self, members: np.ndarray, sizes: Settings, mesh: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
        """Sizes and mesh of some settings, by number."""
        shape = _shape(sizes, mesh)
        return tuple({name: _some(value, members, shape) for name, value in each.items()} for each in (sizes, mesh))

    def keys(self, sizes: Settings, mesh: Settings) -> np.ndarray:
        """A number for each setting, equal where all facts that decide the structure are."""
        facts = list(self._facts(sizes, mesh))
        weights = np.random.default_rng(len(facts)).integers(1, 2**63, len(facts), np.uint64)
        total = np.zeros(_shape(sizes, mesh), np.uint64)
        for fact, weight in zip(facts, weights, strict=True):
            total += np.asarray(fact).astype(np.uint64) * weight
        return total

    def _facts(self, sizes: Settings, mesh: Settings) -> Iterator[Any]:
        """Which axes are there, which of two is longer, what divides into the parts of which axes; what is fixed."""
        whole = {name: np.asarray(value) for name, value in mesh.items()}
        divided = [np.asarray(sizes[name]) for name in self.divided if name in sizes]
        for one, other in itertools.combinations(whole.values(), 2):
            yield from (one < other, one == other)
        for n in range(1, len(whole) + 1):
            for some in itertools.combinations(whole.values(), n):
                parts = functools.reduce(np.multiply, some)
                yield parts == 1
                for size in divided:
                    yield from (size % parts == 0, size <= parts)
        yield from (sizes[name] for name in self.fixed if name in sizes)


def _shape(*settings: Settings) -> tuple[int, ...]:
    return np.broadcast_shapes(*[np.shape(value) for each in settings for value in each.values()])


def _some(value: Any, members: np.ndarray, shape: tuple[int, ...]) -> Any:
    """A number stays a number."""
    return value if np.ndim(value) == 0 else np.broadcast_to(value, shape).ravel()[members]
