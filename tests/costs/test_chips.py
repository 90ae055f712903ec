"""Chips and topologies: figures with their sources, derived ones that must agree, and grids that cannot be."""

from __future__ import annotations

import json

import pytest

import mtfcore as mtf
from mtfcore.chips import TABLE, chips, sources

NAMES = "v2 v3 v4 v5e v5p v6e v7x a100 h100 h200".split()
EVERY = [(c.name, key) for c in chips().values() for key in c.figures]


def test_every_chip_of_the_design_is_there():
    assert set(NAMES) <= set(chips())


@pytest.mark.parametrize("name", chips())
def test_a_chip_has_what_a_price_needs(name):
    c = mtf.chip(name)
    assert c.peak_flops_per_device("bf16") > 1e13 and c.hbm_bytes_per_device > 2**32
    assert c.link_bytes_per_second >= 45e9 and c.hbm_bytes_per_second_per_device > 3e11
    assert c.as_of and c.kind in ("TPU", "GPU")


@pytest.mark.parametrize(("name", "figure"), EVERY)
def test_every_figure_has_public_sources_and_a_reason_where_they_disagree(name, figure):
    c, known = mtf.chip(name), sources()
    values = {json.dumps(entry.value) for entry in c.figures[figure]}
    assert (figure in c.because) == (len(values) > 1), "where sources disagree, and only there, `because` says why"
    for entry in c.figures[figure]:
        assert entry.sources and entry.sure in ("seen", "computed", "recalled")
        assert entry.sure != "computed" or entry.note, "a derived figure says how"
        assert entry.value is not None or entry.note, "what is not published says so"
        public = [known[source] for source in entry.sources if source not in ("arithmetic", "memory")]
        assert all(source["address"].startswith("https://") and source["dated"] for source in public)
        assert entry.sure == "recalled" or "memory" not in entry.sources


def test_a_chosen_figure_is_recalled_only_where_there_is_nothing_else():
    """Whether parts of a v2 or v3 pod keep their wrap-around links is written in no source that was seen."""
    recalled = [(n, f) for n, f in EVERY if mtf.chip(n).figures[f][0].sure == "recalled"]
    assert recalled == [("v2", "wraps"), ("v3", "wraps")]
    assert all(len(mtf.chip(n).figures[f]) == 1 and mtf.chip(n).figures[f][0].note for n, f in recalled)


def test_every_source_is_used():
    used = {s for c in chips().values() for figures in c.figures.values() for entry in figures for s in entry.sources}
    assert used == set(sources())


