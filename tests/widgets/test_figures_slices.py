"""Facts and drawings of slices: they agree with the core, cost nothing, and name every device."""

from __future__ import annotations

import itertools
import json
import re
import runpy
import time
import tracemalloc
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import mtfcore as mtf
from widgets.figures.grid import BOTTOM, LEFT, RIGHT, TOP, make_grid
from widgets.figures.slices import facts, holders, mesh_facts, ranges, table, why
from widgets.figures.slices_labels import MOST_PIECES
from widgets.figures.slices_svg import one_svg, panel
from widgets.views import slices_view

CASES = [
    ("rows:4 cols:2", "batch:64 io:512", "batch:rows"),
    ("rows:4 cols:2", "io:512 hidden:2048", "hidden:cols"),
    ("rows:4 cols:2", "batch:64 hidden:2048", "batch:rows hidden:cols"),
    ("x:4 y:2", "batch:16", "batch:xy"),
    ("x:4 y:2", "batch:16", "batch:yx"),
    ("x:2 y:3 z:2", "B:6 L:4 E:12", "B:y E:zx"),
    ("x:2 y:2 z:2 w:2", "A:2 B:2 C:4 D:8", "A:x C:y D:wz"),
    ("x:1 y:8", "B:8 E:16", "B:x E:y"),
    ("x:96", "F:192", "F:x"),
    ("x:2", "", ""),
    ("x:8 y:8 z:8", "B:64 E:64", "B:xy E:z"),
    ("x:2 y:2", "B:4 E:4", "B:x partialsum:y"),
]


@pytest.mark.parametrize(("mesh", "dims", "placed"), CASES)
def test_ranges_are_the_cores_slices(mesh, dims, placed):
    mesh, sharding = mtf.Mesh(mesh), mtf.Sharding(dims, placed)
    tensor = facts(sharding, mesh, "bf16", "t")
    for device in range(mesh.size):
        held = [(name, part.start, part.stop - 1) for name, part in zip(sharding.names, sharding.slices(mesh, device))]
        assert ranges(tensor, device) == held
    assert tensor["bytes"] == sharding.bytes_per_device(mesh, "bf16") and tensor["copies"] == sharding.copies(mesh)
    assert json.loads(json.dumps(tensor)) == tensor


@pytest.mark.parametrize(("mesh", "dims", "placed"), CASES)
def test_every_piece_has_its_place_and_none_overlap(mesh, dims, placed):
    tensor = facts(mtf.Sharding(dims, placed), mtf.Mesh(mesh), "bf16", "t")
    grid = make_grid(tensor["dims"])
    places = [where for piece in holders(tensor) if (where := grid.place(piece))]
    assert len(places) == len({(round(x, 3), round(y, 3)) for x, y, _, _ in places})
    for x, y, width, height in places:
        assert LEFT - 1e-6 <= x and x + width <= RIGHT + 1e-6 and TOP - 1e-6 <= y and y + height <= BOTTOM + 1e-6
    for (x, y, width, height), (u, v, _, _) in itertools.permutations(places[:40], 2):
        assert not (x - 1e-6 < u < x + width - 1e-3 and y - 1e-6 < v < y + height - 1e-3)


@pytest.mark.parametrize(("mesh", "dims", "placed"), CASES)
def test_drawing_names_the_devices_of_each_piece(mesh, dims, placed):
    tensor = facts(mtf.Sharding(dims, placed), mtf.Mesh(mesh), "bf16", "t")
    root = ET.fromstring(panel(tensor, "u")["svg"])
    pieces = {int(node.get("data-piece")): node.get("data-devices") for node in root.iter() if node.get("data-piece")}
    wanted = {piece: ",".join(map(str, devices)) for piece, devices in holders(tensor).items()}
    if len(wanted) <= MOST_PIECES and make_grid(tensor["dims"]).n_boxes <= 12:
        assert pieces == wanted
    else:
        assert not pieces
    assert root.get("data-pieces") == str(len(wanted)) and root.get("aria-label") == why(tensor)


def bands(svg: str, colour: str) -> list[ET.Element]:
    """Elements filled with an axis's colour, but for the swatch beside the dimension's name."""
    nodes = ET.fromstring(svg).iter()
    return [node for node in nodes if node.get("fill") == colour and node.get("class") != "mw-swatch"]


def test_devices_are_told_apart_by_pattern_as_well_as_colour():
    mesh = mtf.Mesh("x:2 y:2 z:2")
    svg = panel(facts(mtf.Sharding("B:8 E:8 F:8", "B:x E:y F:z"), mesh, "bf16", "t"), "u")["svg"]
    assert len(bands(svg, "#0072B2")) == 2 and svg.count("<pattern") == 4
    patterns = [node for node in ET.fromstring(svg).iter() if node.tag.endswith("pattern")]
    assert len({ET.tostring(node[0]) for node in patterns}) == 4
    only_x = panel(facts(mtf.Sharding("B:8 E:8", "B:x"), mesh, "bf16", "t"), "u")["svg"]
    assert "<pattern" not in only_x and len(bands(only_x, "#0072B2")) == 2


def test_patterns_of_two_kernels_have_different_names():
    """Two open notebooks share one page; running the module anew is what a second kernel does."""
    mesh = mtf.Mesh("x:2 y:2")
    tensor = facts(mtf.Sharding("B:8 E:8", "B:x E:y"), mesh, "bf16", "t")
    names = []
    for _ in range(2):
        panels = runpy.run_path(slices_view.__file__)["drawn"](mesh_facts(mesh), [tensor])
        names += re.findall(r'<pattern id="([^"]+)"', "".join(each["svg"] for each in panels))
    assert len(names) == len(set(names)) == 8


