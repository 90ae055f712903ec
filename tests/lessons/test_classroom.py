"""A teacher reads a class: every file is checked, none is run, one that is left out says why, all is escaped."""

import csv
import io
import json
import os
import re
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from lessons import build, notebooks
from mtfcore.errors import LayoutError
from widgets.learning import classroom as module
from widgets.learning.class_facts import HONEST
from widgets.learning.class_text import FORMULA
from widgets.learning.classroom import classroom, main
from widgets.learning.export import exported, write
from widgets.learning.outline import course
from widgets.learning.progress import FILE_NAME, Progress
from widgets.learning.reading import MOST_BYTES, LeftOut, read

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
CHECK = course()[0].checks[0]
NUMBER = next(asked for lesson in course() for asked in lesson.predictions if not asked.choices)
CHOICE = next(asked for lesson in course() for asked in lesson.predictions if asked.choices)
GOOD = {
    "format": "meshwork-progress", "version": 1, "name": "Ada", "exported": "2026-11-30T12:00:00Z", "meshwork": "1.0",
    "checks": {CHECK: {"passed": True, "tries": 2, "help": 1}},
    "predictions": {NUMBER.name: {"answer": 4, "actual": 8, "before": True}},
}  # fmt: skip


def changed(**values):
    return {**GOOD, **values}


def entry(**values):
    return changed(checks={CHECK: {"passed": True, "tries": 2, "help": 1, **values}})


def guess(**values):
    return changed(predictions={NUMBER.name: {"answer": 4, "actual": 8, "before": True, **values}})


@pytest.fixture
def give(tmp_path):
    """Put a file into the class's folder: data as JSON, text or bytes as they are."""

    def give(name, content):
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path

    return give


def left_out(folder):
    found = classroom(folder)
    assert found.students == ()
    return dict(found.left_out)


def test_a_good_file_is_read_as_it_is(give):
    (student,) = classroom(give("a.json", GOOD)).students
    assert (student.name, student.rows[0].passed, student.rows[0].tries, student.rows[0].helps) == ("Ada", 1, 2, 1)
    assert "1 student: checks passed in each lesson" in repr(classroom(give("a.json", GOOD)))
    assert student.started and not student.rows[1].started


NASTY = {
    "nothing": (b"", "not JSON"),
    "half": (json.dumps(GOOD)[:40], "not JSON (line 1)"),
    "bytes": (b"\xff\xfe\x00\x01", "not text"),
    "a photo": (b"\x89PNG\r\n\x1a\n" + bytes(100), "not text"),
    "a list": ([1, 2], "no table of names"),
    "deep": ("[" * 100_000, "not JSON"),
    "deep tables": ('{"a":' * 30_000, "not JSON"),
    "many digits": ('{"version": ' + "9" * 5000 + "}", "not JSON"),
    "not a number": (json.dumps(guess(answer=float("nan"))), "NaN is no number"),
    "endless": (json.dumps(guess(answer=float("inf"))), "Infinity is no number"),
    "too large to count": (json.dumps(guess()).replace(": 4,", ": 1e999,"), "answer is inf"),
    "twice": ('{"name": "a", "name": "b"}', "stands in it twice"),
    "huge": (b" " * (MOST_BYTES + 1), "262,145 bytes; at most 262,144"),
    "another thing": ({"name": "Ada"}, "not a progress file"),
    "the lessons' own": ({"version": 1, "student": "a", "predictions": {}, "checks": {}}, "ask for the exported one"),
    "newer": (changed(version=2, more={}), "made by a newer Meshwork (version 2 of the file; known here: 1)"),
    "much newer": (changed(version=10**60), "a number of very many digits"),
    "version 0": (changed(version=0), "no known version: 0"),
    "version true": (changed(version=True), "no known version: True"),
    "version 1.0": (changed(version=1.0), "no known version: 1.0"),
    "unknown field": (changed(run="import os"), "unknown field 'run'"),
    "no name": ({key: GOOD[key] for key in GOOD if key != "name"}, "no field 'name'"),
    "a name of numbers": (changed(name=7), "name is 7"),
    "a long name": (changed(name="x" * 81), "name is 'xxx"),
    "no date": (changed(exported="yesterday"), "exported is 'yesterday'"),
    "an impossible date": (changed(exported="2026-02-31T12:00:00Z"), "exported is '2026-02-31"),
    "a strange release": (changed(meshwork="<b>"), "meshwork is '<b>'"),
    "no table of checks": (changed(checks=[]), "checks is not a table"),
    "too many checks": (changed(checks={f"00 {n}": {} for n in range(501)}), "501 checks; at most 500"),
    "a check of no lesson": (changed(checks={"x": {}}), "no name of the course: 'x'"),
    "a check with a line break": (changed(checks={"00 a\nb": {}}), "no name of the course"),
    "a check of text": (changed(checks={CHECK: "passed"}), "is not a table"),
    "passed is a word": (entry(passed="yes"), "passed is 'yes'"),
    "passed is a number": (entry(passed=1), "passed is 1"),
    "tries are true": (entry(tries=True), "tries is True"),
    "tries below zero": (entry(tries=-1), "tries is -1"),
    "tries without end": (entry(tries=10**7), "tries is 10000000"),
    "a fourth help": (entry(help=4), "help is 4"),
    "tries missing": (changed(checks={CHECK: {"passed": True}}), "no field 'tries'"),
    "an unknown field of a check": (entry(code="1"), "unknown field 'code'"),
    "an answer that is a table": (guess(answer={"a": 1}), "answer is a table"),
    "an answer that is a list": (guess(answer=[1]), "answer is a list"),
    "a long answer": (guess(answer="x" * 301), "answer is 'xxx"),
    "an answer too large": (guess(answer=10**400), "answer is a number of very many digits"),
    "before is 1": (guess(before=1), "before is 1"),
}


