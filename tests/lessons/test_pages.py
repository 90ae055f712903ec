"""The course's pages: made parts are up to date, notes fit their lessons, the plans' minutes add up."""

from __future__ import annotations

import importlib
import re

import pytest

import widgets
from lessons import pages, results
from lessons.course import Lesson, is_explorer, lessons

each_lesson = pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.stem)
PLANS = results.PLANS.read_text(encoding="utf-8")


def notes(lesson: Lesson) -> str:
    return pages.notes_of(lesson).read_text(encoding="utf-8")


def part(text: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    (found,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found


def rows(text: str) -> list[list[str]]:
    """The lines of tables, without headings."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return [line for line in lines if "".join(line) and not set("".join(line)) <= set("-")]


@pytest.mark.parametrize("number", range(len(list(pages.pages()))))
def test_made_pages_are_up_to_date(number):
    path, wanted = list(pages.pages())[number]
    assert path.read_text(encoding="utf-8") == wanted, "run `make lessons`"


def test_a_page_without_its_marks_is_told():
    assert pages.replaced("a <!-- x -->old<!-- /x --> b", "x", "new") == "a <!-- x -->\nnew\n<!-- /x --> b"
    with pytest.raises(ValueError, match="one <!-- x --> and one <!-- /x -->"):
        pages.replaced("a <!-- x --> b", "x", "new")


@each_lesson
def test_facts_are_read_off_the_lesson(lesson):
    assert lesson.title and lesson.why and 3 <= len(lesson.goals) <= 5 and lesson.questions and lesson.explorers
    assert 40 <= lesson.minutes[0] < lesson.minutes[1] <= 60
    assert {*lesson.needs} <= {each.stem for each in lessons() if each.number < lesson.number}
    assert bool(lesson.needs) == (lesson.number != "00")
    assert "arXiv" in lesson.papers and lesson.hardware.startswith("any computer")
    assert all(name[:2] == lesson.number for name in [each.name for each in (*lesson.exercises, *lesson.questions)])


def test_an_explorer_names_the_lessons_that_use_it():
    for name in (name for name in widgets.__all__ if is_explorer(name)):
        text = " ".join(importlib.import_module(f"widgets.explorers.{name}").__doc__.split())
        said = re.search(r"Lessons? ([\d, and]+) uses? it\.", text)
        named = re.findall(r"\d\d", said[1]) if said else []
        assert named == [lesson.number for lesson in lessons() if name in lesson.explorers], name


@each_lesson
def test_the_minutes_of_the_sections_make_the_lesson(lesson):
    timing = rows(part(notes(lesson), "Timing"))[1:]
    assert [line[0] for line in timing] == [*lesson.sections]
    assert lesson.minutes[0] <= sum(int(line[1]) for line in timing) <= lesson.minutes[1]


@each_lesson
def test_every_prediction_has_its_result_and_a_usual_wrong_answer(lesson):
    found = part(notes(lesson), "Predictions")
    right = {line[0]: re.search(r"\*\*(.*?)\*\* \((\w+)\)$", line[2]).groups() for line in rows(found)[1:]}
    assert list(right) == [question.name for question in lesson.questions]
    wrong = {name: re.findall(r"\*\*(.*?)\*\*", text)
             for name, text in re.findall(r"^\* \*(\d\d .*?)\*: (.*(?:\n  .*)*)", found, re.MULTILINE)}  # fmt: skip
    assert list(wrong) == list(right)
    for question in lesson.questions:
        answer, origin = right[question.name]
        assert origin == question.origin and wrong[question.name]
        assert answer.removesuffix(question.unit).strip().replace(",", "") not in wrong[question.name]
        for each in wrong[question.name]:
            assert each in question.choices if question.choices else float(each) >= 0


@each_lesson
def test_notes_speak_of_every_exercise_and_of_none_that_is_not_there(lesson):
    wrong, text = part(notes(lesson), "What goes wrong"), notes(lesson)
    assert set(re.findall(r"^\* \*(\d\d \w+)\*: ", wrong, re.MULTILINE)) == {each.name for each in lesson.exercises}
    assert len(re.findall(r"^\d\. \*.*\?\*", part(text, "Ask"), re.MULTILINE)) >= 4
    assert part(text, "With a TPU or GPU in the room").strip() and part(text, "At the projector").strip()


@pytest.mark.parametrize("text", [*map(notes, lessons()), PLANS], ids=[*(each.stem for each in lessons()), "plans"])
def test_exercises_and_predictions_that_are_named_are_there(text):
    known = {each.name for lesson in lessons() for each in (*lesson.exercises, *lesson.questions)}
    assert {*re.findall(r"(?<!\*)\*(\d\d [a-z][\w -]*)\*(?!\*)", text)} <= known


@pytest.mark.parametrize("text", [*map(notes, lessons()), PLANS], ids=[*(each.stem for each in lessons()), "plans"])
def test_every_setting_that_is_named_works_and_says_what_is_printed(text):
    assert results.spoken(text) == text, "run `python -m lessons.results`"


def test_blocks_without_a_sentence_work_too():
    silent = re.findall(r"```python\n((?:(?!```).*\n)*)```\n(?!> )", "\n".join([*map(notes, lessons()), PLANS]))
    assert {re.findall(r"^(\w+)\(", block, re.MULTILINE)[-1] for block in silent} == {"planner", "generate", "frontier"}
    assert all(results.says(block) for block in silent if "planner" in block)  # what it says next comes later


def test_the_class_of_90_minutes_has_90():
    plan = rows(part(PLANS, "One class of 90 minutes"))[1:]
    starts, lengths = zip(*((int(line[0]), int(line[1])) for line in plan))
    assert sum(lengths) == 90 and list(starts) == [sum(lengths[:n]) for n in range(len(lengths))]


def test_six_weeks_have_each_lesson_once():
    weeks = rows(part(PLANS, "Six weeks"))[1:]
    assert [line[0] for line in weeks] == list("123456")
    assert re.findall(r"\[(\d\d)\]", "".join("".join(line) for line in weeks)) == [each.number for each in lessons()]
    marks = re.search(r"Sixty\s+exercises are (\d+) points", PLANS)
    assert int(marks[1]) == sum(len(each.exercises) for each in lessons())
