"""New lessons come without a student's work being lost: `make update`, and `make lessons` after typing."""

import json
import shutil
import subprocess

import pytest

from lessons import build, notebooks
from lessons.setting_up.basics import SetupError
from lessons.setting_up.typed import digest, is_typed_in, keep
from lessons.setting_up.update import update

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine")


def notebook(*texts, **metadata):
    cells = [{"cell_type": "code", "source": [text], "outputs": []} for text in texts]
    return json.dumps({"cells": cells, "metadata": {"meshwork": {"cells": digest(cells)}} | metadata})


def typed(path, text):
    data = json.loads(path.read_text())
    data["cells"][0]["source"] = [text]
    path.write_text(json.dumps(data))


def git(folder, *words):
    who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, "-C", str(folder), *words], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path):
    """A published course with one lesson, and a student's clone of it."""
    published = tmp_path / "published"
    (published / "lessons").mkdir(parents=True)
    (published / "lessons" / "04_a.ipynb").write_text(notebook("first"))
    (published / "other.py").write_text("1\n")
    git(published, "init")
    git(published, "add", ".")
    git(published, "commit", "-m", "one")
    git(tmp_path, "clone", "published", "student")
    return tmp_path / "student"


def publish(clone, text="second"):
    published = clone.parent / "published"
    (published / "lessons" / "04_a.ipynb").write_text(notebook(text))
    git(published, "commit", "-am", "two")


def test_typed_work_is_kept_beside_and_the_new_lesson_taken(clone, capsys):
    lesson = clone / "lessons" / "04_a.ipynb"
    typed(lesson, "my answer")
    publish(clone)
    assert update(clone) == 0
    assert json.loads(lesson.read_text())["cells"][0]["source"] == ["second"]
    kept = lesson.with_name("04_a.mine-1.ipynb")
    assert json.loads(kept.read_text())["cells"][0]["source"] == ["my answer"]
    assert "What you typed in lessons/04_a.ipynb is kept in 04_a.mine-1.ipynb" in capsys.readouterr().out


def test_outputs_alone_are_not_kept(clone):
    lesson = clone / "lessons" / "04_a.ipynb"
    data = json.loads(lesson.read_text())
    data["cells"][0]["outputs"] = [{"output_type": "stream", "text": "8"}]
    lesson.write_text(json.dumps(data))
    publish(clone)
    assert update(clone) == 0 and not list(clone.glob("lessons/*mine*"))


def test_nothing_new_touches_nothing(clone, capsys):
    typed(clone / "lessons" / "04_a.ipynb", "my answer")
    assert update(clone) == 0
    assert "my answer" in (clone / "lessons" / "04_a.ipynb").read_text()
    assert "newest version" in capsys.readouterr().out


@pytest.mark.parametrize("spoiled", ["other file", "no connection", "own commits"])
def test_what_stands_in_the_way_stops_it_before_anything_is_touched(clone, spoiled):
    lesson = clone / "lessons" / "04_a.ipynb"
    publish(clone)
    if spoiled == "other file":
        (clone / "other.py").write_text("2\n")
        words = r"not a lesson's notebook: other\.py\. Commit it or put it aside"
    elif spoiled == "no connection":
        shutil.rmtree(clone.parent / "published")
        words = "asking for the newest version; is there a connection"
    else:
        git(clone, "commit", "--allow-empty", "-m", "mine")
        words = "there are commits here of your own"
    typed(lesson, "my answer")
    with pytest.raises(SetupError, match=words):
        update(clone)
    assert "my answer" in lesson.read_text() and not list(clone.glob("lessons/*mine*"))


def test_a_folder_without_git_is_told_so(tmp_path):
    with pytest.raises(SetupError, match="no git clone"):
        update(tmp_path)


def test_copies_never_write_over_copies(tmp_path):
    lesson = tmp_path / "04_a.ipynb"
    for number, text in enumerate(("one", "two"), 1):
        lesson.write_text(notebook(text))
        assert keep(lesson).name == f"04_a.mine-{number}.ipynb"


def test_generated_notebooks_know_whether_somebody_typed(tmp_path):
    source = notebooks.sources()[0]
    lesson = tmp_path / "00.ipynb"
    lesson.write_text(notebooks.text(source, "student"), encoding="utf-8")
    assert not is_typed_in(lesson)
    typed(lesson, "mine")
    assert is_typed_in(lesson)


def test_making_lessons_keeps_what_was_typed(tmp_path, monkeypatch):
    lesson = tmp_path / "04_a.ipynb"
    lesson.write_text(notebook("first"))
    typed(lesson, "my answer")
    monkeypatch.setattr(build, "texts", lambda: iter([(lesson, notebook("second"))]))
    assert build.build() == [lesson]
    assert "my answer" in (tmp_path / "04_a.mine-1.ipynb").read_text()
