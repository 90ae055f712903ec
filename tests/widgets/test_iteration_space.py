"""The iteration-space explorer without a page: three cuttings, their drawing, and what it says."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from widgets import iteration_space
from widgets.figures.iteration_space import sentence, spaces, table
from widgets.figures.iteration_space_svg import place, space_svg

NS = "{http://www.w3.org/2000/svg}"


def drawn(html: str) -> list[ET.Element]:
    return list(ET.fromstring(html).iter(f"{NS}svg"))


def test_slabs_pencils_and_cubes_of_64():
    found = spaces(64, 1024)["spaces"]
    assert [(each["kind"], each["cut"], each["owner"]) for each in found] == [
        ("slabs", (64, 1, 1), True), ("pencils", (8, 8, 1), True), ("cubes", (4, 4, 4), False)
    ]  # fmt: skip
    assert [each["over_u"] for each in found] == pytest.approx([1 / 33, 2 / 17, 1 / 6])


def test_fewer_cuttings_where_they_are_the_same():
    assert [each["kind"] for each in spaces(7, 64)["spaces"]] == ["slabs"]
    assert [each["kind"] for each in spaces(1, 64)["spaces"]] == ["the whole cube"]


def test_the_published_ratios_are_named_only_where_they_hold():
    assert "0.12 u and 0.17 u, about 40 % [published]" in sentence(spaces(64, 1024))
    assert "Cubes are 42 % [modelled] better than pencils." in sentence(spaces(64, 1024))
    assert "published" not in sentence(spaces(512, 1024))


def test_the_table_has_a_row_a_cutting():
    head, *rows = table(spaces(64, 1024))
    assert [row[0] for row in rows] == ["slabs", "pencils", "cubes"] and {len(row) for row in rows} == {len(head)}


@pytest.mark.parametrize("processors", [1, 2, 6, 64, 512])
def test_every_block_that_can_be_seen_is_drawn_once(processors):
    for space in spaces(processors, 64)["spaces"]:
        svg = ET.fromstring(space_svg(space, 1.0))
        i, j, k = space["cut"]
        faces = sum(path.attrib["d"].count("M") for path in svg.iter(f"{NS}path"))
        behind = sum(n > 1 for n in space["cut"])
        assert faces == i * j + j * k + i * k - 3 + behind + 3
        assert [path.attrib["data-face"] for path in svg.iter(f"{NS}path") if "data-face" in path.attrib] == [
            "C",
            "B",
            "A",
        ]


def test_the_drawing_is_isometric():
    """All three edges are equally long on paper."""
    start = place((0, 0, 0))
    lengths = [
        ((x - start[0]) ** 2 + (y - start[1]) ** 2) ** 0.5 for x, y in map(place, ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    ]
    assert lengths == pytest.approx([lengths[0]] * 3, rel=1e-3)


@pytest.mark.parametrize(("processors", "cuttings"), [(1, 1), (2, 1), (4, 2), (64, 3)])
def test_there_is_a_place_for_three_cuttings_whatever_they_are(processors, cuttings):
    html = iteration_space(processors=processors).picture.html
    assert len(drawn(html)) == cuttings and html.count('class="mw-slot"') == 3


def test_the_picture_follows_the_processors():
    explorer, pushed = iteration_space(), []
    explorer.picture.observe(pushed.append, "html")
    explorer.top.press({"processors": 512}, released=False)
    assert len(pushed) == 1
    assert [svg.attrib["data-kind"] for svg in drawn(explorer.picture.html)] == ["slabs", "pencils", "cubes"]
    assert 'aria-label="cubes: 8 × 8 × 8' in explorer.picture.html


def test_values_clamp_and_bad_ones_are_refused():
    explorer = iteration_space()
    explorer.top.press({"processors": 4096})
    assert explorer.state["processors"] == 512 and "512 is the nearest" in explorer.sentence
    explorer = iteration_space(processors=0, u=1 << 40)
    assert explorer.kind == "refused"
    explorer.bottom.asked = {"number": 1, "offer": 0}
    assert explorer.kind == "ok" and explorer.state == {"processors": 1, "u": 1 << 20}


def test_the_saved_file_shows_every_space():
    assert len(list(ET.fromstring(iteration_space().svg()).iter(f"{NS}svg"))) == 4


def test_the_still_page_shows_the_picture():
    assert iteration_space()._still_text().count('class="mw-space"') == 3
