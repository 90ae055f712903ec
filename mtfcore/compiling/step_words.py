"""The steps of a plan in a few words, for the labels of bars.

    >>> dict(step_words(program))["1"]
    'all_reduce over cols'

Next file to read: `timeline_text`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtfcore.dims import Dim
from mtfcore.steps import Program, Step

if TYPE_CHECKING:
    pass


def step_words(program: Program, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(number, what it does) of every step, those of loops behind their loop."""
    for number, step in enumerate(program.steps):
        yield f"{prefix}{number}", _words(step)
        if step.body is not None:
            yield from step_words(step.body, f"{prefix}{number}.")


def _words(step: Step) -> str:
    if step.kind != "einsum":
        return step.label()
    return f"einsum {' , '.join(_names(s.dims) for s in step.before)} → {_names(step.after.dims)}"


def _names(dims: Sequence[Dim]) -> str:
    return " ".join(dim.name for dim in dims) or "()"
