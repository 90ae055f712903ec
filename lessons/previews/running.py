"""Run a solved notebook in an empty folder of its own, as a student's JupyterLab would.

    notebook = run(notebooks.text(source, "solved"))       # with its outputs; the first error ends it

Next file to read: `still.py`, what of the outputs a page can show.
"""

from __future__ import annotations

import os
import tempfile

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from lessons import notebooks

CELL_SECONDS = 120


def run(text: str) -> NotebookNode:
    """The notebook with its outputs. The kernel finds this checkout, and its folder is gone afterwards."""
    notebook = nbformat.reads(text, as_version=4)
    paths = [str(notebooks.HERE.parent), os.environ.get("PYTHONPATH", "")]
    with tempfile.TemporaryDirectory(prefix="lesson-") as folder:
        client = NotebookClient(
            notebook, timeout=CELL_SECONDS, kernel_name="python3", store_widget_state=False,
            resources={"metadata": {"path": folder}},
        )  # fmt: skip
        client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))})
    return notebook
