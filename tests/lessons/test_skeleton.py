"""Every lesson keeps to one skeleton and to its size, so that a class knows where it is.

Title, why, goals, needs; the setup cell; predict, run, explain; one failure with its message, then repaired; an
explorer with settings to try; exercises from one line to a budget; takeaways; links on. Read off the sources alone:
nothing is run here. Read next: `test_run.py`.
"""

from __future__ import annotations

import functools
import re

import pytest

import widgets
from lessons import notebooks

lessons = pytest.mark.parametrize("source", notebooks.sources(), ids=lambda source: source.stem)
cells_of = functools.cache(notebooks.cells)  # a source is read once
KINDS = ("fill a line", "write a function", "meet a budget")
NAMES = sorted({*widgets.EXPLORERS} - {"run"})  # what a lesson calls `run` is mostly a program of its own
EXPLORERS = re.compile(rf"^({'|'.join(NAMES)})\(", re.MULTILINE)


def main_path(source):
    """The cells that everybody reads, in order; a student's, without the view of progress that ends every lesson."""
    return [cell for cell in cells_of(source) if not {"extra", "solution", "closing"} & set(notebooks.tags(cell))]


def prose(source):
    """The text cells of the main path, one after the other."""
    return "\n\n".join(cell.source for cell in main_path(source) if cell.cell_type == "markdown")


def code(source):
    return [cell for cell in main_path(source) if cell.cell_type == "code"]


def lines(cells):
    return sum(bool(line.strip()) for cell in cells for line in cell.source.splitlines())


def words(text):
    """Words as a reader counts them: no links' targets, no fenced code, no lone signs."""
    text = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    return [word for word in re.sub(r"\]\([^)]*\)", "]", text).split() if re.search(r"\w", word)]


def exercise_heads(source):
    """(number, kind) of each exercise, in order."""
    return [
        (int(n), kind) for n, kind in re.findall(r"^\*\*Exercise (\d) \(([^)]*)\)\.\*\*", prose(source), re.MULTILINE)
    ]


@lessons
def test_size(source):
    """12 to 20 code cells, at most 200 lines of them, none above 25, and 1,200 to 2,000 words."""
    assert 12 <= len(code(source)) <= 20
    solved = [cell for cell in cells_of(source) if cell.cell_type == "code" and "stub" not in notebooks.tags(cell)]
    assert lines(code(source)) <= 200 and lines(solved) <= 200
    long = [cell.source for cell in [*code(source), *solved] if len(cell.source.splitlines()) > 25]
    assert not long, long[0]
    assert 1200 <= len(words(prose(source))) <= 2000


@lessons
def test_opening(source):
    """Title, one sentence of why, 3 to 5 goals that name all exercises, needs, minutes, hardware and paper sections."""
    opening = main_path(source)[0].source
    paragraphs = opening.split("\n\n")
    assert re.match(rf"# {source.stem[:2]} · \S", paragraphs[0])
    assert re.fullmatch(r"\*\*Why:\*\* [^.?!]+(?:[.?!]\d[^.?!]*)*[.?!]\*?", paragraphs[1].replace("\n", " "))
    goals = re.findall(r"^\d\. (.*(?:\n   .*)*)", opening, re.MULTILINE)
    assert "**After this lesson you can**" in opening and 3 <= len(goals) <= 5
    named = [int(n) for goal in goals for n in re.findall(r"\(exercise (\d)\)", goal)]
    assert named == [n for n, _ in exercise_heads(source)] and len(named) == len(goals)
    for word in ("Needs", "Minutes", "Hardware", "Papers"):
        assert f"**{word}**" in opening
    assert re.search(r"arXiv \d{4}\.\d{5}\), (sections?|appendix|Table)", opening.replace("\n", " "))
    low, high = map(int, re.search(r"\*\*Minutes\*\* (\d+)–(\d+)", opening).groups())
    assert 40 <= low <= high <= 60


@lessons
def test_one_setup_cell_before_all_code(source):
    first, *others = [cell for cell in cells_of(source) if cell.cell_type == "code"]
    assert first.source == notebooks.SETUP
    assert not [cell for cell in others if "setup" in notebooks.tags(cell)]


@lessons
def test_predict_run_explain(source):
    """Each guess is asked, then answered by what ran, then explained in the text that follows."""
    cells = main_path(source)
    asked = {name: n for n, cell in enumerate(cells) for name in re.findall(r'predict\(\s*"([^"]+)"', cell.source)}
    shown = {
        name: n for n, cell in enumerate(cells) for name in re.findall(r'predict\.show\(\s*"([^"]+)"', cell.source)
    }
    assert len(asked) >= 2 and asked.keys() == shown.keys()
    for name, at in shown.items():
        assert asked[name] < at, f"{name} is answered where it is asked"
        following = next(cell for cell in cells[at + 1 :] if cell.cell_type == "markdown")
        assert cells.index(following) <= at + 2 and len(words(following.source)) >= 15


@lessons
def test_one_failure_with_its_message_then_repaired(source):
    cells = code(source)
    failing = [n for n, cell in enumerate(cells) if re.search(r"^except mtf\.\w+Error as refusal:", cell.source, re.M)]
    assert len(failing) == 1
    assert "print(refusal)" in cells[failing[0]].source
    assert re.search(r"^repaired = ", cells[failing[0] + 1].source, re.MULTILINE)


@lessons
def test_an_explorer_with_settings_to_try_behind_the_hand_example(source):
    cells = main_path(source)
    explorers = [n for n, cell in enumerate(cells) if cell.cell_type == "code" and EXPLORERS.search(cell.source)]
    assert explorers
    by_hand = next(n for n, cell in enumerate(cells) if "predict.show(" in cell.source)
    assert by_hand < explorers[-1]
    beside = "\n".join(cells[n].source for at in explorers for n in (at - 1, at + 1) if n < len(cells))
    tries = re.search(r"\*\*Try\b", beside)
    assert tries and len(words(beside[tries.start() :])) >= 20


@lessons
def test_exercises_go_from_a_line_to_a_budget(source):
    heads = exercise_heads(source)
    assert 3 <= len(heads) <= 6 and [n for n, _ in heads] == list(range(1, len(heads) + 1))
    assert len(heads) == len(list(notebooks.exercises(source))), "every exercise has a check"
    steps = [next(step for step, word in enumerate(KINDS) if kind.startswith(word)) for _, kind in heads]
    assert steps == sorted(steps) and steps[0] == 0 and steps[-1] == 2
    for _, kind in heads:
        assert not kind.startswith("meet") or re.fullmatch(r"meet a budget in (bytes|seconds|memory|FLOPs)", kind)


@lessons
def test_takeaways_and_links_on(source):
    closing = main_path(source)[-1].source
    assert len(re.findall(r"^> \* ", closing, re.MULTILINE)) >= 3 and "> **Takeaways**" in closing
    assert "**Next:**" in closing and "(GLOSSARY.md" in closing
    following = {each.stem[:2]: each.stem for each in notebooks.sources()}.get(f"{int(source.stem[:2]) + 1:02}")
    assert not following or f"({following}.ipynb)" in closing
