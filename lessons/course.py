"""The facts of each lesson, read off its source, so that no page says them a second time by hand.

    >>> lessons()[1].title, lessons()[1].minutes, lessons()[1].needs
    ('Named dimensions, meshes and slices', (45, 60), ('00_start_here',))

A lesson's first cell has its title, why, goals, needs, minutes and papers in the fixed form that `tests/lessons`
check; its exercises, predictions and explorers are what its code cells call. What is made of them: `pages.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import widgets
from lessons import notebooks
from mtfcore.errors import sure

_NEEDS = re.compile(r"\*\*Needs\*\* (.*?) · \*\*Minutes\*\* (\d+)–(\d+) · \*\*Hardware\*\* (.*?) · \*\*Papers\*\* (.*)")
_EXPLORERS = Path(widgets.__file__).parent / "explorers"


@dataclass(frozen=True)
class Exercise:
    """One exercise: the name that `check` knows it by, its number in the lesson, and what is to be done."""

    name: str  # "01 copies"
    number: int
    kind: str  # "write a function"


@dataclass(frozen=True)
class Question:
    """One prediction that a lesson asks for. `origin` is where the result's number comes from."""

    name: str  # "01 rows"
    text: str
    choices: tuple[str, ...]
    unit: str
    origin: str


@dataclass(frozen=True)
class Lesson:
    """What a lesson says of itself, and what it has."""

    stem: str  # "01_named_dimensions"
    title: str
    why: str
    goals: tuple[str, ...]
    needs: tuple[str, ...]  # stems
    minutes: tuple[int, int]
    hardware: str
    papers: str
    sections: tuple[str, ...]  # "1 · Dimensions have names"
    exercises: tuple[Exercise, ...]
    questions: tuple[Question, ...]
    explorers: tuple[str, ...]  # functions of widgets, in the order of their first use

    @property
    def number(self) -> str:
        """Its two digits: `01`."""
        return self.stem[:2]


@cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons, in order."""
    return tuple(read(source) for source in notebooks.sources())


def read(source: Path) -> Lesson:
    """One lesson's facts, from its source."""
    cells = notebooks.cells(source)
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    tree = ast.parse("\n".join(cell.source for cell in cells if cell.cell_type == "code"))
    needs, least, most, hardware, papers = sure(_NEEDS.search(_flat(text.split("**Papers**")[0], text))).groups()
    return Lesson(
        stem=source.stem,
        title=sure(re.search(r"^# \d\d · (.*)$", text, re.MULTILINE))[1],
        why=_flat(sure(re.search(r"\*\*Why:\*\* (.*?)\n\n", text, re.DOTALL))[1]),
        goals=tuple(re.findall(r"^\d\. (.*?)(?: \(exercise)", text.split("**Needs**")[0], re.MULTILINE)),
        needs=tuple(re.findall(r"\]\((\w+)\.ipynb\)", needs)),
        minutes=(int(least), int(most)),
        hardware=hardware,
        papers=papers,
        sections=tuple(re.findall(r"^## (\d+ · .*)$", text, re.MULTILINE)),
        exercises=tuple(_exercises(source, text)),
        questions=tuple(_questions(tree)),
        explorers=tuple(_explorers(tree)),
    )


def _flat(text: str, whole: str = "") -> str:
    """Text on one line; with `whole`, to the end of the paragraph in which `text` ends."""
    if whole:
        text += whole[len(text) :].split("\n\n")[0]
    return " ".join(text.split())


def _exercises(source: Path, text: str) -> Iterator[Exercise]:
    kinds = dict(re.findall(r"\*\*Exercise (\d+) \(([^)]+)\)\.\*\*", text))
    for number, (name, *_) in enumerate(notebooks.exercises(source), 1):
        yield Exercise(name, number, kinds[str(number)])


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Each call of a plain or dotted name, in the order of the text."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in sorted(found, key=lambda call: (call.lineno, call.col_offset)):
        yield ast.unparse(node.func), node


def _questions(tree: ast.AST) -> Iterator[Question]:
    """Each prediction, joined with the origin that its `predict.show` names."""
    calls = list(_calls(tree))
    said = [call.args for name, call in calls if name == "predict.show"]
    shown = {_value(args[0]): _value(args[2]) if len(args) > 2 else "modelled" for args in said}
    for name, call in calls:
        if name == "predict":
            asked, text = map(_value, call.args)
            words = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
            yield Question(asked, text, tuple(words.get("choices", ())), words.get("unit", ""), shown[asked])


def _value(node: ast.expr) -> str:
    """What a literal text says."""
    return str(ast.literal_eval(node))


def _explorers(tree: ast.AST) -> Iterator[str]:
    """Explorers that the lesson imports and calls, each once."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "widgets")
    imported = {alias.name for node in imports for alias in node.names if is_explorer(alias.name)}
    yield from dict.fromkeys(name for name, _ in _calls(tree) if name in imported)


def is_explorer(name: str) -> bool:
    """Whether a public name of `widgets` is an explorer: it has a file of its own among them."""
    return name in widgets.__all__ and (_EXPLORERS / f"{name}.py").is_file()
