"""A run notebook as one page: nbconvert with the template beside this file, in Meshwork's own frame.

    page(notebook, source)[:15]        # '<!DOCTYPE html>'

Styles that outputs carry are moved into the page's head, each once: fourteen explorers bring the same one. Code is
coloured by Pygments, in two themes. Next file to read: `__main__.py`.
"""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from html import escape, unescape
from importlib.metadata import version
from pathlib import Path

from nbconvert import HTMLExporter
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

from lessons import notebooks
from mtfcore import __version__
from widgets import pages
from widgets.numbers import count

from . import HERE, MARK, stamp

LIGHT, DARK = "default", "github-dark"
OFTEN = 20  # a style that stands this many times in a page is written once
MOST_ROWS = 100  # of a cell's open tables; more of them are folded, so that what follows is near
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_INLINE = re.compile(r' style="([^"]*)"')
_LESSON = re.compile(r'href="(\d\d_\w+)\.ipynb"')


def page(notebook: NotebookNode, source: Path) -> str:
    """The whole file."""
    inside, styles = without_styles(body(notebook))
    inside, often = without_repeated(inside)
    title = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
    style = "".join([*styles, often, code_style(), (HERE / "page.css").read_text(encoding="utf-8")])
    mark = f'<meta name="{MARK}" content="{stamp(source)}">'
    around = f"{navigation(source)}\n<main>\n{inside}\n</main>\n<footer>{provenance(source)}</footer>"
    return pages.page(title, around, style).replace("</head>", f"{mark}\n</head>", 1)


def body(notebook: NotebookNode) -> str:
    """The cells as HTML, with links to the other pages in place of notebooks."""
    exporter = HTMLExporter(template_name="template", extra_template_basedirs=[str(HERE)], exclude_anchor_links=True)
    exporter.register_filter("long_tables", long_tables)
    made, _ = exporter.from_notebook_node(notebook)
    return _LESSON.sub(r'href="\1.html"', made)


def long_tables(outputs: list[NotebookNode]) -> str:
    """How many tables and rows a cell leaves open, in words; nothing if a reader scrolls past them easily."""
    html = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    unfolded = re.sub(r"<details.*?</details>", "", html, flags=re.DOTALL)
    tables, rows = (len(re.findall(rf"<{name}\b", unfolded)) for name in ("table", "tr"))
    rows -= unfolded.count("<thead")
    return f"{count(tables, 'table')} with {rows:,} rows" if rows > MOST_ROWS else ""


def without_styles(html: str) -> tuple[str, list[str]]:
    """The HTML without its style elements, and these, each once, in the order of their first use."""
    return _STYLE.sub("", html), list(dict.fromkeys(_STYLE.findall(html)))


def without_repeated(html: str) -> tuple[str, str]:
    """The HTML with the styles that stand in it often named instead, and the rules for these names.

    Cells of wide tables carry the same style a thousand times, which was a third of the largest page.
    """
    counted = Counter(_INLINE.findall(html)).most_common()
    names = {style: n for n, (style, times) in enumerate(counted) if times >= OFTEN}
    rules = "".join(f':root [data-s="{n}"]{{{unescape(style)}}}\n' for style, n in names.items())
    return _INLINE.sub(lambda found: f' data-s="{names[found[1]]}"' if found[1] in names else found[0], html), rules


def code_style() -> str:
    """Colours of code, light and dark."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".highlight") for name in (LIGHT, DARK))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def navigation(source: Path) -> str:
    """Links to the lessons before and after, and to the notebook."""
    all_of_them = notebooks.sources()
    place = all_of_them.index(source)
    links = [f'<a href="{other.stem}.html">{words} {other.stem[:2]}</a>'
             for words, other in (("← lesson", all_of_them[place - 1] if place else None),
                                  ("lesson →", all_of_them[place + 1] if place + 1 < len(all_of_them) else None))
             if other]  # fmt: skip
    notebook = f'<a href="../{source.stem}.ipynb">the notebook to work in</a>'
    return f'<nav aria-label="Lessons">{" · ".join([*links, notebook])}</nav>'


def provenance(source: Path) -> str:
    """What the page was made from, by what, and on what."""
    versions = f"Python {platform.python_version()}, JAX {version('jax')}, {platform.system()} {platform.machine()}"
    return (
        f"<p>A solved lesson, run from top to bottom. Made from <code>lessons/src/{escape(source.name)}</code> "
        f"(SHA-256 of its solved cells <code>{stamp(source)}…</code>) by Meshwork {__version__} with "
        f"{escape(versions)}, {os.cpu_count()} cores, 64 simulated devices. "
        "<code>make previews</code> makes it again.</p>"
    )
