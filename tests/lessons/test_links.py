"""Links of all documents and lessons lead somewhere, and the glossary's words are where it says."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from lessons import notebooks
from lessons.course import lessons

ROOT = notebooks.HERE.parent
WHERE = ("*.md", "docs/**/*.md", "lessons/**/*.md", "*/README.md")
PAGES = sorted(path for pattern in WHERE for path in ROOT.glob(pattern))
GLOSSARY = (notebooks.HERE / "GLOSSARY.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def anchors(path: Path) -> frozenset[str]:
    """What may stand behind `#` in a link to this page: its marks, and its headings as they are spelled in links."""
    text, found, seen = path.read_text(encoding="utf-8"), set(), Counter()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found |= {heading.replace(" ", "-"), f"{slug}-{seen[slug]}" if seen[slug] else slug}  # JupyterLab's, GitHub's
        seen[slug] += 1
    return frozenset(found | set(re.findall(r'<a id="([^"]+)">', text)))


def broken(text: str, folder: Path) -> list[str]:
    """Links of a page, or of a notebook's text, that lead nowhere."""
    found = []
    for link in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)):
        path, _, anchor = urllib.parse.unquote(link).partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (folder / path).resolve() if path else None
        if target and not target.exists():
            found.append(link)
        elif anchor and target and target.suffix == ".md" and anchor not in anchors(target):
            found.append(link)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_documents_lead_somewhere(path):
    assert broken(path.read_text(encoding="utf-8"), path.parent) == []


@pytest.mark.parametrize("kind", ["student", "solved"])
@pytest.mark.parametrize("source", notebooks.sources(), ids=lambda source: source.stem)
def test_links_of_lessons_lead_somewhere(source, kind):
    cells = json.loads(notebooks.text(source, kind))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert broken(text, notebooks.target(source, kind).parent) == []
    assert "GLOSSARY.md)" in text and "GLOSSARY.md#" in text, "the glossary, and a word of it"


def test_a_broken_link_is_found():
    text = "[a](GLOSSARY.md) [b](nothing.md) [c](GLOSSARY.md#mesh) [d](GLOSSARY.md#mash) `[e](no.md)` [f](https://a.b)"
    assert broken(text, notebooks.HERE) == ["nothing.md", "GLOSSARY.md#mash"]


# ---- the glossary


def words() -> list[tuple[str, str]]:
    """Each bold word of the glossary that has a lesson, with the lesson's number."""
    rows = re.findall(r"^\| (?:<a id=\"[^\"]+\"></a>)+(.*?)\((\d\d)\) \|", GLOSSARY, re.MULTILINE)
    return [(word, number) for row, number in rows for bold in re.findall(r"\*\*(.*?)\*\*", row)
            for word in bold.split(", ")]  # fmt: skip


@cache
def said(number: str) -> str:
    """All that a lesson's source says, text and code, on one line of small letters."""
    (source,) = (path for path in notebooks.sources() if path.stem[:2] == number)
    text = " ".join(line.lstrip("# ") for line in source.read_text(encoding="utf-8").splitlines())
    return re.sub(r"[\s_]+", " ", re.sub(r"\]\([^)]*\)", "", text).replace("*", "")).lower()


def test_each_word_is_used_in_the_lesson_that_it_names():
    assert len(words()) > 120
    missing = [(word, number) for word, number in words() if word.lower().replace("_", " ") not in said(number)]
    assert missing == []


@pytest.mark.parametrize(("number", "anchor"), [("05", "tile"), ("06", "nats"), ("10", "parallel-block")])
def test_a_word_that_a_lesson_explains_is_linked_to_the_glossary(number, anchor):
    (source,) = (path for path in notebooks.sources() if path.stem[:2] == number)
    assert f'<a id="{anchor}">' in GLOSSARY
    assert f"**](GLOSSARY.md#{anchor})" in source.read_text(encoding="utf-8")


def test_each_word_of_the_glossary_has_an_anchor_of_its_own():
    for line in GLOSSARY.splitlines():
        if line.startswith(("| <a", "| **")):
            cell = line.split(" | ")[0]
            bold = [word for found in re.findall(r"\*\*(.*?)\*\*", cell) for word in found.split(", ")]
            marks = re.findall(r'<a id="([^"]+)">', cell)
            assert [re.sub(r"-\d\d$", "", mark) for mark in marks] == [re.sub(r"[^\w]+", "-", w.lower()) for w in bold]
    every = re.findall(r'<a id="([^"]+)">', GLOSSARY)
    assert len(every) == len(set(every))


def test_every_lesson_stands_on_the_map_with_all_that_belongs_to_it():
    text = (notebooks.HERE / "MAP.md").read_text(encoding="utf-8")
    for lesson in lessons():
        for place in (f"{lesson.stem}.ipynb", f"solutions/{lesson.stem}.ipynb", f"previews/{lesson.stem}.html"):
            assert f"]({place})" in text
        assert f"](teaching/{lesson.stem}.md)" in text and f"    L{lesson.number}[" in text
