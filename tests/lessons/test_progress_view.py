"""A student's own view and the file it exports: static, escaped, small, named safely, read back as it was."""

import json
import re
from datetime import UTC, datetime

import pytest

from mtfcore.errors import LayoutError
from widgets import static
from widgets.learning import progress_view
from widgets.learning.export import exported, file_name, write
from widgets.learning.outline import course
from widgets.learning.progress import FILE_NAME, Progress
from widgets.learning.progress_view import Look, View
from widgets.learning.reading import read
from widgets.learning.standing import how_far, next_up, standings

FIRST, SECOND = course()[0], course()[1]
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def progress(tmp_path):
    """A student who passed lesson 00 and tried one check of lesson 01."""
    kept = Progress(tmp_path / FILE_NAME)
    for name in FIRST.checks:
        kept.update("checks", name, passed=True, tries=2, help=1)
    kept.update("checks", SECOND.checks[0], passed=False, tries=3, help=2)
    asked = FIRST.predictions[0]
    kept.update("predictions", asked.name, question=asked.question, unit=asked.unit, answer=16, actual=8, before=True)
    kept.update("predictions", "01 mine <b>", question="<script>", unit="", answer=1, before=True)
    return kept


def row(page, number):
    found = re.search(rf'<tr data-lesson="{number}".*?</tr>', page)[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found)).strip()


def test_each_lesson_has_a_row_with_what_is_done(progress):
    page = View(progress)._repr_html_()
    assert len(re.findall("<tr data-lesson=", page)) == len(course())
    n = len(FIRST.checks)
    assert row(page, "00").startswith(f"00 · {FIRST.title} {n} of {n} ✓")
    assert row(page, "00").endswith(f"{2 * n} {n} 1 of {len(FIRST.predictions)}")
    assert f"0 of {len(SECOND.checks)} ○" in row(page, "01") and 'data-lesson="00" data-state="done"' in page
    assert row(page, "02").endswith(f"– – 0 of {len(course()[2].predictions)}")


def test_predictions_stand_beside_results_with_how_far_off_and_when(progress):
    page = View(progress)._repr_html_()
    said = re.search(r"<summary>Lesson 00: 1 prediction, 0 exact</summary>.*?</details>", page)[0]
    assert "2 times the result" in said and "<td>before</td>" in said and 'class="mw-origin"' in said
    assert "<td>not made</td>" in said and "not seen yet" in said


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"answer": 4, "actual": 4}, "exact"),
        ({"answer": 2, "actual": 8}, "0.25 times the result"),
        ({"answer": -2, "actual": 8}, "not the same"),
        ({"answer": 0, "actual": 8}, "not the same"),
        ({"answer": "a", "actual": "b"}, "not the same"),
        ({"answer": 1e308, "actual": 1e-308}, "inf times the result"),
        ({"actual": 8}, ""),
    ],
)
def test_how_far_off_in_words(entry, words):
    assert how_far(entry) == words


def test_what_is_next_is_the_first_begun_then_the_first_not_begun(progress):
    assert View(progress).next == (
        f"lesson 01, {SECOND.title}: exercise 1 ({SECOND.checks[0][3:]}) (3 tries, help 2 of 3 taken so far)."
    )
    everything = {name: {"passed": True, "tries": 1} for lesson in course() for name in lesson.checks}
    assert next_up(standings(everything, {})) is None
    assert next_up(standings({}, {})).lesson is FIRST
    del everything[course()[5].checks[1]]
    assert next_up(standings(everything, {})).open_checks == [course()[5].checks[1]]


def test_a_new_student_is_told_where_to_begin(tmp_path):
    view = View(Progress(tmp_path / FILE_NAME))
    assert view.next.startswith(f"lesson 00, {FIRST.title}: exercise ") and "so far" not in view.next


def test_the_page_is_static_and_can_be_read_by_keyboard_and_screen_reader(progress):
    page = View(progress)._repr_html_()
    assert "<script" not in page and "http" not in page and "01 mine" not in page
    for part in ('aria-label="Your progress"', "<caption>", 'scope="col"', 'scope="row"', 'tabindex="0" role="group"'):
        assert part in page


def test_the_text_says_the_same_and_a_note_of_the_file_is_shown(progress):
    lines = repr(View(progress)).splitlines()
    assert lines[0].startswith("Next: lesson 01") and len(lines) == 3 + len(course())
    progress.note = "The file could <not> be read."
    assert "could &lt;not&gt; be read" in View(progress)._repr_html_()


