"""Predictions: recorded before the result, shown beside it, by form and by value."""

import pytest
from IPython.display import DisplayHandle

from widgets.learning import Predict, Progress


@pytest.fixture
def predict(tmp_path):
    return Predict(Progress(tmp_path / "progress.json"))


def press(prediction, value):
    """Answer as a reader does: fill the field, press the button; returns the status line."""
    row, status = prediction.widget().children
    field, button = row.children
    field.value = value
    button.click()
    return status.value


def test_the_form_records_and_says_so(predict):
    guess = predict("01 rows", "How many rows?", unit="rows")
    assert "Recorded: 1,024 rows." in press(guess, "1,024")
    assert guess.answer == 1024


def test_a_choice_must_be_one_of_the_choices(predict):
    guess = predict("01 order", "Which?", choices=["2–3", "4–5"])
    guess.answer = "4–5"
    with pytest.raises(ValueError, match="'7' is not one of the choices: 2–3, 4–5"):
        guess.answer = "7"
    assert guess.answer == "4–5"


@pytest.mark.parametrize("entry", ["many", "nan", "inf", "4 rows", "3,5", "1,0245", ",5"])
def test_a_wrong_entry_answers_in_the_status_line_and_records_nothing(predict, entry):
    guess = predict("01 rows", "How many rows?", unit="rows")
    assert "number" in press(guess, entry)
    assert guess.answer is None


def test_an_empty_form_asks_for_an_answer(predict):
    assert "first" in press(predict("01 rows", "How many rows?"), "")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [(4, "Exactly right."), (8, "2 times the result"), (0, "Not the same"), (None, "You made no prediction")],
)
def test_the_result_stands_beside_the_prediction(predict, answer, verdict):
    predict("01 rows", "How many rows?", unit="rows")
    if answer is not None:
        predict.record("01 rows", answer)
    shown = predict.show("01 rows", 4, origin="counted")
    assert verdict in shown.verdict
    assert "Result (counted): 4 rows" in repr(shown)
    assert "4 rows" in shown._repr_html_()


def test_an_answer_after_the_result_is_kept_and_marked(predict):
    guess = predict("01 rows", "How many rows?", unit="rows")
    predict.show("01 rows", 4)
    assert "after the result was shown" in press(guess, "4")


def test_a_later_answer_updates_the_shown_result_where_it_stands(predict, monkeypatch):
    updates = []
    monkeypatch.setattr(DisplayHandle, "display", lambda self, shown: None)
    monkeypatch.setattr(DisplayHandle, "update", lambda self, shown: updates.append(repr(shown)))
    guess = predict("01 rows", "How many rows?", unit="rows")
    predict.show("01 rows", 4)._ipython_display_()
    guess.answer = 4
    assert ["You predicted: 4 rows" in text for text in updates] == [True]


def test_a_prediction_is_remembered_when_its_cell_runs_again(predict):
    predict("01 rows", "How many rows?").answer = 3
    again = predict("01 rows", "How many rows?")
    assert again.answer == 3 and "3" in again.widget().children[1].value


def test_names_and_origins_are_checked(predict):
    predict("01 rows", "How many rows?")
    with pytest.raises(ValueError, match="asked so far: '01 rows'"):
        predict.show("01 row", 4)
    with pytest.raises(ValueError, match="modelled, counted, compiled, measured, published"):
        predict.show("01 rows", 4, origin="guessed")


def test_markup_in_a_question_is_shown_not_run(predict):
    guess = predict("<b>", "<script>alert(1)</script>", unit="<i>")
    assert "<script>" not in predict.show("<b>", 1)._repr_html_()
    assert "<b>" not in guess.widget().children[1].value
