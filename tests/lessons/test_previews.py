"""The lessons' HTML pages: of the present sources, without errors, of nothing outside themselves. None is run here."""

import copy
import re
import sys
from pathlib import Path

import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lessons import notebooks, previews, results
from lessons.previews import __main__ as command
from lessons.previews import pages
from lessons.previews.still import GOES_LIVE, LIVE, SCRIPTED, nowhere, still
from widgets.static import GO_LIVE, above_form, still_html

SOURCES = notebooks.sources()
MOST_BYTES, MOST_BYTES_OF_ALL = 450_000, 5_000_000
lessons = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)

FETCHES = re.compile(
    r"""<(script|link|iframe|object|embed|base|form|audio|video|source|image)\b|@import|url\(\s*['"]?(?!\#|data:)"""
    r"""|\b(src|srcset|poster|action|background|data|formaction|ping)=|\bon\w+=|javascript:""",
    re.IGNORECASE,
)
TAG = re.compile(r"<[a-zA-Z][^>]*>")
HERE_ONLY = re.compile(r"/(home|root|work|tmp|Users|var)/[\w.]|[A-Z]:\\\\Users| at 0x[0-9a-f]{6}")


def outside(page):
    """What a page would fetch: in its tags and its styles, since its text may speak of anything."""
    styles = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    return [found[0] for part in (*TAG.findall(page), styles) for found in [FETCHES.search(part)] if found]


@pytest.mark.parametrize(
    "markup",
    [
        '<img src="https://a/b.png">', '<link rel="stylesheet" href="a.css">', "<svg onload=alert(1)>", "<SCRIPT>",
        '<a href="javascript:a()">', '<style>@import "a.css"</style>', "<style>a{background:url(//a/b)}</style>",
        '<td style="background:url(https://a)">', '<svg><image href="a.png"/></svg>', "<iframe srcdoc='a'>",
    ],
)  # fmt: skip
def test_what_fetches_or_runs_is_noticed(markup):
    assert outside(f"<p>{markup}</p>")


@lessons
def test_each_lesson_has_a_page_of_its_present_source(source):
    path = previews.target(source)
    assert path.is_file(), "run `make previews`"
    assert previews.stated(path) == previews.stamp(source), f"{path.name} is of another source: run `make previews`"


@lessons
def test_a_page_holds_no_error_and_refers_to_nothing_outside(source):
    page = previews.target(source).read_text(encoding="utf-8")
    assert not outside(page)
    assert pages.pages.POLICY in page and "default-src 'none'" in page
    for mark in ("Traceback (most", "output_error", GO_LIVE, "Loading widget", "application/vnd.jupyter"):
        assert mark not in page, mark
    assert not HERE_ONLY.search(page), HERE_ONLY.search(page)
    assert "SHA-256" in page and previews.stamp(source) in page


@lessons
def test_a_page_has_its_lesson_in_order(source):
    page = previews.target(source).read_text(encoding="utf-8")
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    prose = "\n".join(cell.source for cell in notebooks.cells(source) if cell.cell_type == "markdown")
    written = re.findall(r"^## (.*)$", prose, re.MULTILINE)
    assert [heading.partition(" ")[0] for heading in headings] == [words.partition(" ")[0] for words in written]
    assert page.count('data-state="passed"') >= len(list(notebooks.exercises(source)))
    assert 'class="mw mw-still"' in page


@lessons
def test_links_of_a_page_lead_somewhere(source):
    page = previews.target(source).read_text(encoding="utf-8")
    for link in re.findall(r'<a [^>]*href="([^"#]+)', page):
        assert link.startswith("https://") or (previews.HERE / link).exists(), link


def test_the_pages_are_small_enough_to_be_kept():
    sizes = {path.name: path.stat().st_size for path in previews.HERE.glob("*.html")}
    assert set(sizes) == {previews.target(source).name for source in SOURCES}
    assert max(sizes.values()) <= MOST_BYTES and sum(sizes.values()) <= MOST_BYTES_OF_ALL, sizes


# How a page is made, on a notebook that nobody had to run.


def html(text):
    return new_output("display_data", {"text/html": text, "text/plain": "in words"})


LIVE_VIEW = new_output("display_data", {LIVE: {"model_id": "a"}, "text/html": "<!-- live view -->"})
OUTPUTS = [
    html(still_html("How much?", "<svg/>", "16 KiB [modelled]", [("a", "b"), ("<c>", "d")], "slices()")), LIVE_VIEW,
    html(above_form("<p>Predict.</p>", "to answer")), new_output("display_data", {LIVE: {"model_id": "b"}}),
    html('<script src="https://cdn.example/a.js"></script><div>drawn</div>'),
    new_output("stream", name="stdout", text=f"{sys.executable} <b> & a line\n"),
    new_output("execute_result", {"text/plain": "x" * 121}, execution_count=1),
]  # fmt: skip


@pytest.fixture
def run_notebook():
    code = new_code_cell("a = 1", outputs=copy.deepcopy(OUTPUTS))
    closing = new_code_cell(notebooks.CLOSING, outputs=[html("Where you stand")], metadata={"tags": ["closing"]})
    text = "# 02 · A title & more\n\nSee [lesson 03](03_collectives.ipynb) and the [glossary](../GLOSSARY.md)."
    return new_notebook(cells=[new_markdown_cell(text), code, closing])


@pytest.fixture
def page(run_notebook):
    still(run_notebook)
    return pages.page(run_notebook, SOURCES[2])


