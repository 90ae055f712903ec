"""CONTRIBUTING's recipes as data, read off its own text, and applied to a copy of the tree.

    >>> [recipe.title for recipe in recipes()][0]
    'An operation made of others'

A recipe is a heading under "## How to add" with numbered steps. Within a step, the words before a block of code say
what to do with it: "Make `file`:", "In `file`, after `line`:" (or before, or in place of), "At the end of `file`:". A
line is named by how it begins, and must be the only one that begins so. The block gets that line's indentation.
Blocks marked `sh` are commands, blocks marked `pycon` are what one then sees. Next file to read: test_contributing.py.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "CONTRIBUTING.md"
NEEDED = ("mtfcore", "widgets", "lessons", "tpu_runs", "tests", "docs")
_STEP = re.compile(r"^(\d+)\. ", re.MULTILINE)
_BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(Make|In|in|At the end of|at the end of) `([\w./-]+\.\w+)`")
_LINE = re.compile(r"(after|before|in place of) `` ?(.+?) ?``|(after|before|in place of) `([^`]+)`")


@dataclass(frozen=True)
class Edit:
    """One block of code and where it goes: `how` is make, end, after, before or in place of the line."""

    file: str
    how: str
    line: str
    code: str


@dataclass(frozen=True)
class Step:
    """One numbered step: what it says, what it writes, what to run, what is then seen."""

    number: int
    words: str
    edits: tuple[Edit, ...]
    commands: tuple[str, ...]
    seen: str


@dataclass(frozen=True)
class Recipe:
    """How to add one thing; `about` is the text between its heading and its first step."""

    title: str
    about: str
    steps: tuple[Step, ...]

    @property
    def files(self) -> list[str]:
        """What it writes, each once."""
        return list(dict.fromkeys(edit.file for step in self.steps for edit in step.edits))

    @property
    def commands(self) -> list[str]:
        return [command for step in self.steps for command in step.commands]

    @property
    def seen(self) -> str:
        return "\n".join(step.seen for step in self.steps if step.seen)


def recipes(text: str | None = None) -> list[Recipe]:
    """Every recipe, in order."""
    text = TEXT.read_text(encoding="utf-8") if text is None else text
    _, _, section = text.partition("\n## How to add\n")
    section = re.split(r"^## ", section, maxsplit=1, flags=re.MULTILINE)[0]
    parts = re.split(r"^### (.+)\n", section, flags=re.MULTILINE)
    return [_recipe(title, body) for title, body in zip(parts[1::2], parts[2::2], strict=True)]


def _recipe(title: str, body: str) -> Recipe:
    about, *rest = _STEP.split(_without_numbers_in_blocks(body))
    steps = [_step(int(number), words) for number, words in zip(rest[::2], rest[1::2], strict=True)]
    return Recipe(title, about.strip(), tuple(steps))


def _without_numbers_in_blocks(body: str) -> str:
    """Blocks are indented, so that a number at the start of a line is a step's."""
    inside = [match[0] for match in _BLOCK.finditer(body) if _STEP.search(match[0])]
    assert not inside, f"a block that begins a line with a number: {inside[0][:80]}"
    return body


def _step(number: int, body: str) -> Step:
    edits, commands, seen, words, file, at = [], [], [], [], None, 0
    for block in _BLOCK.finditer(body):
        before, code = body[at : block.start()], textwrap.dedent(block[2])
        at = block.end()
        words.append(before)
        if block[1] == "sh":
            commands += [line for line in code.splitlines() if line and not line.startswith("#")]
        elif block[1] == "pycon":
            seen.append(code)
        else:
            edits.append(_edit(before, code, file))
            file = edits[-1].file
    return Step(number, " ".join([*words, body[at:]]), tuple(edits), tuple(commands), "\n".join(seen))


def _edit(words: str, code: str, file: str | None) -> Edit:
    """What the words just before a block say; a file named before in the step stays in force."""
    words = " ".join(words.split())
    named, lines = _FILE.findall(words), _LINE.findall(words)
    how, path = named[-1] if named else ("In", file)
    assert path is not None, f"no file named before a block: …{words[-80:]}"
    if how == "Make":
        return Edit(path, "make", "", code)
    if how.lower() == "at the end of":
        return Edit(path, "end", "", code)
    assert lines, f"{path}: where the block goes is not said: …{words[-80:]}"
    first, one, second, other = lines[-1]
    return Edit(path, first or second, one or other, code)


def copy_tree(to: Path) -> Path:
    """The tree without what git does not keep, so that recipes change nothing here."""
    left_out = shutil.ignore_patterns("*.ipynb_checkpoints", ".git", ".pytest_cache", "*.png")
    for name in NEEDED:
        shutil.copytree(ROOT / name, to / name, ignore=left_out)
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith(".git"):
            shutil.copy2(path, to / path.name)
    return to


def apply(recipe: Recipe, tree: Path) -> None:
    """Do what the recipe's steps write."""
    for step in recipe.steps:
        for edit in step.edits:
            _write(edit, tree / edit.file, f"{recipe.title}, step {step.number}")


def _write(edit: Edit, path: Path, where: str) -> None:
    if edit.how == "make":
        assert not path.exists(), f"{where}: {edit.file} is there already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(edit.code, encoding="utf-8")
        return
    assert path.is_file(), f"{where}: there is no {edit.file}"
    text = path.read_text(encoding="utf-8")
    path.write_text(text + edit.code if edit.how == "end" else _put(edit, text, where), encoding="utf-8")


def _put(edit: Edit, text: str, where: str) -> str:
    lines = text.splitlines(keepends=True)
    found = [n for n, line in enumerate(lines) if line.strip().startswith(edit.line)]
    assert len(found) == 1, f"{where}: {len(found)} lines of {edit.file} begin with {edit.line!r}, expected one"
    (n,) = found
    indent = lines[n][: len(lines[n]) - len(lines[n].lstrip())]
    code = list(_spaced(edit, textwrap.indent(edit.code, indent, lambda line: bool(line.strip())).splitlines(True)))
    ends = {"after": (n + 1, n + 1), "before": (n, n), "in place of": (n, n + 1)}
    first, last = ends[edit.how]
    return "".join([*lines[:first], *code, *lines[last:]])


def _spaced(edit: Edit, code: list[str]) -> Iterator[str]:
    """Definitions stand two lines apart."""
    yield from code
    if edit.how == "before" and re.match(r"(def|class|@|_?[A-Z]+\b)", edit.code):
        yield from ("\n", "\n")
