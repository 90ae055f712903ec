"""Every check of every exercise: the solution passes, the stub is "not yet", typical wrong answers fail in words."""

from typing import Any

import pytest

from lessons.checks.book import solution
from tests.lessons.students import EXERCISES, SEEDS, solved, stub
from tests.lessons.wrong import early, late
from widgets.learning.checking import judge
from widgets.learning.exercises import BOOK

WRONG = early.WRONG | late.WRONG
LONGEST = 400  # characters of a message: two lines of a notebook


def test_lessons_and_book_have_the_same_exercises():
    assert set(EXERCISES) == set(BOOK) == set(WRONG)


@pytest.mark.parametrize("name", BOOK)
def test_every_check_says_what_kind_of_answer_it_asks_for(name):
    assert BOOK[name].kind is not Any and BOOK[name].expects


@pytest.mark.parametrize("name", BOOK)
def test_the_solution_passes_for_every_student(name):
    for seed in SEEDS:
        state, message, cases = judge(BOOK[name], solved(name), seed)
        assert state == "passed" and len(cases) >= 4, message


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_along_the_other_dimension_pass_too(seed):
    state, message, _ = judge(BOOK["03 update"], early._update("io:data hidden"), seed)
    assert state == "passed", message


OTHER_WAYS = [  # right, but not as the solution writes it
    ("05 ratio", lambda batch, n: n / batch if n > 1 else 0),  # one processor all-reduces nothing
    ("06 padded", lambda size, parts: (-(-size // parts) * parts, round(1 - size / (-(-size // parts) * parts), 4))),
    ("08 gather_from", lambda e, f, x, y, z: e * f * x * y * z // (e * y * z + f * x)),  # whole tokens
]


@pytest.mark.parametrize(("name", "right"), OTHER_WAYS, ids=[name for name, _ in OTHER_WAYS])
def test_right_answers_in_another_way_pass_too(name, right):
    for seed in SEEDS:
        state, message, _ = judge(BOOK[name], right, seed)
        assert state == "passed", message


def test_a_function_that_is_given_is_named_in_the_report():
    _, message, _ = judge(BOOK["06 choice_within"], lambda held, budget: "adam", "Ada")
    assert "(the function held, " in message


@pytest.mark.parametrize("name", BOOK)
def test_the_stub_is_not_yet(name):
    state, message, _ = judge(BOOK[name], stub(name), "Ada")
    assert state == "not yet" and BOOK[name].task in message


@pytest.mark.parametrize(("name", "number"), [(name, n) for name in BOOK for n in range(len(WRONG.get(name, [])))])
def test_typical_wrong_answers_fail_with_their_message(name, number):
    wrong, words = WRONG[name][number]
    for seed in SEEDS:
        state, message, cases = judge(BOOK[name], wrong, seed)
        assert state == "try again" and words in message, message
        assert len(message) <= LONGEST and "\n" not in message
        assert not cases[-1].good and message == str(cases[-1]), "the report ends with the case that differs"


@pytest.mark.parametrize("name", BOOK)
def test_there_are_two_wrong_answers_and_three_steps_of_help(name):
    assert len(WRONG[name]) >= 2
    helps = [BOOK[name].help(step) for step in (1, 2, 3)]
    assert len(set(helps)) == 3 and all(helps)
    assert helps[2] == solution(name) and "check(" not in helps[2]
