"""What of a run notebook a page without a kernel can show: no live view, no form, no script, no place on this machine.

    still(notebook)          # changes it where it stands

An explorer leaves two outputs, a still page and a live view; the second goes. Next file to read: `pages.py`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from nbformat import NotebookNode

from lessons import notebooks
from widgets.static import GO_LIVE, without_images

LIVE = "application/vnd.jupyter.widget-view+json"
SCRIPTED = "This picture is drawn by a script, so it shows in JupyterLab only."
GOES_LIVE = "In JupyterLab this picture has controls and follows them."
PLACES = (  # longest first where one lies in another
    (str(Path(sys.executable)), "python"),
    (str(Path(sys.prefix)), ".venv"),
    (str(notebooks.HERE.parent), "meshwork"),
    (str(Path.home()), "~"),
)
_TEMPORARY = re.compile(re.escape(tempfile.gettempdir()) + r"/[\w.-]+")
_NOT_WORDS = (r"(?<![\w/.-])", r"(?![\w-])")  # a path stands alone or goes on with a slash


def still(notebook: NotebookNode) -> None:
    """Keep of each code cell what can be shown; the closing cell speaks of its reader's progress, so it goes."""
    notebook.cells = [cell for cell in notebook.cells if "closing" not in notebooks.tags(cell)]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            outputs = _joined(cell.outputs)
            cell.outputs = [shown for output in outputs if (shown := _shown(output)) is not None]


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Neighbouring pieces of one stream as one: where a busy kernel happened to flush says nothing."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _shown(output: NotebookNode) -> NotebookNode | None:
    if output.output_type == "error":
        raise ValueError(f"an error output: {output.ename}: {output.evalue}")
    if output.output_type == "stream":
        output.text = nowhere(output.text)
        return output
    if LIVE in output.data:
        return None
    output.data = {kind: nowhere(value) for kind, value in output.data.items() if kind in ("text/html", "text/plain")}
    if "<script" in output.data.get("text/html", ""):
        output.data = {"text/plain": SCRIPTED}
    if "text/html" in output.data:
        output.data["text/html"] = without_images(output.data["text/html"]).replace(GO_LIVE, GOES_LIVE)
    return output


def nowhere(text: str) -> str:
    """A text with short words for places that only this machine has."""
    text = _TEMPORARY.sub("a-folder", text)
    for place, word in PLACES:
        if len(place) > 1:
            text = re.sub(_NOT_WORDS[0] + re.escape(place) + _NOT_WORDS[1], word, text)
    return text
