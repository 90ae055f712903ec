"""Shardings: local shapes, slices, copies and bytes on every small mesh; conversions both ways; what is refused."""

from __future__ import annotations

import copy
import pickle
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

import mtfcore as mtf
from mtfcore.dtypes import DTYPES, canonical, itemsize


@st.composite
def placed(draw: st.DrawFn) -> tuple[mtf.Sharding, mtf.Mesh]:
    """A tensor of 0 to 3 dimensions on a mesh of 0 to 4 axes, some of size 1, some partial, sizes that divide."""
    axes = draw(st.permutations("xyzw"))[: draw(st.integers(0, 4))]
    mesh = mtf.Mesh([(axis, draw(st.integers(1, 3))) for axis in axes])
    names = [*"BEF"][: draw(st.integers(0, 3))]
    on: dict[str, list[str]] = {name: [] for name in (*names, "partial", "unused")}
    for axis in mesh.names:
        draw(st.sampled_from([*on.values()])).append(axis)
    sizes = [mesh.group_size(on[name]) * draw(st.integers(1, 3)) for name in names]
    dims = tuple(mtf.Dim(*pair) for pair in zip(names, sizes, strict=True))
    return mtf.Sharding.of(dims, tuple(tuple(on[name]) for name in names), tuple(on["partial"])), mesh


@given(placed())
def test_slices_of_all_devices_tile_the_tensor_copies_times(case: tuple[mtf.Sharding, mtf.Mesh]) -> None:
    s, mesh = case
    held = np.zeros(s.shape, int)
    for device in range(mesh.size):
        part = s.slices(mesh, device)
        assert tuple(piece.stop - piece.start for piece in part) == s.local_shape(mesh)
        assert s.slices(mesh, mesh.coordinates(device)) == part
        held[part] += 1
    assert (held == s.copies(mesh) * mesh.group_size(s.partial)).all()
    same = Counter(str((s.slices(mesh, d), [mesh.coordinates(d)[a] for a in s.partial])) for d in range(mesh.size))
    assert set(same.values()) == {s.copies(mesh)}


