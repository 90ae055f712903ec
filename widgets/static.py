"""The still picture that stays in a notebook's output when nothing is alive behind it.

An explorer puts two outputs into its cell: first this page, then the live view. While the live view is connected,
the style below hides the page; without a kernel, or in an HTML export, the page shows and the empty live view is
hidden. It is style alone, no script: `:has` asks whether a live view stands next to it.

JupyterLab takes styles and drawings out of a file that it does not trust, as a student's is on a teacher's machine,
and leaves the words of the drawings. So a drawing stands in the page twice: as it is, hidden until the style shows
it, and as an image, which needs neither and which the style hides.

    live = StillPage()
    live.show(html)          # display, first time
    live.refresh(html)       # the same output with the newest settings

Next file to read: `frame`.
"""

from __future__ import annotations

import base64
import html
import pathlib
import re
from collections.abc import Sequence

import ipywidgets
from IPython.display import HTML, DisplayHandle, display

from widgets.numbers import tagged_html

_LIVE = ".jupyter-widgets:not(.jupyter-widgets-disconnected) .mw-live"
_CHILD = ".jp-OutputArea-child"
SWITCH = (
    f"{_CHILD}:has(.mw-still):has(+ {_CHILD} {_LIVE}){{display:none}}"
    f"{_CHILD}:has(.mw-still) + {_CHILD}:has(.jupyter-widgets, .jp-RenderedText):not(:has({_LIVE})){{display:none}}"
)
_FORM = ".jupyter-widgets:not(.jupyter-widgets-disconnected) button"
FORM_SWITCH = (
    f"{_CHILD}:has(+ {_CHILD} {_FORM}) .mw-again{{display:none}}"
    f"{_CHILD}:has(.mw-again) + {_CHILD}:has(.jupyter-widgets, .jp-RenderedText):not(:has({_FORM})){{display:none}}"
)
TRUSTED = ".mw-still .mw-drawn[hidden]{display:block!important}.mw-still .mw-plain{display:none}"
STYLE = (pathlib.Path(__file__).parent / "views" / "frame.css").read_text(encoding="utf-8")
GO_LIVE = "Run this cell to go live."

Table = Sequence[Sequence[str]]


def table_html(rows: Table) -> str:
    """A table for screen readers and for pages without pictures; the first row is the head."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{tagged_html(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def sentence_html(text: str) -> str:
    """A sentence for a page; a line with a caret keeps its columns."""
    lines = text.split("\n")
    carets = {at - offset for at, line in enumerate(lines) if line.strip() == "^" for offset in (0, 1)}
    shown = [tagged_html(line) for line in lines]
    return "\n".join(f'<code class="mw-caret">{line}</code>' if at in carets else line for at, line in enumerate(shown))


def still_html(question: str, picture: str, sentence: str, table: Table, code: str, file: str = "") -> str:
    """The page: question, picture (safe HTML), sentence, and the table and the call folded away.

    `file` is the picture as one SVG file, for a place that does not trust the page.
    """
    shown = picture
    if file:
        shown = f'<div class="mw-drawn" hidden="hidden">{picture}</div>{image_html(file, question)}'
    return (
        f'<div class="mw mw-still"><style>{SWITCH}{TRUSTED}{STYLE}</style>'
        f'<div class="mw-question">{html.escape(question)}</div>{shown}'
        f'<div class="mw-says">{sentence_html(sentence)}</div>'
        f'<details class="mw-details"><summary>Details: table, code</summary>'
        f'<pre class="mw-code">{html.escape(code)}</pre><div class="mw-table">{table_html(table)}</div></details>'
        f"<div><em>{GO_LIVE}</em></div></div>"
    )


def image_html(file: str, alt: str) -> str:
    """An SVG file as an image: no browser runs or fetches anything for one."""
    data = base64.b64encode(file.encode()).decode()
    return f'<img class="mw-plain" alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}">'


def without_images(page: str) -> str:
    """A page for a place that keeps its drawings."""
    return re.sub(r'<img class="mw-plain"[^>]*>', "", page)


def show_live(widget: ipywidgets.Widget, text: str) -> None:
    """A live view as an output; without its kernel nothing stands there, and `text` where there is no HTML."""
    kinds = {**widget._repr_mimebundle_(), "text/plain": text, "text/html": "<!-- live view -->"}
    display(kinds, raw=True)


def above_form(page: str, purpose: str) -> str:
    """A page with a form in the next output: without a kernel the form is gone, and one line says how to get it."""
    return f'{page}<div class="mw-again"><style>{FORM_SWITCH}</style><em>Run this cell {purpose}.</em></div>'


class StillPage:
    """One output that is replaced in place."""

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None
        self._text = ""

    @property
    def shown(self) -> bool:
        """Whether it stands in an output."""
        return self._handle is not None

    def show(self, text: str) -> None:
        """Put the page into the running cell's output."""
        self._text = text
        self._handle = display(HTML(text), display_id=True)

    def refresh(self, text: str) -> None:
        """Replace it, if it stands anywhere and has changed."""
        if self._handle is not None and text != self._text:
            self._text = text
            self._handle.update(HTML(text))
