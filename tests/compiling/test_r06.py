"""Pick a slice, or type a wrong one; what comes back is never a measured time (maxtext 790, t5 34)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from compiling.compiled import needs_compiler, small, small_report

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.compiling.process import WORKER
from mtfcore.compiling.slices import NAMES, Target, target_of
from mtfcore.costs.links.wiring import wire
from mtfcore.topologies import legal

# ---- the list ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_list_shows_chips_cores_devices_grid_and_wrap(name):
    table = mtf.costs.slices(name)
    for row in table.rows:
        slice_ = mtf.topology(row["slice"])
        assert (
            (row["chips"], row["devices"]) == (slice_.chips, slice_.devices) == (math.prod(row["grid"]), slice_.devices)
        )
        assert row["cores"] == slice_.chips * mtf.chip(name).value("cores")
        assert math.prod(row["device_grid"]) == row["devices"] and len(row["device_grid"]) == len(row["wraps"])
    sizes = [row["chips"] for row in table.rows]
    assert sizes == sorted(set(sizes)) and sizes[0] == 1
    text = str(table)
    assert all(words in text for words in ("chips", "cores", "devices", "device grid", "wraps"))


def test_the_list_of_one_size_has_every_grid():
    rows = {row["slice"]: row for row in mtf.costs.slices(devices=16).rows}
    assert {"v2:2x4", "v4:2x2x4", "v5e:4x4", "v5e:1x16", "v7x:2x2x2"} <= set(rows)
    assert rows["v5e:1x16"]["wraps"] == (False, True) and rows["v7x:2x2x2"]["device_grid"] == (2, 2, 2, 2)
    assert {tuple(sorted(grid)) for grid in legal(mtf.chip("v4")) if math.prod(grid) == 16} == {
        tuple(sorted(row["grid"])) for name, row in rows.items() if name.startswith("v4")
    }
    with pytest.raises(mtf.LayoutError, match=r"no slice of v4 has 337 devices; nearest: 256, 320, 384, 448"):
        mtf.costs.slices("v4", 337)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("v9:2x2", "write e.g. 'v6e:2x2' (4 chips, 4 devices, grid 2x2, no axis wraps); chip 'v9': legal here: 'v2'"),
        (
            "v4:3x5x7",
            "nearest: 'v4:4x4x8' (128 chips, 128 devices, grid 4x4x8, every axis wraps), 'v4:4x4x4' (64 chips",
        ),
        ("v5e:3x3", "nearest: 'v5e:2x4' (8 chips, 8 devices, grid 2x4, no axis wraps), 'v5e:1x8' (8 chips, 8 devices,"),
        ("v5p-8", "of 8 cores on 4 chips; write 'v5p:2x2x1' (4 chips, 4 devices, grid 2x2x1, no axis wraps)"),
        ("tpu7x:2x2x1", "libtpu's name for v7x; write 'v7x:2x2x1' (4 chips, 8 devices, grid 2x2x1x2, no axis wraps)"),
        (
            "tpu7x:5x5x5",
            "libtpu's name for v7x; write 'v7x:4x4x8' (128 chips, 256 devices, grid 4x4x8x2, axes 0, 1 and",
        ),
        (
            "v2:12x16",
            "nearest: 'v2:16x16' (256 chips, 512 devices, grid 16x16x2, axes 0 and 1 wrap), 'v2:8x16' (128 chips",
        ),
        ("h100:9", "nearest: 'h100:8' (8 chips, 8 devices, grid 8, behind one switch)"),
    ],
)
def test_wrong_names_answer_with_what_the_nearest_are(wrong, said):
    with pytest.raises(mtf.LayoutError) as refused:
        mtf.topology(wrong)
    assert said in str(refused.value) and str(refused.value).startswith(f"no topology {wrong!r}")


# ---- with the compiler -------------------------------------------------------------------------------------------


def places(target: Target) -> set[tuple[int, ...]]:
    """The devices as libtpu itself has them."""
    return set(WORKER.ask({"target": target}, 60)["places"])


class TestWithTheCompiler:
    pytestmark = needs_compiler

    @pytest.mark.parametrize(
        "slice_", ["v2:4x4", "v3:2x4", "v4:4x4x4", "v4:2x2x4", "v5e:4x4", "v5p:2x2x4", "v6e:2x4", "v7x:2x2x2"]
    )
    def test_our_records_of_a_slice_are_libtpus(self, slice_):
        topology = mtf.topology(slice_)
        target = target_of(wire(f"x:{topology.devices}", topology))
        assert places(target) == set(target.at) and len(set(target.at)) == topology.devices

    def test_a_v4_without_megacore_has_a_device_for_each_core(self):
        """Our record has its two cores as one device, which libtpu must be told: the lack of it would show here."""
        target = target_of(wire("x:4 y:4", "v4:2x2x4"))
        apart = places(replace(target, options={}))
        assert len(apart) == 16 * mtf.chip("v4").value("cores") == 2 * len(places(target))
        assert {place[:3] for place in apart} == {place[:3] for place in target.at}
        assert {place[3] for place in apart} == {0, 1}

    @pytest.mark.parametrize("slice_", ["v2:2x1", "v3:2x1", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2", "v7x:2x1x1"])
    def test_every_kind_of_tpu_compiles(self, slice_):
        report = report_of_small(slice_)
        assert report.fits and report.cycles > 0 and report.memory.arguments > 0
        assert report.link_bytes == report.counts.link_bytes > 0
        assert report.lowered_counts.link_bytes == report.program.link_bytes().total
        assert sum(one.times * one.flops for one in report.fusions) == report.program.flops()

    def test_a_result_holds_texts_bytes_and_memory_and_no_measured_time(self):
        report = small_report()
        assert report.text.startswith("HloModule") and report.memory.total > 0 and report.link_bytes > 0
        for words in (str(report), report._repr_html_(), repr(report), str(report.fusion_table())):
            assert "measured" not in words and "modelled from compiled schedule" in words
        assert report.origin == "compiled" and report.seconds_origin == "modelled from compiled schedule"
        assert report.seconds == pytest.approx(
            report.cycles / mtf.chip("v5e").value("clock_hz") + report.exposed_link_seconds
        )


def report_of_small(slice_: str) -> CompiledReport:
    """A program so small that every compiler makes one of it in a moment."""
    return mtf.compile(small("rows:2 cols:2", batch=64, io=256, hidden=256), slice_)
