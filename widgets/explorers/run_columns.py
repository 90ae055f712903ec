"""The numbers of one program side by side: modelled, compiled, measured, published, each cell with its error.

    >>> facts = columns(state, program, "v4:4x4x4", found={"compiled": record})
    >>> facts["cells"]["seconds"]["compiled"]["text"], facts["cells"]["seconds"]["compiled"]["error"]
    ('28.5 ms', 0.0038…)

Errors of times are against what was measured on such a slice, else against what is published; errors of bytes and FLOPs
are against the plan. What ran on simulated devices has no time, no MFU and no links here, and what ran on
another chip has no error. Next file to read: `run_records`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.chips import Chip
from mtfcore.costs.pricing.cost import Cost
from mtfcore.errors import sure
from mtfcore.reference import Published
from tpu_runs.entries import by_axis
from tpu_runs.records import Record
from widgets.explorers import run_published
from widgets.figures.run_html import COLUMNS
from widgets.numbers import quantity
from widgets.state import State

Facts = dict[str, Any]
Values = dict[str, tuple[float | None, str, str]]  # row → value, origin word, what is shown on hover
TIMES = {"seconds": "one launch", "local": "… computing, HBM", "links": "… collectives", "mfu": "MFU"}
UNITS = {"seconds": "s", "local": "s", "links": "s", "mfu": "%", "flops": "FLOP"}


def columns(
    state: State, program: mtf.Program, topology: str, found: Mapping[str, Record], old: Collection[str] = (),
) -> Facts:  # fmt: skip
    """Rows, and each row's cells by column; `found` are records by kind, `old` those kinds that have other settings."""
    cost = mtf.price(program, topology, model="calibrated")
    printed = run_published.printed(state)
    constants = constants_words(cost, run_published.row_of(state))
    values: dict[str, Values] = {
        "modelled": modelled(cost, constants), "compiled": compiled(found.get("compiled"), cost),
        "measured": measured(found, cost),
        "published": {name: (each.value, "published", each.words) for name, each in printed.items()},
    }  # fmt: skip
    rows = {**TIMES, "flops": "FLOPs", "memory": "memory held", "sent": "sent",
            **{f"sent.{axis}": f"… over {axis}" for axis in program.mesh.names}}  # fmt: skip
    cells = {row: {column: _cell(row, values[column].get(row)) for column in COLUMNS} for row in rows}
    for column in old:
        cells["mfu"][column] = None  # of another program
    comparable = "measured" in found and "measured" not in old and of_chip(found["measured"], cost.topology.chip)
    for row in rows:
        _compare(row, {name: cell for name, cell in cells[row].items() if name not in old}, comparable)
    return {
        "rows": rows, "cells": cells, "parts": _parts(cost), "capacity": cost.capacity_bytes, "fits": cost.fits,
        "half_unit": printed["seconds"].half_unit if printed else 0.0, "bottleneck": cost.bottleneck,
        "topology": str(cost.topology), "chip": cost.topology.chip.title, "devices": cost.topology.devices,
        "name": program.name, "constants": constants, "mesh": [list(axis) for axis in program.mesh.axes],
    }  # fmt: skip


# ---- what each column says


def modelled(cost: Cost, constants: str = "") -> Values:
    """The plan, priced; `constants`: where the model's come from."""
    sent, links = cost.program.link_bytes(), sum(cost.parts[part] for part in ("link", "hops", "launch"))
    found = {"seconds": cost.seconds, "local": cost.additive_seconds - links, "links": links, "mfu": cost.mfu,
             "flops": cost.program.flops(), "memory": cost.memory.total, "sent": sent.total,
             **{f"sent.{axis}": n for axis, n in sent.by_axis.items()}}  # fmt: skip
    words = f"modelled: the plan's steps on {cost.topology}; {constants}"
    return {name: (float(value), "modelled", words) for name, value in found.items()}


def constants_words(cost: Cost, row: Published | None) -> str:
    """Where the model's constants come from: of a row that they were fitted to, a small error says little."""
    from mtfcore.costs.against_published.summing import is_fitted

    if not cost.rates.is_calibrated:
        return "not calibrated: a bound"
    return "calibrated, on this row too" if row and is_fitted(row) else "calibrated"


def compiled(record: Record | None, cost: Cost) -> Values:
    """The compiler's report; its seconds are modelled from its schedule, which the words say."""
    if record is None or record.status != "ok":
        return {}
    facts, words = record.facts, record.words()
    sent = by_axis(record, cost.program)
    counts = record.counts
    found = {"flops": counts.get("flops"), "memory": facts["memory"]["total"], "sent": counts.get("link_bytes"),
             **{f"sent.{axis}": sent.get(axis) for axis in cost.program.mesh.names}}  # fmt: skip
    seconds = facts["seconds"]
    times = {"seconds": seconds, "local": facts["compute_seconds"], "links": facts["exposed_link_seconds"],
             "mfu": cost.mfu * cost.seconds / seconds if seconds else None}  # fmt: skip
    timed = f"modelled from compiled schedule · {words}"
    return {row: (value, "compiled", words) for row, value in found.items()} | {
        row: (value, "modelled", timed) for row, value in times.items()
    }


def measured(found: Mapping[str, Record], cost: Cost) -> Values:
    """A device's times; of simulated devices what was counted there, never a time."""
    values: Values = {}
    if (record := found.get("simulated")) is not None:
        words, counts = f"counted in what ran · {record.words()}", record.facts.get("counted", {})
        values = {row: (value, "counted", words) for row, value in counts.items()}
    if (record := found.get("measured")) is not None and record.seconds:
        where = "local" if record.share is not None else "seconds"
        values[where] = (record.median, "measured", record.words())
        if record.share is None and is_such_a_slice(record, cost):
            values["mfu"] = (cost.mfu * cost.seconds / sure(record.median), "measured", record.words())
    return values


def is_such_a_slice(record: Record, cost: Cost) -> bool:
    """Whether it ran on as many devices of the very chip."""
    return of_chip(record, cost.topology.chip) and record.where.get("devices") == cost.topology.devices


def of_chip(record: Record, chip: Chip) -> bool:
    """Whether the device, as JAX names its kind, is this chip."""
    from mtfcore.measuring.places import chip_of

    found = chip_of(str(record.where.get("device_kind", "")))
    return found is not None and found.name == chip.name


# ---- cells


def _cell(row: str, found: tuple[float | None, str, str] | None) -> Facts | None:
    value, origin, words = found or (None, "", "")
    if value is None:
        return None
    return {"value": value, "text": text_of(row, value), "origin": origin, "words": words, "error": None, "against": ""}


def text_of(row: str, value: float) -> str:
    """With its unit."""
    unit = UNITS.get(row, "iB")
    return f"{100 * value:.1f} %" if unit == "%" else quantity(value, unit)


def _compare(row: str, cells: dict[str, Facts | None], comparable: bool) -> None:
    """Write errors: of times against such a device or the paper, of bytes and FLOPs against the plan."""
    timed = row in TIMES
    against = ("measured", "published") if timed and comparable else ("published",) if timed else ("modelled",)
    truth = next((name for name in against if cells[name]), "")
    right = cells.get(truth)
    if right is None or not right["value"]:
        return
    for name, cell in cells.items():
        if cell and name != truth and not (timed and name == "measured" and not comparable):
            cell |= {"error": cell["value"] / right["value"] - 1, "against": truth}


def _parts(cost: Cost) -> dict[str, float]:
    parts = cost.parts
    return {"compute": parts["compute"], "hbm": parts["hbm"], "link": parts["link"] + parts["hops"] + parts["launch"]}
