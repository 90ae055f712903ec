"""The table of published artefacts: every explorer, lesson and test that it names is there."""

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


@cache
def names_in(path: str) -> frozenset[str]:
    """Names of the test functions in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_")


def records_named(compiled: str) -> list[str]:
    """Names of the committed records that `file#start` speaks of: those that begin so."""
    path, _, start = compiled.partition("#")
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines() if (ROOT / path).is_file() else []
    names = [json.loads(line)["params"]["name"] for line in lines]
    return [name for name in names if start and name.startswith(start)]


@each_artefact
def test_its_tests_are_there(artefact: Artefact):
    assert artefact.tests and artefact.tolerance
    missing = [name for name in artefact.tests if name.partition("::")[2] not in names_in(name.partition("::")[0])]
    assert missing == []


@each_artefact
def test_its_explorer_lesson_and_compiled_record_are_there(artefact: Artefact):
    assert artefact.explorer is None or artefact.explorer in widgets.__all__
    assert artefact.explorer is None or callable(getattr(widgets, artefact.explorer))
    assert artefact.lesson is None or (ROOT / f"lessons/src/{artefact.lesson}.py").is_file()
    assert artefact.compiled is None or records_named(artefact.compiled)


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
