"""Mesh axes laid over grid axes: which rings and lines a collective runs along, who shares them, what is refused."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest

import mtfcore as mtf
from mtfcore.costs.links.collectives import all_gather
from mtfcore.costs.links.wiring import wire, wirings

EVERY = [
    ("x:4 y:4 z:4", "v4:4x4x4"),
    ("x:4 y:16", "v4:4x4x4"),
    ("x:8 y:8", "v4:4x4x4"),
    ("x:2 y:2 z:16", "v4:4x4x4"),
    ("x:12 y:16", "v4:4x4x12"),
    ("rows:16 cols:32", "v2:16x16"),
    ("rows:64 cols:8", "v2:16x16"),
    ("x:4 y:4 one:1", "v5e:16x1"),
    ("y:4 x:8", "v5e:8x4"),
    ("data:8 model:4", "h100:4x8"),
    ("x:4 y:4", "v4:4x4x4"),
    ("x:2 y:3", "v4:4x4x12"),
    ("all:256", "v2:16x16"),
    ("one:1", "v5e:2x2"),
    ("x:4 y:2 z:16", "v7x:4x4x4"),
]


@pytest.mark.parametrize(
    ("mesh", "topology", "text"),
    [
        ("x:4 y:4 z:4", "v4:4x4x4", "x→0, y→1, z→2"),
        ("x:4 y:16", "v4:4x4x4", "x→0, y→1+2"),
        ("x:8 y:4", "v5e:8x4", "x→0, y→1"),
        ("y:4 x:8", "v5e:8x4", "y→1, x→0"),
        ("rows:16 cols:32", "v2:16x16", "rows→0, cols→1+cores"),
        ("data:4 model:8", "h100:4x8", "data→network, model→switch"),
        ("data:8 model:4", "h100:4x8", "data→network+switch:2 by 4, model→switch:4"),
        ("x:4 y:4", "v5e:16x1", "x→0:4 by 4, y→0:4"),
        ("x:4 y:4", "v4:4x4x4", "x→0, y→1 (48 of 64 devices idle)"),
        ("x:4 y:4", "v5e:16x16", "x→0:4, y→1:4 (240 of 256 devices idle)"),  # a block, not two axes on one
        ("x:4 y:4 z:4", "v4:8x8x8", "x→0:4, y→1:4, z→2:4 (448 of 512 devices idle)"),
        ("x:4 y:4", "v4:8x4x4", "x→1, y→2 (112 of 128 devices idle)"),  # rings before lines
        ("all:256", "v2:16x16", "all→0+1:8+cores (256 of 512 devices idle)"),
        ("model:8", "h100:4x8", "model→switch (24 of 32 devices idle)"),
        ("one:1", "v5e:1x1", "one device"),
    ],
)
def test_the_best_guess_keeps_the_order_and_cuts_least(mesh, topology, text):
    assert wire(mesh, topology).text() == str(wire(mesh, topology)) == text


@pytest.mark.parametrize(("mesh", "topology"), EVERY)
def test_every_wiring_puts_each_device_somewhere_else_on_the_grid(mesh, topology):
    for wired in wirings(mesh, topology)[:12]:
        at = {wired.position(device) for device in range(wired.mesh.size)}
        assert len(at) == wired.mesh.size == wired.topology.devices - wired.idle
        spans = [max(p[axis] for p in at) - min(p[axis] for p in at) + 1 for axis in range(len(next(iter(at))))]
        assert math.prod(spans) == wired.mesh.size, "a contiguous block"


@pytest.mark.parametrize(("mesh", "topology"), EVERY)
def test_legs_of_all_axes_make_the_group(mesh, topology):
    for wired in wirings(mesh, topology)[:12]:
        names = wired.mesh.names
        for axes in itertools.chain.from_iterable(itertools.combinations(names, n) for n in range(len(names) + 1)):
            assert math.prod(leg.size for leg in wired.legs(axes)) == wired.mesh.group_size(axes)


@pytest.mark.parametrize(("mesh", "topology"), EVERY)
def test_what_a_wiring_writes_is_read_back(mesh, topology):
    for wired in wirings(mesh, topology)[:12]:
        assert wire(mesh, topology, wired.text()) == wire(mesh, topology, wired) == wired
        assert wire(mesh, topology, wired.shape) == wired
    assert wirings(mesh, topology)[0] == wire(mesh, topology)


def test_many_axes_are_not_tried_in_all_orders():
    """Eight axes of 2 lie on two rings of 16 in 20,160 ways."""
    some = wirings(" ".join(f"a{number}:2" for number in range(8)), "v5e:16x16")
    assert len(some) == len({wired.text() for wired in some}) == 256
    assert some[0].text().startswith("a0→0:2 by 8, a1→0:2 by 4, a2→0:2 by 2, a3→0:2, a4→1:2 by 8")


@pytest.mark.parametrize(("mesh", "topology"), EVERY)
def test_no_link_carries_more_groups_than_a_leg_says(mesh, topology):
    """Each group takes the shortest way between neighbours of a leg; counted link by link over the whole slice."""
    for wired in wirings(mesh, topology)[:3]:
        for axis in wired.mesh.names:
            for leg in wired.legs(axis):
                if leg.kind == "links" and leg.size > 1:
                    assert _most_groups(wired, axis, leg) == leg.shared


def _most_groups(wired, axis, leg):
    """How many groups want the busiest link of a grid axis, each sending one step along one leg."""
    (part,) = [part for part in wired.shape[axis] if part.grid_axis == leg.grid_axis]
    used = Counter()
    for device in range(wired.mesh.size):
        at = wired.position(device)
        step = at[leg.grid_axis] // part.stride % part.size
        if step + 1 < part.size:
            chips = tuple(n for k, n in enumerate(at) if wired.topology.axes[k].kind != "cores" and k != leg.grid_axis)
            used.update((chips, at[leg.grid_axis] + hop) for hop in range(part.stride))
    return max(used.values())


def test_equal_grid_axes_are_not_offered_twice():
    assert [w.text() for w in wirings("x:4 y:4 z:4", "v4:4x4x4")] == ["x→0, y→1, z→2"]
    assert [w.text() for w in wirings("x:8 y:8", "v4:4x4x4")] == [
        "x→0+1:2 by 2, y→1:2+2",
        "x→0+1:2, y→1:2 by 2+2",
    ]
    assert len(wirings("x:4 y:4", "v4:2x2x4")) == 2  # the line of four for x or for y


def test_a_whole_axis_of_cubes_is_a_ring_and_a_short_axis_a_line():
    ring, line = wire("x:4 y:16", "v4:4x4x4").legs("x"), wire("x:2 y:8", "v4:2x2x4").legs("y")
    assert [(leg.size, leg.wraps, leg.bytes_per_second) for leg in ring] == [(4, True, 45e9)]
    assert [(leg.size, leg.wraps) for leg in line] == [(2, False), (4, False)]


def test_axes_of_v5e_wrap_only_at_sixteen():
    wired = wire("x:8 y:16", "v5e:8x16")
    assert [(leg.size, leg.wraps) for axis in "xy" for leg in wired.legs(axis)] == [(8, False), (16, True)]
    assert not wire("x:8 y:4", "v5e:8x4").legs("y")[0].wraps


@pytest.mark.parametrize(
    ("mesh", "slice_", "microseconds", "way"),
    [
        ("X:8 Y:4", "v5e:8x4", 559.2, "line"),  # 3 hops of 8,388,608 B at 4.5e10 B/s: no wire joins the ends
        ("X:8 Y:4", "v5e:4x8", 559.2, "line"),  # the same slice, lying down
        ("X:8 Y:16", "v5e:8x16", 349.5, "ring"),  # 15/16 of 33,554,432 B / 9e10 B/s
        ("X:8 Y:4", "v5e:16x16", 559.2, "line"),  # a block of a whole pod reaches round no axis
    ],
)
def test_a_gather_where_no_wire_joins_the_ends(mesh, slice_, microseconds, way):
    wired = wire(mesh, slice_)
    took = all_gather(33_554_432 / wired.mesh["Y"], wired.legs("Y"))
    assert took.seconds * 1e6 == pytest.approx(microseconds, abs=0.05) and way in took.label


def test_two_mesh_axes_on_one_ring_are_strides_and_neighbours_and_together_the_ring():
    wired = wire("x:4 y:4", "v5e:16x1")
    outer, inner = *wired.legs("x"), *wired.legs("y")
    assert (outer.size, outer.wraps, outer.shared, outer.bytes_per_second) == (4, True, 4, 45e9 / 4)
    assert (inner.size, inner.wraps, inner.shared, inner.bytes_per_second) == (4, False, 1, 45e9)
    assert outer.hop_seconds == 4 * inner.hop_seconds
    for both in ("xy", ("y", "x"), ["x", "y"]):
        (whole,) = wired.legs(both)
        assert (whole.size, whole.wraps, whole.shared, whole.bytes_per_second) == (16, True, 1, 45e9)


def test_outer_and_inner_without_the_middle_are_two_legs():
    wired = wire("a:2 b:2 c:4", "v5e:16x1", "a→0:2 by 8, b→0:2 by 4, c→0:4")
    assert [(leg.size, leg.shared) for leg in wired.legs(("a", "c"))] == [(2, 8), (4, 1)]
    assert [(leg.size, leg.shared) for leg in wired.legs(("a", "b"))] == [(4, 4)]


def test_the_cores_of_a_chip_share_its_links():
    links, cores = wire("rows:16 cols:32", "v2:16x16").legs("cols")
    assert (links.kind, links.shared, links.bytes_per_second) == ("links", 2, 30e9)
    assert (cores.kind, cores.shared, cores.bytes_per_second) == ("cores", 1, 120e9)


def test_a_switch_gives_its_full_rate_to_any_part_of_it():
    wired = wire("data:8 model:4", "h100:4x8")
    assert [(leg.kind, leg.size, leg.shared, leg.direct) for leg in wired.legs("data")] == [
        ("network", 4, 1, True),
        ("switch", 2, 1, True),
    ]
    assert [leg.bytes_per_second for leg in wired.legs("data")] == [50e9, 450e9]


def test_a_block_of_a_ring_is_a_line():
    assert wire("x:8", "v5e:16x16").legs("x")[0].wraps is False
    assert wire("x:16", "v5e:16x16").legs("x")[0].wraps is True


def test_an_axis_of_size_one_and_no_axes_need_no_links():
    wired = wire("one:1 x:4", "v5e:2x2")
    assert wired.legs("one") == wired.legs(()) == ()
    assert wired.shape["one"] == ()


def test_the_same_question_is_answered_from_memory():
    wired = wire("x:4 y:4 z:4", "v4:4x4x4")
    assert wire(mtf.Mesh("x:4 y:4 z:4"), mtf.topology("v4:4x4x4")) is wired
    assert wired.legs(("x", "y")) is wired.legs(("x", "y"))


@pytest.mark.parametrize(
    ("mesh", "topology", "given", "text"),
    [
        ("x:4 y:4 z:4", "v4:4x4x4", "x→2, y→0", "x→2, y→0, z→1"),
        ("x:4 y:4 z:4", "v4:4x4x4", {"z": 0}, "x→1, y→2, z→0"),
        ("x:4 y:16", "v4:4x4x4", {"y": (2, 0)}, "x→1, y→2+0"),
        ("x:4 y:4", "v5e:16x1", {"y": 0, "x": 0}, "x→0:4, y→0:4 by 4"),
        ("x:1 y:4", "v5e:2x2", {"x": 0}, "y→0+1"),
        ("x:4 y:4", "v4:4x4x4", "y→0", "x→1, y→0 (48 of 64 devices idle)"),
        ("x:2 y:8", "v5e:16x1", "x -> 0:2 by 8; y -> 0:8", "x→0:2 by 8, y→0:8"),
        ("data:8 model:4", "h100:4x8", "data:switch model:network".replace(" ", ","), "data→switch, model→network"),
        ("rows:16 cols:32", "v2:16x16", {"rows": 1, "cols": (0, "cores")}, "rows→1, cols→0+cores"),
    ],
)
def test_a_wiring_may_be_given(mesh, topology, given, text):
    assert wire(mesh, topology, given).text() == text


@pytest.mark.parametrize(
    ("mesh", "topology", "given", "said"),
    [
        ("x:8 y:16", "v4:4x4x4", None,
         "mesh 'x:8 y:16' names 128 devices; 'v4:4x4x4' has 64; nearest: mesh 'x:8 y:8' or 'v4:4x4x8'"),
        ("x:3 y:5", "v4:4x4x4", None,
         "mesh 'x:3 y:5' names 15 devices; 'v4:4x4x4' has 64, no multiple of 15; nearest: mesh 'x:4 y:16'"),
        ("x:3", "v2:16x16", None,
         "mesh 'x:3' names 3 devices; 'v2:16x16' has 512, no multiple of 3; nearest: mesh 'x:512'"),
        ("x:4 y:4", "v5e:4x4", {"x": (0, 1)},
         "mesh 'x:4 y:4' does not lie on 'v5e:4x4' (grid 4x4) that way; what fits: 'x→0, y→1'"),
        ("x:4 y:4", "v5e:4x4", 5, "expected a wiring such as 'x→0, y→1+2' or {'x': 0, 'y': (1, 2)}, got 5"),
        ("x:4 y:4", "v5e:4x4", "x→0, x→1",
         "wiring 'x→0, x→1' of mesh 'x:4 y:4' on 'v5e:4x4': mesh axis 'x' stands twice"),
        ("x:4 y:4", "v5e:4x4", {"x": (0, 0)},
         "wiring {'x': (0, 0)} of mesh 'x:4 y:4' on 'v5e:4x4': x takes grid axis 0 twice"),
        ("data:4 model:8", "h100:4x8", {"model": "swich"},
         "wiring {'model': 'swich'} of mesh 'data:4 model:8' on 'h100:4x8': "
         "no grid axis 'swich'; did you mean 'switch'? legal here: 'network', 'switch'"),
        ("x:4 y:4", "v5e:4x4", "x→5, q→1",
         "wiring 'x→5, q→1' of mesh 'x:4 y:4' on 'v5e:4x4': 2 faults\n  1. no grid axis '5'; legal here: '0', '1'\n"
         "  2. no mesh axis 'q'; legal here: 'x', 'y'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_nearest(mesh, topology, given, said):
    with pytest.raises(mtf.LayoutError) as refused:
        wire(mesh, topology, given)
    assert str(refused.value) == said


def test_an_unknown_axis_is_named():
    with pytest.raises(mtf.LayoutError, match="no axis 'w'; legal here: 'x', 'y'"):
        wire("x:4 y:4", "v5e:4x4").legs(("x", "w"))


def test_a_block_of_a_larger_slice_is_no_slower_than_a_slice_of_that_size():
    @mtf.function
    def both(a: "A B", b: "A B"):
        return mtf.reshard(a, "A B"), mtf.reshard(b, "A B")

    place = {"a": "A:x B", "b": "A B:y"}
    program = mtf.plan(both, "x:4 y:4", "", sizes="A:4096 B:4096", place=place)
    whole, part = (mtf.price(program, where) for where in ("v5e:4x4", "v5e:16x16"))
    assert part.seconds == whole.seconds > 0 and part.contention_seconds == 0
