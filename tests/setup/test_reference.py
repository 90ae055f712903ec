"""The API reference is what the docstrings say now, has every public name once, and its links arrive."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("docs_reference", ROOT / "docs" / "reference.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)


@pytest.fixture(scope="module")
def pages():
    return reference.pages()


def test_the_reference_is_up_to_date(pages):
    """One message for all pages: which are stale, and what makes them anew."""
    there = {path.name: path.read_text(encoding="utf-8") for path in reference.FOLDER.glob("*.md")}
    stale = sorted(name for name in pages.keys() | there.keys() if pages.get(name) != there.get(name))
    assert not stale, f"docs/api is not what the docstrings say: {', '.join(stale)}. Run: make docs"


def test_each_public_name_stands_once(pages):
    import mtfcore
    import widgets

    text = "\n".join(pages.values())
    for written in [f"mtf.{name}" for name in mtfcore.__all__] + list(widgets.__all__):
        assert len(re.findall(rf"^## {re.escape(written)}$", text, re.MULTILINE)) == 1, written


def test_tables_say_whose_names_they_hold(pages):
    import mtfcore as mtf

    for table in (mtf.model.CONFIGS, mtf.model.partitions, mtf.schedules.KINDS, mtf.schedules.WAYS):
        named = ", ".join(f"`{name}`" for name in table)
        assert f"A {type(table).__name__} of {named}; `mtfcore/" in "\n".join(pages.values())


def test_links_within_the_reference_arrive(pages):
    links = re.findall(r"\]\((\w+\.md)#([\w-]+)\)", pages["README.md"])
    for name, text in pages.items():
        wanted = [anchor for page, anchor in links if page == name]
        assert wanted == reference.anchors(re.findall(r"^## (?!\[)(.+)$", text, re.MULTILINE)), name


def test_pages_read_the_same_everywhere(pages):
    """No addresses, no machine's paths, and no code block left open."""
    for name, text in pages.items():
        assert " at 0x" not in text and str(ROOT) not in text and text.count("```") % 2 == 0, name


def test_a_name_without_a_page_is_named():
    entry = reference.Entry("mtf.lost", "elsewhere.module", object())
    with pytest.raises(LookupError, match=r"mtf\.lost lives in elsewhere\.module, which no page"):
        reference.page_of(entry)
