"""Facts for the layouts explorer: the five layouts of Table 1 priced on one chip, and how each grows.

    >>> facts = compared(Sizes(8192, 4096, 32768), (16, 8, 4), mtf.chip("v2"), "bf16", "adam", "training")
    >>> facts["rows"][facts["best"]]["layout"]
    'batch:rows hidden:cols io:planes'

Everything is modelled, by the first paper's model of time (`first_paper.paper_time`). The layout with the shortest
step among those that fit in memory is the best; the earlier of equals. Next file to read: `layouts_charts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtfcore.costs.first_paper.memory import PARTS, largest, memory
from mtfcore.costs.first_paper.paper_time import step_seconds
from mtfcore.costs.first_paper.scaling import Point, data_parallel, grow
from mtfcore.costs.first_paper.two_layers import ROWS, Parts, Row, Sizes, cost, uneven
from mtfcore.costs.first_paper.two_layers_printed import printed_ratio

Facts = dict[str, Any]
NAMES = {"": "none", "batch:all": "batch", "hidden:all": "hidden"}
FACTORS = tuple(1 << n for n in range(8))
MOST_DEVICES = 4096  # of the growth curves


def name(layout: str) -> str:
    """A layout in as few words as a picture has room for: the dimensions that it cuts."""
    return NAMES.get(layout, ", ".join(rule.partition(":")[0] for rule in layout.split()))


def compared(sizes: Sizes, mesh: tuple[int, int, int], chip: Any, dtype: str, optimizer: str, passes: str) -> Facts:
    """The five layouts on rows·cols·planes devices, which is best, and the curves of growth."""
    how = {"chip": chip, "dtype": dtype, "optimizer": optimizer, "passes": passes}
    rows = [priced(Point(row, sizes, row.parts(*mesh)), **how) | {"mesh": row.mesh(*mesh)} for row in ROWS.values()]
    possible = [n for n, row in enumerate(rows) if not row["fault"] and row["fits"]]
    return {
        "rows": rows, "sizes": vars(sizes), "devices": mesh[0] * mesh[1] * mesh[2],
        "best": min(possible, key=lambda n: rows[n]["seconds"], default=None), "possible": possible,
        "chip": chip.name, "title": chip.title, "hbm": chip.hbm_bytes_per_device,
        "curves": curves(sizes, mesh, **how), **{key: how[key] for key in ("dtype", "optimizer", "passes")},
    }  # fmt: skip


def priced(point: Point, chip: Any, dtype: str, optimizer: str, passes: str) -> Facts:
    """One layout, every number; where a size does not divide, the reason instead."""
    row, sizes, parts = point.row, point.sizes, point.parts
    about = {"layout": row.layout, "name": name(row.layout), "origin": row.origin, "formula": row.printed.ratio}
    if faults := uneven(row, sizes, parts):
        return {**about, "fault": "; ".join(faults), "fits": False}
    work, held = cost(row, sizes, parts, dtype, passes), memory(row, sizes, parts, dtype, optimizer, passes)
    seconds, hbm = step_seconds(work, chip, dtype), chip.hbm_bytes_per_device
    return {
        **about, "fault": "", "devices": parts.devices, "compute": seconds.compute,
        "communicate": seconds.communicate, "seconds": seconds.total, "efficiency": seconds.efficiency,
        "ratio": seconds.ratio, "printed": float(printed_ratio(row, sizes, parts)), "terms": terms(row, sizes, parts),
        "flops": work.flops, "sent": float(work.sent_bytes), "memory": {part: getattr(held, part) for part in PARTS},
        "held": held.total, "fits": held.fits(hbm),
        "widest": largest(row, sizes, parts, "hidden", hbm, dtype=dtype, optimizer=optimizer, passes=passes),
    }  # fmt: skip


def terms(row: Row, sizes: Sizes, parts: Parts) -> dict[str, tuple[int, int]]:
    """The printed ratio's terms: dimension → (parts, size)."""
    return {dim: (getattr(parts, dim), getattr(sizes, dim)) for dim in row.splits}


# ---- growth


def curves(sizes: Sizes, mesh: tuple[int, int, int], **how: Any) -> dict[str, list[Facts]]:
    """Efficiency as the mesh grows and every device keeps its part, in 2D and 3D, and of data parallelism beside."""
    rows, cols, planes = mesh
    flat = _growth("batch:rows hidden:cols", sizes, Parts(rows, cols * planes, 1))
    cubic = _growth("batch:rows hidden:cols io:planes", sizes, Parts(rows, cols, planes))
    found = {"mixed": flat, "cubic": cubic, "data": data_parallel(flat)}
    return {key: [_point(point, **how) for point in points] for key, points in found.items()}


def _growth(layout: str, sizes: Sizes, parts: Parts) -> list[Point]:
    one = Sizes(*(getattr(sizes, dim) // getattr(parts, dim) for dim in ("batch", "io", "hidden")))
    return [point for point in grow(ROWS[layout], one, FACTORS) if point.devices <= MOST_DEVICES]


def _point(point: Point, **how: Any) -> Facts:
    found = priced(point, **how)
    return {
        "devices": point.devices, "efficiency": found["efficiency"], "fits": found["fits"], "held": found["held"],
        "sizes": str(point.sizes), "printed": found["printed"],
    }  # fmt: skip


def runs_out(points: Sequence[Facts]) -> Facts | None:
    """The first point of a curve that memory does not hold."""
    return next((point for point in points if not point["fits"]), None)
