"""A slice as libtpu knows it; names that are none answer as mtf.topology does, before any compiler is started."""

from __future__ import annotations

import pytest
from compiling.compiled import small

import mtfcore as mtf
from mtfcore.compiling.process import WORKER
from mtfcore.compiling.slices import NAMES, target_of
from mtfcore.costs.links.wiring import wire
from mtfcore.topologies import legal


def test_a_v4_is_one_device_a_chip():
    target = target_of(wire("x:4 y:4 z:4", "v4:4x4x4"))
    assert (target.name, dict(target.options)) == ("v4:4x4x4", {"chip_config_name": "megacore"})
    assert target.at[0b011011] == (1, 2, 3, 0)


def test_cores_of_one_chip_are_devices_of_their_own():
    target = target_of(wire("x:4 y:4", "v2:4x2"))
    assert not target.options and len(set(target.at)) == 16
    assert {place[3] for place in target.at} == {0, 1} and {place[2] for place in target.at} == {0}


def test_the_mesh_may_lie_as_asked():
    target = target_of(wire("x:2 y:4", "v5e:4x2", "x→1, y→0"))
    assert [place[:2] for place in target.at[:4]] == [(0, 0), (1, 0), (2, 0), (3, 0)]


@pytest.mark.parametrize("name", NAMES)
def test_every_tpu_of_the_records_has_a_name(name):
    grid = min(legal(mtf.chip(name)))
    slice_ = mtf.topology(f"{name}:{'x'.join(map(str, grid))}")
    target = target_of(wire(f"x:{slice_.devices}" if slice_.devices > 1 else "x:1", slice_))
    assert len(target.at) == slice_.devices and target.name.startswith(NAMES[name])


@pytest.mark.parametrize("wrong", ["v9:2x2", "v4:3x5x7", "v5e:3x3", "v5p-8", 4])
def test_wrong_slices_answer_as_topologies_do(wrong):
    with pytest.raises(mtf.LayoutError) as expected:
        mtf.topology(wrong)
    before = WORKER.pid
    with pytest.raises(mtf.LayoutError) as refused:
        mtf.compile(small(), wrong)
    assert str(refused.value) == str(expected.value) and WORKER.pid == before


def test_gpus_have_another_compiler():
    with pytest.raises(mtf.LayoutError, match=r"no compiler for 'h100:4': libtpu compiles for 'v2', .*mtf\.price"):
        mtf.compile(small(), "h100:4")


def test_a_mesh_that_does_not_fit_is_refused_with_one_that_does():
    with pytest.raises(mtf.LayoutError, match=r"names 4 devices; 'v5e:1x1' has 1; nearest: .*'v5e:2x2'"):
        mtf.compile(small(), "v5e:1x1")


def test_a_mesh_on_part_of_a_slice_that_libtpu_takes_whole_is_refused_before():
    for slice_ in ("v5e:2x4", "v6e:4x8"):
        before = WORKER.pid
        with pytest.raises(mtf.LayoutError, match=r"covers 4 of the .* or for one; nearest: mesh 'rows.*' or 'v"):
            mtf.compile(small(), slice_)
        assert WORKER.pid == before
    assert len(target_of(wire("x:1", "v5e:2x4")).at) == 1 and len(target_of(wire("x:4", "v4:4x4x4")).at) == 4


def test_an_engine_and_a_run_are_answered_with_what_to_compile():
    """An engine has several programs; a run or a training step one, by its own name."""

    class Engine:
        plans = {"prefill": small(), "decode": small()}

    class Run:
        program = small()

    with pytest.raises(mtf.LayoutError, match=r"Engine has 2 programs, 'prefill', 'decode'; .*plans\['prefill'\], top"):
        mtf.compile(Engine(), "v5e:2x2")
    with pytest.raises(mtf.LayoutError, match=r"got a Run; compile what it runs: mtf\.compile\(it\.program, topology"):
        mtf.compile(Run(), "v5e:2x2")


def test_options_that_are_none_are_refused_together():
    odd = {"donate": 5, "timeout": float("nan"), "told": "print", "stop": True}
    with pytest.raises(mtf.LayoutError, match="compile: 4 faults") as refused:
        mtf.compile(small(), "v5e:2x2", **odd)
    assert all(f"{name} is " in str(refused.value) for name in odd)


@mtf.function
def doubled(x: "rows cols"):
    return x + x


def test_types_of_64_bits_are_refused_rather_than_cut():
    for dtype in ("f64", "i64"):
        with pytest.raises(mtf.LayoutError, match=f"doubled uses {dtype}; plan it with f32 and i32"):
            mtf.compile(mtf.plan(doubled, "x:1", sizes="rows:8 cols:8", dtype=dtype), "v5e:1x1")


def test_what_is_no_program_and_names_that_are_no_input():
    with pytest.raises(mtf.LayoutError, match=r"expected a program made by mtf\.plan"):
        mtf.compile(lambda x: x, "v5e:2x2")
    with pytest.raises(mtf.LayoutError, match=r"donate names 'y'; legal here: 'x', 'w', 'v'"):
        mtf.compile(small(), "v5e:2x2", donate=["y"])
