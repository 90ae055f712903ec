"""A saved picture stands alone: question, call, picture and sentence in one file, whatever the explorer draws with."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import ipywidgets
import pytest

from widgets.frame import Frame, Refused, Shown
from widgets.saved import (
    file_name,
    live_drawings,
    poster,
    size_of,
    sized,
    stacked,
    still_drawings,
    table_svg,
    text_block,
)

NS = "{http://www.w3.org/2000/svg}"
DRAWING = '<svg viewBox="0 0 300 200"><rect width="300" height="200"/></svg>'


class Sharing(Frame):
    """An explorer that says nothing about files."""

    question, call, start = "How <much> does one device hold?", "sharing", {"size": 64, "parts": 4, "how": "x & y"}
    page = ""

    def make_picture(self):
        return ipywidgets.HTML()

    def draw(self, size, parts, how):
        if size % parts:
            raise Refused(f"{size} does not divide by {parts}")
        return Shown(f"{size // parts} [modelled]", size, [("device", "holds"), ("every", f"{size // parts} rows")])

    def still(self, shown):
        return self.page


def words(svg: str) -> str:
    return " ".join(node.text or "" for node in ET.fromstring(svg).iter() if node.tag.endswith("text"))


@pytest.mark.parametrize(
    ("page", "live", "inside"),
    [
        (f"<style>.a{{fill:red}}</style><div>{DRAWING}</div>{DRAWING}", (), ["rect"] * 2),
        ("", [[320, 240], [100, 50]], ["image"] * 2),
        ("<p>words</p>", (), []),
    ],
)
def test_an_explorer_that_says_nothing_of_files_is_saved_too(page, live, inside):
    explorer = Sharing(size=32)
    explorer.page = page
    explorer.bottom.asked = {"number": 3, "save": "png", "live": live}
    saved = explorer.bottom.saved
    assert (saved["number"], saved["kind"], saved["name"]) == (3, "png", "sharing_size-32_parts-4_how-x-y.png")
    for part in ("How <much> does one", "sharing(size=32, parts=4, how='x & y')", "8 [modelled]"):
        assert part in words(saved["text"])
    drawn = [node for name in set(inside) for node in ET.fromstring(saved["text"]).iter(f"{NS}{name}")]
    ground = 1 if "rect" in inside else 0
    assert len(drawn) == len(inside) + ground
    assert ("every" in words(saved["text"])) == (not inside), "without a drawing the table is one"


def test_what_is_refused_is_saved_with_its_refusal():
    explorer = Sharing(size=7)
    assert "7 does not divide by 4" in words(explorer.saved("svg")["text"])
    explorer = Sharing(size=8)
    explorer.state = {"size": 7}
    assert "7 does not divide by 4" in words(explorer.saved("svg")["text"])


def test_a_poster_is_as_wide_as_its_picture_and_breaks_its_lines():
    narrow, wide = poster(DRAWING, "a " * 90, "call()", "b"), poster(sized(DRAWING).replace("300", "900"), "a", "", "b")
    assert size_of(narrow)[0] == 592 and size_of(wide)[0] == 932
    lines = [node.text for node in ET.fromstring(narrow).iter(f"{NS}text")]
    assert max(len(line) for line in lines) <= 560 / 7 and size_of(narrow)[1] > 200 + 60
    assert poster("", "a", "b", "").startswith("<svg")


def test_drawings_are_found_and_stacked_in_order():
    nested = f'<p><svg width="10" height="20" class="a">{DRAWING}</svg></p><svg width="5" height="5"/><b>{DRAWING}</b>'
    stack = ET.fromstring(still_drawings(nested))
    assert [len(list(group.iter(f"{NS}svg"))) for group in stack] == [2, 1]
    assert size_of(still_drawings(nested)) == (300, 236)
    assert still_drawings("<p>none</p>") == stacked([]) == table_svg([]) == ""


@pytest.mark.parametrize(
    ("svg", "size"),
    [
        ('<svg width="12" height="8">', (12, 8)),
        ('<svg height="8px" width="12px">', (12, 8)),
        ('<svg width="100%" height="8" viewBox="0 0 30 20">', (30, 20)),
        ('<svg class="a">', (300, 150)),
    ],
)
def test_size_of_a_drawing(svg, size):
    assert size_of(svg) == size_of(sized(svg)) == size
    assert sized(svg).count(" width=") == sized(svg).count(" height=") == 1


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("from widgets import a\na()", "a"),
        ("from widgets import a\na(mesh='x:4 y:2', n=-3)", "a_mesh-x-4-y-2_n-3"),
        ("from widgets import a\na(fn=own, what='../../etc/passwd')", "a_fn-own_what-etc-passwd"),
        ("", "a"),
    ],
)
def test_a_file_name_says_the_settings_and_nothing_a_disk_refuses(code, name):
    assert file_name("a", code) == name
    assert len(file_name("a", f"a(b='{'c' * 500}')")) == 100 and file_name("", "") == "picture"


def test_a_long_table_is_cut_and_says_so():
    drawn = words(table_svg([("n", "what"), *((str(n), "w" * 90) for n in range(60))]))
    assert "… and 37 more rows" in drawn and "59" not in drawn
    assert text_block("", 100, 12, 7) == []
    assert live_drawings([(3, 4)]).count("data-live") == 1