@pytest.mark.parametrize(("content", "why"), NASTY.values(), ids=NASTY)
def test_a_bad_file_is_left_out_and_says_why(give, content, why):
    folder = give("a.json", content)
    assert why in left_out(folder)["a.json"]
    give("b.json", GOOD)
    found = classroom(folder)
    assert [student.name for student in found.students] == ["Ada"] and len(found.left_out) == 1
    page = found._repr_html_()
    assert "Left out: 1 file" in page and "a.json" in page and "a.json" in repr(found) and "a.json" in found.csv()


def test_a_marked_file_of_a_windows_editor_is_read(give):
    assert classroom(give("a.json", b"\xef\xbb\xbf" + json.dumps(GOOD).encode())).students[0].name == "Ada"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_links_folders_and_pipes_are_not_opened(give, tmp_path):
    give("good.txt", GOOD)
    (tmp_path / "link.json").symlink_to(tmp_path / "good.txt")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    assert left_out(tmp_path) == {
        "link.json": "a link, not a file", "loop.json": "a link, not a file",
        "folder.json": "not a plain file", "pipe.json": "not a plain file",
    }  # fmt: skip


def test_a_file_that_may_not_be_read_says_so(give, monkeypatch):
    """Whoever runs tests as root may read everything, so the refusal is put in by hand."""

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    folder = give("a.json", GOOD)
    monkeypatch.setattr("widgets.learning.reading.os.open", refuse)
    assert left_out(folder) == {"a.json": "cannot be read: Permission denied"}


def test_a_folder_that_cannot_be_read_is_said_and_not_raised(give, tmp_path):
    missing = classroom(tmp_path / "<missing>")
    assert "cannot be read: No such file or directory." in missing.note
    assert "&lt;miss" in missing._repr_html_() and "<miss" not in missing._repr_html_()
    assert "No such file" in repr(missing)
    assert "cannot be read" in classroom(give("a.json", GOOD) / "a.json").note


@pytest.mark.parametrize("folder", ["\0", "\ud800", "~nobody-here/exports", "a" * 5_000])
def test_a_folder_that_no_disk_has_is_said_and_not_raised(folder):
    found = classroom(folder)
    assert "cannot be read" in found.note and not found.students


@pytest.mark.parametrize("wrong", [None, 5, b"exports", []])
def test_what_is_no_folder_is_refused_in_words(wrong):
    with pytest.raises(LayoutError, match="expected a folder"):
        classroom(wrong)