def test_a_page_has_the_still_picture_and_neither_live_view_nor_form_nor_script(page):
    assert "16 KiB" in page and "&lt;c&gt;" in page and GOES_LIVE in page and GO_LIVE not in page
    assert "<!-- live" not in page and SCRIPTED in page and "cdn.example" not in page and ">drawn<" not in page
    assert not outside(page) and "Where you stand" not in page


def test_text_is_escaped_and_a_sentence_wraps(page):
    assert '<pre tabindex="0">python &lt;b&gt; &amp; a line' in page
    assert f'<pre class="sentences">{"x" * 121}' in page


def test_links_lead_to_pages_and_neighbours(page):
    assert 'href="03_collectives.html"' in page and 'href="../GLOSSARY.md"' in page
    assert f'href="{SOURCES[1].stem}.html"' in page and f'href="../{SOURCES[2].stem}.ipynb"' in page


def test_a_page_reads_light_and_dark_and_says_what_it_is_made_from(page, tmp_path):
    assert page.count("prefers-color-scheme: dark") == 2 and "<title>02 · A title &amp; more</title>" in page
    assert f"lessons/src/{SOURCES[2].name}" in page
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    assert previews.stated(tmp_path / "a.html") == previews.stamp(SOURCES[2])
    assert previews.stated(tmp_path / "none.html") == ""


def test_styles_stand_once_in_the_head():
    text, styles = pages.without_styles("<style>a{}</style>1<style>b{}</style>2<style>a{}</style>3")
    assert (text, styles) == ("123", ["a{}", "b{}"])


def test_a_style_that_stands_often_is_written_once():
    text, rules = pages.without_repeated('<td style="color:&quot;x&quot;">' * 30 + '<p style="margin:0">')
    assert text == '<td data-s="0">' * 30 + '<p style="margin:0">' and rules == ':root [data-s="0"]{color:"x"}\n'


@pytest.mark.parametrize(("rows", "folded"), [(51, True), (50, False)])
def test_more_rows_than_one_scrolls_past_are_folded_without_a_script(run_notebook, rows, folded):
    table = f"<table><thead><tr><th>a</th></tr></thead><tbody>{'<tr><td>1</td></tr>' * rows}</tbody></table>"
    own = f"<details><table>{'<tr><td>2</td></tr>' * 200}</table></details>"
    run_notebook.cells[1].outputs = [html(table), html(own), html(table)]
    still(run_notebook)
    page = pages.page(run_notebook, SOURCES[2])
    fold = f'<details class="long"><summary>2 tables with {2 * rows} rows: open to read or print them</summary>'
    assert (fold in page) == ("details class=" in page) == folded
    assert page.count("<details") == page.count("</details") == 1 + folded and not outside(page)


def test_the_page_of_every_published_row_has_them_folded():
    page = previews.target(SOURCES[7]).read_text(encoding="utf-8")
    folded = re.findall(r'<details class="long">.*?</section>', page, re.DOTALL)
    assert len(folded) == 1 and folded[0].count("<table") >= 9


def test_what_a_cell_prints_in_pieces_is_one_text(run_notebook):
    pieces = [new_output("stream", name="stdout", text=text) for text in ("MB sent", "\nws1d", " 37.2\n")]
    run_notebook.cells[1].outputs = [*pieces, html("between"), new_output("stream", name="stdout", text="behind\n")]
    still(run_notebook)
    first, _, last = run_notebook.cells[1].outputs
    assert first.text == "MB sent\nws1d 37.2\n" and last.text == "behind\n"


def test_an_error_makes_no_page(run_notebook):
    run_notebook.cells[1].outputs.append(new_output("error", ename="ValueError", evalue="no", traceback=[]))
    with pytest.raises(ValueError, match="an error output: ValueError: no"):
        still(run_notebook)


def test_places_of_this_machine_become_words(tmp_path):
    import tempfile

    root = notebooks.HERE.parent
    said = nowhere(f"at {root}/lessons/build.py, {root}: {root}x")
    assert said.startswith("at meshwork/lessons/build.py, meshwork: ") and said.endswith(f"{root.name}x")
    assert nowhere(f"{tempfile.gettempdir()}/lesson-a_1/your_model/config.json") == "a-folder/your_model/config.json"
    assert nowhere(str(Path.home() / "models")) == "~/models"


def test_only_pages_that_are_out_of_date_are_made(monkeypatch):
    monkeypatch.setattr(command, "stated", lambda path: "old" if path.stem == SOURCES[3].stem else "new")
    monkeypatch.setattr(command, "stamp", lambda source: "new")
    assert command.wanted([]) == [SOURCES[3]] and command.wanted(["02"]) == [SOURCES[2]]
    assert command.wanted(["--all"]) == SOURCES
    with pytest.raises(SystemExit):
        command.wanted(["77"])


@pytest.mark.parametrize(("told", "running"), [(command, "make"), (results, "run")], ids=["previews", "results"])
def test_a_lesson_that_fails_is_one_line_and_writes_nothing(told, running, monkeypatch, capsys):
    def fail(lesson):
        raise CellExecutionError("Traceback, of many lines", "ValueError", "no such mesh")

    monkeypatch.setattr(told, running, fail)
    assert told.main([SOURCES[2].stem[:2]]) == 1
    assert capsys.readouterr() == ("", f"{SOURCES[2].stem} failed: ValueError: no such mesh\n")
