"""Seconds of a template: the formulas of `step_time`, which also price programs step by step, on arrays of settings.

    >>> template = Template.of(prog, planned("batch:192 io:2560 hidden:14336"))        # prog at other sizes
    >>> sizes, mesh = {"batch": np.array([64, 128]), "io": 512, "hidden": 2048}, {"rows": 4, "cols": 2}
    >>> found = template.seconds(sizes, mesh, rates("v4"), wire(prog.mesh, "v4:2x2x2").legs)
    >>> found.total, found.parts["hbm"]                        # one number a setting, all rows and turns added up
    (array([3.76...e-06, 3.77...e-06]), array([1.76...e-06, 1.77...e-06]))

`legs` says what a collective over some mesh axes runs along; the legs' sizes, ends and rates may be arrays too, so that
one call covers many grids. Next file to read: `routes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mtfcore.costs.pricing.asking import ROUTED
from mtfcore.costs.pricing.rates import Rates
from mtfcore.costs.pricing.step_time import Seconds, collective_time, local_time, padded_flops
from mtfcore.errors import LayoutError
from mtfcore.sharding import Axes
from mtfcore.traffic import COLLECTIVES

if TYPE_CHECKING:
    from mtfcore.costs.links.wiring import Leg
    from mtfcore.costs.templates.routes import Routes
    from mtfcore.costs.templates.template import Evaluated

Legs = Callable[[Axes], Sequence["Leg"]]
LOCAL, SENT = ("compute", "hbm"), ("link", "hops", "launch")


@dataclass(frozen=True, eq=False)
class Group:
    """Rows that one formula prices together, and the time of each, once: arrays (rows, *shape)."""

    rows: tuple[int, ...]
    once: Seconds


@dataclass(frozen=True, eq=False)
class Timed:
    """The seconds of a template at many settings. Made by `Template.seconds`."""

    evaluated: Evaluated
    groups: tuple[Group, ...]

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:
        """Seconds by what binds, as `Cost.parts` of a program: they add up to `total`."""
        found = {part: np.zeros(self.evaluated.shape) for part in (*LOCAL, *SENT)}
        for group in self.groups:
            for part, took in _bound(group.once):
                found[part] += self._turns(group, took)
        return found

    @cached_property
    def total(self) -> np.ndarray:
        """Seconds of one step after the other."""
        found = np.zeros(self.evaluated.shape)
        for group in self.groups:
            found += self._turns(group, group.once.total)
        return found

    @cached_property
    def rows(self) -> np.ndarray:
        """Seconds of each row in all: an array (rows, *shape)."""
        found = np.zeros((len(self.evaluated.template.rows), *self.evaluated.shape))
        for group in self.groups:
            for place, row in enumerate(group.rows):
                found[row] = self.evaluated.values[self.evaluated.sheet.times[row]] * group.once.total[place]
        return found

    def _turns(self, group: Group, once: np.ndarray) -> np.ndarray:
        """The rows of a group added up, each as often as it runs."""
        times = [self.evaluated.values[self.evaluated.sheet.times[row]] for row in group.rows]
        if all(np.ndim(each) == 0 for each in times):
            return np.einsum("r,r...->...", np.array(times, float), once)  # BLAS would wait for its threads
        return sum(each * row for each, row in zip(times, once, strict=True))


def timed(evaluated: Evaluated, rates: Rates, legs: Legs, routes: Routes | None = None) -> Timed:
    """Every row priced: local ones by dtype, collectives by kind and axes."""
    local: dict[str, list[int]] = {}
    sent: dict[tuple, list[int]] = {}
    for number, row in enumerate(evaluated.template.rows):
        if row.joins and rates.joins_gathers:
            continue
        if row.kind in COLLECTIVES:
            sent.setdefault((row.kind, row.axes, row.moved), []).append(number)
        else:
            local.setdefault(row.dtype if row.product else "", []).append(number)
    groups = [_local(evaluated, rows, dtype, rates) for dtype, rows in local.items()]
    groups += [_sent(evaluated, rows, legs, routes, rates) for rows in sent.values()]
    return Timed(evaluated, tuple(groups))


def _local(evaluated: Evaluated, rows: Sequence[int], dtype: str, rates: Rates) -> Group:
    sheet, values = evaluated.sheet, evaluated.values
    n_bytes = evaluated.stacked([values[sheet.hbm_bytes[row]] for row in rows])
    if not dtype:  # only reads and writes
        return Group(tuple(rows), local_time(0, n_bytes, dtype, rates))
    made: dict[tuple[int, ...], Any] = {}
    for row in rows:
        product = sheet.product[row]
        if product not in made:
            m, k, n, copies = (values[register] for register in product)
            made[product] = padded_flops(m, k, n, copies, rates.tile)
    flops = evaluated.stacked([made[sheet.product[row]] for row in rows])
    return Group(tuple(rows), local_time(flops, n_bytes, dtype, rates))


def _sent(evaluated: Evaluated, rows: Sequence[int], legs: Legs, routes: Routes | None, rates: Rates) -> Group:
    """Collectives of one kind over the same axes."""
    row, loads = evaluated.template.rows[rows[0]], None
    n_bytes = evaluated.stacked([evaluated.values[evaluated.sheet.n_bytes[number]] for number in rows])
    if row.kind not in ROUTED or rates.is_paper:
        on = legs(row.axes)
    elif routes is not None:
        on, loads = routes(row)
    else:
        raise LayoutError(f"{row.label} of {evaluated.template.name} takes a way over the real grid: give routes, as "
                          "templates.routes.routes_on finds them")  # fmt: skip
    once = collective_time(row.kind, n_bytes, on, rates, loads)
    spread = {part: np.broadcast_to(getattr(once, part), n_bytes.shape) for part in (*SENT, "total")}
    return Group(tuple(rows), Seconds(**spread))


def _bound(once: Seconds) -> Iterator[tuple[str, np.ndarray]]:
    """The time of each row, given to what binds it; launching stands by itself."""
    took = once.total - once.launch
    for first, second in ((once.compute, once.hbm), (once.link, once.hops)):
        if np.ndim(first) or np.ndim(second):
            mine = np.where(first >= second, took, 0.0)
            yield from zip(LOCAL if first is once.compute else SENT, (mine, took - mine), strict=False)
    if np.ndim(once.launch):
        yield "launch", once.launch
