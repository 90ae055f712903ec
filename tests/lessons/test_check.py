"""`check` itself: what it says for right, missing, wrong and broken answers, and its three steps of help."""

import pytest

from widgets.learning import Check, Progress
from widgets.learning.exercises import BOOK, Case, at_most, equal, exercise


@pytest.fixture
def check(tmp_path, monkeypatch):
    monkeypatch.setattr("widgets.learning.exercises.BOOK", {})

    @exercise("99 half", task="Halve a number.", hint="Divide.", bigger_hint="By two.", solution=lambda: "n // 2")
    def half(answer, rng):
        for _ in range(3):
            n = 2 * rng.randrange(1, 1000)
            yield equal(f"half({n})", n // 2, answer(n), unit="rows", where="device 3, slice [0:2]")

    return Check(Progress(tmp_path / "progress.json"))


def test_a_right_answer_passes_and_is_kept(check):
    report = check("99 half", lambda n: n // 2)
    assert report.passed and report and report.message == "3 cases agree."
    assert check.progress.entry("checks", "99 half") == {"passed": True, "tries": 1}


@pytest.mark.parametrize("stub", [None, ..., lambda n: None, lambda n: ...])
def test_a_stub_is_not_yet_and_costs_no_try(check, stub):
    report = check("99 half", stub)
    assert report.state == "not yet" and "Halve a number." in report.message
    assert check.progress.entry("checks", "99 half") == {"passed": False, "tries": 0}


def test_a_forgotten_return_is_told_apart_from_dots(check):
    assert "end with a return" in check("99 half", lambda n: None).message
    assert "return" not in check("99 half", lambda n: ...).message


def test_none_behind_an_answer_is_an_answer_of_another_kind(check):
    given = iter((True, True, False))
    report = check("99 half", lambda n: n // 2 if next(given) else None)
    assert report.state == "try again" and "yours gives None" in report.message
    assert check.progress.entry("checks", "99 half")["tries"] == 1


def test_one_is_singular(check):
    report = check("99 half", lambda n: 1, seed="Ada")
    assert "yours gives 1 row." in report.message and "1 case tried" in report._repr_html_()


@pytest.mark.parametrize(
    ("what", "unit", "said"),
    [("sent", "bytes", True), ("sent", "counted bytes", False), ("bytes from jaxpr", "rows", False)],
)
def test_only_numbers_of_modelled_bytes_are_called_modelled(check, what, unit, said):
    def tried(answer, rng):
        yield equal(what, 8, answer, unit)

    exercise("99 bytes", task="Eight.", hint="4 + 4", bigger_hint="8", solution=lambda: "8")(tried)
    assert ("Bytes and FLOPs here are modelled." in repr(check("99 bytes", 8))) == said


def test_a_wrong_answer_names_expected_unit_and_place(check):
    report = check("99 half", lambda n: n // 2 + 1)
    assert report.state == "try again"
    assert "expected" in report.message and "rows" in report.message and "device 3, slice [0:2]" in report.message


def test_an_answer_that_raises_is_reported_with_its_line(check):
    def broken(n):
        return n / 0

    report = check("99 half", broken)
    assert report.message.startswith("Your function stopped with ZeroDivisionError")
    assert f"line {broken.__code__.co_firstlineno + 1} of its cell" in report.message


def test_an_answer_of_the_wrong_kind_is_reported(check):
    assert "the answer: expected an answer, yours gives an error: 'int'" in check("99 half", 7).message


def test_once_passed_stays_passed_and_tries_count_up_to_it(check):
    """So that running a lesson again does not make its checks look hard."""
    for answer in (lambda n: 1, lambda n: n // 2, lambda n: 0, lambda n: n // 2):
        check("99 half", answer)
    assert check.progress.entry("checks", "99 half") == {"passed": True, "tries": 2}


def test_the_seed_is_the_students_and_cases_repeat(check):
    def cases(seed=None):
        return [case.what for case in check("99 half", lambda n: n // 2, seed=seed).cases]

    assert cases("Ada") == cases("Ada") != cases("Grace")
    check.progress.student = "Ada"
    assert cases() == cases("Ada")


def test_help_comes_in_three_steps_and_is_remembered(check):
    report = check("99 half", None)
    assert [report.help() for _ in range(4)] == [
        "Hint: Divide.", "Bigger hint: By two.", "Solution: n // 2", "Solution: n // 2",
    ]  # fmt: skip
    assert check.progress.entry("checks", "99 half")["help"] == 3


def test_each_help_button_shows_its_text(check):
    row, text = check("99 half", None).widget().children
    shown = []
    for button in row.children:
        button.click()
        shown.append(text.value)
    assert [label in html for label, html in zip(("Divide.", "By two.", "n // 2"), shown)] == [True] * 3


def test_help_is_asked_for_step_by_step(check):
    report = check("99 half", None)
    row, _ = report.widget().children

    def open_now():
        return [button.description for button in row.children if not button.disabled]

    assert open_now() == ["Hint"] and row.children[2].tooltip == "Solution for 99 half, after the bigger hint"
    row.children[0].click()
    assert open_now() == ["Hint", "Bigger hint"]
    again, _ = check("99 half", None).widget().children
    assert [button.disabled for button in again.children] == [False, False, True]
    again.children[1].click()
    assert [button.disabled for button in again.children] == [False] * 3


def test_a_help_button_that_fails_says_so(check, monkeypatch):
    report = check("99 half", None)
    monkeypatch.setattr(type(report.exercise), "help", lambda self, step: 1 / 0)
    row, text = report.widget().children
    row.children[0].click()
    assert "Help failed: ZeroDivisionError" in text.value


def test_an_unknown_name_lists_the_known_ones(check):
    with pytest.raises(ValueError, match=r"No exercise is called '99 hal'\. Known here: '99 half'"):
        check("99 hal", 1)


@pytest.mark.parametrize("name", [None, [], {}, 99, "x" * 5_000])
def test_what_is_no_name_of_an_exercise_is_refused_in_few_words(check, name):
    with pytest.raises(ValueError, match="No exercise is called") as caught:
        check(name, 1)
    assert len(str(caught.value)) < 200


def test_a_note_about_the_progress_file_reaches_the_report(check):
    check.progress.path.write_text("damaged")
    report = check("99 half", None)
    assert "could not be read" in repr(report) and "could not be read" in report._repr_html_()


def test_budgets_and_kinds_of_equality():
    assert at_most("bytes", 100, 100, "bytes").good and not at_most("bytes", 100, 101, "bytes").good
    assert equal("n", 1, 1.0).good and not equal("n", 1, True).good and not equal("n", True, 1).good
    assert equal("pair", (1, 2), [1, 2]).good and not equal("pair", (1, 2), (2, 1)).good
    assert str(Case("n", False, "1,024 bytes", "2,048 bytes")) == "n: expected 1,024 bytes, yours gives 2,048 bytes."


def test_every_exercise_of_the_lessons_is_in_the_book():
    import lessons.checks  # noqa: F401
    from lessons import notebooks

    assert {name[:2] for name in BOOK} == {source.stem[:2] for source in notebooks.sources()}
