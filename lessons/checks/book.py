"""How a lesson enters an exercise: the solution shown by the third help is read from the lesson's own source.

So a solution stands in one place only, the cell tagged `solution`, where the tests run it too.
"""

from __future__ import annotations

from collections.abc import Callable

from widgets.learning.exercises import Check
from widgets.learning.exercises import exercise as enter


def exercise(name: str, *, task: str, hint: str, bigger_hint: str, gives: str = "") -> Callable[[Check], Check]:
    """Enter a check under "NN name"; NN is the lesson. `gives` names the kind of the answer."""
    return enter(name, task=task, gives=gives, hint=hint, bigger_hint=bigger_hint, solution=lambda: solution(name))


def solution(name: str) -> str:
    """The text of an exercise's solution."""
    from lessons import build  # loads jupytext, which only this needs

    lesson = next(source for source in build.sources() if source.name.startswith(name[:2]))
    return next(build.without_check(solved) for found, _, solved in build.exercises(lesson) if found == name)
