"""The still page that stays in the file."""

from __future__ import annotations

import base64
import re

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from widgets.cells import adopt
from widgets.static import GO_LIVE, sentence_html, still_html, table_html, without_images

TABLE = [("device", "holds"), ("0", "<b> 16 KiB [modelled]")]


def test_page_says_everything_without_a_kernel():
    page = still_html("Which <slice>?", "<svg/>", "16 KiB [modelled]", TABLE, "slices()")
    tag = '<span class="mw-origin">modelled</span>'
    for part in ("Which &lt;slice&gt;?", "<svg/>", tag, "slices()", GO_LIVE, "<table>"):
        assert part in page
    assert "<script" not in page


def test_a_drawing_stands_twice_so_that_one_shows_where_style_and_drawings_are_taken_out():
    page = still_html("Which <slice>?", "<svg>cols:2</svg>", "said", TABLE, "slices()", "<svg>cols:2</svg>")
    assert '<div class="mw-drawn" hidden="hidden"><svg>cols:2</svg></div>' in page and ".mw-drawn[hidden]{" in page
    (image,) = re.findall(r"<img [^>]*>", page)
    data = image.partition("base64,")[2].partition('"')[0]
    assert base64.b64decode(data) == b"<svg>cols:2</svg>" and 'alt="Which &lt;slice&gt;?"' in image
    assert without_images(page).count("cols:2") == 1 and "<img" not in without_images(page)
    assert "<img" not in still_html("How?", "<p>no drawing</p>", "said", TABLE, "f()")


def test_tables_are_escaped_and_have_heads():
    assert table_html([]) == ""
    assert '<th scope="col">device</th>' in table_html(TABLE) and "&lt;b&gt; 16 KiB" in table_html(TABLE)


def test_a_caret_keeps_its_column():
    kept = '<code class="mw-caret">  a(</code>\n<code class="mw-caret">   ^</code>'
    assert sentence_html("bad\n  a(\n   ^") == f"bad\n{kept}"


class Closing:
    closed = False

    def close(self) -> None:
        self.closed = True


def test_running_a_cell_again_closes_what_it_displayed_before():
    """Models do not pile up."""
    first, second, third, elsewhere = (Closing() for _ in range(4))
    adopt(first, ("cell-1", "run-1"))
    adopt(second, ("cell-1", "run-1"))
    adopt(elsewhere, ("cell-2", "run-2"))
    assert not first.closed
    adopt(third, ("cell-1", "run-3"))
    assert first.closed and second.closed and not third.closed and not elsewhere.closed
    adopt(third, ("cell-1", "run-4"))
    assert not third.closed
    adopt(first, None)


@pytest.fixture(scope="module")
def executed() -> nbformat.NotebookNode:
    """An explorer run without a page, then moved."""
    cells = ["from widgets import slices\nexplorer = slices()\nexplorer", "explorer.top.press({'axis.rows': 8})"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return NotebookClient(book, timeout=60, store_widget_state=False).execute()


def test_the_output_holds_a_still_page_then_the_live_view(executed):
    still, live = executed.cells[0].outputs
    assert 'data-tensor="mesh"' in still.data["text/html"] and GO_LIVE in still.data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in live.data
    assert live.data["text/plain"].startswith("from widgets import slices")


def test_the_still_page_has_the_last_settings(executed):
    assert "rows:8 cols:2" in executed.cells[0].outputs[0].data["text/html"]


def test_an_export_shows_the_picture_and_asks_for_nothing(executed):
    """What a file without a kernel shows."""
    page, _ = HTMLExporter(mathjax_url="", require_js_url="", jquery_url="").from_notebook_node(executed)
    assert GO_LIVE in page and 'data-tensor="x"' in page
    assert "Loading widget" not in page and "model not found" not in page


def test_the_file_stays_small(executed):
    assert len(nbformat.writes(executed)) < 100_000
