"""The six-week plan and the notes share out the exercises between them: each is in class or at home, none is lost."""

from __future__ import annotations

import re

import pytest

import mtfcore as mtf
from lessons.course import lessons
from lessons.notebooks import HERE
from tpu_runs.asking import the_class

TEACHING = HERE / "teaching"
PLANS = (TEACHING / "plans.md").read_text(encoding="utf-8")
HOMEWORK = re.findall(r"^\| [1-6] \| \[[^|]*\|([^|]*)\|", PLANS, re.MULTILINE)
EXERCISE = re.compile(r"\*(\d\d \w+)\*")


def in_class(stem: str) -> set[str]:
    """The exercises that the notes' timing does in class."""
    notes = (TEACHING / f"{stem}.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"^\| \d+ · Exercises \| \d+ \|([^|]*)\|", notes, re.MULTILINE)
    return set(EXERCISE.findall(said.partition("in class")[0]))


@pytest.mark.parametrize("lesson", lessons()[:12], ids=lambda lesson: lesson.number)
def test_each_exercise_of_the_twelve_meetings_is_done_in_class_or_at_home(lesson):
    asked = {each.name for each in lesson.exercises}
    home = {name for name in EXERCISE.findall(" ".join(HOMEWORK)) if name.startswith(lesson.number)}
    assert in_class(lesson.stem) | home == asked and not in_class(lesson.stem) & home


def test_the_last_two_lessons_are_homework_of_the_last_week():
    assert len(HOMEWORK) == 6 and all(f"../{lesson.stem}.ipynb" in HOMEWORK[5] for lesson in lessons()[12:])


def test_the_minutes_of_one_class_add_up():
    rows = re.findall(r"^\| (\d+) \| (\d+) \|", PLANS, re.MULTILINE)
    starts, minutes = zip(*((int(start), int(long)) for start, long in rows))
    assert [sum(minutes[:n]) for n in range(len(rows) + 1)] == [*starts, 90]


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.number)
def test_the_minutes_of_the_notes_are_those_of_the_map(lesson):
    notes = (TEACHING / f"{lesson.stem}.md").read_text(encoding="utf-8")
    timing = notes.partition("## Timing")[2].partition("\n## ")[0]
    total = sum(map(int, re.findall(r"^\| \d+ · [^|]*\| (\d+) \|", timing, re.MULTILINE)))
    assert lesson.minutes[0] <= total <= lesson.minutes[1] <= 60


def test_what_a_token_waits_for_in_the_planner_is_what_the_notes_say():
    asked = {"input_tokens": 2048, "output_tokens": 64, "prefill_batch": 1, "weights": "int8"}  # as planner() starts
    served = mtf.costs.inference("palm-540b", "v4:4x4x4", batch=[1, 64, 512], **asked)
    assert list(served.bottleneck["decode"]) == ["launch", "launch", "link"]
    said = (TEACHING / "07_costs.md").read_text(encoding="utf-8").replace("\n", " ")
    assert "waits most for starting its collectives, at 1 and at 64 alike" in said and "for links at 512" in said


def test_the_plan_says_how_a_line_of_the_class_is_used():
    """As a line of Python it is a variable that nobody reads."""
    assert "puts one behind `%env ` in a first cell" in PLANS
    words = "http://127.0.0.1:8899 token"
    assert the_class(f'"{words}"') == the_class(words)  # %env keeps the quotes that are printed
