"""Meshes: every way to give one, devices and coordinates, and what is refused."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtfcore as mtf

MESHES = st.lists(st.integers(1, 4), max_size=4).map(lambda sizes: mtf.Mesh([*zip("xyzw", sizes, strict=False)]))


def test_every_way_to_give_a_mesh() -> None:
    mesh = mtf.Mesh("rows:4 cols:2")
    others = [
        mtf.Mesh(rows=4, cols=2),
        mtf.Mesh([("rows", 4), ("cols", 2)]),
        mtf.Mesh({"rows": 4, "cols": 2}),
        mtf.Mesh("rows:4;cols:2"),
        mtf.Mesh("rows:4", cols=2),
        mtf.Mesh([("rows", np.int64(4)), ["cols", np.uint8(2)]]),
        mtf.Mesh(mesh),
        pickle.loads(pickle.dumps(mesh)),
    ]
    assert all(other == mesh and hash(other) == hash(mesh) for other in others)
    assert mesh.names == ("rows", "cols") and mesh.shape == {"rows": 4, "cols": 2} and mesh.size == 8
    assert str(mesh) == "rows:4 cols:2" and repr(mesh) == "Mesh('rows:4 cols:2')"
    assert eval(repr(mesh), vars(mtf)) == mesh
    assert mesh["cols"] == 2 and "rows" in mesh and "row" not in mesh and mesh.group_size(("rows", "cols")) == 8
    assert all(type(size) is int for size in others[5].shape.values())


def test_order_matters_and_an_empty_mesh_is_one_device() -> None:
    assert mtf.Mesh("rows:4 cols:2") != mtf.Mesh("cols:2 rows:4")
    assert mtf.Mesh().size == mtf.Mesh("").size == 1 and mtf.Mesh().coordinates(0) == {}


@given(MESHES)
def test_coordinates_and_device_are_inverse_and_count_row_by_row(mesh: mtf.Mesh) -> None:
    places = list(np.ndindex(*mesh.shape.values()))
    assert len(places) == mesh.size
    for device, place in enumerate(places):
        coordinates = mesh.coordinates(device)
        assert coordinates == dict(zip(mesh.names, place, strict=True))
        assert mesh.device(coordinates) == device == mesh.device(np.int32(device))
        assert mesh.coordinates(coordinates) == coordinates


@given(MESHES, st.data())
def test_blocks_count_outermost_first(mesh: mtf.Mesh, data: st.DataObject) -> None:
    axes = data.draw(st.permutations(mesh.names))[: data.draw(st.integers(0, len(mesh.names)))]
    sizes = [mesh[axis] for axis in axes]
    for device in range(mesh.size):
        place = [mesh.coordinates(device)[axis] for axis in axes]
        assert mesh.block(device, axes) == (np.ravel_multi_index(place, sizes) if axes else 0)


@given(MESHES)
def test_a_printed_mesh_reads_back(mesh: mtf.Mesh) -> None:
    assert mtf.Mesh(str(mesh)) == mesh


FORM = "expected mesh axes with sizes, such as 'rows:4 cols:2' or [('rows', 4), ('cols', 2)], got "
WHOLE = "; a size is a whole number, at least 1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, FORM + "None"),
        (5, FORM + "5"),
        ([1, 2], FORM + "1"),
        ([("rows",)], FORM + "('rows',)"),
        (["rows:4"], FORM + "'rows:4'"),
        ("rows", "mesh 'rows': axis 'rows' has no size; write rows:2, say"),
        ("rows:x", "mesh 'rows:x': axis 'rows' has size 'x'" + WHOLE),
        ("rows:(a b)", "axis 'rows' has size '(a b)'" + WHOLE),
        ({"rows": 4.0}, "mesh 'rows:4.0': axis 'rows' has size 4.0" + WHOLE),
        ({"rows": "4"}, "axis 'rows' has size '4'" + WHOLE),
        ({"rows": True}, "axis 'rows' has size True" + WHOLE),
        ({"rows": 0}, "axis 'rows' has size 0" + WHOLE),
        ({"rows": -2}, "axis 'rows' has size -2" + WHOLE),
        ({"4x": 2}, "'4x' is not a name: letters, digits and _ only, not starting with a digit"),
        ({5: 2}, "5 is not a name"),
        ([([], 4)], "[] is not a name"),
        ("xy:4", "axis 'xy' reads as the run of axes x, y; use another name, e.g. 'axis_xy'"),
        ({"WZ": 4}, "axis 'WZ' reads as the run of axes W, Z"),
        ("partialsum:x", "'partialsum' is a reserved name; use another, e.g. 'parts'"),
        ([("rows", 4), ("rows", 2)], "mesh 'rows:4 rows:2': axis 'rows' stands 2 times; names must differ"),
    ],
)
def test_refused_meshes(given: object, message: str) -> None:
    with pytest.raises(mtf.LayoutError, match=re.escape(message)):
        mtf.Mesh(given)


def test_all_faults_of_a_mesh_at_once() -> None:
    with pytest.raises(mtf.LayoutError) as caught:
        mtf.Mesh("xy:4 rows rows:3")
    assert str(caught.value).split("\n") == [
        "mesh 'xy:4 rows rows:3': 3 faults",
        "  1. axis 'xy' reads as the run of axes x, y; use another name, e.g. 'axis_xy'",
        "  2. axis 'rows' has no size; write rows:2, say",
        "  3. axis 'rows' stands 2 times; names must differ",
    ]


@pytest.mark.parametrize("device", [8, -1, 1.5, "3", None, True, [0, 0]])
def test_refused_devices(device: object) -> None:
    with pytest.raises(mtf.LayoutError, match=re.escape(f"mesh 'rows:4 cols:2' has devices 0 to 7, not {device!r}")):
        mtf.Mesh("rows:4 cols:2").coordinates(device)


def test_refused_coordinates_name_every_part() -> None:
    with pytest.raises(mtf.LayoutError) as caught:
        mtf.Mesh("rows:4 cols:2").device({"rows": 9, "col": 0})
    assert str(caught.value).split("\n") == [
        "device {'rows': 9, 'col': 0} on mesh 'rows:4 cols:2': 3 faults",
        "  1. no axis 'col'; did you mean 'cols'? legal here: 'rows', 'cols'",
        "  2. axis 'cols' is missing",
        "  3. rows runs from 0 to 3, not 9",
    ]
    for wrong in ("a", 0.5, None, True, -1):
        with pytest.raises(mtf.LayoutError, match=re.escape(f"rows runs from 0 to 3, not {wrong!r}")):
            mtf.Mesh("rows:4 cols:2").device({"rows": wrong, "cols": 0})


@pytest.mark.parametrize(("axis", "close"), [("row", "rows"), ("COLS", "cols"), (0, None)])
def test_an_unknown_axis_offers_the_nearest(axis: object, close: str | None) -> None:
    hint = f"did you mean {close!r}? " if close else ""
    message = f"mesh 'rows:4 cols:2' has no axis {axis!r}; {hint}legal here: 'rows', 'cols'"
    with pytest.raises(mtf.LayoutError, match=re.escape(message)):
        mtf.Mesh("rows:4 cols:2")[axis]
