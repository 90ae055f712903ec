"""Fill the teacher's notes with what the lessons really find: right results of predictions, sentences of explorers.

    python -m lessons.results          # run every solved notebook, one to two minutes; writes teaching/*.md
    python -m lessons.results 03 07    # these lessons alone

No such number is typed. A prediction's result comes from the progress file that the solved notebook leaves, and stands
between `<!-- results -->` and `<!-- /results -->`. The sentence of an explorer comes from the explorer: a block of
Python that ends in a call of one, followed by a line that begins with `> `, has that line written anew.
Tests read `table` and `spoken` and compare. Last file of the teacher's pages.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from lessons import notebooks, pages
from lessons.course import Lesson, Question, lessons
from mtfcore.errors import nearest
from widgets.learning.progress import FILE_NAME

Predictions = dict[str, dict[str, Any]]
_SHOWN = re.compile(r"(```python\n((?:(?!```).*\n)*)```\n)> .*\n")
PLANS = pages.NOTES / "plans.md"
SECONDS = 60  # the longest that a cell may take


def run(lesson: Lesson) -> Predictions:
    """The predictions that the solved notebook leaves in its progress file, each with its `actual`."""
    notebook = nbformat.reads(notebooks.text(notebooks.HERE / "src" / f"{lesson.stem}.py", "solved"), as_version=4)
    above = str(notebooks.HERE.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([above, *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": folder}}).execute()
        return json.loads((Path(folder) / FILE_NAME).read_text(encoding="utf-8"))["predictions"]


def table(lesson: Lesson, found: Predictions) -> str:
    """The made part of a lesson's notes: what each prediction asks, and what is right."""
    rows = [f"| {each.name} | {each.text} | {_right(each, found[each.name]['actual'])} |" for each in lesson.questions]
    return "\n".join(["| prediction | asks | right |", "|---|---|---|", *rows])


def _right(question: Question, actual: str | float) -> str:
    shown = actual if isinstance(actual, str) else f"{actual:,}"
    return f"**{' '.join(filter(None, [shown, question.unit]))}** ({question.origin})"


def spoken(text: str) -> str:
    """A page whose quoted sentences are those that its explorers say now."""
    return _SHOWN.sub(lambda found: f"{found[1]}> {says(found[2])}\n", text)


def says(code: str) -> str:
    """The sentence of the explorer that the last line of a block of Python makes, with what it offers."""
    lines = code.strip().split("\n")
    names: dict[str, Any] = {}
    exec("\n".join(lines[:-1]), names)
    explorer = eval(lines[-1], names)
    explorer.check()
    sentence = explorer.sentence.replace("\n", " ")
    offers = " · ".join(f"*{offer.label}*" for offer in explorer.offers)
    explorer.close()  # what it has begun to refine ends at its next step
    explorer.queue.join(SECONDS)
    return f"{sentence} — offered: {offers}" if offers else sentence


def main(words: list[str]) -> int:
    """Write the notes of these lessons, or of all with the teaching plans; the exit status is 1 after an error."""
    parser = argparse.ArgumentParser(prog="python -m lessons.results", description="Fill the teacher's notes.")
    parser.add_argument("lessons", nargs="*", help="numbers of lessons: 03 07; none: all, and the plans")
    numbers = parser.parse_args(words).lessons
    legal = [lesson.number for lesson in lessons()]
    if unknown := [f"no lesson {number!r}; {nearest(number, legal)}" for number in numbers if number not in legal]:
        parser.error("; ".join(unknown))
    for lesson in lessons():
        if not numbers or lesson.number in numbers:
            text = pages.notes_of(lesson).read_text(encoding="utf-8")
            try:
                found = run(lesson)
            except CellExecutionError as problem:
                print(notebooks.failed(lesson.stem, problem), file=sys.stderr)
                return 1
            _write(pages.notes_of(lesson), pages.replaced(spoken(text), "results", table(lesson, found)))
    if not numbers:
        _write(PLANS, spoken(PLANS.read_text(encoding="utf-8")))
    return 0


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
    print(f"wrote {path.relative_to(notebooks.HERE.parent)}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