def test_names_are_a_list_and_one_name_is_a_list_of_one(tmp_path):
    assert classroom(tmp_path, names="Ada").missing == ("Ada",)
    assert classroom(tmp_path, names=None).missing == ()
    for wrong in ([3], 5, [None]):
        with pytest.raises(LayoutError, match="expected names"):
            classroom(tmp_path, names=wrong)


def test_an_empty_folder_says_where_files_come_from(tmp_path):
    assert "progress()" in classroom(tmp_path)._repr_html_()


def test_other_files_are_counted_and_not_read(give):
    alone = classroom(give("notes.txt", "hello"))
    assert alone.note.startswith("No file here ends in .json: ") and "1 not looked at" in str(alone)
    assert "1 not looked at, since the name does not end in .json." in classroom(give("a.json", GOOD)).note


def test_folders_as_a_learning_platform_packs_them_are_said(give, tmp_path):
    (tmp_path / "Ada_12_file").mkdir()
    note = classroom(give("a.json", GOOD)).note
    assert note == "1 folder not looked into: files must lie beside each other here."


def test_more_files_than_a_class_has_are_not_read(give, monkeypatch):
    monkeypatch.setattr(module, "MOST_FILES", 1)
    give("a.json", GOOD)
    found = classroom(give("b.json", changed(name="Grace")))
    assert len(found.students) == 1 and "2 files; the first 1 were read." in found.note


def test_the_newest_file_of_a_student_counts(give):
    give("late.json", changed(exported="2026-12-01T12:00:00Z", name="ada "))
    give("early.json", GOOD)
    found = classroom(give("other.json", changed(name="Grace")))
    assert [(student.name, student.file) for student in found.students] == [
        ("ada", "late.json"), ("Grace", "other.json"),
    ]  # fmt: skip
    assert found.left_out[0][0] == "early.json" and "gave a newer file too: late.json" in found.left_out[0][1]


def test_an_older_file_says_what_it_alone_has(give):
    """As of a student who works on two computers: nothing is lost without a word."""
    give("home.json", GOOD)
    found = classroom(give("lab.json", changed(exported="2026-12-01T12:00:00Z", checks={})))
    assert "lab.json. Here alone: 1 check passed. Two students" in dict(found.left_out)["home.json"]
    found = classroom(give("lab.json", changed(exported="2026-12-01T12:00:00Z")))
    assert "lab.json. Two students" in dict(found.left_out)["home.json"]


def test_files_without_a_name_are_not_one_student(give):
    give("a.json", changed(name=" "))
    found = classroom(give("b.json", changed(name="")))
    assert [student.name for student in found.students] == ["no name (a.json)", "no name (b.json)"]


def test_who_gave_no_file_and_who_has_not_begun(give):
    give("a.json", GOOD)
    found = classroom(give("b.json", changed(name="Grace", checks={}, predictions={})), names=["ADA", "Ida <b>", ""])
    assert found.missing == ("Ida <b>",) and "No file from:</b> Ida &lt;b&gt;." in found._repr_html_()
    assert "Nothing begun:</b> Grace." in found._repr_html_() and "Nothing begun: Grace." in repr(found)
    assert found.not_started(course()[0]) == ["Grace"] and found.not_started(course()[1]) == ["Ada", "Grace"]


EVIL = ["=cmd|'/c calc'!A1", "+1", "-2+3", "@SUM(A1)", "＝1+1", "<script>alert(1)</script>", '"><img src=x onerror=y>',
        "a;=1+1", 'a","=1+1', "\t=1", "\r\n=1", "'=1", "A\u202egnp", "<!--", "&lt;", "]]>"]  # fmt: skip


@pytest.mark.parametrize("name", EVIL, ids=map(str, range(len(EVIL))))
def test_nothing_typed_becomes_markup_or_a_formula(give, name):
    content = changed(name=name, predictions={CHOICE.name: {"answer": name, "actual": name, "before": False}})
    folder = give("=evil<b>.json" if os.name == "posix" else "=evil.json", content)
    give("=bad<i>.json" if os.name == "posix" else "=bad.json", {name: name})
    found = classroom(folder, names=[f"{name} too"])
    for page in (found._repr_html_(), found.page()):
        assert not re.search(r"<script|<img|<i>|<b>\.|<!--|\u202e", page)
    rows = list(csv.reader(io.StringIO(found.csv()), strict=True))
    assert len(rows) == 4 and len({len(row) for row in rows}) == 1
    assert not [cell for row in rows for cell in row if cell.startswith(FORMULA)]
    assert all(line.startswith('"') and line.endswith('"') for line in found.csv().split("\r\n") if line)


