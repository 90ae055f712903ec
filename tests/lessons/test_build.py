"""The notebooks are what their sources say, and the lessons keep to the course's limits."""

import json
import re
import subprocess

import nbformat
import pytest

from lessons import build, notebooks
from widgets.learning import outline

SOURCES = notebooks.sources()
NAMES = [source.stem for source in SOURCES]
OUTSIDE = {"extra", "closing"}  # the main path, whose length has a limit, is the lesson's own
lessons = pytest.mark.parametrize("source", SOURCES, ids=NAMES)


def student(source):
    return notebooks.notebook(source, "student")["cells"]


def code(source, extra=False):
    """The text of each code cell of the main path."""
    return ["".join(c["source"]) for c in student(source)
            if c["cell_type"] == "code" and (extra or not OUTSIDE & set(c["metadata"].get("tags", [])))]  # fmt: skip


def prose(source):
    return "\n".join("".join(c["source"]) for c in student(source) if c["cell_type"] == "markdown")


def committed(path):
    """The file as the last commit has it: what lies here may be a student's, with answers and outputs."""
    show = ["git", "show", f"HEAD:./{path.name}"]
    try:
        found = subprocess.run(show, cwd=path.parent, capture_output=True, timeout=30, check=False)
    except FileNotFoundError:  # no git here
        return None
    return None if found.returncode else found.stdout


@pytest.mark.parametrize("kind", ["student", "solved"])
@lessons
def test_committed_notebooks_are_the_generated_ones_byte_for_byte(source, kind):
    path, wanted = notebooks.target(source, kind), notebooks.text(source, kind).encode()
    assert wanted in (path.read_bytes(), committed(path)), "run `make lessons`"


def test_a_lesson_that_a_student_saved_fails_no_test(monkeypatch, tmp_path):
    """`make test` after an hour in `make lab`: the notebook here has changed, the commit has not."""
    name = notebooks.target(SOURCES[0], "student").name
    for command in (["init", "-q"], ["add", name], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        (tmp_path / name).write_text(notebooks.text(SOURCES[0], "student"), encoding="utf-8", newline="\n")
        subprocess.run(["git", *command], cwd=tmp_path, check=True, timeout=30)
    (tmp_path / name).write_text("{}", encoding="utf-8")
    monkeypatch.setattr(build, "HERE", tmp_path)
    assert committed(notebooks.target(SOURCES[0], "student")) == notebooks.text(SOURCES[0], "student").encode()


@lessons
def test_notebooks_are_valid_and_carry_no_outputs_and_no_widget_state(source):
    for kind in notebooks.LEFT_OUT:
        notebook = json.loads(notebooks.text(source, kind))
        nbformat.validate(notebook)
        assert notebook["metadata"]["kernelspec"]["name"] == "python3" and "widgets" not in notebook["metadata"]
        assert not any(c.get("outputs") or c.get("execution_count") for c in notebook["cells"])


def test_no_notebook_without_a_source():
    found = {path.stem for folder in ("", "solutions") for path in (notebooks.HERE / folder).glob("*.ipynb")}
    assert found == set(NAMES)


@lessons
def test_a_stub_is_only_in_the_student_notebook_and_its_solution_only_in_the_other(source):
    exercises = list(notebooks.exercises(source))
    texts = {kind: notebooks.text(source, kind) for kind in notebooks.LEFT_OUT}
    cells = {kind: ["".join(c["source"]) for c in json.loads(text)["cells"]] for kind, text in texts.items()}
    assert len(exercises) >= 3
    for _, stub, solved in exercises:
        assert stub in cells["student"] and stub not in cells["solved"]
        assert solved in cells["solved"] and solved not in cells["student"]


@lessons
def test_the_setup_cell_comes_first_and_is_the_same_everywhere(source):
    assert code(source)[0] == notebooks.SETUP
    assert sum("setup" in notebooks.tags(cell) for cell in notebooks.cells(source)) == 1


@lessons
def test_the_closing_cell_comes_last_and_is_the_same_everywhere(source):
    assert student(source)[-1]["source"] == notebooks.CLOSING.splitlines(keepends=True)
    assert sum("closing" in notebooks.tags(cell) for cell in notebooks.cells(source)) == 1


def test_what_readers_of_progress_know_of_the_course_is_what_the_lessons_ask():
    assert build.outline_text() == outline.FILE.read_text(encoding="utf-8"), "run `make lessons`"
    assert [lesson.stem for lesson in outline.course()] == NAMES
    for lesson, source in zip(outline.course(), SOURCES, strict=True):
        assert list(lesson.checks) == [name for name, *_ in notebooks.exercises(source)]
        text = "\n".join(code(source))
        assert [asked.name for asked in lesson.predictions] == re.findall(r'^predict\("([^"]+)"', text, re.MULTILINE)


@lessons
def test_sizes_of_a_lesson(source):
    cells = code(source)
    lines = [[line for line in cell.splitlines() if line.strip()] for cell in cells]
    words = len(re.findall(r"\w[\w'’-]*", prose(source)))
    assert 12 <= len(cells) <= 20, f"{len(cells)} code cells"
    assert sum(map(len, lines)) <= 200
    assert max(len(cell) for cell in lines) <= 25
    assert 1200 <= words <= 2000, f"{words} words"
    assert max(len(line) for cell in lines for line in cell) <= 120


@lessons
def test_the_skeleton_of_a_lesson(source):
    text = prose(source)
    title, why = text.splitlines()[0], text.splitlines()[2]
    goals = re.findall(r"^\d\. .*", text.split("**Needs**")[0], re.MULTILINE)
    exercises = list(notebooks.exercises(source))
    assert title.startswith(f"# {source.stem[:2]} · ") and why.startswith("**Why:**")
    for heading in ("**After this lesson you can**", "**Needs**", "**Minutes**", "**Hardware**", "**Papers**"):
        assert heading in text
    assert 3 <= len(goals) <= 5 and 3 <= len(exercises) <= 6
    assert "> **Takeaways**" in text and "**Next:**" in text
    assert all("(exercise" in goal for goal in goals)
    for number in range(1, len(exercises) + 1):
        assert f"**Exercise {number} " in text and f"exercise {number})" in " ".join(goals)


@lessons
def test_every_prediction_stands_before_its_result(source):
    joined = "\n".join(code(source))
    asked = [m.start() for m in re.finditer(r'^predict\("', joined, re.MULTILINE)]
    shown = [m.start() for m in re.finditer(r"^predict\.show\(", joined, re.MULTILINE)]
    assert len(asked) == len(shown) >= 1
    assert all(before < after for before, after in zip(asked, shown))


@lessons
def test_one_failure_is_shown_and_repaired(source):
    cells = code(source)
    failing = [n for n, cell in enumerate(cells) if re.search(r"^except mtf\.\w+ as", cell, re.MULTILINE)]
    assert len(failing) == 1
    assert "repaired" in cells[failing[0] + 1]


@pytest.mark.parametrize("kind", ["student", "solved"])
@lessons
def test_links_lead_somewhere(source, kind):
    folder = notebooks.target(source, kind).parent
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", notebooks.text(source, kind)):
        assert (folder / target).exists(), target
