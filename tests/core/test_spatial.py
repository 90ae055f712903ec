"""Shift, windows, overlap_add and convolutions: which rows travel, how many bytes, what is refused.

The sweep (tests/core/test_sweep.py) compares their values and bytes on every mesh; here stand the closed forms.
"""

from __future__ import annotations

import numpy as np
import pytest
from core.sweep.checking import quick

import mtfcore as mtf
from mtfcore.counting import count_stablehlo
from mtfcore.errors import LayoutError

IMAGE = "batch:2 height:16 width:24 cin:4"
KERNEL = "kh:3 kw:5 cin:4 cout:8"


def conv_program(mesh: str, place: str, padding: object = "same", out: str = "", **more: object) -> mtf.Program:
    @mtf.function
    def convolve(x: IMAGE, w: KERNEL):
        names = out or "batch height width cout"
        return mtf.conv(x, w, {"height": "kh", "width": "kw"}, out=names, padding=padding)

    return mtf.plan(convolve, mesh, place={"x": place}, **more)


def kinds(program: mtf.Program) -> list[str]:
    return [step.kind for step in program.steps]


def agrees(program: mtf.Program) -> list[np.ndarray]:
    """Explicit equals single; planned bytes and FLOPs equal those in the jaxpr and in the StableHLO."""
    rng = np.random.default_rng(3)
    given = [rng.normal(size=port.sharding.shape).astype(np.float32) for port in program.inputs]
    run = quick(mtf.simulate(program))
    got, right = run(*given), quick(mtf.single(program))(*given)
    np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-4)
    counted = mtf.count(run.fn, *run.shapes)
    assert counted.link_bytes == count_stablehlo(run.lower()).link_bytes == float(program.link_bytes())
    assert counted.flops == program.flops()
    return got


# ---- bytes in closed form ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "parts"), [(3, 2), (3, 4), (5, 4), (7, 8), (9, 8)])
def test_a_halo_is_the_kernels_size_less_one_in_rows(size, parts):
    """16 rows: with 8 parts of 2 a kernel of 7 or 9 reaches past the neighbour, and sends no row twice."""

    @mtf.function
    def smooth(t: "length:16 width:6", w: tap):
        return mtf.conv(t, w, {"length": "tap"}, out="length:x width")

    program = mtf.plan(smooth, f"x:{parts}", sizes=f"tap:{size}", place={"t": "length:x width"})
    assert program.link_bytes().total == (size - 1) * 6 * 4
    assert {step.kind for step in program.collectives()} == {"halo_exchange"}
    agrees(program)


@pytest.mark.parametrize(("by", "moved"), [(1, 1), (-1, 1), (3, 3), (4, 4), (6, 4), (-9, 4), (15, 1)])
@pytest.mark.parametrize("wrap", [False, True])
def test_a_shift_sends_each_row_at_most_once(by, moved, wrap):
    """4 devices hold 4 rows each: those that stay on their device are not sent, nor those that fall off the end."""

    @mtf.function
    def late(t: "length:16 width:6"):
        return mtf.shift(t, "length", by, wrap)

    program = mtf.plan(late, "x:4", place={"t": "length:x width"})
    assert program.link_bytes().total == moved * 6 * 4
    t = np.arange(96, dtype=np.float32).reshape(16, 6)
    rolled = np.roll(t, by, 0)
    if not wrap:
        rolled[: max(by, 0)] = 0
        rolled[16 + min(by, 0) :] = 0
    np.testing.assert_array_equal(quick(mtf.simulate(program))(t), rolled)


def test_two_dimensions_send_their_corners_once():
    """Height first: 2 rows of 12; then width: 4 columns of what are now 6 rows: corners come along."""
    program = conv_program("x:4 y:2", "batch height:x width:y cin", out="batch height:x width:y cout")
    rows, columns = 2 * 12, 4 * (4 + 2)
    assert program.link_bytes().total == 2 * (rows + columns) * 4 * 4  # batch, channels, bytes
    assert program.link_bytes().by_axis == {"x": 2 * rows * 16, "y": 2 * columns * 16}
    agrees(program)


def test_the_thinner_tensor_travels():
    """Fewer channels come out than go in: each device computes its neighbours' share, and sends that."""
    program = conv_program("x:4", "batch height:x width cin", out="batch height:x width cout", sizes="")
    assert kinds(program)[:1] == ["edge"] and kinds(program)[-1] == "conv"

    @mtf.function
    def narrow(x: IMAGE, w: "kh:3 cin:4"):
        return mtf.conv(x, w, {"height": "kh"}, out="batch height:x width")

    program = mtf.plan(narrow, "x:4", place={"x": "batch height:x width cin"})
    assert kinds(program)[0] == "conv" and kinds(program)[-1] == "fold"
    assert program.link_bytes().total == 2 * 2 * 24 * 4
    agrees(program)


def test_channels_in_may_be_split_and_channels_out_too():
    program = conv_program("x:2 y:2", "batch height width cin:x", out="batch height width:x cout:y")
    assert [step.kind for step in program.collectives()] == ["reduce_scatter"]
    agrees(program)


def test_sizes_that_shrink_stay_split_where_they_divide():
    """A kernel of 3 on 2 devices: 16 rows become 14, of which each device has 7; the halo is one row each way."""
    program = conv_program("x:2", "batch height:x width cin", (0, 0), out="batch height:x width cout")
    assert "trim" in kinds(program)
    assert program.link_bytes().total == 2 * 2 * 24 * 4 * 4
    agrees(program)


def test_what_is_whole_already_is_cut_with_its_border():
    """The operand lies whole on every device, the result shall be split: nothing is sent, nothing computed twice."""
    program = conv_program("x:4", "batch height width cin", out="batch height:x width cout")
    assert not program.collectives()
    whole = conv_program("x:1", "batch height width cin")
    assert whole.flops() / 4 <= program.flops() <= whole.flops() / 4 * (6 * 3) / (4 * 3)
    agrees(program)


