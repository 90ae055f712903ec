"""Every setting under one partition, in as few array operations as there are structures: seconds by part.

    >>> asked = mtf.costs.inference(palm, "v4:4x4x4", batch=[64, 512, 7], weights="int8").asked
    >>> took = candidate(asked, "decode", "wg_x", "batch", "calibrated", np.arange(3))
    >>> took.total.round(3)                             # one a setting; not a number where it cannot be, and why
    array([0.505, 0.53 ,   nan])
    >>> took.reasons[2][0].partition(";")[0]
    'batch 7 does not divide over x:4, as wg_x needs'

Settings are sorted by what decides their plan: model, mesh, dtypes, and which products of mesh axes divide the batch
and the new tokens. Of each such *case* the structure is looked up; cases of one structure and chip are then worked out
together, with columns for the sizes in which they differ. Next file to read: `choosing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtfcore.costs.links.wiring import Leg, Wiring
from mtfcore.costs.pricing.rates import Rates, rates
from mtfcore.costs.serving.grids import AXES, orientations
from mtfcore.costs.serving.settings import Settings
from mtfcore.costs.serving.structures import SUBSETS, Structure, structure
from mtfcore.costs.templates.routes import routes_on
from mtfcore.costs.templates.timing import Timed
from mtfcore.errors import sure
from mtfcore.model.configs import Config
from mtfcore.model.places import letters
from mtfcore.sharding import Axes

PARTS = ("compute", "hbm", "link", "launch")
PART_OF = {"compute": "compute", "hbm": "hbm", "link": "link", "hops": "launch", "launch": "launch"}
READS = ("weights", "cache", "values between")


@dataclass(frozen=True)
class Took:
    """One phase of every setting under one partition. Arrays with one entry a setting."""

    name: str
    total: np.ndarray  # seconds; nan where it cannot be
    parts: Mapping[str, np.ndarray]  # seconds by what binds
    reads: Mapping[str, np.ndarray]  # bytes between HBM and one device, by what they are of
    grid: np.ndarray  # sizes of x, y and z: (n, 3)
    reasons: Mapping[int, tuple[str, ...]]  # setting → why not


@dataclass(frozen=True)
class _Case:
    """Settings that share a plan: its structure, model, mesh on the slice."""

    found: Structure
    cfg: Config
    wired: Wiring
    grid: tuple[int, int, int]


def candidate(asked: Settings, phase: str, ffn: str, attention: str, model: str, rows: np.ndarray) -> Took:
    """The phase under one partition, for these rows; the best way round of the mesh."""
    beyond = _beyond(asked, phase)
    reasons = {row: beyond[row] for row in rows.tolist() if row in beyond}
    rows = rows[~np.isin(rows, list(reasons))] if reasons else rows
    total = np.full(asked.n, np.nan)
    parts = {part: np.zeros(asked.n) for part in PARTS}
    reads = {name: np.zeros(asked.n) for name in READS}
    grid = np.ones((asked.n, 3), int)
    for members, cases, of_case in _turns(asked, phase, ffn, attention, rows):
        _note(reasons, members, cases, of_case)
        for some, columns in _together(members, cases, of_case):
            took = _seconds(asked, phase, some, columns, model)
            seconds = took.total
            better = ~(total[some] <= seconds)  # the first, or a faster way round
            at = some[better]
            total[at], grid[at] = seconds[better], columns.grids[better]
            for part in PARTS:
                parts[part][at] = np.sum([took.parts[name] for name, to in PART_OF.items() if to == part], axis=0)[
                    better
                ]
            for name, n_bytes in _reads(took).items():
                reads[name][at] = n_bytes[better]
    done = ~np.isnan(total)
    why = {row: reasons[row] for row in reasons if not done[row]}
    return Took(f"{ffn}-{attention}", total, parts, reads, grid, why)


def _beyond(asked: Settings, phase: str) -> dict[int, tuple[str, ...]]:
    """Settings whose model has fewer learned positions than they have tokens, and the sentence that says so."""
    most = asked.of_model(lambda cfg: cfg.max_length if cfg.positions == "learned" else 2**62)
    total = asked.numbers["cached_tokens"] + asked.numbers["input_tokens"]
    total = total + (asked.numbers["output_tokens"] if phase == "decode" else 0)
    found: dict[int, tuple[str, ...]] = {}
    for row in np.flatnonzero(total > most).tolist():
        name, size = asked.models[asked.which["models"][row]].name, total[row]
        found[row] = (f"{name} has {most[row]:,} learned positions, fewer than {size:,} tokens; "
                      f"use cfg.but(max_length={size}), or fewer tokens",)  # fmt: skip
    return found


# ---- sorting settings into cases --------------------------------------------------------------------------------


def _turns(
    asked: Settings, phase: str, ffn: str, attention: str, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, list[_Case], np.ndarray]]:
    """For each way round of the mesh: the rows that have it, the cases among them, and the case of each."""
    ways = [orientations(slice_, ffn) for slice_ in asked.topologies]
    for turn in range(max(map(len, ways))):
        has = np.array([turn < len(way) for way in ways])[asked.which["topologies"][rows]]
        members = rows[has]
        if len(members):
            wired = [way[turn] if turn < len(way) else way[0] for way in ways]
            yield members, *_cases(asked, phase, ffn, attention, members, wired)


def _cases(
    asked: Settings, phase: str, ffn: str, attention: str, members: np.ndarray, wired: Sequence[Wiring]
) -> tuple[list[_Case], np.ndarray]:
    grids = np.array([[each.mesh[axis] for axis in AXES] for each in wired])
    slices = asked.which["topologies"][members]
    new, cached = tokens(asked, phase)
    columns = [
        asked.which["models"][members], slices, asked.which["weights"][members], asked.which["cache"][members],
        _divides(asked.batch(phase)[members], grids[slices]), _divides(new[members], grids[slices]),
        cached[members] > 0, new[members] > 1,
    ]  # fmt: skip
    first, of_case = _distinct(columns)
    cases = []
    for row in members[first]:
        cfg, where = asked.models[asked.which["models"][row]], wired[asked.which["topologies"][row]]
        x, y, z = (int(size) for size in grids[asked.which["topologies"][row]])
        grid = x, y, z
        found = structure(
            cfg, phase, grid, ffn, attention, int(asked.batch(phase)[row]), int(new[row]), bool(cached[row] > 0),
            asked.words["weights"][asked.which["weights"][row]], asked.words["cache"][asked.which["cache"][row]],
        )  # fmt: skip
        cases.append(_Case(found, cfg, where, grid))
    return cases, of_case


def tokens(asked: Settings, phase: str) -> tuple[np.ndarray, np.ndarray]:
    """New and cached tokens of a sequence: of a prefill, or of the middle step of decoding."""
    before = asked.numbers["cached_tokens"]
    if phase == "prefill":
        return asked.numbers["input_tokens"], before
    middle = np.maximum(asked.numbers["output_tokens"] - 1, 0) // 2
    return np.ones_like(before), before + asked.numbers["input_tokens"] + middle


def _divides(numbers: np.ndarray, grids: np.ndarray) -> np.ndarray:
    """Which products of mesh axes divide a number, as bits: all that a placement asks of it."""
    code = np.zeros(len(numbers), int)
    for bit, axes in enumerate(SUBSETS):
        code |= (numbers % grids[:, axes].prod(1) == 0).astype(int) << bit
    return code


def _distinct(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each kind, and the kind of each row; columns hold small whole numbers."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = code * (int(column.max(initial=0)) + 1) + column
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    return first, of.ravel()


def _note(reasons: dict, members: np.ndarray, cases: Sequence[_Case], of_case: np.ndarray) -> None:
    """Keep why a case cannot be; the first way round speaks for all."""
    for number, case in enumerate(cases):
        if case.found.reasons:
            for row in members[of_case == number].tolist():
                reasons.setdefault(row, case.found.reasons)


# ---- working out what belongs together ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Columns:
    """Cases of one structure and chip: the template, sizes and mesh as columns or numbers, and what is run along."""

    cases: Sequence[_Case]
    of_row: np.ndarray  # the case of each row, as an index into `cases`

    @property
    def grids(self) -> np.ndarray:
        """Sizes of x, y and z for each row."""
        return np.array([case.grid for case in self.cases])[self.of_row]

    def column(self, values: Sequence[Any]) -> Any:
        """A value of each row; the plain number where all cases share it."""
        return values[0] if all(value == values[0] for value in values) else np.array(values)[self.of_row]

    def legs(self, axes: Axes) -> list[Leg]:
        """The legs of a collective in every case; short ones get legs of size 1, which cost nothing."""
        every = [case.wired.legs([axis for axis in axes if case.wired.mesh[axis] > 1]) for case in self.cases]
        return [self._leg([legs[n] if n < len(legs) else None for legs in every]) for n in range(max(map(len, every)))]

    def _leg(self, legs: Sequence[Leg | None]) -> Leg:
        some = next(leg for leg in legs if leg is not None)
        filled = [leg or Leg(1, False, some.bytes_per_second, some.kind, 0.0) for leg in legs]
        column = lambda name: self.column([getattr(leg, name) for leg in filled])  # noqa: E731
        return Leg(column("size"), column("wraps"), column("bytes_per_second"), some.kind, column("hop_seconds"),
                   column("shared"))  # fmt: skip


def _together(
    members: np.ndarray, cases: Sequence[_Case], of_case: np.ndarray
) -> Iterator[tuple[np.ndarray, _Columns]]:
    """Rows of one structure, one chip and one kind of links, with their columns."""
    groups: dict[tuple, list[int]] = {}
    for number, case in enumerate(cases):
        if case.found.template is not None:
            chip = case.wired.topology.chip.name
            groups.setdefault((id(case.found.template), chip, _kinds(case.wired)), []).append(number)
    for numbers in groups.values():
        place = np.full(len(cases), -1)
        place[numbers] = range(len(numbers))
        inside = place[of_case] >= 0
        yield members[inside], _Columns([cases[n] for n in numbers], place[of_case[inside]])


def _kinds(wired: Wiring) -> tuple:
    return tuple(tuple(leg.kind for leg in wired.legs(axis)) for axis in AXES if wired.mesh[axis] > 1)


def _seconds(asked: Settings, phase: str, rows: np.ndarray, columns: _Columns, model: str) -> Timed:
    first = columns.cases[0]
    template, slice_ = sure(first.found.template), first.wired.topology
    new, cached = tokens(asked, phase)
    every = [letters(case.cfg) for case in columns.cases]
    sizes = {name: columns.column([each[name] for each in every]) for name in every[0]}
    sizes |= {"B": asked.batch(phase)[rows], "L": new[rows], "S": cached[rows]}
    if phase == "decode":
        sizes["L"] = 1
    taken = {symbol.name for symbol in template.meanings.known}
    mesh = {axis: columns.column([case.wired.mesh[axis] for case in columns.cases]) for axis in AXES}
    at: Rates = rates(slice_.chip, model)
    routes = routes_on([case.wired for case in columns.cases], columns.of_row)
    return template.seconds({n: size for n, size in sizes.items() if n in taken}, mesh, at, columns.legs, routes)


def _reads(took: Timed) -> dict[str, np.ndarray]:
    """Bytes of the cache, of all other inputs, and of what is neither."""
    found: dict[str, Any] = dict.fromkeys(READS, 0.0)
    for name, n_bytes in took.evaluated.read_bytes().items():
        found["cache" if name.startswith("cache_") else "weights" if name else "values between"] += n_bytes
    return {name: np.broadcast_to(n_bytes, took.evaluated.shape) for name, n_bytes in found.items()}
