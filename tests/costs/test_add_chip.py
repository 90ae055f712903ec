"""A chip of one's own: registered in one call, known everywhere, every fault of a call named at once."""

from __future__ import annotations

import pytest

import mtfcore as mtf
from mtfcore import chips
from mtfcore.chip_figures import FIGURES, read
from mtfcore.costs.links.wiring import wire


@pytest.fixture(autouse=True)
def _forget():
    """Other tests see the published chips alone."""
    yield
    chips._ADDED.clear()


WHOLE = {
    "source": "a data sheet, 2026-11", "peak_bf16": 500e12, "hbm_bytes": "64 GiB", "hbm_bytes_per_second": "3 TB/s",
    "link_bytes_per_second": "400 Gbit/s", "pod": "6x10",
}  # fmt: skip


def test_a_chip_like_another_has_its_other_figures():
    made = mtf.add_chip("V5x", like="v5p", source="a data sheet", peak_bf16="600 TFLOP/s", hbm_bytes=128 * 2**30)
    assert mtf.chip("v5x") is mtf.chip(made) is made and repr(made).startswith("<Chip v5x: v5x, as TPU v5p")
    assert made.peak_flops_per_device() == 600e12 and made.hbm_bytes_per_device == 128 * 2**30
    assert made.link_bytes_per_second == 90e9 and made.tile == (128, 128) and made.peak_flops_per_device("i8") == 918e12
    slice_ = mtf.topology("v5x:4x4x4")
    assert str(slice_) == "v5x:4x4x4" and slice_.wraps == (True,) * 3
    assert wire("x:4 y:16", slice_).text() == "x→0, y→1+2"


def test_its_table_says_what_was_given_and_what_was_copied():
    rows = mtf.add_chip("v5x", like="v5p", source="my sheet", peak_bf16="600 TFLOP/s").table().rows
    peak, copied = rows[0], next(row for row in rows if row["figure"] == "hbm_bytes")
    assert (peak["value"], peak["sure"], peak["sources"]) == ("600 TFLOP/s", "given", "my sheet")
    assert copied["why"].startswith("as TPU v5p") and "Google Cloud" in copied["sources"]
    assert "v5x, as TPU v5p: figures of one chip" in str(mtf.chip("v5x"))
    assert "published figures" in str(mtf.chip("v5p"))


def test_a_chip_may_be_like_nothing():
    made = mtf.add_chip("mine", network="torus", **WHOLE)
    assert (made.link_bytes_per_second, made.value("links"), made.devices, made.tile) == (50e9, 4, 1, (1, 1))
    assert made.fast_memory_bytes_per_device == 0 and made.hop_seconds == 0
    assert mtf.topology("mine:3x7").wraps == (True, True) and mtf.topology("mine:2x7").wraps == (False, True)
    with pytest.raises(mtf.LayoutError, match="mine comes in grids of 2 axes up to 6x10; nearest: 'mine:6x10'"):
        mtf.topology("mine:7x10")


def test_networks_of_every_kind():
    assert mtf.add_chip("line", network="mesh", **WHOLE) and mtf.topology("line:6x10").wraps == (False, False)
    assert mtf.add_chip("full", network="full", **WHOLE) and mtf.topology("full:4x10").wraps == (False, True)
    made = mtf.add_chip("cube", network="cubes", most_chips=256, **WHOLE)
    assert made.value("links") == 6 and mtf.topology("cube:4x8x8").wraps == (True,) * 3
    mtf.add_chip("rack", like="h200", source="a data sheet", node_chips=72, switch_bytes_per_second="900 GB/s")
    assert mtf.topology("rack:2x72").devices == 144 and mtf.topology("rack:72").link_bytes_per_second == 900e9


def test_several_devices_a_chip_share_its_figures():
    mtf.add_chip("twin", network="torus", devices=2, core_link_bytes_per_second="200 GB/s", **WHOLE)
    assert mtf.chip("twin").hbm_bytes_per_device == 32 * 2**30
    assert (
        mtf.topology("twin:3x5").device_grid == (3, 5, 2) and mtf.topology("twin:3x5").axes[2].bytes_per_second == 2e11
    )