def test_the_same_rows_are_sent_once_for_two_readers():
    @mtf.function
    def twice(x: IMAGE, w: KERNEL, v: KERNEL):
        spatial = {"height": "kh", "width": "kw"}
        a, b = (mtf.conv(x, k, spatial, out="batch height width:x cout") for k in (w, v))
        return a * b

    program = mtf.plan(twice, "x:4", place={"x": "batch height width:x cin"})
    assert len(program.collectives()) == 2
    agrees(program)


def test_a_convolution_in_a_loop():
    @mtf.function
    def deep(x: "height:16 c:4", w: "layers kh:3 c:4 c2:4"):
        def block(x, w):
            return mtf.relu(mtf.rename(mtf.conv(x, w, {"height": "kh"}, out="height c2"), "c2", "c"))

        return mtf.repeat(block, 3, w, x)

    program = mtf.plan(deep, "x:4", "height:x", sizes="layers:3")
    assert program.link_bytes().total == 3 * 2 * 4 * 4
    agrees(program)


def test_labels_and_axes_for_people():
    program = conv_program("x:2 y:2", "batch height:yx width cin", out="batch height:yx width cout")
    sent = program.collectives()
    assert [step.label() for step in sent] == ["halo_exchange over yx of height"] * 2
    assert [step.why for step in sent] == [
        "each device takes them from the one before it", "each device takes them from the one behind it",
    ]  # fmt: skip
    assert program.link_bytes().by_axis["y"] == 0  # neighbours differ in the innermost axis
    text = program.source()
    assert 'lax.ppermute(h1, ("x", "y"), [(0, 2), (1, 3), (2, 1)])' in text  # mesh order, whatever the axes' order
    assert "lax.conv_general_dilated(" in text


# ---- refused ----------------------------------------------------------------------------------------------------


def refused(call: object, **dims: str) -> str:
    given = {"t": "length:16 width:6", "k": "tap:3 width:6"} | dims
    fn = mtf.functions.Function.of("program", given, call)
    with pytest.raises(LayoutError) as fault:
        fn.trace("")
    return str(fault.value)


SLIDE = {"length": "tap"}
FAULTS = [
    (lambda t, k: mtf.shift(t, "lenght", 1), "has no dimension 'lenght'; did you mean 'length'?"),
    (lambda t, k: mtf.shift(t, "length", 0.5), "shift: by is 0.5; expected a whole number"),
    (lambda t, k: mtf.shift(t, "length", 1, wrap=[1]), "shift: wrap is [1]; expected True or False"),
    (lambda t, k: mtf.windows(t, "length", 0, "tap"), "the window's size is 0; expected at least 1"),
    (lambda t, k: mtf.windows(t, "length", 3, "width"), "'width' is a dimension of it already"),
    (lambda t, k: mtf.windows(t, "length", 3, "a b"), "into is 'a b'; expected one new name"),
    (lambda t, k: mtf.windows(t, "length", 3, "tap", padding="smae"), "did you mean 'same'?"),
    (lambda t, k: mtf.windows(t, "length", 3, "tap", padding=(0, 3)), "each side takes 0 to 2 zeros"),
    (lambda t, k: mtf.windows(t, "length", 17, "tap", padding="valid"),
     "a window of 17 does not fit into length:16 with 0 zeros; the size is at most 16, or use padding='same'"),
    (lambda t, k: mtf.overlap_add(t, "length", "length"), "dim and into are both 'length'"),
    (lambda t, k: mtf.overlap_add(k, "tap", "width", padding=(5, 5)), "leaves nothing"),
    (lambda t, k: mtf.conv(t, k, "length", out="length"), "expected e.g. {'height': 'kh', 'width': 'kw'}"),
    (lambda t, k: mtf.conv(t, k, {"lengths": "taps"}, out="length"),
     "x has no dimension 'lengths'; did you mean 'length'?"),
    (lambda t, k: mtf.conv(t, k, {"lengths": "taps"}, out="length"), "w has no dimension 'taps'; did you mean 'tap'?"),
    (lambda t, k: mtf.conv(t, k, {"width": "tap"}, out="length width"), "'width' is in w too; rename it there"),
    (lambda t, k: mtf.conv(t, k, SLIDE, out="width"), "out leaves out 'length', along which the kernel slides"),
    (lambda t, k: mtf.conv(t, k, SLIDE, out="length tap"), "out names 'tap', which the kernel uses up"),
    (lambda t, k: mtf.conv(t, k, SLIDE, out="length N:2"), "out names 'N', which no operand has"),
    (lambda t, k: mtf.conv(t, mtf.sum(k, "width"), SLIDE, out="length"), "out leaves out 'width', which one operand"),
    (lambda t, k: mtf.conv(t, mtf.cast(k, "bf16"), SLIDE, out="length"), "operands of different dtypes"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), FAULTS)
def test_faults_are_named_with_what_would_work(call, words):
    assert words in refused(call)


def test_one_name_with_two_sizes_is_refused():
    words = refused(lambda t, k: mtf.conv(t, k, SLIDE, out="length"), k="tap:3 width:5")
    assert "width has sizes 6 and 5; one name has one size" in words


def test_a_size_that_stops_dividing_is_refused_with_the_neighbours():
    with pytest.raises(LayoutError) as fault:
        conv_program("x:4", "batch height:x width cin", "valid", layout="height:x")
    words = str(fault.value)
    assert "dimension height of size 14 does not divide over mesh axis x:4 (4 parts)" in words
    assert "12 or 16" in words and "or keep the size of height and width: padding='same'" in words
