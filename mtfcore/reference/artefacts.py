"""What each published artefact becomes here: its explorer, its lesson, and the tests that hold it, with the tolerance.

    >>> [each.tolerance for each in artefacts() if each.where == "Figure 3"]
    ['0.1 %; crossings and programs exact']

Kept as data, `artefacts.json`, and read by a test, so that no name in it goes stale. Source: the two papers, arXiv
1811.02084 and 2211.05102. Last file of the published figures.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mtfcore.tables import Column, Table

PAPERS = {"first": "arXiv 1811.02084", "second": "arXiv 2211.05102"}


@dataclass(frozen=True)
class Artefact:
    """One figure, table, claim or open end. Where `explorer`, `lesson` or `compiled` is None, `why_none` says why."""

    paper: str  # "first" or "second"
    artefact: str
    where: str
    explorer: str | None  # a function of `widgets`
    lesson: str | None  # a file of `lessons/src`, without its ending
    tolerance: str
    compiled: str | None  # records of a compiler's reports, as file#name: those whose names begin so
    tests: tuple[str, ...]  # file::function
    why_none: str = ""


@cache
def artefacts() -> tuple[Artefact, ...]:
    """All of them, first paper first."""
    kept = json.loads((Path(__file__).parent / "artefacts.json").read_text(encoding="utf-8"))["artefacts"]
    return tuple(Artefact(**{**each, "tests": tuple(each["tests"])}) for each in kept)


def table() -> Table:
    """One line an artefact."""
    titles = {"where": "where", "artefact": "artefact", "explorer": "explorer", "lesson": "lesson",
              "tolerance": "tolerance", "tests": "tests"}  # fmt: skip
    columns = tuple(Column(key, title, wraps=key in ("artefact", "tolerance")) for key, title in titles.items())
    lines = [
        {**vars(each), "where": f"{PAPERS[each.paper]}, {each.where}", "tests": str(len(each.tests))}
        for each in artefacts()
    ]
    return Table(columns, lines, "What each published artefact becomes")
