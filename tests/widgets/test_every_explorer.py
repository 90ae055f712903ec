"""The frame's contract, walked through all explorers without a page: a new one is held to it once it is public."""

from __future__ import annotations

import ast
import re
import xml.etree.ElementTree as ET

import pytest

import widgets
from widgets.controls import Button, Choice
from widgets.frame import Frame
from widgets.numbers import ORIGINS

EXPLORERS = widgets.EXPLORERS
WORDS = {"run": ("Run", "Write", "Simulate", "Compile"), "stop": ("Stop",), "device": ("Run on device",)}
UNIT = r"(?:[KMGTPE]i?B|B|[nµm]?s|[kMGTPE]?FLOPs?(?:/s)?|chip-\w+)"
QUANTITY = re.compile(rf"\d[\d.,]* {UNIT}\b")
TAGS = re.compile(rf"[\[(](?:{'|'.join(ORIGINS)})")


@pytest.fixture(scope="module", params=EXPLORERS)
def explorer(request):
    made = getattr(widgets, request.param)()
    assert made.kind == "ok", f"{request.param} refuses what it starts with: {made.sentence}"
    yield made
    made.close()


def test_there_are_explorers_to_walk():
    assert len(EXPLORERS) >= 13


def test_its_parts_stand_in_the_one_order(explorer):
    assert isinstance(explorer, Frame) and explorer.call in EXPLORERS
    top, stage, *rest = explorer.children
    assert (top, stage) == (explorer.top, explorer.stage) and explorer.bottom in rest
    assert explorer.picture in stage.children
    assert explorer.question.endswith("?") and top.question == explorer.question
    assert "mw-explorer" in explorer._dom_classes and "mw-stage" in stage._dom_classes


def test_its_controls_have_names_and_the_buttons_the_same_words(explorer):
    controls = explorer._controls
    assert len({control.name for control in controls}) == len(controls)
    for control in controls:
        spec = control.spec()
        assert spec["label"].strip() and spec["group"] is not None
        if isinstance(control, Button) and control.name in WORDS:
            assert control.label in WORDS[control.name]
        if isinstance(control, Choice):
            assert all(words.strip() for _, words in control.options)
            assert control.value in dict(control.options)


def test_its_sentence_says_where_numbers_come_from(explorer):
    assert explorer.kind == "ok" and explorer.sentence
    for part in re.split(r"(?<=[.;]) ", explorer.sentence):
        if QUANTITY.search(part):
            assert TAGS.search(part), part


def test_its_table_says_the_same_to_screen_readers(explorer):
    head, *rows = explorer._shown.table
    assert rows or not QUANTITY.search(explorer.sentence)
    assert all(len(row) == len(head) for row in rows)
    said = " ".join(str(cell) for row in explorer._shown.table for cell in row)
    assert TAGS.search(said) or not QUANTITY.search(said)
    explorer.bottom.unfolded = True
    assert explorer.bottom.shown["table"].count("<tr>") == len(rows) + 1
    explorer.bottom.unfolded = False


def test_its_code_gives_the_same_picture(explorer):
    assert ast.parse(explorer.code) and explorer.bottom.shown["code"] == explorer.code
    space: dict = {}
    exec(explorer.code.replace("\n", "\nagain = ", 1), space)
    again = space["again"]
    assert again.state == explorer.state and again.code == explorer.code
    again.close()


def test_a_page_without_a_kernel_has_question_picture_sentence_table_and_call(explorer):
    page = explorer._still_text()
    parts = ("mw-question", "mw-says", "mw-code", "mw-table")
    places = [*(page.index(f'class="{part}"') for part in parts), page.index("Run this cell to go live.")]
    assert places == sorted(places)
    picture = page[places[0] : places[1]].partition("</div>")[2]
    assert len(re.sub(r"<style>.*?</style>", "", picture, flags=re.DOTALL)) > 500
    assert "<script" not in page and len(page) < 300_000


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_its_file_stands_alone(explorer, kind):
    explorer.bottom.asked = {"number": 1, "save": kind}
    file = explorer.bottom.saved
    assert file["name"].startswith(explorer.call) and file["name"].endswith(f".{kind}")
    assert not re.search(r"[^\w.+-]", file["name"])
    words = " ".join(node.text or "" for node in ET.fromstring(file["text"]).iter())
    for said in (explorer.question, explorer.sentence, f"{explorer.call}("):
        assert all(word in words for word in said.split()[:6])
    assert TAGS.search(words) or not QUANTITY.search(words)
    assert "http" not in file["text"].replace("http://www.w3.org/", "")
