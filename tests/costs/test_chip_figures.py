"""The figures that pricing uses, chip by chip, against the published ones; pods made of them against printed pods."""

from __future__ import annotations

import pytest

import mtfcore as mtf

MiB, GiB = 2**20, 2**30
# peak bf16, peak int8, HBM bytes, HBM bytes/s, one link (or the switch) bytes/s one way, fast memory; of a whole chip
WHOLE = {
    "v2": (45e12, None, 16 * GiB, 716e9, 60e9, 32 * MiB),
    "v3": (123e12, None, 32 * GiB, 900e9, 100e9, 32 * MiB),
    "v4": (275e12, 275e12, 32 * GiB, 1200e9, 45e9, 32 * MiB),
    "v5e": (197e12, 393e12, 16 * GiB, 819e9, 45e9, 128 * MiB),
    "v5p": (459e12, 918e12, 95 * GiB, 2765e9, 90e9, 128 * MiB),
    "v6e": (918e12, 1836e12, 32 * GiB, 1638e9, 90e9, 128 * MiB),
    "v7x": (2307e12, None, 192 * GiB, 7380e9, 100e9, 128 * MiB),
    "a100": (312e12, 624e12, 80e9, 2039e9, 300e9, 40e6),
    "h100": (989.4e12, 1978.9e12, 80e9, 3350e9, 450e9, 50e6),
    "h200": (990e12, 2000e12, 141e9, 4800e9, 450e9, 50e6),
}
KEYS = ("peak_bf16", "peak_i8", "hbm_bytes", "hbm_bytes_per_second", "", "fast_memory_bytes")
# rows and columns of the matrix unit, devices a chip, links, seconds a hop
SHAPES = {
    "v2": ((128, 128), 2, 4), "v3": ((128, 128), 2, 4), "v4": ((128, 128), 1, 6), "v5e": ((128, 128), 1, 4),
    "v5p": ((128, 128), 1, 6), "v6e": ((256, 256), 1, 4), "v7x": ((256, 256), 2, 6), "a100": ((16, 16), 1, 12),
    "h100": ((16, 64), 1, 18), "h200": ((16, 64), 1, 18),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_chosen_figures_are_the_published_ones(name):
    c = mtf.chip(name)
    for key, value in zip(KEYS, WHOLE[name], strict=True):
        assert (c.value(key) if key else c.link_bytes_per_second) == value, key


@pytest.mark.parametrize("name", SHAPES)
def test_a_device_has_its_share_of_the_chip(name):
    c = mtf.chip(name)
    tile, devices, links = SHAPES[name]
    assert (c.tile, c.tile_rows, c.devices, c.value("links")) == (tile, 8, devices, links)
    assert c.fast_memory_bytes_per_device * devices == WHOLE[name][-1] + (128 * MiB if name == "v4" else 0)
    assert c.hbm_bytes_per_second_per_device * devices == WHOLE[name][3]
    assert c.hop_seconds == 1e-6


@pytest.mark.parametrize(
    ("name", "figure", "values"),
    [
        ("v2", "peak_bf16", [45e12, 46e12]),
        ("v2", "hbm_bytes_per_second", [716e9, 700e9, 600e9]),
        ("v3", "peak_bf16", [123e12, 140e12]),
        ("v3", "hbm_bytes_per_second", [900e9, 825e9]),
        ("v4", "hbm_bytes_per_second", [1200e9, 1230e9]),
        ("v4", "link_bytes_per_second", [45e9, 50e9, 46.9e9, 45e9]),
        ("v5e", "hbm_bytes_per_second", [819e9, 820e9, 810e9, 859e9]),
        ("v5e", "link_bytes_per_second", [45e9, 50e9, 50e9]),
        ("v5e", "pcie_bytes_per_second", [16e9, 15e9]),
        ("v5p", "hbm_bytes_per_second", [2765e9, 2800e9, 2460e9]),
        ("v5p", "interconnect_bytes_per_second", [1200e9, 600e9]),
        ("v6e", "peak_bf16", [918e12, 920e12]),
        ("v7x", "link_bytes_per_second", [100e9, 100e9, 90e9]),
        ("h100", "peak_bf16", [989.4e12, 990e12]),
        ("h200", "peak_bf16", [990e12, 1970e12]),
        ("a100", "hop_seconds", [1e-6, 8.92e-6, 1e-5]),
    ],
)
def test_sources_that_disagree_are_all_kept(name, figure, values):
    assert [entry.value for entry in mtf.chip(name).figures[figure]] == values


# ---- pods


@pytest.mark.parametrize(
    ("pod", "printed", "within"),
    [("v3:32x32", 6.4e12, 0), ("v4:16x16x16", 24e12, 0.05), ("v5e:16x16", 1.6e12, 0.11), ("v6e:16x16", 3.2e12, 0.11)],
)
def test_the_links_of_a_pod_give_its_printed_bisection(pod, printed, within):
    """Cutting one ring cuts two links, for every chip of the other axes; the book's 45 and 90 are a tenth less."""
    links = [axis for axis in mtf.topology(pod).axes if axis.kind == "links"]
    rings = 1
    for axis in links[1:]:
        rings *= axis.size
    assert links[0].wraps and 2 * rings * links[0].bytes_per_second == pytest.approx(printed, rel=within or 1e-12)


@pytest.mark.parametrize("name", ["v5e", "v5p", "v6e", "v7x", "h100", "h200", "a100"])
def test_both_ways_on_all_links_is_within_a_tenth_of_what_the_maker_prints(name):
    c = mtf.chip(name)
    both = 2 * c.value("links") * c.value("link_bytes_per_second")
    assert 0.9 <= both / c.value("interconnect_bytes_per_second") <= 1


def test_all_links_of_v4_are_the_second_papers_270_gb_a_second():
    v4 = mtf.chip("v4")
    assert v4.value("links") * v4.link_bytes_per_second == v4.value("interconnect_bytes_per_second") == 270e9


def test_the_pod_is_as_large_as_printed():
    for name in ("v3", "v4", "v5e", "v5p", "v6e", "v7x"):
        c = mtf.chip(name)
        assert mtf.topology(f"{name}:{'x'.join(map(str, c.pod))}").chips == c.value("most_chips")


# ---- which axes wrap


@pytest.mark.parametrize(
    ("text", "wraps"),
    [
        ("v2:16x16", (True, True)), ("v2:8x8", (False, False)), ("v3:16x16", (False, False)),
        ("v3:32x32", (True, True)), ("v4:4x4x4", (True,) * 3), ("v4:4x4x2", (False,) * 3),
        ("v4:2x4x4", (False,) * 3), ("v4:4x8x12", (True,) * 3), ("v5p:4x4x4", (True,) * 3),
        ("v5p:2x2x1", (False,) * 3), ("v5e:8x16", (False, True)), ("v5e:16x16", (True, True)),
        ("v5e:8x8", (False, False)), ("v6e:4x16", (False, True)), ("v7x:4x4x8", (True,) * 3),
        ("v7x:2x2x2", (False,) * 3),
    ],
)  # fmt: skip
def test_which_axes_wrap(text, wraps):
    axes = mtf.topology(text).axes
    assert tuple(axis.wraps for axis in axes if axis.kind == "links") == wraps


def test_cores_switches_and_networks_have_rates_and_hops_of_their_own():
    assert [(a.kind, a.bytes_per_second, a.hop_seconds) for a in mtf.topology("v7x:2x2x1").axes[2:]] == [
        ("links", 100e9, 1e-6), ("cores", 600e9, 0.0),
    ]  # fmt: skip
    assert [(a.kind, a.bytes_per_second, a.hop_seconds) for a in mtf.topology("a100:4x8").axes] == [
        ("network", 25e9, 2e-6), ("switch", 300e9, 1e-6),
    ]  # fmt: skip
    assert mtf.topology("v3:2x2").axes[-1].bytes_per_second == 100e9  # nothing published: as a link between chips


# ---- how many rows until a product computes as long as it reads its weights


def test_the_critical_batch_follows_from_one_table_of_constants():
    v5e = mtf.chip("v5e")
    assert round(v5e.critical_batch("bf16")) == 241  # 240 with the book's 8.2e11, 243 with its 8.1e11
    assert round(v5e.critical_batch("i8", math="bf16")) == 120
    assert round(v5e.critical_batch("i8")) == 240
    assert v5e.critical_batch() == pytest.approx(197e12 / 819e9)
    assert round(mtf.chip("v4").critical_batch()) == 229 and round(mtf.chip("h100").critical_batch()) == 295


def test_narrow_types_have_peaks_too():
    assert mtf.chip("v5e").peak_flops_per_device("int4") == 788e12
    assert mtf.chip("v7x").peak_flops_per_device("fp8") == 2307e12
    assert mtf.chip("v4").peak_flops_per_device("i4") == mtf.chip("v4").peak_flops_per_device("fp8") == 275e12
