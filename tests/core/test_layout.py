"""Layouts: every way to give one, the shardings they make, rules without effect, and what is refused."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtfcore as mtf

MESH = mtf.Mesh("rows:4 cols:2")


def test_every_way_to_give_a_layout() -> None:
    layout = mtf.Layout("batch:rows hidden:cols")
    for other in (
        mtf.Layout([("batch", "rows"), ("hidden", "cols")]),
        mtf.Layout({"batch": "rows", "hidden": "cols"}),
        mtf.Layout([["batch", ("rows",)], ("hidden", ["cols"])]),
        mtf.Layout("batch:rows;hidden:cols"),
        mtf.Layout(layout),
        eval(repr(layout), vars(mtf)),
    ):
        assert other == layout and hash(other) == hash(layout)
    assert layout.axes("batch") == ("rows",) and layout.axes("io") == ()
    both = mtf.Layout("d_ff:(rows cols)")
    assert mtf.Layout({"d_ff": "(rows cols)"}) == both == mtf.Layout({"d_ff": ("rows", "cols")})
    assert mtf.Layout("E:zxy").axes("E") == ("z", "x", "y") and mtf.Layout("") == mtf.Layout() == mtf.Layout({})


def test_the_example_of_the_design() -> None:
    s = mtf.Layout("batch:rows hidden:cols").sharding("batch:64 io:512", MESH)
    assert s == mtf.Sharding("batch:64 io:512", "batch:rows io") and s.local_shape(MESH) == (16, 512)
    assert mtf.Layout("batch:rows hidden:cols").sharding({"batch": 64, "io": 512}, str(MESH)) == s


def test_the_order_of_axes_is_the_rule_s() -> None:
    assert mtf.Layout("E:(cols rows)").sharding("E:16", MESH).on == {"E": ("cols", "rows")}


@given(st.dictionaries(st.sampled_from(["batch", "io", "B"]), st.sampled_from(["rows", "(cols rows)", "xyz"])))
def test_a_printed_layout_reads_back(rules: dict[str, str]) -> None:
    layout = mtf.Layout(rules)
    assert mtf.Layout(str(layout)) == layout and len(layout.rules) == len(rules)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (None, "expected rules such as 'batch:rows hidden:cols' or [('batch', 'rows')], got None"),
        (5, "expected rules such as 'batch:rows hidden:cols' or [('batch', 'rows')], got 5"),
        ([("batch",)], "got ('batch',)"),
        (["batch:rows"], "got 'batch:rows'"),
        ("batch:4", "layout 'batch:4': batch:4 gives a size; a layout gives mesh axes, e.g. batch:rows"),
        ({"batch": 4}, "batch:4 gives a size"),
        ({"batch": (4,)}, "batch:4 gives a size"),
        ("batch", "layout 'batch': batch has no mesh axis; write batch:rows, say, or leave it out to keep it whole"),
        ({"batch": ""}, "batch has no mesh axis"),
        ({"batch": None}, "batch has no mesh axis"),
        ({"batch": ()}, "batch has no mesh axis"),
        ({"5": "rows"}, "'5' is not a name: letters, digits and _ only, not starting with a digit"),
        ({5: "rows"}, "5 is not a name"),
        ([([], "rows")], "[] is not a name"),
        ({"batch": ("xy",)}, "batch: 'xy' cannot name a mesh axis: letters, digits and _ only, not starting with a "
         "digit, and no run such as 'xyz'"),
        ({"batch": (2.5,)}, "batch: 2.5 cannot name a mesh axis"),
        ({"batch": ("rows", "rows")}, "batch names mesh axis 'rows' 2 times; once is enough"),
        ("batch:(rows rows)", "mesh axis 'rows' stands twice on batch"),
        ({"batch": "(rows"}, "'(rows' is neither a size (digits only) nor a mesh axis"),
        ("partialsum:x", "'partialsum' is a reserved name: a layout places dimensions only"),
        ("batch:rows batch:cols", "dimension 'batch' has 2 rules; put all its axes in one, e.g. batch:(rows cols)"),
    ],
)  # fmt: skip
def test_refused_layouts(rules: object, message: str) -> None:
    with pytest.raises(mtf.LayoutError, match=re.escape(message)):
        mtf.Layout(rules)


def test_all_faults_of_a_layout_at_once() -> None:
    with pytest.raises(mtf.LayoutError) as caught:
        mtf.Layout("batch:4 io hidden:rows hidden:cols")
    assert [line[:30] for line in str(caught.value).split("\n")] == [
        "layout 'batch:4 io hidden:rows", "  1. batch:4 gives a size; a l", "  2. io has no mesh axis; writ",
        "  3. dimension 'hidden' has 2 ",
    ]  # fmt: skip


def test_all_faults_of_a_tensor_under_a_layout_at_once() -> None:
    with pytest.raises(mtf.LayoutError) as caught:
        mtf.Layout("batch:rows hidden:rows").sharding("batch:6 hidden:8", MESH)
    assert str(caught.value).split("\n") == [
        "tensor 'batch:6 hidden:8' under layout 'batch:rows hidden:rows' on mesh 'rows:4 cols:2': 2 faults",
        "  1. mesh axis 'rows' is used twice in one tensor: on batch and on hidden; keep it on one of them, or put the "
        "other on another axis",
        "  2. dimension batch of size 6 does not divide over mesh axis rows:4 (4 parts); nearest sizes that do: "
        "4 or 8, or leave batch whole, or pad on request: mtf.pad(t, 'batch', 8)",
    ]


def test_a_rule_whose_axis_the_mesh_lacks_warns_or_is_refused() -> None:
    layout = mtf.Layout("batch:(rows depth) hidden:col")
    message = "batch -> depth ignored, mesh has no axis 'depth'; batch is copied on 2 devices (legal here: "
    with pytest.warns(mtf.LayoutWarning, match=re.escape(message)) as caught:
        assert layout.sharding("batch:8", MESH).on == {"batch": ("rows",)}
    assert len(caught) == 1 and caught[0].filename == __file__  # hidden is not this tensor's; the line is the caller's
    with pytest.raises(mtf.LayoutError, match=r"\(strict\): batch -> depth ignored"):
        layout.sharding("batch:8", MESH, strict=True)
    with pytest.raises(mtf.LayoutError, match=r"did you mean 'cols'\? legal here"):
        layout.sharding("hidden:8", MESH, strict=True)


def test_a_plan_warns_of_dimensions_that_no_tensor_has() -> None:
    @mtf.function
    def double(x: "batch io"):
        return x * 2

    with pytest.warns(mtf.LayoutWarning) as caught:
        mtf.plan(double, MESH, "batch:rows hiden:cols", sizes="batch:8 io:2")
    expected = "rule hiden -> cols ignored, no tensor has a dimension 'hiden' (legal here: 'batch', 'io')"
    assert [str(warning.message) for warning in caught] == [expected] and caught[0].filename == __file__
    with pytest.raises(mtf.LayoutError, match=re.escape(f"layout 'batch:rows hiden:cols' (strict): {expected}")):
        mtf.plan(double, MESH, "batch:rows hiden:cols", sizes="batch:8 io:2", strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mtf.plan(double, MESH, "batch:rows io:cols", sizes="batch:8 io:2", strict=True)