def test_the_same_call_again_changes_nothing_and_another_replaces():
    first = mtf.add_chip("mine", network="torus", **WHOLE)
    assert mtf.add_chip("mine", network="torus", **WHOLE) is first
    other = mtf.add_chip("mine", network="torus", **WHOLE | {"hbm_bytes": "96 GiB"})
    assert mtf.chip("mine") is other is not first and mtf.topology("mine:2x2").hbm_bytes_per_device == 96 * 2**30


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("hbm_bytes", "95 GiB", 95 * 2**30), ("hbm_bytes", "16 GB", 16e9), ("hbm_bytes", 16e9, 16e9),
        ("peak_bf16", "459 TFLOP/s", 459e12), ("peak_i8", "918 TOP/s", 918e12), ("peak_fp8", "4.6e3 TFLOPS", 4.6e15),
        ("hbm_bytes_per_second", "2765 GB/s", 2765e9), ("network_bytes_per_second", "50 Gbit/s", 6.25e9),
        ("network_bytes_per_second", "6.25 GB/s", 6.25e9), ("hop_seconds", "1 µs", 1e-6),
        ("hop_seconds", "500 ns", 5e-7), ("hop_seconds", 0, 0), ("tile", "256x128", [256, 128]),
        ("tile", (16, 64), [16, 64]), ("pod", [8], [8]), ("links", 6, 6),
    ],
)  # fmt: skip
def test_figures_are_read_with_their_units(key, text, value):
    found, fault = read(key, text)
    assert (found if isinstance(found, list) else pytest.approx(found)) == value and fault == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hbm_bytes", "95 GB/s"), ("hbm_bytes", "95"), ("hbm_bytes", -1), ("hbm_bytes", True), ("hbm_bytes", "1 µB"),
        ("hbm_bytes_per_second", "2765 GB"), ("hbm_bytes_per_second", float("nan")), ("peak_bf16", "459 TB/s"),
        ("peak_bf16", float("inf")), ("peak_bf16", None), ("hop_seconds", -1e-6), ("hop_seconds", "1 Gs"),
        ("tile", "128"), ("tile", (128, 0)), ("tile", None), ("pod", "axb"), ("pod", "999x999"), ("pod", []),
        ("links", 0), ("links", 2.5), ("links", "six"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_what_it_should_be(key, value):
    found, fault = read(key, value)
    assert found is None and fault


def test_every_fault_is_named_at_once():
    with pytest.raises(mtf.LayoutError) as refused:
        mtf.add_chip("v4", like="v9", network="ring", devices=0, hmb_bytes=3, hbm_bytes="12 GB/s", tile=(1, 2, 3))
    said = str(refused.value)
    assert said.startswith("chip 'v4': 8 faults\n  1. like='v9' is no chip; legal here: 'v2', 'v3'")
    for part in (
        "'v4' is a published chip; use another name, e.g. 'my_v4'",
        "source is empty; say where the figures are from",
        "network 'ring' is none of: 'torus': ",
        "devices=0: a chip makes a whole number of devices, at least 1",
        "no figure 'hmb_bytes'; did you mean 'hbm_bytes'?",
        "hbm_bytes='12 GB/s': bytes, e.g. 95 * 2**30 or '95 GiB'",
        "tile=(1, 2, 3): two whole numbers, e.g. '128x128'",
    ):
        assert part in said
    assert "v4" not in chips._ADDED


@pytest.mark.parametrize(
    ("name", "how", "said"),
    [
        ("a b", {}, "'a b' is no name for a chip"),
        ("", {}, "'' is no name for a chip"),
        (None, {}, "None is no name for a chip"),
        ("mine", {"source": " "}, "source is empty"),
        ("mine", {"pod": None}, "pod=None: whole numbers, e.g. '16x16'"),
        ("mine", {"network": "switch"}, "switch_bytes_per_second is missing.*\n.*node_chips is missing: chips behind"),
        ("mine", {"network": "cubes"}, "most_chips is missing: chips of the largest slice"),
        ("mine", {"network": ""}, "network is missing: 'torus'"),
    ],
)
def test_one_fault_is_named_alone(name, how, said):
    with pytest.raises(mtf.LayoutError, match=said):
        mtf.add_chip(name, **{"network": "torus", **WHOLE, **how})
    assert not chips._ADDED


def test_what_a_price_needs_must_be_said():
    with pytest.raises(mtf.LayoutError) as refused:
        mtf.add_chip("mine", network="torus", source="a data sheet")
    lacks = ["peak_bf16", "hbm_bytes", "hbm_bytes_per_second", "link_bytes_per_second", "pod"]
    assert str(refused.value).count("is missing") == len(lacks)
    assert all(f"{key} is missing: {FIGURES[key]}" in str(refused.value) for key in lacks)


def test_every_figure_of_a_published_chip_may_be_given():
    keys = {key for c in chips.published().values() for key in c.figures} - {"wraps"}
    assert {key for key in keys if not key.startswith("peak_")} == {key for key in FIGURES if key != "peak_bf16"}
