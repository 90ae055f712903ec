"""The facts of the feedforward explorer: five layouts of one layer, what each moves, and where they cross.

    >>> facts = layer_facts(Layer(18432, 73728, batch=512), (4, 4, 4))
    >>> facts["best"], [row["layout"] for row in facts["rows"] if row["n_bytes"] < 1e8]
    ('ws2d', ['ws1d', 'ws2d'])

Every number of bytes is read off a planned program: of the batch on show, and of two others for each layout's line,
since what a layout moves is a fixed part and a part for each token. The closed forms stand beside as a check. Bytes
are counted as they are sent, or as the paper counts them, which lets (K-1)/K be 1. Source: "Efficiently Scaling
Transformer Inference" (arXiv 2211.05102), section 3.2 and Figure 3. Next file to read: `feedforward_svg`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import mtfcore as mtf
from mtfcore.costs.second_paper import LAYOUTS, layout_bytes
from mtfcore.costs.second_paper.programs import paper_steps, planned
from mtfcore.model.serving import FEEDFORWARD
from mtfcore.notation import parse
from mtfcore.reference import rows as published_rows

Facts = dict[str, Any]
Mesh3 = tuple[int, int, int]
PARTS = ("x", "hidden", "weights")  # what moves: activations of width E, of width F, matrices
COUNTS = ("sent", "paper")


@dataclass(frozen=True)
class Layer:
    """One feedforward layer and what goes through it; `counted` says how bytes are counted."""

    d_model: int
    d_ff: int
    batch: int = 512
    length: int = 1
    gated: bool = False
    weights: str = "bf16"
    counted: str = "sent"

    @property
    def tokens(self) -> int:
        """New tokens of all sequences."""
        return self.batch * self.length

    @property
    def n_matrices(self) -> int:
        """W_in and W_out, and a gate."""
        return 3 if self.gated else 2

    @property
    def matrix_bytes(self) -> int:
        """All matrices of all devices."""
        return self.n_matrices * self.d_model * self.d_ff * (1 if self.weights == "int8" else 2)

    @property
    def x_bytes(self) -> int:
        """What goes through the layer, of all devices, in bf16."""
        return 2 * self.tokens * self.d_model


def program_of(layout: str, layer: Layer, mesh: Mesh3, dtype: str = "bf16") -> mtf.Program:
    """The planned program of a layout."""
    return _planned(layout, replace(layer, counted="sent"), mesh, dtype)


@functools.lru_cache(maxsize=1024)
def _planned(layout: str, layer: Layer, mesh: Mesh3, dtype: str) -> mtf.Program:
    sizes = (layer.batch, layer.length, layer.d_model, layer.d_ff)
    return planned(layout, mesh, *sizes, gated=layer.gated, dtype=dtype, weights="i8" * (layer.weights == "int8"))


def sites(layout: str) -> dict[str, dict[str, str]]:
    """Where each tensor of a layout lies: site → dimension → its axes."""
    return {site: {item.name: "".join(item.axes or ()) for item in parse(text)}
            for site, text in FEEDFORWARD[layout].sites.items()}  # fmt: skip


# ---- what cannot be


@functools.lru_cache(maxsize=256)
def parts_of(layout: str, mesh: Mesh3) -> dict[str, int]:
    """Into how many parts a layout cuts each dimension where it cuts it most."""
    sizes = dict(zip("xyz", mesh, strict=True))
    found = dict.fromkeys("BLEF", 1)
    for dims in sites(layout).values():
        for name, axes in dims.items():
            found[name] = max(found[name], math.prod(sizes[axis] for axis in axes))
    return found


def reason(layout: str, layer: Layer, mesh: Mesh3) -> str:
    """Why a layout cannot be; nothing where it can."""
    parts = parts_of(layout, mesh)
    if layer.batch % parts["B"]:
        return f"needs sequences in multiples of {parts['B']}"
    if layer.d_model % parts["E"]:
        return f"E {layer.d_model:,} does not divide by {parts['E']}"
    return f"F {layer.d_ff:,} does not divide by {parts['F']}" if layer.d_ff % parts["F"] else ""


# ---- facts


def layer_facts(layer: Layer, mesh: Mesh3, asked: str = "best") -> Facts:
    """All five layouts at this batch, their lines over tokens, and which is chosen."""
    rows = [_row(layout, layer, mesh) for layout in LAYOUTS]
    possible = [row for row in rows if not row["reason"]]
    best = min(possible, key=lambda row: row["n_bytes"])["layout"] if possible else ""
    chosen = asked if any(row["layout"] == asked for row in possible) else best
    return {
        "mesh": list(mesh), "devices": math.prod(mesh), "asked": asked, "best": best, "chosen": chosen, "rows": rows,
        "tokens": layer.tokens, "batch": layer.batch, "length": layer.length, "d_model": layer.d_model,
        "d_ff": layer.d_ff, "gated": layer.gated, "weights": layer.weights, "counted": layer.counted,
        "matrix_bytes": layer.matrix_bytes, "x_bytes": layer.x_bytes,
        "crossings": crossings(rows), "published": published(layer, mesh),
    }  # fmt: skip


def _row(layout: str, layer: Layer, mesh: Mesh3) -> Facts:
    why = reason(layout, layer, mesh)
    moved = moved_by(layout, layer, mesh) if not why else dict.fromkeys(PARTS, 0.0)
    line = line_of(layout, layer, mesh)
    return {
        "layout": layout, "reason": why, "n_bytes": sum(moved.values()), "parts": moved, "line": line,
        "closed": float(closed_form(layout, layer, mesh, layer.tokens)),
        "from": parts_of(layout, mesh)["B"] * layer.length,
    }  # fmt: skip


def moved_by(layout: str, layer: Layer, mesh: Mesh3) -> dict[str, float]:
    """Bytes that one device moves, by what they are."""
    program = program_of(layout, layer, mesh)
    found = dict.fromkeys(PARTS, 0.0)
    for step, n_bytes in _counted(program, layer.counted):
        found[_what(step)] += n_bytes
    return found


def _counted(program: mtf.Program, counted: str) -> Iterator[tuple[mtf.Step, float]]:
    if counted == "paper":
        yield from paper_steps(program)
    else:
        yield from ((step, float(step.link_bytes * step.times)) for step in program.collectives())


def _what(step: mtf.Step) -> str:
    """Whether it moves x (or the result), the hidden layer, or a matrix."""
    names = set(step.before[0].names)
    return "weights" if "L" not in names else "hidden" if "F" in names else "x"


def line_of(layout: str, layer: Layer, mesh: Mesh3) -> tuple[float, float] | None:
    """(bytes anyway, bytes a token), from two planned programs; None where sizes do not divide."""
    return _line(layout, replace(layer, batch=1, length=1), mesh)


@functools.lru_cache(maxsize=1024)
def _line(layout: str, layer: Layer, mesh: Mesh3) -> tuple[float, float] | None:
    parts = parts_of(layout, mesh)
    if layer.d_model % parts["E"] or layer.d_ff % parts["F"]:
        return None
    one, two = (replace(layer, batch=n * parts["B"]) for n in (1, 2))
    first, second = (sum(moved_by(layout, each, mesh).values()) for each in (one, two))
    return 2 * first - second, (second - first) / one.batch


def closed_form(layout: str, layer: Layer, mesh: Mesh3, tokens: Any) -> Any:
    """The paper's formula for so many tokens."""
    narrow = 1 if layer.weights == "int8" else None
    return layout_bytes(layout, tokens, layer.d_model, layer.d_ff, *mesh, weight_itemsize=narrow, gated=layer.gated,
                        exact=layer.counted == "sent")  # fmt: skip


