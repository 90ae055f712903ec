"""Where our errors are raised, and whether anything sees what they say.

A place counts as seen if a call of the catalogue went through it, or if words of its message stand in a test. That is
an approximation, read from the source: a message may be tested by other words, and then it belongs into
`SEEN_OTHERWISE` with where. A `raise` that only hands on another's words has none of its own and is left out.
Next file to read: `test_catalogue`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDERS = ("mtfcore", "widgets", "tpu_runs", "lessons/setting_up")
ERRORS = frozenset(
    "LayoutError NotationError DeviceError StateError Refused NotTaken AskingError OwnerAway WrongToken RequestRefused "
    "ReplayError WrongAnswer LeftOut NotYet AnswerFailed SetupError Unreadable WrongKind refuse".split()
)
WORDS, LEAST = 3, 12  # of a message that a test must have: so many words, of so many letters
# path → "TEST: words that it waits for", which is looked up, or why nobody can see it; all of a file's places.
SEEN_OTHERWISE: dict[str, str] = {
    "mtfcore/costs/templates/learned.py": "told to nobody: where an expression is not known, a second plan is made",
    "mtfcore/measuring/usable.py": "tests/measuring/test_calibrating.py: records of h200, v4; say which",
}


class Place(NamedTuple):
    """One `raise` of ours with words of its own."""

    path: str
    first: int
    last: int
    words: tuple[str, ...]


@cache
def places() -> tuple[Place, ...]:
    """Every one of them."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return tuple(place for path in paths for place in _in_file(path))


def _in_file(path: Path) -> Iterator[Place]:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "raise " in text else ():
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and (runs := _runs(node.exc)):
            yield Place(str(path.relative_to(ROOT)), node.lineno, node.end_lineno or node.lineno, runs)


def _runs(call: ast.Call) -> tuple[str, ...]:
    """Runs of words that a message of ours has, long enough to be told from others."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name not in ERRORS:
        return ()
    texts = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = []
    for words in (_plain(text).split() for text in texts):
        found += [" ".join(words[n : n + WORDS]) for n in range(max(1, len(words) - WORDS + 1))]
    return tuple(run for run in found if len(run) >= LEAST)


def _plain(text: str) -> str:
    """Without the breaks and signs by which source and patterns write a text."""
    joined = re.sub(r"""["']\s*\n\s*[rf]*["']""", "", text)
    return re.sub(r"\s+", " ", joined.replace("\\", ""))


@cache
def _tested() -> str:
    paths = [path for path in (ROOT / "tests").rglob("*.py") if path.parent.name != "errors"]
    return " ".join(_plain(path.read_text(encoding="utf-8")) for path in sorted(paths))


def unseen(went_through: frozenset[tuple[str, int]], said: str) -> list[Place]:
    """Places that neither the catalogue nor any test's words show."""
    words = _tested() + " " + _plain(said)
    return [
        place
        for place in places()
        if place.path not in SEEN_OTHERWISE
        and not any((place.path, line) in went_through for line in range(place.first, place.last + 1))
        and not any(run in words for run in place.words)
    ]
