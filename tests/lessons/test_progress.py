"""The progress file: kept, shared by two notebooks, never lost in silence, never executed."""

import json

import pytest

from widgets.learning.progress import FILE_NAME, Progress


@pytest.fixture
def path(tmp_path):
    return tmp_path / FILE_NAME


def test_what_is_stored_comes_back_in_another_kernel(path):
    Progress(path).update("checks", "01 place", passed=True, tries=2)
    Progress(path).update("checks", "01 place", help=1)
    assert Progress(path).entry("checks", "01 place") == {"passed": True, "tries": 2, "help": 1}


def test_two_open_notebooks_do_not_overwrite_each_other(path):
    first, second = Progress(path), Progress(path)
    first.update("checks", "01 place", passed=True)
    second.update("checks", "02 wanted", passed=True)
    first.update("predictions", "01 rows", answer=4)
    assert second.names("checks") == ["01 place", "02 wanted"]
    assert second.entry("predictions", "01 rows") == {"answer": 4}


def test_a_student_keeps_one_random_id_or_a_name(path):
    made = Progress(path).student
    assert made == Progress(path).student and len(made) == 8
    Progress(path).student = "Ada Łukasz"
    assert Progress(path).student == "Ada Łukasz"


DAMAGED = {
    "half": '{"version": 1, "stud',
    "a list": "[1, 2]",
    "empty": "",
    "another version": '{"version": 2, "student": "a", "predictions": {}, "checks": {}}',
    "a wrong type": '{"version": 1, "student": "a", "predictions": {}, "checks": {"01 place": {"passed": "yes"}}}',
    "an unknown field": '{"version": 1, "student": "a", "predictions": {"p": {"run": "import os"}}, "checks": {}}',
    "no tables": '{"version": 1, "student": "a"}',
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_set_aside_with_a_message(path, text):
    path.write_text(text)
    progress = Progress(path)
    progress.update("checks", "01 place", passed=True)
    kept = path.with_name(".meshwork-progress.damaged-1.json")
    assert kept.read_text() == text
    assert kept.name in progress.note and "could not be read" in progress.note
    assert Progress(path).entry("checks", "01 place") == {"passed": True}


def test_a_second_damaged_file_does_not_replace_the_first(path):
    for text in ("first", "second"):
        path.write_text(text)
        Progress(path).entry("checks", "01 place")
    assert [p.read_text() for p in sorted(path.parent.glob("*damaged*"))] == ["first", "second"]


def test_bytes_that_are_not_text_are_set_aside_too(path):
    path.write_bytes(b"\xff\xfe\x00")
    progress = Progress(path)
    assert progress.names("checks") == [] and "could not be read" in progress.note


def test_a_folder_that_cannot_be_written_keeps_progress_in_memory(tmp_path):
    progress = Progress(tmp_path / "missing" / FILE_NAME)
    progress.update("checks", "01 place", passed=True)
    assert progress.entry("checks", "01 place") == {"passed": True}
    assert "could not be saved" in progress.note


def test_a_crash_while_writing_leaves_the_old_file(path, monkeypatch):
    progress = Progress(path)
    progress.update("checks", "01 place", passed=True)
    before = path.read_text()
    monkeypatch.setattr("widgets.learning.progress.os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        progress.update("checks", "01 place", passed=False)
    assert path.read_text() == before
    assert [p.name for p in path.parent.iterdir()] == [FILE_NAME]


def test_wrong_values_are_refused_before_they_are_written(path):
    progress = Progress(path)
    with pytest.raises(ValueError, match="passed is 'yes'"):
        progress.update("checks", "01 place", passed="yes")
    assert not path.exists()


def test_the_file_is_plain_json(path):
    Progress(path).update("predictions", "01 rows", question="How many?", unit="rows", answer=4, before=True)
    assert json.loads(path.read_text())["predictions"]["01 rows"]["answer"] == 4


def test_a_note_about_a_damaged_file_stays_short(tmp_path):
    (tmp_path / FILE_NAME).write_text(json.dumps({"version": 1, "student": "a", "checks": {"x" * 5_000: 1}}))
    progress = Progress(tmp_path / FILE_NAME)
    assert progress.names("checks") == [] and "could not be read" in progress.note and len(progress.note) < 1_000