@given(placed(), st.sampled_from(sorted(DTYPES)))
def test_bytes_and_local_shapes(case: tuple[mtf.Sharding, mtf.Mesh], dtype: str) -> None:
    s, mesh = case
    parts = [mesh.group_size(on) for on in s.axes]
    assert s.local_shape(mesh) == tuple(n // k for n, k in zip(s.shape, parts, strict=True))
    assert s.bytes_per_device(mesh, dtype) == int(np.prod(s.local_shape(mesh))) * itemsize(dtype)
    assert s.local_shape(str(mesh)) == s.local_shape(mesh)  # a mesh may be given as its text


@given(placed())
def test_text_reads_back(case: tuple[mtf.Sharding, mtf.Mesh]) -> None:
    s, _ = case
    for other in (
        mtf.Sharding(s.dims, s.text()),
        mtf.Sharding(" ".join(map(str, s.dims)), s.text()),
        mtf.Sharding({dim.name: dim.size for dim in s.dims}, s.text()),
        eval(repr(s), vars(mtf)),
        pickle.loads(pickle.dumps(s)),
        copy.deepcopy(s),
    ):
        assert other == s and hash(other) == hash(s)
    if s.names:
        assert mtf.Sharding(s.text()).on == s.on  # without sizes
        assert mtf.Sharding.from_paper(str(s), s.dims) == s


@given(placed())
def test_partition_specs_both_ways(case: tuple[mtf.Sharding, mtf.Mesh]) -> None:
    s, _ = case
    whole_sums = mtf.Sharding.of(s.dims, s.axes)
    assert mtf.Sharding.from_partition_spec(s.dims, whole_sums.partition_spec()) == whole_sums
    spec = P(*[on or None for on in s.axes], unreduced=set(s.partial))
    found = mtf.Sharding.from_partition_spec(s.dims, spec)
    assert found.axes == s.axes and set(found.partial) == set(s.partial)


def test_named_sharding_on_a_mesh_of_ours_and_on_one_of_jax() -> None:
    s, mesh = mtf.Sharding("batch:8 io:4", "batch:rows"), mtf.Mesh("rows:4 cols:2")
    ours = s.named_sharding(mesh)
    assert ours.spec == s.partition_spec() and ours.mesh.axis_names == mesh.names
    assert ours.shard_shape((8, 4)) == s.local_shape(mesh) == (2, 4)
    assert s.named_sharding(ours.mesh) == ours
    with pytest.raises(mtf.LayoutError, match="partial"):
        mtf.Sharding("batch:8 io:4", "batch:rows partialsum:cols").named_sharding(mesh)
    with pytest.raises(mtf.LayoutError):
        mtf.Sharding("batch:8 io:4", "batch:planes").named_sharding(mesh)


@given(placed())
def test_jax_agrees_on_who_holds_what(case: tuple[mtf.Sharding, mtf.Mesh]) -> None:
    import jax

    s, mesh = case
    s = mtf.Sharding.of(s.dims, s.axes)
    if not mesh.names or mesh.size > 64:
        return
    devices = np.array(jax.devices("cpu")[: mesh.size])
    named = jax.sharding.NamedSharding(
        jax.sharding.Mesh(devices.reshape([*mesh.shape.values()]), mesh.names), s.partition_spec()
    )
    indices = named.devices_indices_map(s.shape)
    for number, device in enumerate(devices):
        theirs = tuple(slice(*i.indices(n)[:2]) for i, n in zip(indices[device], s.shape, strict=True))
        assert theirs == s.slices(mesh, number)


def test_the_examples_of_the_design() -> None:
    mesh = mtf.Mesh("x:4 y:4 z:4")
    s = mtf.Sharding("B:64 L:1 E:18432", "E:xyz")
    assert s.local_shape(mesh) == (64, 1, 288) and s.copies(mesh) == 1 and str(s) == "BLE_xyz"
    assert s.bytes_per_device(mesh, "bf16") == 64 * 288 * 2 and s.partition_spec() == P(None, None, ("x", "y", "z"))
    assert str(mtf.Sharding("B L E:x partialsum:yz")) == "BLE_x (partialsum-yz)"
    assert str(mtf.Sharding("batch:rows d_ff:(cols planes)")) == "batch:rows d_ff:(cols planes)"
    small = mtf.Mesh("x:4 y:2")
    rows = {axes: mtf.Sharding("batch:16", f"batch:{axes}").slices(small, {"x": 1, "y": 0})[0] for axes in ("xy", "yx")}
    assert rows == {"xy": slice(4, 6), "yx": slice(2, 4)}


def test_equal_only_in_the_same_order_but_for_the_paper() -> None:
    a, b = mtf.Sharding("B E:xyz"), mtf.Sharding("B E:zyx")
    assert a != b and a.same_sets(b) and not a.same_sets(mtf.Sharding("B:x E:yz"))
    assert not a.same_sets(mtf.Sharding("B F:xyz")) and mtf.Sharding("E:x B:y") != mtf.Sharding("B:y E:x")


def test_what_is_left_out_is_whole() -> None:
    assert mtf.Sharding("B:4 E:8", "E:x") == mtf.Sharding("B:4 E:8", "B E:x") == mtf.Sharding("B:4 E:8", "E:x B")
    assert mtf.Sharding("B:4 E:8") == mtf.Sharding("B:4 E:8", "") == mtf.Sharding([("B", 4), "E:8"], "B:4")
    assert mtf.Sharding("").shape == () and mtf.Sharding("").bytes_per_device("x:4", "f32") == 4


def test_dtypes_by_any_name() -> None:
    import jax.numpy as jnp

    same = ["bf16", "bfloat16", jnp.bfloat16, jnp.dtype(jnp.bfloat16)]
    assert {canonical(name) for name in same} == {"bf16"}
    assert canonical("int8") == canonical(np.int8) == "i8" and canonical(bool) == canonical(np.bool_) == "bool"
    assert canonical(np.float32) == canonical(np.dtype("f4")) == canonical("float32") == "f32"


ONE = "; keep it on one of them, or put the other on another axis"


@pytest.mark.parametrize(
    ("dims", "where", "message"),
    [
        (None, "", "expected dimensions such as 'batch:64 io:512', got NoneType: None"),
        (5, "B:x", "expected dimensions such as 'batch:64 io:512', got int: 5"),
        ("B:4", 5, "expected a text such as 'batch:64 io:512', got int: 5"),
        (["a b"], "", "expected one dimension such as 'batch:64' or ('batch', 64), got 'a b'"),
        ([("a", 1, 2)], "", "got ('a', 1, 2)"),
        ([None], "", "got None"),
        ([("a", "4")], "", "dimension a has size '4'; a size is a whole number, at least 1"),
        ([("a", 0)], "", "dimension a has size 0; a size"),
        ([("a", 2.0)], "", "dimension a has size 2.0; a size"),
        ([("a", True)], "", "dimension a has size True; a size"),
        ([("a b", 4)], "", "'a b' is not a name: letters, digits and _ only, not starting with a digit"),
        ([("partialsum", 4)], "", "'partialsum' is a reserved name and cannot be a dimension; rename it, e.g. "),
        ("B:4 E:x", "B:x", "dimensions 'B:4 E:x' (only names and sizes are read here): E names a mesh axis, E:x"),
        ("hidden:8 hidden:8", "", "dimension 'hidden' stands 2 times in one tensor; rename one of them, e.g. 'hidden' "
         "and 'hidden_out' (two names may lie on different mesh axes, so each needs its own layout rule)"),
        ("B:4", "C:x", "tensor 'B:4': no dimension 'C' in this tensor; legal here: 'B'"),
        ("batch:4", "bath:x", "no dimension 'bath' in this tensor; did you mean 'batch'? legal here: 'batch'"),
        ("B:4", "B:8", "tensor 'B:4': B has size 4 in the dimensions and size 8 where they are placed"),
        ("B", "B:8", "B has no size in the dimensions and size 8 where they are placed"),
        ("B:4", "B:x B:y", "dimension 'B' is placed twice; put all its axes in one, e.g. B:(rows cols)"),
        ("B:4", "partialsum:x partialsum:y", "partialsum stands twice; put all its axes in one, e.g. partialsum:(rows"),
        ("B:4 E:4", "B:x E:x", "tensor 'B_xE_x': mesh axis 'x' is used twice in one tensor: on B and on E" + ONE),
        ("B:4 E:4", "B:x partialsum:yx", "mesh axis 'x' is used twice in one tensor: on B and on partialsum" + ONE),
    ],
)  # fmt: skip
def test_refused_shardings(dims: object, where: object, message: str) -> None:
    with pytest.raises(mtf.LayoutError, match=re.escape(message)):
        mtf.Sharding(dims, where)


def test_a_mesh_that_does_not_fit_names_every_fault_at_once() -> None:
    with pytest.raises(mtf.LayoutError) as caught:
        mtf.Sharding("a:7 b:7 c:10", "a:row b:cols c:rows partialsum:depth").check(mtf.Mesh("rows:4 cols:2"))
    assert str(caught.value).split("\n") == [
        "tensor 'a:7 b:7 c:10' placed 'a:row b:cols c:rows partialsum:depth' on mesh 'rows:4 cols:2': 4 faults",
        "  1. unknown mesh axis 'row' on a; did you mean 'rows'? legal here: 'rows', 'cols'",
        "  2. unknown mesh axis 'depth' on partialsum; legal here: 'rows', 'cols'",
        "  3. dimension b of size 7 does not divide over mesh axis cols:2 (2 parts); nearest sizes that do: 6 or 8, or "
        "leave b whole, or pad on request: mtf.pad(t, 'b', 8)",
        "  4. dimension c of size 10 does not divide over mesh axis rows:4 (4 parts); nearest sizes that do: 8 or 12, "
        "or leave c whole, or pad on request: mtf.pad(t, 'c', 12)",
    ]


def test_a_size_below_the_axis_offers_only_the_larger_neighbour() -> None:
    with pytest.raises(mtf.LayoutError, match=r"x:4 x y:2 \(8 parts\); nearest sizes that do: 8, or leave a whole"):
        mtf.Sharding("a:4", "a:xy").local_shape("x:4 y:2")


def test_what_needs_sizes_says_which_are_missing() -> None:
    with pytest.raises(mtf.LayoutError, match=r"the size of a, c is not known in 'a:x b:y c'; write e\.g\. a:64"):
        mtf.Sharding(["a", "b:4", "c"], "a:x b:y").local_shape("x:2 y:2")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.slices("x:4", 4), "mesh 'x:4' has devices 0 to 3, not 4"),
        (lambda s: s.slices("x:4", {"y": 0}), "no axis 'y'; legal here: 'x'\n  2. axis 'x' is missing"),
        (lambda s: s.local_shape(None), "expected mesh axes with sizes"),
        (lambda s: s.bytes_per_device("x:4", "bf17"), "unknown dtype 'bf17'; did you mean 'bf16'? legal here: 'f64'"),
        (lambda s: s.bytes_per_device("x:4", None), "unknown dtype 'None'"),
        (lambda s: mtf.Sharding("a:8", "a:x partialsum:y").partition_spec(),
         "no PartitionSpec is made for the partial sums of 'a:x partialsum:y'; reduce them first, "
         "e.g. mtf.reshard(t, 'a:x')"),
        (lambda s: s.from_partition_spec("a:8", P("x", "y")), "has 2 entries for the 1 dimensions a"),
        (lambda s: s.from_partition_spec("a:8", P("xy")), "'xy' cannot name a mesh axis"),
        (lambda s: s.from_partition_spec("a:8", P(P.UNCONSTRAINED)), "UNCONSTRAINED cannot name a mesh axis"),
        (lambda s: s.from_partition_spec("a:8", "x"), "expected a PartitionSpec such as P('x', None), got str: 'x'"),
        (lambda s: s.from_partition_spec("a:8", None), "expected a PartitionSpec such as P('x', None), got NoneType"),
        (lambda s: s.from_partition_spec("a:8 b:8", P("x", "x")), "mesh axis 'x' is used twice in one tensor: on a"),
        (lambda s: s.from_paper("BE_x", "B:4 Q:8"), "sizes name 'Q', which 'BE_x' does not; legal here: 'B', 'E'"),
        (lambda s: s.from_paper("B_xE_x"), "mesh axis 'x' is used twice in one tensor: on B and on E"),
        (lambda s: s.from_paper("BB"), "dimension 'B' stands 2 times in one tensor"),
    ],
)  # fmt: skip
def test_refused_questions(call: object, message: str) -> None:
    with pytest.raises(mtf.LayoutError, match=re.escape(message)):
        call(mtf.Sharding("a:8", "a:x"))


def test_axes_of_size_one_are_legal_and_change_nothing() -> None:
    mesh = mtf.Mesh("x:1 y:8")
    a, b = mtf.Sharding("B:3 E:16", "B:x E:y"), mtf.Sharding("B:3 E:16", "E:y")
    assert a.local_shape(mesh) == b.local_shape(mesh) and a.copies(mesh) == b.copies(mesh) == 1
    assert a != b and a.without(("x",)) == b
