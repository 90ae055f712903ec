"""Schedules against figures known from elsewhere, and schedules of a program's steps on its mesh."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore import schedules
from mtfcore.schedules import closed_forms
from mtfcore.traffic import split_by_axis

MIB = 1 << 20
ONE_WAY = 4.5e10  # bytes a second of one v5e link in one direction: the rate that these compute with
HOP = 1e-6  # seconds: the hop floor of the same cases


def schedule_seconds(kind, sizes, way, n_bytes, hop_seconds=0.0):
    return schedules.schedule(kind, sizes, way, n_bytes).seconds(ONE_WAY, hop_seconds)


# ---- bytes and times as worked out by hand -----------------------------------------------------------------------


@pytest.mark.parametrize(("group", "mib"), [(1, 0), (2, 64), (4, 96), (8, 112), (16, 120), (64, 126)])
def test_ring_factors(group, mib):
    for way in ("ring", "two_way"):
        plan = schedules.schedule("all_reduce", group, way, 64 * MIB)
        assert set(plan.sent_bytes.values()) == {mib * MIB}
        assert (plan.steps == 0) == (group == 1)
        scatter = schedules.schedule("reduce_scatter", group, way, 64 * MIB)
        gather = schedules.schedule("all_gather", group, way, 64 * MIB // group)
        assert set(scatter.sent_bytes.values()) == set(gather.sent_bytes.values()) == {mib * MIB // 2}


def test_gather_on_a_ring_of_four():
    held = 2 * 1024 * 4096 // 4 // 4  # bf16[1024 on X, 4096 on Y] on x:4 y:4, both axes off: what a device holds
    assert schedule_seconds("all_gather", 4, "two_way", held) == pytest.approx(17.5e-6, rel=2e-3)


def test_sum_of_an_array_that_is_cut_already():
    held = 2 * 1024 * 4096 // 16
    assert held == 524_288
    assert schedule_seconds("all_reduce", 4, "two_way", held) == pytest.approx(8.74e-6, rel=1e-3)
    assert schedules.schedule("all_reduce", 4, "two_way", held).steps * HOP == 4e-6
    for n in (2, 4, 8):  # cut over one more axis of size n: n times less
        assert schedule_seconds("all_reduce", 4, "two_way", held // n) == pytest.approx(8.74e-6 / n, rel=1e-3)


def test_no_link_joins_the_ends():
    whole = 2 * 2048 * 8192
    on_line = schedules.schedule("all_gather", 4, "line", whole // 4)
    assert on_line.steps == 3 and on_line.time_bytes == on_line.busiest_link_bytes == 3 * 8_388_608
    assert on_line.seconds(ONE_WAY) == pytest.approx(559e-6, rel=1e-3)
    assert schedule_seconds("all_gather", 4, "two_way", whole // 4) == pytest.approx(280e-6, rel=2e-3)
    assert schedule_seconds("all_gather", 16, "two_way", whole // 16) == pytest.approx(350e-6, rel=2e-3)
    two = schedule_seconds("all_gather", 2, "line", whole // 2)
    assert (
        two
        == pytest.approx(whole / 9e10)
        == pytest.approx(2 * schedule_seconds("all_gather", 2, "two_way", whole // 2))
    )


def test_the_least_time_of_a_hop():
    assert schedule_seconds("all_gather", 4, "two_way", 64, HOP) == pytest.approx(2e-6)
    shard = 2 * 256 * 256 // 4
    assert schedule_seconds("all_gather", 4, "line", shard, HOP) == pytest.approx(3e-6)
    assert shard / ONE_WAY == pytest.approx(0.73e-6, rel=5e-3)
    knee = int(ONE_WAY * HOP)
    assert schedule_seconds("all_gather", 4, "line", knee // 2, HOP) == schedule_seconds(
        "all_gather", 4, "line", knee, HOP
    )
    assert schedule_seconds("all_gather", 4, "line", 2 * knee, HOP) == pytest.approx(6e-6)


# ---- all-to-all: what is sent and what is one's own ----------------------------------------------------------------


@pytest.mark.parametrize("group", range(2, 65, 2))
def test_all_to_all_on_a_two_way_ring_of_even_size(group):
    n_bytes = 24 * group
    plan = schedules.schedule("all_to_all", group, "two_way", n_bytes)
    assert plan.busiest_link_bytes == plan.time_bytes == n_bytes * group // 8
    assert set(plan.payload_bytes.values()) == {n_bytes * (group - 1) // group}
    assert set(plan.sent_bytes.values()) == {2 * n_bytes * group // 8}  # both links, passing on included


def test_all_to_all_on_a_cube_takes_as_long_as_on_one_axis():
    n_bytes = 6 * 64 * 4
    cube, ring = (schedules.schedule("all_to_all", sizes, "two_way", n_bytes) for sizes in ((4, 4, 4), (4,)))
    assert cube.time_bytes == ring.time_bytes == n_bytes * 4 // 8


def test_axes_of_different_sizes_have_no_closed_form():
    with pytest.raises(mtf.LayoutError, match="ask the schedule's time_bytes"):
        closed_forms.time_bytes("all_gather", 8, (4, 2), "ring")


# ---- steps of a program --------------------------------------------------------------------------------------------


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def collectives(mesh, layout, **more):
    sizes = "batch:32 io:64 hidden:128"
    return mtf.plan(two_layers, mtf.Mesh(mesh), mtf.Layout(layout), sizes=sizes, **more).collectives()


def test_the_sum_of_a_dimension_on_cols_runs_within_each_row():
    (step,) = collectives("rows:4 cols:2", "batch:rows hidden:cols")
    plans = schedules.every_group(step, "rows:4 cols:2")
    assert [plan.devices for plan in plans] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert schedules.of_step(step, "rows:4 cols:2", device={"rows": 2, "cols": 1}).devices == (4, 5)
    for plan in plans:
        assert set(plan.sent_bytes) == set(plan.devices) and set(plan.sent_bytes.values()) == {step.link_bytes}
        assert {device for hop in plan.hops for device in (hop.source, hop.target, *hop.link[:2])} == set(plan.devices)


@pytest.mark.parametrize("way", schedules.WAYS)
def test_groups_of_a_step_hold_every_device_once_and_replay(way):
    mesh = mtf.Mesh("x:2 y:3 z:2")
    move = resharded("B L:(z x)", "B:(z x) L", mesh)
    for step in move.collectives():
        plans = schedules.every_group(step, mesh, way)
        assert sorted(device for plan in plans for device in plan.devices) == list(range(mesh.size))
        assert all(plan.sizes == tuple(mesh[axis] for axis in step.axes) for plan in plans)
        for plan in plans:
            arrays = [np.arange(plan.group) + 100 * device for device in plan.devices]
            found = schedules.replay(plan, arrays)
            assert all(np.array_equal(found[n], np.array(arrays)[:, n]) for n in range(plan.group))


def resharded(before, after, mesh):
    @mtf.function
    def move(t: "B L"):
        return mtf.reshard(t, after)

    return mtf.plan(move, mesh, sizes="B:24 L:24", place={"t": before})


def test_a_permute_sends_what_the_executor_sends():
    mesh = mtf.Mesh("x:2 y:4")
    (step,) = resharded("B:(x y) L", "B:(y x) L", mesh).collectives()
    assert step.kind == "permute"
    plan = schedules.of_step(step, mesh, "two_way")
    held, wanted = (step.before[0].slices, step.after.slices)
    found = schedules.replay(plan, [np.array([held(mesh, device)[0].start]) for device in plan.devices])
    assert [int(start[0]) for start in found] == [wanted(mesh, device)[0].start for device in plan.devices]
    assert max(plan.payload_bytes.values()) == step.link_bytes


def test_ways_by_axis():
    mesh = mtf.Mesh("x:4 y:3")
    (step,) = resharded("B L:(x y)", "B L", mesh).collectives()
    mixed = schedules.of_step(step, mesh, {"x": "two_way", "y": "line"})
    assert mixed.ways == ("two_way", "line") and mixed.name == "two-way ring and line all-gather over 2 axes at once"
    with pytest.raises(mtf.LayoutError, match="no way for axis 'y'; legal here: 'x'"):
        schedules.of_step(step, mesh, {"x": "line"})


@pytest.mark.parametrize(
    ("before", "after"), [("B L:(x y)", "B L"), ("B L partialsum:xy", "B L:xy"), ("B L:xy", "B:xy L")]
)
def test_axes_in_turn_send_what_the_program_says_for_each_axis(before, after):
    mesh = mtf.Mesh("x:2 y:4")
    (step,) = resharded(before, after, mesh).collectives()
    plan = schedules.of_step(step, mesh, "ring", at_once=False)
    own = [hop for hop in plan.hops if hop.source == 0]
    by_axis = dict.fromkeys(step.axes, Fraction(0))
    for hop in own:
        mine = len(hop.pieces) if step.kind != "all_to_all" else sum(piece.block == 0 for piece in hop.pieces)
        by_axis[step.axes[hop.link.axis]] += plan.piece_bytes * mine
    assert by_axis == split_by_axis(step, mesh)


def test_a_local_step_has_no_hops():
    program = mtf.plan(two_layers, "rows:2", "hidden:rows", sizes="batch:4 io:4 hidden:4")
    with pytest.raises(mtf.LayoutError, match="it is no collective"):
        schedules.of_step(program.steps[0], "rows:2")


# ---- what people read ----------------------------------------------------------------------------------------------


def test_words():
    plan = schedules.schedule("all_to_all", (2, 2), "two_way", 6)
    assert repr(plan) == "<Schedule two-way ring all-to-all over 2 axes at once on 2x2: 2 steps, 32 hops>"
    hop = schedules.schedule("reduce_scatter", 4, "ring", n_bytes=10).hops[0]
    assert str(hop) == "step 1: 0 → 1, block 3, 5/2 bytes, added"
    assert schedules.schedule("all_to_all", 4, "ring", 8).at(1)[0].label() == "blocks 0→3, 0→2, 0→1"
    assert schedules.schedule("all_gather", 4, "two_way", 8).at(2)[0].label() == "1/2 of block 3"


def test_no_jax():
    code = (
        "import sys; from mtfcore import schedules; schedules.schedule('all_gather', 4); sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