def test_a_notebook_keeps_the_page_and_says_how_to_come_back(progress, monkeypatch):
    put = []
    for module in (progress_view, static):  # the page, and the form below it
        monkeypatch.setattr(module, "display", lambda *shown, **_: put.append(shown[0]))
    Look(progress)()._ipython_display_()
    assert "Where you stand" in put[0]["text/html"] and "Run this cell" in put[0]["text/html"]
    assert put[0]["text/plain"].startswith("Next: ") and len(put) == 2


def press(progress, name):
    row, said = View(progress).widget().children
    field, button = row.children
    field.value = name
    button.click()
    return said.value


def test_the_button_writes_the_file_and_links_to_it(progress):
    said = press(progress, "Ada")
    made = progress.path.with_name("meshwork-progress-Ada.json")
    assert made.is_file() and f'<a href="{made.name}">' in said and 'role="status"' in said


def test_the_button_asks_for_a_name_and_says_why_nothing_was_written(progress, monkeypatch):
    assert "Type a name first" in press(progress, "  ")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress_view, "write", full)
    assert "could not be written here: No space left on device." in press(progress, "Ada")
    assert list(progress.path.parent.glob("meshwork-*")) == []


def test_the_export_is_small_data_and_comes_back_as_it_was(progress):
    made = write(exported(progress, "Ada Łukasz", NOON), progress.path.parent)
    assert made.path.name == "meshwork-progress-Ada-Łukasz.json" and made.n_bytes == made.path.stat().st_size < 4_000
    data = read(made.path)
    assert data == json.loads(made.path.read_text(encoding="utf-8"))
    assert (data["name"], data["exported"], data["version"]) == ("Ada Łukasz", "2026-11-30T12:00:00Z", 1)
    assert data["checks"][SECOND.checks[0]] == {"passed": False, "tries": 3, "help": 2}
    assert data["predictions"] == {FIRST.predictions[0].name: {"answer": 16, "actual": 8, "before": True}}


def test_the_export_says_nothing_of_the_machine_nor_what_the_course_did_not_ask(progress, tmp_path):
    text = write(exported(progress, "Ada", NOON), tmp_path).path.read_text(encoding="utf-8")
    for private in (str(tmp_path), progress.student, "question", "mine"):
        assert private not in text


def test_a_whole_course_is_a_few_kilobytes(tmp_path):
    kept = Progress(tmp_path / FILE_NAME)
    for lesson in course():
        for name in lesson.checks:
            kept.update("checks", name, passed=True, tries=12, help=3)
        for asked in lesson.predictions:
            kept.update("predictions", asked.name, answer=123456, actual=654321, before=True)
    assert write(exported(kept, "Ada", NOON), tmp_path).n_bytes < 10_000


NAMES = {
    "Ada": "Ada",
    "../../etc/passwd": "etc-passwd",
    "..": "no-name",
    "": "no-name",
    " \t\n": "no-name",
    "a.b\\c:d*e?f": "a-b-c-d-e-f",
    "李 小龙": "李-小龙",
    "e\u0301": "é",
    "x\u202egnp.exe": "x-gnp-exe",
    "😀": "no-name",
    "\x00\x1b[31m": "31m",
    "\ud800": "no-name",
    "long" * 1000: ("long" * 10)[:40],
}


@pytest.mark.parametrize(("typed", "part"), NAMES.items(), ids=map(ascii, range(len(NAMES))))
def test_any_typed_name_gives_a_safe_file_name(progress, typed, part):
    assert file_name(typed) == f"meshwork-progress-{part}.json"
    made = Look(progress).export(typed)
    assert made.path.parent == progress.path.parent and made.path.is_file()
    assert len(made.path.name.encode()) < 200 and read(made.path)["name"] == json.loads(made.path.read_bytes())["name"]


@pytest.mark.parametrize("wrong", [None, 5, b"Ada", ["Ada"]])
def test_a_name_that_is_no_text_is_refused_in_words(progress, wrong):
    with pytest.raises(LayoutError, match="your name as a text"):
        Look(progress).export(wrong)


def test_a_second_export_replaces_the_first_and_leaves_nothing_else(progress):
    for _ in range(2):
        Look(progress).export("Ada")
    assert sorted(path.name for path in progress.path.parent.iterdir()) == [FILE_NAME, "meshwork-progress-Ada.json"]
