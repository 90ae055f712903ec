"""What the frame promises of every explorer in `widgets`' list, one that is added too (cases U03, U06, U10, U14).

Each is made as a lesson makes it, without a page: it asks a question, says where its numbers come from, has a table
and a picture in the file, comes back from its own code, and takes nonsense in the sentence.
"""

from __future__ import annotations

import inspect
import sys
import xml.etree.ElementTree as ET
from functools import cache

import pytest

import widgets
from widgets.controls import Choice, IntBox, TextBox
from widgets.frame import Frame
from widgets.numbers import ORIGINS

EXPLORERS = [name for name, home in widgets._HOME.items() if home.startswith("widgets.explorers.")]
NONSENSE = {IntBox: (-5, "many"), TextBox: ("( ❄ 7:",), Choice: ("nothing such",)}
each = pytest.mark.parametrize("name", EXPLORERS)


@cache
def explorer(name: str) -> Frame:
    """One of each, as it starts; a dear second part, which some begin at once, is not waited for."""
    frame = getattr(widgets, name)()
    frame.queue.stop()
    return frame


@each
def test_it_asks_and_answers_with_origins(name):
    frame = explorer(name)
    assert frame.question.endswith("?") and frame.call == name
    assert frame.kind == "ok" and frame.sentence
    numbers = [cell for row in frame._shown.table for cell in row if any(map(str.isdigit, cell))]
    assert not numbers or any(word in frame._still_text() for word in ORIGINS)
    head, *rows = frame._shown.table
    assert {len(row) for row in rows} <= {len(head)}


@each
def test_the_file_has_a_picture_and_asks_for_nothing(name):
    frame = explorer(name)
    page = frame._still_text()
    assert frame.still(frame._shown)
    assert not [word for word in ("<script", 'src="http', "url(http", "@import") if word in page]
    assert ET.fromstring(frame.saved("svg")["text"]).tag.endswith("svg")


@each
def test_it_says_what_it_is(name):
    function = getattr(widgets, name)
    signature = inspect.signature(function)
    assert function.__doc__ and function.__annotations__.get("return")
    signature.bind()  # a lesson may call it without arguments
    module = sys.modules[function.__module__].__doc__
    assert f"from widgets import {name}" in module


@each
def test_its_code_gives_the_same_picture(name):
    scope: dict = {}
    frame = explorer(name)
    exec(frame.code.replace(f"\n{name}(", f"\nagain = {name}("), scope)
    assert (
        scope["again"].state == frame.state
        and scope["again"].sentence.partition(".")[0] == (frame.sentence.partition(".")[0])
    )
    scope["again"].close()


@each
def test_nonsense_lands_in_the_sentence(name):
    """What a hand types while it types: nothing is broken by it, and the settings that were there come back."""
    frame = explorer(name)
    before = dict(frame.state)
    for control in list(frame._controls):
        for value in NONSENSE.get(type(control), ()):
            frame.top.press({control.name: value}, released=False)
            frame.check()
            assert frame.kind in ("ok", "refused"), (control.name, value, frame.sentence)
    frame._go(before, released=False)
    assert frame.kind == "ok" and frame.state == before