def test_a_page_of_its_own_runs_nothing_and_fetches_nothing(give):
    page = classroom(give("a.json", GOOD)).page()
    assert page.startswith("<!DOCTYPE html>") and "default-src 'none'" in page
    assert not re.search(r"<script|<link|@import|url\((?!#)|(src|href)=", page)


def test_the_teacher_is_told_what_such_files_are_worth(give):
    found = classroom(give("a.json", GOOD))
    assert "edit" in HONEST and HONEST in found._repr_html_() and HONEST in repr(found)


def test_the_hardest_check_is_the_one_with_most_tries_and_helps(give):
    first, second = course()[0].checks[:2]
    easy, hard = {"passed": True, "tries": 1, "help": 0}, {"passed": False, "tries": 5, "help": 3}
    give("a.json", changed(checks={first: easy, second: hard}))
    found = classroom(give("b.json", changed(name="Grace", checks={first: easy, second: {**hard, "tries": 7}})))
    hardest, other = found.checks
    assert (hardest.check, hardest.tried, hardest.passed, hardest.tries, hardest.helps) == (second, 2, 0, 6.0, 3.0)
    assert (hardest.solutions, other.check, other.tries) == (2, first, 1.0)


def bars(page, name):
    chart = re.search(rf'<svg[^>]*data-chart="{re.escape(name)}".*?</svg>', page)[0]
    return {label: float(n) for label, n in re.findall(r'data-bar="([^"]*)" data-value="([^"]*)"', chart) if float(n)}


def test_predictions_are_drawn_against_the_result(give):
    answers = [8, 8, 4, 16, 100, 0.1, -8, None]
    for n, answer in enumerate(answers):
        made = {"actual": 8} if answer is None else {"answer": answer, "actual": 8, "before": n != 1}
        folder = give(f"{n}.json", changed(name=f"s{n}", predictions={NUMBER.name: made}))
    found = classroom(folder)
    assert bars(found._repr_html_(), NUMBER.name) == {
        "exact": 2, "1/2 to 1": 1, "1 to ×2": 1, "over ×10": 1, "under 1/10": 1, "0 or below": 1,
    }  # fmt: skip
    line = next(line for line in repr(found).splitlines() if line.startswith(NUMBER.name))
    assert line.removeprefix(NUMBER.name).split() == ["2", "2", "2", "1", "1", "1"]
    assert "7 predictions, 1 made none." in found._repr_html_()


def test_choices_are_drawn_as_they_are_offered_and_a_lying_result_is_noticed(give):
    right, wrong = CHOICE.choices[:2]
    for n, (answer, actual) in enumerate([(right, right), (wrong, right), (wrong, right), (wrong, wrong)]):
        made = {"answer": answer, "actual": actual, "before": True}
        folder = give(f"{n}.json", changed(name=f"s{n}", predictions={CHOICE.name: made}))
    page = classroom(folder)._repr_html_()
    assert bars(page, CHOICE.name) == {right: 1, wrong: 3}
    assert "1 other result in some files" in page


def test_an_answer_given_before_its_result_was_seen_is_no_error(give):
    page = classroom(give("a.json", changed(predictions={NUMBER.name: {"answer": 4, "before": True}})))._repr_html_()
    assert bars(page, NUMBER.name) == {"no result yet": 1} and "Nobody has seen the result" in page


def test_what_another_version_of_the_course_asked_is_not_counted_and_said(give):
    found = classroom(give("a.json", changed(checks={"77 <b>gone": {"passed": True, "tries": 1, "help": 0}})))
    assert not any(row.checks for row in found.students[0].rows)
    said = "a.json (Meshwork 1.0): 1 entry not counted, since this course does not ask: 77 "
    assert f"{said}<b>gone." in repr(found) and f"{said}&lt;b&gt;gone." in found._repr_html_()
    many = {f"77 gone{n}": {"passed": True, "tries": 1, "help": 0} for n in range(9)}
    assert "9 entries not counted, since this course does not ask: 77 gone0, 77 gone1, 77 gone2, …." in classroom(
        give("a.json", changed(checks=many))
    ).note  # fmt: skip


