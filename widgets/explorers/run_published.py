"""Rows of the papers as settings of the run explorer, and what they print for the settings on show.

    >>> row = by_key("Table 2: low latency, decode: latency")
    >>> settings_of(row)["batch"], printed(settings_of(row))["seconds"].seconds
    (64, 0.0284…)

A row of decoding is compared by one step, with half of the answer already kept, which is the mean over the answer.
Rows of whole requests are sums of many launches, so they have no place here. Source: arXiv 2211.05102, Tables 2, 3
and D.2, Figures 1 and 6 to 8. Next file to read: `run_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import mtfcore as mtf
from mtfcore.errors import LayoutError, sure
from mtfcore.reference import Published, rows
from widgets.explorers import plan_inputs
from widgets.explorers.layer_steps import mesh_of
from widgets.state import State

PHASES = ("prefill", "decode")
SECONDS = ("latency", "step latency")
NEEDED = ("model", "topology", "phase", "batch", "ffn", "attention")


@dataclass(frozen=True)
class Printed:
    """A printed number as one launch of the program has it."""

    row: Published
    value: float
    half_unit: float

    @property
    def words(self) -> str:
        """Where it stands, and what is printed there, and where it is printed again."""
        return "; ".join(_said(each) for each in (self.row, *(same_settings(self.row) if self.row.is_latency else ())))


def _said(row: Published) -> str:
    steps = f" of {steps_of(row):,} steps" if row.is_latency and steps_of(row) > 1 else ""
    derived = f"; {row.how}" if row.how else ""
    return f"{row.table}, {row.name}: {row.printed} {row.unit}{steps} (published{derived})"


@cache
def listed() -> tuple[Published, ...]:
    """One row of each setup that is one phase; `same_settings` has those that print it again."""
    found: dict[str, Published] = {}
    for row in _all():
        found.setdefault(_identity(row), row)
    return tuple(found.values())


@cache
def _all() -> tuple[Published, ...]:
    """Every row of one phase, its seconds once: of the whole phase rather than of a step."""
    found: dict[tuple[str, str], Published] = {}
    for quantity in SECONDS:
        for row in rows(paper="second", quantity=quantity):
            if _has_program(row):
                found.setdefault((row.table, row.name), row)
    return tuple(found.values())


def _has_program(row: Published) -> bool:
    setup = row.setup
    if row.value is None or row.table == "Headlines" or not all(setup.get(name) for name in NEEDED):
        return False
    return setup["phase"] in PHASES and (not row.left_out or "context" in setup)


@cache
def _identity(row: Published) -> str:
    return repr((dict(_fixed(row)), row.setup["ffn"], row.setup["attention"]))


@cache
def same_settings(row: Published) -> tuple[Published, ...]:
    """Other rows that print a time of the very same settings."""
    return tuple(each for each in _all() if each is not row and _identity(each) == _identity(row))


@cache
def by_key(key: str) -> Published | None:
    """A row by its name."""
    return next((row for row in _all() if row.key == key), None)


@cache  # the menu asks for all of them at each move
def words(row: Published) -> str:
    """As a line of a menu."""
    again = "".join(f", {table}" for table in dict.fromkeys(each.table for each in same_settings(row)))
    return f"{row.table}{again}: {row.name}"


def steps_of(row: Published) -> int:
    """How many launches the printed time is of."""
    return row.setup["output_tokens"] if row.setup["phase"] == "decode" and row.quantity == "latency" else 1


def settings_of(row: Published) -> State:
    """The settings of a row; where it leaves the attention open, the one that takes less time (modelled)."""
    found = dict(_fixed(row))
    if "partition" not in found:
        found["partition"] = _quicker(found, row.setup["ffn"])
    return found


@cache
def _fixed(row: Published) -> Mapping[str, Any]:
    """All that a row says."""
    setup = row.setup
    found: State = {
        "what": setup["phase"], "topology": setup["topology"], "mesh": mesh_of(mtf.topology(setup["topology"])),
        "model": plan_inputs.model_text(setup["model"], dict(setup.get("changes", {}))), "batch": setup["batch"],
        "tokens": _tokens(setup), "weights": setup.get("weights", "bf16"), "cache": setup.get("cache", "bf16"),
    }  # fmt: skip
    open_ = "auto" in (setup["ffn"], setup["attention"])
    return found if open_ else {**found, "partition": f"{setup['ffn']}-{setup['attention']}"}


def _tokens(setup: Mapping[str, Any]) -> int:
    if "context" in setup:
        return setup["context"]
    return setup["input_tokens"] + (max(setup["output_tokens"] - 1, 0) // 2 if setup["phase"] == "decode" else 0)


def _quicker(found: State, ffn: str) -> str:
    from widgets.explorers.run_program import program_of

    took: dict[str, float] = {}
    for name in plan_inputs.PARTITIONS:
        if ffn in ("auto", name.partition("-")[0]):
            try:
                program = program_of({**found, "partition": name})
                took[name] = mtf.price(program, found["topology"], model="calibrated").seconds
            except LayoutError:  # this one cannot be here; another can
                continue
    return min(took, key=took.__getitem__) if took else "ws2d-heads"


def row_of(state: State) -> Published | None:
    """The row whose settings these are, if there is one."""
    return next(_rows_of(state), None)


def _rows_of(state: State) -> Iterator[Published]:
    for row in listed():
        if all(state[name] == value for name, value in _fixed(row).items()) and _may(row, state["partition"]):
            yield row


def _may(row: Published, partition: str) -> bool:
    """Whether a partition is one that the row allows."""
    ffn, _, attention = partition.rpartition("-")
    return row.setup["ffn"] in ("auto", ffn) and row.setup["attention"] in ("auto", attention)


def printed(state: State) -> dict[str, Printed]:
    """What is printed for these settings: seconds of one launch, and MFU where it is printed too."""
    row = row_of(state)
    if row is None:
        return {}
    steps = steps_of(row)
    scale = row.seconds / row.number / steps
    found = {"seconds": Printed(row, row.seconds / steps, sure(row.half_unit) * scale)}
    for beside in rows(table=row.table, quantity="MFU"):
        if beside.name == row.name and beside.value:
            found["mfu"] = Printed(beside, beside.value / 100, sure(beside.half_unit) / 100)
    return found
