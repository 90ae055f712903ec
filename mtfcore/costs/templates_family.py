"""Many settings of one planned function: sorted into structures, one template for each, planned when first needed.

    family = Family(plan, divided=("B", "H"))                  # plan(sizes, mesh) → Program
    for template, members in family.groups(sizes, mesh):
        found[members] = template.seconds(*family.at(members, sizes, mesh), rates, legs).total

Which steps a plan has depends on more than the partition: axes of size 1 drop out, axes go where they divide, and of
two axes that are gathered the smaller goes first. All settings that agree in this are taken to have one structure.
What else a planner decides by counting bytes is that of the group's first setting; so a template may be dearer than the
best plan there, and `tests` measure how often. Next file to read: `inference`.
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
TRIES = 4  # ways to hand out primes before a structure is given up
Plan = Callable[[dict[str, int], dict[str, int]], Program]


@dataclass(eq=False)
class Family:
    """Templates of one function by structure. `divided`: the sizes whose parts decide where axes go.

    `fixed` sizes are those that a structure may depend on in other ways, such as a length of 1.
    """

    plan: Plan
    divided: Sequence[str]
    fixed: Sequence[str] = ()
    known: dict[int, Template] = field(default_factory=dict)

    def groups(self, sizes: Settings, mesh: Settings) -> Iterator[tuple[Template, np.ndarray]]:
        """Each structure's template, and the settings that have it, by number when all are broadcast and made flat."""
        keys = self.keys(sizes, mesh).ravel()
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        for number, member in enumerate(first):
            members = np.flatnonzero(group == number)
            yield self._template(int(keys[member]), *self.at(members[:1], sizes, mesh)), members

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
        for one, other in itertools.combinations(whole.values(), 2):
            yield from (one < other, one == other)
        for n in range(1, len(whole) + 1):
            for some in itertools.combinations(whole.values(), n):
                parts = functools.reduce(np.multiply, some)
                yield parts == 1
                yield from (np.asarray(sizes[name]) % parts == 0 for name in self.divided if name in sizes)
        yield from (sizes[name] for name in self.fixed if name in sizes)

    def _template(self, key: int, sizes: Settings, mesh: Settings) -> Template:
        if key not in self.known:
            one = [{name: int(np.ravel(value)[0]) for name, value in each.items()} for each in (sizes, mesh)]
            self.known[key] = self._planned(*one)
        return self.known[key]

    def _planned(self, sizes: dict[str, int], mesh: dict[str, int]) -> Template:
        """From plans at these sizes and at others, of which some may turn out to have another structure."""
        first, faults = self.plan(sizes, mesh), []
        for turn in range(TRIES):
            try:
                return Template.of(first, self.plan(apart(sizes, self.fixed, mesh.values(), turn), mesh))
            except LayoutError as error:
                faults.append(f"{error}")
        raise LayoutError(f"no template of {first.name} for {sizes} on mesh {mesh}: {faults[0]}")


def _shape(*settings: Settings) -> tuple[int, ...]:
    return np.broadcast_shapes(*[np.shape(value) for each in settings for value in each.values()])


def _some(value: Any, members: np.ndarray, shape: tuple[int, ...]) -> Any:
    """A number stays a number."""
    return value if np.ndim(value) == 0 else np.broadcast_to(value, shape).ravel()[members]
