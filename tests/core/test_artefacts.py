"""The table of published artefacts: complete, and every explorer, lesson, test and record that it names is there."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import pytest

import widgets
from mtfcore.reference.artefacts import Artefact, artefacts, table

ROOT = Path(__file__).parents[2]
each_artefact = pytest.mark.parametrize("artefact", artefacts(), ids=lambda each: f"{each.paper}: {each.artefact:.40}")

# What the papers have that must become something here, as words that one row or more have in their name or place.
PROMISED = {
    "first": """
        Table 1; forward and backward; Appendix B; Table 2; Table 3; 16 x 32 run; own meshes; Reshape; layout search;
        halo exchange; do not divide; memory actually used; sensitivity to the topology; at the memory wall""",
    "second": """
        1D and 2D weight-stationary; XYZ weight-gathered; Figure 2; Figure 3; Figure 6; Figure 7; Multihead, multiquery
        and grouped; by heads and by batch; Table 1; Figures 4; and 5; Figure 8; Serial and parallel; 14 %; Looped
        collective einsum; int8; Figure 1; Tables 2 and 3; Table D.2; D.3; D.4; Table D.1; 1.9 s; contention;
        overlap; unequal bandwidth; ratios F/E; dynamic batching""",
}


@cache
def names_in(path: str) -> frozenset[str]:
    """Names of the test functions in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_")


@cache
def calls_in(lesson: str) -> frozenset[str]:
    """Names that a lesson's source calls, and words of its text."""
    source = (ROOT / f"lessons/src/{lesson}.py").read_text(encoding="utf-8")
    return frozenset(node.func.id for node in ast.walk(ast.parse(source))
                     if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))  # fmt: skip


def records_named(compiled: str) -> list[str]:
    """Names of the committed records that `file#start` speaks of: those that begin so."""
    path, _, start = compiled.partition("#")
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines() if (ROOT / path).is_file() else []
    names = [json.loads(line)["params"]["name"] for line in lines]
    return [name for name in names if start and name.startswith(start)]


def missing(promised: str, rows: list[str]) -> list[str]:
    """Which of the words between semicolons no row has."""
    words = [" ".join(each.split()) for each in promised.split(";")]
    return [each for each in words if not any(each.lower() in row.lower() for row in rows)]


@pytest.mark.parametrize("paper", PROMISED)
def test_nothing_that_was_promised_is_missing(paper):
    rows = [f"{each.artefact} ({each.where})" for each in artefacts() if each.paper == paper]
    assert missing(PROMISED[paper], rows) == []
    assert missing(PROMISED[paper], rows[:3]) != []


@each_artefact
def test_its_tests_are_there(artefact: Artefact):
    assert artefact.tests and artefact.tolerance
    absent = [name for name in artefact.tests if name.partition("::")[2] not in names_in(name.partition("::")[0])]
    assert absent == []


@each_artefact
def test_its_explorer_lesson_and_compiled_record_are_there(artefact: Artefact):
    places = (artefact.explorer, artefact.lesson, artefact.compiled)
    assert bool(artefact.why_none) == (None in places), "a reason where something is missing, and only there"
    assert artefact.explorer is None or artefact.explorer in widgets.__all__
    assert artefact.explorer is None or callable(getattr(widgets, artefact.explorer))
    assert artefact.lesson is None or (ROOT / f"lessons/src/{artefact.lesson}.py").is_file()
    assert artefact.compiled is None or records_named(artefact.compiled)


def test_every_lesson_with_an_explorer_of_its_own_is_in_the_table():
    """An artefact's explorer is one that some lesson shows, and its lesson one that some artefact needs."""
    shown = frozenset().union(*(calls_in(path.stem) for path in (ROOT / "lessons/src").glob("[0-9]*.py")))
    assert {each.explorer for each in artefacts() if each.explorer} <= shown
    assert {each.lesson for each in artefacts()} >= {path.stem for path in (ROOT / "lessons/src").glob("0[4-9]*.py")}


def test_each_stands_once_and_the_table_shows_all():
    names = [(each.paper, each.artefact) for each in artefacts()]
    assert len(set(names)) == len(names) == len(table().rows)
    assert {each.paper for each in artefacts()} == {"first", "second"}


def test_a_name_that_is_not_there_is_found_out():
    assert "test_nothing" not in names_in("tests/core/test_artefacts.py")
    assert "test_a_name_that_is_not_there_is_found_out" in names_in("tests/core/test_artefacts.py")
    kept = "tpu_runs/records/papers_training.jsonl"
    assert records_named(f"{kept}#product/8x8x1/v2:4x8") == ["product/8x8x1/v2:4x8"]
    assert not any(map(records_named, (f"{kept}#product/9", f"{kept}#", kept, "tpu_runs/records/none.jsonl#product/")))
