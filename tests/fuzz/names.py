"""Names, sizes and places: what people type, in calls and in boxes of explorers.

Next file to read: `runs`.
"""

from __future__ import annotations

from typing import Any

from fuzz import mutating
from fuzz.parser import Parser, fixed

import mtfcore as mtf
from mtfcore.errors import LayoutError


def _planned(text: str) -> None:
    def twice(x: "batch io"):
        return mtf.relu(x)

    mtf.plan(mtf.function(twice), "rows:4 cols:2", "batch:rows io:cols", sizes=text)


def _of_dtype(text: str) -> None:
    def twice(x: "B:2"):
        return mtf.reshard(x, "B")

    mtf.plan(mtf.function(twice), "x:2", dtype=text)


def _placed(text: str) -> None:
    mtf.Sharding("batch:64 io:512 B:8 E:16", text).local_shape("rows:4 cols:2 x:2 y:2 z:2")


def _added(given: Any) -> None:
    if not isinstance(given, dict):
        return
    mtf.add_chip("fuzzed", **{str(name): value for name, value in given.items() if name not in ("name",)})


MESHES = fixed("rows:4 cols:2", "rows:4;cols:2", "x:2 y:2 z:2", "x:16, y:16")
PLACES = fixed("batch:rows io:cols", "B:x E:(y z)", "B E:xyz partialsum:w", "batch:rows;io:(cols x)", "E:x, B:zy")
CHIP = {
    "like": "v5p",
    "source": "data sheet",
    "peak_bf16": "600 TFLOP/s",
    "hbm_bytes": "128 GiB",
    "devices": 1,
    "network": "cubes",
    "hbm_bytes_per_second": "3.2e12",
    "link_bytes_per_second": "90 GB/s",
    "title": "mine",
    "kind": "TPU",
}
NOTATION = {
    "mesh": Parser(mtf.Mesh, MESHES),
    "layout": Parser(mtf.Layout, PLACES),
    "dimensions": Parser(mtf.Sharding, fixed("batch:64 io:512", "B L E:18432", "partialsum:x")),
    "sharding": Parser(_placed, PLACES),
    "the paper's sharding": Parser(mtf.Sharding.from_paper, fixed("BLE_xyz", "BLE_{xyz} (partialsum-yz)", "E_xF_yz")),
    "sizes": Parser(_planned, fixed("batch:64 io:512", "batch:8;io:16")),
    "topology": Parser(mtf.topology, fixed("v4:4x4x4", "v2:16x16", "h100:4x8", "v5p-8", "tpu7x:2x2x1", "v5litepod-16")),
    "chip": Parser(mtf.chip, fixed("v4", "h100", "V5E")),
    "a chip of one's own": Parser(_added, fixed(CHIP), mutating.values, (LayoutError, TypeError)),
    "dtype": Parser(_of_dtype, fixed("bf16", "f32", "i8")),
}
