"""What students hand in: the lessons' own stubs and solutions, and what a solution was once heard to answer.

Read next: `test_exercises.py`, `test_constants.py`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import lessons.checks  # noqa: F401 (fills the book)
import mtfcore as mtf
from lessons import notebooks
from mtfcore.functions import Function
from widgets.learning.checking import judge
from widgets.learning.exercises import BOOK

EXERCISES = {name: texts for source in notebooks.sources() for name, *texts in notebooks.exercises(source)}
SEEDS = ["Ada", "Grace", *range(10)]


def answer(name: str, text: str) -> Any:
    """What a cell hands to `check`, run as in the lesson."""
    handed = []
    lesson = importlib.import_module(f"lessons.checks.lesson_{name[:2]}")
    modules = {"mtf": mtf, "np": np, "jax": importlib.import_module("jax")}
    scope = {**vars(lesson), **modules, "check": lambda _name, given: handed.append(given)}
    exec(compile(text, f"<{name}>", "exec"), scope)
    return handed[0]


def stub(name: str) -> Any:
    return answer(name, EXERCISES[name][0])


@functools.cache
def solved(name: str) -> Any:
    return answer(name, EXERCISES[name][1])


def handing(name: str, call: Callable[..., Any]) -> Any:
    """A function as the exercise asks for it: with dimensions, where it asks for a named function."""
    right = solved(name)
    if isinstance(right, Function):
        dims = {name: " ".join(map(str, dims)) for name, dims in right.arguments.items()}
        return Function.of(right.__name__, dims, lambda **tensors: call(*tensors.values()))
    return call


@functools.cache
def heard(name: str, seed: str | int) -> list[Any]:
    """All that the right answer said to the check of one student."""
    right, said = solved(name), []
    if not callable(right):
        return [right]
    inner = right.call if isinstance(right, Function) else right

    def spy(*args: Any, **kwargs: Any) -> Any:
        said.append(inner(*args, **kwargs))
        return said[-1]

    judge(BOOK[name], handing(name, spy), seed)
    return said
