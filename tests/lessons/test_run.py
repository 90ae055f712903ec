"""Every lesson runs from top to bottom without a page: solved, all exercises pass; as a student gets it,
nothing fails and every exercise is kindly "not yet"."""

import json
import os
import time

import nbformat
import pytest
from nbclient import NotebookClient

from lessons import course, notebooks, pages, results
from widgets.learning.progress import FILE_NAME

CELL_SECONDS, LESSON_SECONDS = 30, 60
lessons = pytest.mark.parametrize("source", notebooks.sources(), ids=lambda source: source.stem)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a notebook in an empty folder; returns it with its outputs and its progress file."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(notebooks.HERE.parent), os.environ.get("PYTHONPATH", "")]))

    def run(text: str):
        notebook = nbformat.reads(text, as_version=4)
        client = NotebookClient(
            notebook, timeout=CELL_SECONDS, kernel_name="python3", store_widget_state=False,
            resources={"metadata": {"path": str(tmp_path)}},
        )  # fmt: skip
        started = time.monotonic()
        client.execute()
        return notebook, json.loads((tmp_path / FILE_NAME).read_text(encoding="utf-8")), time.monotonic() - started

    return run


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def texts(notebook):
    return [out.get("text", "") + str(out.get("data", {}).get("text/plain", "")) for out in outputs(notebook)]


@lessons
def test_the_solved_lesson_runs_and_passes_every_check(run, source):
    notebook, progress, seconds = run(notebooks.text(source, "solved"))
    assert not [out for out in outputs(notebook) if out.output_type == "error" or out.get("name") == "stderr"]
    names = {name for name, *_ in notebooks.exercises(source)}
    assert {name for name, entry in progress["checks"].items() if entry["passed"]} == names, texts(notebook)
    guesses = progress["predictions"]
    assert guesses and all(guess["answer"] == guess["actual"] for guess in guesses.values())
    lesson = course.read(source)
    assert results.table(lesson, guesses) in pages.notes_of(lesson).read_text(encoding="utf-8"), "the teacher's notes"
    assert seconds < LESSON_SECONDS


@pytest.mark.parametrize("number", [12, 13])
def test_without_a_compiler_the_lesson_says_so_and_goes_on(run, tmp_path, monkeypatch, number):
    """As on a computer for which libtpu has no wheel: the interpreter is told that there is no such module."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['libtpu'] = None\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    source = notebooks.sources()[number]
    notebook, progress, _ = run(notebooks.text(source, "solved"))
    assert not [out for out in outputs(notebook) if out.output_type == "error" or out.get("name") == "stderr"]
    assert any("libtpu, the compiler for TPUs, is not installed" in text for text in texts(notebook))
    assert all(guess["answer"] == guess["actual"] for guess in progress["predictions"].values())


@lessons
def test_the_students_lesson_runs_and_says_not_yet(run, source):
    notebook, progress, _ = run(notebooks.text(source, "student"))
    assert not [out for out in outputs(notebook) if out.output_type == "error" or out.get("name") == "stderr"]
    names = [name for name, *_ in notebooks.exercises(source)]
    assert {name for name, entry in progress["checks"].items() if not entry["passed"]} == set(names)
    kind = [any(text.startswith(f"NOT YET – {name}") for text in texts(notebook)) for name in names]
    assert kind == [True] * len(names)