# ---- where they cross


def crossings(rows: list[Facts]) -> list[Facts]:
    """The lower envelope of the lines: from how many tokens on which layout moves least."""
    lines = {row["layout"]: row["line"] for row in rows if row["line"]}
    if not lines:
        return []
    now = min(lines, key=lambda layout: (*lines[layout], LAYOUTS.index(layout)))
    found, tokens = [{"tokens": 0.0, "layout": now}], 0.0
    while later := [(_meet(lines[now], line), layout) for layout, line in lines.items() if line[1] < lines[now][1]]:
        tokens, now = min(later, key=lambda each: (each[0], lines[each[1]][1]))
        found.append({"tokens": tokens, "layout": now})
    return found


def _meet(one: tuple[float, float], other: tuple[float, float]) -> float:
    return (other[0] - one[0]) / (one[1] - other[1])


def next_crossing(facts: Facts) -> Facts | None:
    """The first one with more tokens than there are."""
    later = (each for each in facts["crossings"] if each["tokens"] > facts["tokens"])
    return next(later, None)


def winner_at(facts: Facts, tokens: float) -> str:
    """The layout on the envelope there, whatever the batch allows."""
    parts = [*facts["crossings"], {"tokens": math.inf, "layout": ""}]
    return next(one["layout"] for one, two in itertools.pairwise(parts) if one["tokens"] <= tokens < two["tokens"])


# ---- what is printed


def published(layer: Layer, mesh: Mesh3) -> list[Facts]:
    """The points of Figure 3, where the settings are its own."""
    if layer.gated or layer.weights != "bf16":
        return []
    here = {"d_model": layer.d_model, "d_ff": layer.d_ff, "mesh": "x:{} y:{} z:{}".format(*mesh)}
    return [
        {"layout": row.setup["ffn"], "tokens": row.setup["tokens"], "n_bytes": row.number * 1e9, "where": row.table}
        for row in published_rows(table="Figure 3")
        if all(row.setup[name] == value for name, value in here.items())
    ]
