"""A lesson's source, and the student's and the solved notebook that it makes.

A lesson is one jupytext percent file, `src/NN_name.py`, and only that file is edited. Cell tags say where a cell goes:

    (no tag)      both notebooks
    stub          the student's notebook only: the gap to fill
    solution      the solved notebook only: what fills it
    extra         both, folded, outside the main path

The text of the setup cell is the same in every lesson and is kept here, so a source only says `# %% tags=["setup"]`;
the closing cell is too, and is put behind every lesson.
Output is the same byte for byte on every machine: cell ids are counted, there are no outputs and no widget state, and
the kernel is always python3. Next file to read: `build`, which writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from lessons.setting_up import typed

if TYPE_CHECKING:
    from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).parent
SETUP = """\
import lessons.checks  # the exercises of all lessons
import mtfcore as mtf
from widgets import check, predict, program, progress, slices

mtf.devices(64)  # simulated devices on this computer; must come before JAX starts"""
CLOSING = """\
progress()  # what you did so far, what is next, and a small file for your teacher"""
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
LEFT_OUT = {"student": "solution", "solved": "stub"}
_CHECK = re.compile(r"""^check\(\s*["']([^"']+)["']""", re.MULTILINE)


def sources() -> list[Path]:
    """The lessons' source files, in lesson order."""
    return sorted((HERE / "src").glob("[0-9][0-9]_*.py"))


def cells(source: Path) -> list[NotebookNode]:
    """All cells of a source, with the shared setup text filled in and the shared closing cell."""
    notebook = jupytext.read(source)
    for cell in notebook.cells:
        if "setup" in tags(cell):
            cell.source = SETUP
    return [*notebook.cells, new_code_cell(CLOSING, metadata={"tags": ["closing"]})]


def failed(lesson: str, problem: CellExecutionError) -> str:
    """A line about a lesson that did not run to its end, in place of its kernel's whole traceback."""
    return f"{lesson} failed: {problem.ename}: {problem.evalue}"


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags."""
    return cell.metadata.get("tags", [])


def notebook(source: Path, kind: str) -> dict:
    """The student's or the solved notebook of a source, as plain data."""
    kept = [cell for cell in cells(source) if LEFT_OUT[kind] not in tags(cell)]
    if kind == "solved":  # it lies one folder deeper than the glossary, the map and the cheat sheet
        for cell in kept:
            cell.source = re.sub(r"\]\((?=[A-Z]+\.md)", "](../", cell.source)
    return _notebook(kept, source.stem[:2])


def _notebook(kept: list[NotebookNode], name: str) -> dict:
    made = [_cell(cell, f"{name}-{number:03}") for number, cell in enumerate(kept)]
    metadata = METADATA | {"meshwork": {"cells": typed.digest(made)}}  # so that typed text is known and kept
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cell(cell: NotebookNode, identity: str) -> dict:
    metadata: dict = {"tags": tags(cell)} if tags(cell) else {}
    if "extra" in tags(cell):
        metadata["jupyter"] = {"source_hidden": True}
    made = {"cell_type": cell.cell_type, "id": identity, "metadata": metadata}
    if cell.cell_type == "code":
        made |= {"execution_count": None, "outputs": []}
    return made | {"source": cell.source.splitlines(keepends=True)}


def text(source: Path, kind: str) -> str:
    """A notebook file's exact text."""
    return _text(notebook(source, kind))


def _text(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def target(source: Path, kind: str) -> Path:
    """Where a notebook is written."""
    folder = HERE if kind == "student" else HERE / "solutions"
    return folder / f"{source.stem}.ipynb"


def exercises(source: Path) -> Iterator[tuple[str, str, str]]:
    """Each exercise of a lesson: its name, its stub cell's text and its solution cell's; both end in `check(…)`."""
    found: dict[str, dict[str, str]] = {}
    for cell in cells(source):
        for tag in {"stub", "solution"} & set(tags(cell)):
            if named := _CHECK.search(cell.source):
                found.setdefault(named[1], {})[tag] = cell.source
    for name, texts in found.items():
        yield name, texts["stub"], texts["solution"]


def teachers(source: Path) -> str:
    """The exact text of a notebook for teachers: no lesson, so nothing is filled in."""
    return _text(_notebook(jupytext.read(source).cells, source.stem))
