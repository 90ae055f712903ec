"""Colours: stable by axis, and text that can be read in both themes."""

from __future__ import annotations

import itertools

import pytest

from widgets.theme import AXES, COMPUTE, LINKS, MEMORY, PATTERNS, axis_colours, plotly_template


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def mixed(colour: str, ground: str, share: float) -> str:
    pairs = [(int(colour[n : n + 2], 16), int(ground[n : n + 2], 16)) for n in (1, 3, 5)]
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)


def test_letters_keep_their_colours_in_every_mesh():
    fixed = {"x": "#0072B2", "y": "#D55E00", "z": "#009E73"}
    for axes in itertools.permutations(["x", "y", "z", "rows"]):
        assert {axis: axis_colours(axes)[axis] for axis in fixed} == fixed


def test_axes_of_a_mesh_never_share_a_colour():
    for axes in (["rows", "cols"], ["rows", "x"], ["cols", "x", "planes", "w"], ["a", "b", "c", "d", "e"]):
        assert len(set(axis_colours(axes).values())) == len(axes)
    assert axis_colours(["rows", "cols"]) == {"rows": "#0072B2", "cols": "#D55E00"}


def test_compute_memory_and_links_are_not_axes():
    assert not {COMPUTE, MEMORY, LINKS} & set(AXES) and len({COMPUTE, MEMORY, LINKS}) == 3


def test_no_two_of_three_axes_share_a_pattern():
    assert len(set(PATTERNS[:4])) == 4


@pytest.mark.parametrize(("text", "ground"), [("#000000", "#ffffff"), ("#ffffff", "#111111")])
@pytest.mark.parametrize("colour", AXES)
def test_labels_can_be_read_on_the_strongest_tint(text, ground, colour):
    assert contrast(text, mixed(colour, ground, 0.6)) >= 4.5


def test_plotly_template_is_transparent_json():
    layout = plotly_template()["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert layout["colorway"][:3] == ["#0072B2", "#D55E00", "#009E73"]