def test_bands_cover_what_the_devices_hold():
    """Outermost axis in wide stretches, inner axis alternating: z y over eight columns."""
    tensor = facts(mtf.Sharding("F:16", "F:zy"), mtf.Mesh("x:1 y:4 z:2"), "bf16", "t")
    grid = make_grid(tensor["dims"])
    root = ET.fromstring(panel(tensor, "u")["svg"])
    paths = [node.get("d") for node in root.iter() if str(node.get("fill")).startswith("url(#u-z-")]
    assert len(paths) == 2 and all(d.count("M") == 1 for d in paths)
    assert f"h{(RIGHT - LEFT) / 2:g}" in paths[0] and grid.columns == 8
    inner = [node.get("d") for node in root.iter() if str(node.get("fill")).startswith("url(#u-y-")]
    assert len(inner) == 4 and all(d.count("M") == 2 for d in inner)


def test_long_names_leave_the_head_alone_and_the_origin_of_bytes_is_never_cut():
    tensor = facts(mtf.Sharding("tokens:2097152 F:73728", "tokens:xzy"), mtf.Mesh("x:4 y:4 z:4"), "bf16", "hidden used")
    said = [node.text or "" for node in ET.fromstring(panel(tensor, "u")["svg"]).iter() if node.tag.endswith("text")]
    assert "bf16[32768, 73728] · 4.5 GiB modelled" in said
    assert "tokens:2097152" in said and not any("…" in words for words in said)


def test_a_tensor_of_64_gib_is_drawn_from_metadata():
    mesh = mtf.Mesh("x:16 y:16")
    sharding = mtf.Sharding("rows:131072 columns:262144", "rows:x columns:y")
    tracemalloc.start()
    begun = time.perf_counter()
    tensor = facts(sharding, mesh, "bf16", "big")
    svg = one_svg([panel(mesh_facts(mesh), "m", is_mesh=True)["svg"], panel(tensor, "t")["svg"]])
    seconds, peak = time.perf_counter() - begun, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 1 and peak < 20e6
    assert tensor["whole_bytes"] == 64 * 2**30 and tensor["each"] == "256 MiB [modelled]"
    assert ET.fromstring(svg).tag.endswith("svg")


def test_many_devices_cost_few_elements():
    mesh = mtf.Mesh("x:8 y:8 z:8")
    for dims, placed in (("B:64 L:16 E:512", "B:x E:y"), ("E:512 F:512", "E:x F:yz"), ("F:4096", "F:xyz")):
        svg = panel(facts(mtf.Sharding(dims, placed), mesh, "bf16", "t"), "u")["svg"]
        assert sum(1 for _ in ET.fromstring(svg).iter()) < 260 and len(svg) < 60_000


def test_three_dimensions_are_boxes_along_the_first_and_say_so():
    """3-D and higher shown as slices."""
    tensor = facts(mtf.Sharding("B:8 L:4 E:16", "B:x E:y"), mtf.Mesh("x:4 y:2"), "bf16", "t")
    svg = panel(tensor, "u")["svg"]
    assert make_grid(tensor["dims"]).n_boxes == 4
    for words in ("B 0–1", "B 6–7", "boxes: blocks of B"):
        assert words in svg
    many = panel(facts(mtf.Sharding("B:64 L:4 E:16", "B:x"), mtf.Mesh("x:64"), "bf16", "t"), "u")["svg"]
    assert "12 of 64 shown" in many


def test_local_shape_is_what_the_panel_says():
    tensor = facts(mtf.Sharding("batch:64 io:512", "batch:rows"), mtf.Mesh("rows:4 cols:2"), "f32", "x")
    svg = panel(tensor, "u")["svg"]
    assert 'data-local="16,512"' in svg and "f32[16, 512] · 32 KiB modelled" in svg and "2 copies each" in svg


def test_why_names_the_reason_for_copies():
    mesh = mtf.Mesh("rows:4 cols:2")
    tensor = facts(mtf.Sharding("batch:64 io:512", "batch:rows"), mesh, "bf16", "x")
    assert why(tensor, {"rows": ["batch"], "cols": ["hidden"]}) == (
        "x: 1/4 on each device, 16 KiB [modelled]; it has no hidden, so 2 devices hold copies of each slice."
    )
    assert "nothing of it lies on cols, so 2 devices" in why(tensor)
    whole = facts(mtf.Sharding("io:512", ""), mesh, "bf16", "b")
    assert why(whole).startswith("b: the whole on each device, 1 KiB [modelled]; nothing of it lies on rows or cols")


def test_the_table_says_the_same_and_cuts_a_long_mesh():
    mesh = mtf.Mesh("rows:4 cols:2")
    rows = table([facts(mtf.Sharding("batch:8 io:512", "batch:rows"), mesh, "bf16", "x")])
    assert rows[0] == ("tensor", "device", "holds", "slice shape", "bytes", "same on")
    assert rows[4] == ("x", "3", "batch 2–3, io 0–511", "bf16[2, 512]", "2 KiB [modelled]", "2")
    long = table([facts(mtf.Sharding("F:512", "F:x"), mtf.Mesh("x:512"), "bf16", "b")])
    assert len(long) == 66 and long[-1][2] == "448 more devices"


def test_facts_reassemble_the_whole_tensor():
    """What the picture says each device holds is, put together, the tensor."""
    mesh, sharding = mtf.Mesh("x:2 y:3"), mtf.Sharding("A:6 B:4", "A:y B:x")
    whole = np.arange(24).reshape(6, 4)
    tensor, seen = facts(sharding, mesh, "i32", "t"), np.full((6, 4), -1)
    for device in range(mesh.size):
        where = tuple(slice(first, last + 1) for _, first, last in ranges(tensor, device))
        seen[where] = whole[where]
        assert whole[where].shape == tuple(tensor["local"])
    assert (seen == whole).all()
