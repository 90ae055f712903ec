"""Messages say exactly what docs/errors.md shows, name every part, offer a fix, and none is raised unseen."""

from __future__ import annotations

import os
import re

import pytest
from errors.catalogue import CATALOGUE
from errors.entry import Wrong, said
from errors.page import PAGE, ROOT, page
from errors.reached import SEEN_OTHERWISE, places, unseen

from mtfcore.errors import LONGEST, LayoutError, refuse

CALLS = [wrong for calls in CATALOGUE.values() for wrong in calls]
# What a fix or a legal choice is offered by.
FIX = re.compile(
    r"legal|did you mean|nearest|\be\.g\.|such as|expected|as in|missing|mtf\.|usage: |the most is|only|takes|must|"
    r"\b(use|write|written|give|keep|put|rename|restart|set|say|pad|ask|make|name|save|send|at least|at most|up to)\b|"
    r"comes in|it has|has (devices|steps)|there: |(from|to) \d|runs from|no size for|cut off|does not divide|delimiter|"
    r"is empty|it is an object|are read|leave|end one|end a|begin another|submit|choose",
    re.IGNORECASE,
)
pytestmark = pytest.mark.xdist_group("errors")  # one process makes each call once
ANOTHER_JAX = "MESHWORK_VERSIONS" in os.environ


@pytest.mark.parametrize("wrong", CALLS, ids=lambda wrong: wrong.code.splitlines()[-1][:60])
def test_a_wrong_call_names_its_parts_and_offers_a_fix(wrong: Wrong):
    got = said(wrong)
    plain = got.text.replace(",", "")
    assert got.text, "nothing was refused"
    assert [word for word in wrong.names.split() if word not in got.text and word not in plain] == []
    assert "^" in got.text or not wrong.caret, "no caret under the text that was parsed"
    assert FIX.search(got.text) or not wrong.ends, f"no fix is offered: {got.text}"
    assert len(got.text) <= LONGEST and "Traceback" not in got.text
    assert got.kind not in ("TypeError", "KeyError", "AttributeError", "IndexError") or "expected" in got.text


@pytest.mark.skipif(ANOTHER_JAX, reason="the words of other versions of JAX are not ours to pin")
def test_each_says_exactly_what_the_page_shows():
    assert PAGE.read_text(encoding="utf-8") == page(), "docs/errors.md is not what the calls say. Run: make docs"


def test_every_kind_of_error_is_in_the_catalogue():
    kinds = {said(wrong).kind for wrong in CALLS}
    assert kinds >= {
        "LayoutError", "NotationError", "LayoutWarning", "DeviceError", "StateError", "Refused", "AskingError",
        "OwnerAway", "Unreadable", "ValueError", "sentence", "exit",
    }  # fmt: skip


def test_no_error_of_ours_is_raised_where_nobody_looks():
    went = frozenset(place for wrong in CALLS for place in said(wrong).places)
    words = " ".join(said(wrong).text for wrong in CALLS)
    assert len(places()) > 300
    left = [f"{place.path}:{place.first}: {place.words[0]}…" for place in unseen(went, words)]
    assert left == [], "neither in tests/errors/catalogue.py nor in any test's words:\n" + "\n".join(left)


def test_exceptions_are_needed_and_true():
    paths = {place.path for place in places()}
    assert [path for path in SEEN_OTHERWISE if path not in paths] == []
    for where, words in (why.split(": ", 1) for why in SEEN_OTHERWISE.values()):
        assert not where.startswith("tests/") or words in (ROOT / where).read_text(encoding="utf-8")


def test_a_message_of_any_length_stays_short():
    for message in ("x" * 10_000, "word " * 5_000, "{" * 9_000):
        assert len(str(LayoutError(message))) <= LONGEST
    with pytest.raises(LayoutError) as caught:
        refuse([f"fault {n} of many, with a few words more" for n in range(900)])
    assert len(str(caught.value)) <= LONGEST
