"""CONTRIBUTING's recipes work: done in a copy of the tree, word for word, with what they say to run.

All in one copy and few processes, since a reader may follow several; `--long` also does each alone. A recipe says
what it writes, where, what to run and what is then seen, so nothing here knows any of them by name.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from setup.recipes import NEEDED, ROOT, TEXT, Recipe, apply, copy_tree, recipes

RECIPES = recipes()
MAKE = {"make docs": "python docs", "make lessons": "python -m lessons.build"}
MUST = ("operation", "layout", "chip", "model", "explorer", "lesson", "case")


def run(tree: Path, command: list[str], limit: float = 200) -> str:
    """One command in the copy, whose own modules come first."""
    env = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}"}
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=limit, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def follow(tree: Path, chosen: list[Recipe]) -> str:
    """Apply recipes, run what they say to make, then all their tests and all that they say is seen, at once."""
    asked: list[list[str]] = []
    for number, recipe in enumerate(chosen):
        apply(recipe, tree)
        asked += [shlex.split(command)[3:] for command in recipe.commands if command.startswith("python -m pytest ")]
        shown = f"tests/setup/seen_{number:02}.txt"
        (tree / shown).write_text(f"{recipe.title}\n\n{recipe.seen}\n", encoding="utf-8")
        asked[-1].insert(0, shown)
    tidy(tree, chosen)
    made = [command for recipe in chosen for command in recipe.commands if "pytest" not in command]
    for command in dict.fromkeys(made):
        run(tree, [sys.executable, *shlex.split(MAKE.get(command, command))[1:]])
    fresh = "tests/errors/test_catalogue.py::test_each_says_exactly_what_the_page_shows"
    run(tree, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", fresh])
    return run(tree, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *together(asked)], 250)


def tidy(tree: Path, chosen: list[Recipe]) -> None:
    """What recipes write passes `make lint`; a lesson's cells are laid out for its readers."""
    files = sorted({file for recipe in chosen for file in recipe.files if file.endswith(".py")})
    run(tree, [sys.executable, "-m", "ruff", "check", *files])
    code = [file for file in files if "lessons/src" not in file]
    run(tree, [sys.executable, "-m", "ruff", "format", "--check", *code])
    typed = [file for file in code if not file.startswith("tests/")]
    if typed:
        run(tree, [sys.executable, "-m", "mypy", "--follow-imports=silent", *typed])


def together(asked: list[list[str]]) -> list[str]:
    """Several pytest commands as one: all their files, and what any of their -k would choose."""
    files, words = [], ["seen_"]
    for arguments in asked:
        at = arguments.index("-k") if "-k" in arguments else len(arguments)
        files += arguments[:at]
        words.append(arguments[at + 1] if at < len(arguments) else " or ".join(map(stem, arguments[:at])))
    return [*dict.fromkeys(files), "--doctest-glob=seen_*.txt", "-k", " or ".join(f"({word})" for word in words), "-rA"]


def stem(file: str) -> str:
    return Path(file).stem


def test_there_is_a_recipe_for_everything_that_people_add():
    titles = " ".join(recipe.title for recipe in RECIPES)
    assert [word for word in MUST if word not in titles] == []


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_a_recipe_is_short_and_in_order(recipe):
    assert [step.number for step in recipe.steps] == list(range(1, len(recipe.steps) + 1))
    assert 2 <= len(recipe.steps) <= 9
    assert recipe.about.startswith("You get ") and recipe.files
    assert recipe.seen and any("pytest" in command for command in recipe.commands)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_a_recipe_makes_the_pages_that_list_what_it_adds(recipe):
    """Each new name stands in the reference or in a message's list of what is legal; a lesson has its own pages."""
    lesson = {"make lessons", "python -m lessons.previews 14"}
    assert {"make docs"} <= set(recipe.commands) or lesson <= set(recipe.commands)


def test_links_of_the_text_lead_somewhere():
    text = re.sub(r"^ *```.*?^ *```$", "", TEXT.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert links and [link for link in links if not (ROOT / link).exists()] == []
    heads = re.findall(r"^##+ (.*)$", text, re.MULTILINE)
    heads = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= heads


def test_the_map_names_every_package_and_nothing_else():
    table = TEXT.read_text(encoding="utf-8").partition("\n## Where things are\n")[2].partition("\n## ")[0]
    places = re.findall(r"`([\w/]+/)`", "".join(row.split("|")[1] for row in table.splitlines() if "/`" in row))
    assert [place for place in places if not (ROOT / place).is_dir()] == []
    assert {place.strip("/") for place in places} >= set(NEEDED)


@pytest.mark.timeout(500)
def test_all_recipes_together(tmp_path):
    """What each adds is there, does what the text shows, and passes the tests that the text names."""
    tree = copy_tree(tmp_path / "copy")
    said = follow(tree, RECIPES)
    assert said.count("PASSED tests/setup/seen_") == len(RECIPES)
    for recipe in RECIPES:
        for command in recipe.commands:
            chosen = re.search(r"-k \"?(\w+)", command)
            assert chosen is None or re.search(rf"PASSED .*{chosen[1]}", said), f"{recipe.title}: {command}"


@pytest.mark.long
@pytest.mark.timeout(500)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_each_recipe_alone(recipe, tmp_path):
    follow(copy_tree(tmp_path / "copy"), [recipe])