def test_constants_stand_once():
    """No value that is a pod's, a node's or a peak's total is written a second time under another name."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    keys = {key for entry in table["chips"].values() for key in entry["figures"]}
    assert not [key for key in keys if "per_device" in key or "pod_peak" in key]


@pytest.mark.parametrize(
    ("name", "chips_in_pod", "published"),
    [("v2", 256, 11.5e15), ("v3", 1024, 126e15), ("v4", 4096, 1.1e18), ("v5e", 256, 50.63e15), ("v6e", 256, 234.9e15)],
)
def test_peak_of_a_pod_is_the_published_one(name, chips_in_pod, published):
    c = mtf.chip(name)
    assert c.peak_flops_per_device("bf16") * c.devices * chips_in_pod == pytest.approx(published, rel=0.03)


def test_a_device_of_v2_is_a_core():
    v2 = mtf.chip("v2")
    assert v2.devices == 2 and v2.hbm_bytes_per_device == 8 * 2**30
    assert v2.peak_flops_per_device("bf16") == 22.5e12


def test_types_without_a_peak_of_their_own_run_as_others():
    assert mtf.chip("v4").peak_flops_per_device("f32") == mtf.chip("v4").peak_flops_per_device("bf16")
    assert mtf.chip("v3").peak_flops_per_device("i8") == mtf.chip("v3").peak_flops_per_device("bf16")
    assert mtf.chip("a100").peak_flops_per_device("float32") == 156e12
    assert mtf.chip("v5e").peak_flops_per_device("i8") == 393e12


def test_a_chip_without_a_peak_says_what_it_has():
    with pytest.raises(mtf.LayoutError, match="TPU v2 has no published peak for f64; it has bf16"):
        mtf.chip("v2").peak_flops_per_device("f64")


def test_an_unknown_chip_offers_the_nearest():
    with pytest.raises(mtf.LayoutError, match=r"no chip 'v5'; did you mean 'v5[ep]'"):
        mtf.chip("v5")
    assert mtf.chip("V4") is mtf.chip("v4") is mtf.chip(mtf.chip("v4"))


def test_the_table_shows_both_figures_and_why_one_was_chosen():
    text = str(mtf.chip("v2"))
    assert "45 TFLOP/s" in text and "46 TFLOP/s" in text and "11.5 PFLOP/s" in text
    assert "<table" in mtf.chip("v2")._repr_html_() and "v2" in repr(mtf.chip("v2"))


# ---- topologies


@pytest.mark.parametrize(
    ("text", "devices", "grid", "wraps"),
    [
        ("v2:16x16", 512, (16, 16, 2), (True, True, False)),  # the paper's 16 x 16 x 2 torus of cores
        ("v2:8x16", 256, (8, 16, 2), (False, True, False)),
        ("v3:32x32", 2048, (32, 32, 2), (True, True, False)),
        ("v4:4x4x4", 64, (4, 4, 4), (True, True, True)),
        ("v4:2x2x4", 16, (2, 2, 4), (False, False, False)),
        ("v4:4x4x8", 128, (4, 4, 8), (True, True, True)),
        ("v5e:8x16", 128, (8, 16), (False, True)),
        ("v7x:4x4x4", 128, (4, 4, 4, 2), (True, True, True, False)),
        ("a100:8", 8, (8,), (False,)),
        ("h100:4x8", 32, (4, 8), (False, False)),
    ],
)
def test_grids_and_which_axes_wrap(text, devices, grid, wraps):
    t = mtf.topology(text)
    assert (str(t), t.devices, t.device_grid, t.wraps) == (text, devices, grid, wraps)


def test_a_slice_says_what_a_device_of_it_has():
    t = mtf.topology("v2:16x16")
    assert t.hbm_bytes_per_device == 8 * 2**30 and t.peak_flops_per_device() == 22.5e12
    assert t.link_bytes_per_second == 60e9 and t.axes[-1].bytes_per_second == 120e9
    assert repr(t) == "<Topology v2:16x16: 256 chips, 512 devices>"


def test_several_nodes_are_joined_by_the_slower_network():
    assert mtf.topology("h100:8").link_bytes_per_second == 450e9
    assert mtf.topology("h100:4x8").link_bytes_per_second == 50e9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v2:17x16", "up to 16x16; nearest: 'v2:16x16'"),
        ("v2:16x16x2", "grids of 2 axes, each a power of two.*nearest: 'v2:16x16'"),
        ("v2", "no topology 'v2': .*nearest: 'v2:1x1'"),
        ("v4:8x8", "grids of 3 axes of 1, 2 or 4, or of multiples of 4.*nearest: 'v4:4x4x4'"),
        ("v4:4x4x6", "nearest: 'v4:4x4x[48]'"),
        ("v4:16x16x32", "up to 4,096 chips"),
        ("a100:16", "nodes of up to 8.*nearest: 'a100:2x8'"),
        ("v2:8", "nearest: 'v2:2x4'"),
        ("v4:64", "nearest: 'v4:4x4x4'"),
        ("v5e:12", "nearest: 'v5e:4x4'"),
        ("v4:3x5x7", "nearest: 'v4:4x4x8'"),
        ("v5e:3x3", "nearest: 'v5e:2x4'"),
        ("v5e:0x4", "nearest: 'v5e:1x4'"),
        ("h100:9", "nearest: 'h100:8'"),
        ("h100:3x9", "nearest: 'h100:3x8'"),
        ("h100:600x8", "nearest: 'h100:512x8'"),
        ("v7x:8x8x200", "up to 9,216 chips"),
        ("v9:4x4", r"write e.g. 'v6e:4x4' \(.* wraps?\); chip 'v9'"),
        ("v9:2x2x1", r"write e.g. 'v7x:2x2x1' \(.* wraps?\); chip 'v9'"),
        ("v9:7", r"write e.g. 'v4:4x4x4' \(.* wraps?\); chip 'v9'"),
        ("v7:4x4x4", "chip 'v7': did you mean 'v7x'"),
        ("v5p-8", "a product's name, of 8 cores on 4 chips; write 'v5p:2x2x1'"),
        ("v4-32", "a product's name, of 32 cores on 16 chips; write 'v4:2x2x4'"),
        ("v5litepod-16", "a product's name, of 16 cores on 16 chips; write 'v5e:4x4'"),
        ("v3-2048", "a product's name, of 2,048 cores on 1,024 chips; write 'v3:32x32'"),
        ("v4-7", "chip 'v4-7'"),
        ("v4-4x4x4", "no topology 'v4-4x4x4'"),
        ("v4:1" + "0" * 400, "no topology 'v4:1000.*nearest"),
        ("v4:" + "9" * 5_000, "no topology 'v4:9999.*nearest"),
        (16, "no topology 16"),
    ],
)
def test_impossible_slices_are_refused_with_the_nearest(text, said):
    with pytest.raises(mtf.LayoutError, match=said):
        mtf.topology(text)