def test_each_student_has_a_count_of_the_predictions_made_before_the_result(give):
    give("a.json", GOOD)
    found = classroom(give("b.json", {**guess(before=False), "name": "Grace"}))
    place = csv.DictReader(io.StringIO(found.csv()))
    assert [(row[f"{NUMBER.name[:2]} guessed"], row[f"{NUMBER.name[:2]} before"]) for row in place] == [
        ("1", "1"), ("1", "0"),
    ]  # fmt: skip
    head, ada, grace = (line.split() for line in repr(found).split("\n\n")[2].splitlines())
    day = GOOD["exported"][:10]
    assert head[-3:] == ["Predicted", "before", "Exported"] and (ada[-2:], grace[-2:]) == (["1", day], ["0", day])
    assert re.findall(rf'<td class="mw-n">(\d)</td><td class="mw-n">{day}</td></tr>', found._repr_html_()) == ["1", "0"]


def test_a_class_of_300_is_read_and_drawn(tmp_path):
    """A generous limit, against hanging: it takes a tenth of it."""
    progress = Progress(tmp_path / FILE_NAME)
    for lesson in course():
        for check in lesson.checks:
            progress.update("checks", check, passed=True, tries=3, help=1)
    folder = tmp_path / "class"
    folder.mkdir()
    for n in range(300):
        write(exported(progress, f"Student {n}", NOON + timedelta(seconds=n)), folder)
    started = time.monotonic()
    found = classroom(folder)
    assert len(found._repr_html_()) < 1_000_000 and len(found.csv().splitlines()) == 301 == len(found.students) + 1
    assert time.monotonic() - started < 10


def test_the_command_writes_text_a_page_and_a_table(give, tmp_path, capsys):
    folder, out = give("a.json", changed(name="Łukasz")), tmp_path / "out"
    out.mkdir()
    (out / "names").write_text("Łukasz\nIda\n", encoding="utf-8")
    assert main([str(folder), "--names", str(out / "names")]) == 0
    assert "No file from: Ida." in capsys.readouterr().out
    assert main([str(folder), "--html", str(out / "class.html"), "--csv", str(out / "class.csv")]) == 0
    assert "1 student, 0 files left out." in capsys.readouterr().out
    assert "Łukasz" in (out / "class.html").read_text(encoding="utf-8")
    assert (out / "class.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert main([str(tmp_path / "missing")]) == 1
    with pytest.raises(SystemExit, match="No such file"):
        main([str(folder), "--html", str(tmp_path / "missing" / "class.html")])
    for option, name in (("--html", "class.html"), ("--csv", "class.csv"), ("--names", "names.txt")):
        said = f"{option} {out} is a folder; expected a file's path, such as {out / name}"
        with pytest.raises(SystemExit, match=re.escape(said)):
            main([str(folder), option, str(out)])


def test_reading_names_the_first_fault_of_one_file(give):
    with pytest.raises(LeftOut, match="tries is -1"):
        read(give("a.json", entry(tries=-1)) / "a.json")


def test_reading_a_class_loads_no_jax(give):
    import subprocess

    words = f"from widgets import classroom; classroom({str(give('a.json', GOOD))!r})._repr_html_(); import sys"
    subprocess.run([sys.executable, "-c", f"{words}; assert 'jax' not in sys.modules"], check=True, timeout=60)


def test_the_teachers_notebook_is_generated_and_writes_a_page_and_a_table(give, tmp_path, monkeypatch):
    path = notebooks.HERE / "teaching" / "classroom.ipynb"
    text = dict(build.texts())[path]
    assert path.read_text(encoding="utf-8") == text, "run `make lessons`"
    (tmp_path / "exports").mkdir()
    give("exports/a.json", GOOD)
    monkeypatch.chdir(tmp_path)
    shown = []
    names = {"display": shown.append}
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert [student.name for student in shown[0].students] == ["Ada"]
    assert "Ada" in (tmp_path / "class.html").read_text(encoding="utf-8") and (tmp_path / "class.csv").is_file()
