"""A teacher reads a class: a folder of files that students exported, as tables, text, CSV or one HTML page.

    from widgets import classroom
    classroom("exports")                                   # in a notebook
    classroom("exports", names=["Ada", "Grace"])           # says too who gave no file

    python -m widgets.learning.classroom exports                        # text
    python -m widgets.learning.classroom exports --html class.html --csv class.csv

Every file is checked and none is run; one that is left out gets a row that says why. A file can be edited by whoever
holds it, so this is what students hand in, not proof of it. Next files to read: `class_html.py`, `class_text.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from mtfcore.errors import expect
from mtfcore.numbers import count

from . import class_html, class_text
from .class_facts import ClassFacts, Student
from .export import Json, clean_name
from .reading import LeftOut, read
from .standing import standings

MOST_FILES = 2_000


class Classroom(ClassFacts):
    """What a folder holds, with its pages: shown in a notebook, printed, or written."""

    def page(self) -> str:
        """One HTML file for a browser, with nothing outside it."""
        return class_html.page(self)

    def csv(self) -> str:
        """A row a student, for a spreadsheet; no cell can be taken for a formula."""
        return class_text.csv_text(self)

    def __repr__(self) -> str:
        return class_text.text(self)

    def _repr_html_(self) -> str:
        return class_html.html(self)


def classroom(folder: str | Path, names: Iterable[str] = ()) -> Classroom:
    """Read the `.json` files of a folder; with `names`, say which of these gave none."""
    expect(folder, (str, os.PathLike), "a folder, such as 'exports'")
    names = [expect(name, str, "names, such as ['Ada', 'Grace']") for name in _listed(names)]
    try:
        paths, note = _files(Path(folder).expanduser())
    except (OSError, RuntimeError, ValueError) as problem:  # ~ of nobody known here; a name that no disk has
        why = getattr(problem, "strerror", None) or "no folder has such a name"
        return Classroom((), (), note=f"The folder {clean_name(str(folder))} cannot be read: {why}.")
    students, left_out = _read_all(paths)
    kept, older = _one_each(students)
    given = {_same(student.name) for student in kept}
    missing = tuple(clean_name(name) for name in names if name.strip() and _same(name) not in given)
    ordered = sorted(kept, key=lambda student: (_same(student.name), student.file))
    notes = " ".join(filter(None, [note, *map(_passed_over, ordered)]))
    return Classroom(tuple(ordered), tuple(sorted([*left_out, *older])), missing, notes)


def _listed(names: object) -> list[object]:
    """One name is a list of one, not of its letters."""
    if names is None:
        return []
    return list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]


def _files(folder: Path) -> tuple[list[Path], str]:
    """The files to read, by name, and a note about the others."""
    with os.scandir(folder) as entries:
        found = sorted(Path(entry.path) for entry in entries)
    wanted = [path for path in found if path.suffix.lower() == ".json"]
    notes = [f"{len(wanted):,} files; the first {MOST_FILES:,} were read."] * (len(wanted) > MOST_FILES)
    if not wanted:
        notes.append(f"No file here ends in .json: {clean_name(str(folder))} should hold what students exported.")
    others = [path for path in found if path.suffix.lower() != ".json"]
    if folders := sum(path.is_dir() for path in others):
        notes.append(f"{count(folders, 'folder')} not looked into: files must lie beside each other here.")
    if files := len(others) - folders:
        notes.append(f"{files} not looked at, since the name does not end in .json.")
    return wanted[:MOST_FILES], " ".join(notes)


def _read_all(paths: list[Path]) -> tuple[list[Student], list[tuple[str, str]]]:
    students, left_out = [], []
    for path in paths:
        file = clean_name(path.name)
        try:
            students.append(_student(file, read(path)))
        except LeftOut as reason:
            left_out.append((file, str(reason)))
    return students, left_out


def _student(file: str, data: Json) -> Student:
    rows = tuple(standings(data["checks"], data["predictions"]))
    asked = {name for row in rows for name in (*row.checks, *row.predictions)}
    unasked = tuple(clean_name(name) for name in (*data["checks"], *data["predictions"]) if name not in asked)
    return Student(data["name"] or f"no name ({file})", file, data["exported"], data["meshwork"], rows, unasked)


def _passed_over(student: Student) -> str:
    """What a file of another version holds that cannot be counted here, so that nobody misses it without a word."""
    if not student.unasked:
        return ""
    named = ", ".join(student.unasked[:3]) + ", …" * (len(student.unasked) > 3)
    what = count(len(student.unasked), "entry", "entries")
    return f"{student.file} (Meshwork {student.meshwork}): {what} not counted, since this course does not ask: {named}."


def _one_each(students: list[Student]) -> tuple[list[Student], Iterator[tuple[str, str]]]:
    """The newest file of each name; the others, with the reason."""
    newest: dict[str, Student] = {}
    for student in sorted(students, key=lambda each: (each.exported, each.file)):
        newest[_same(student.name)] = student
    kept = list(newest.values())
    older = (
        (student.file, f"{student.name} gave a newer file too: {newest[_same(student.name)].file}. "
         f"{_only_here(student, newest[_same(student.name)])}Two students of one name? Let one export under another.")
        for student in students if student not in kept
    )  # fmt: skip
    return kept, older


def _only_here(older: Student, newer: Student) -> str:
    """What is lost by taking the newer file, as of somebody who works on two computers."""
    passed = [
        {name for row in each.rows for name in row.checks if row.checks[name]["passed"]} for each in (older, newer)
    ]
    lost = len(passed[0] - passed[1])
    return f"Here alone: {count(lost, 'check')} passed. " if lost else ""


def _same(name: str) -> str:
    """What two spellings of a name have in common."""
    return unicodedata.normalize("NFKC", clean_name(name)).casefold()


def main(words: list[str]) -> int:
    """The command; without --html or --csv the text goes to the screen."""
    parser = argparse.ArgumentParser(prog="python -m widgets.learning.classroom", description=(__doc__ or "")[:108])
    parser.add_argument("folder", help="where the students' files lie")
    parser.add_argument("--html", type=Path, help="write one page here")
    parser.add_argument("--csv", type=Path, help="write a table for a spreadsheet here")
    parser.add_argument("--names", type=Path, help="a text file, one name a line: who should have given a file")
    options = parser.parse_args(words)
    expected = {"--html": (options.html, "class.html"), "--csv": (options.csv, "class.csv"),
                "--names": (options.names, "names.txt")}  # fmt: skip
    if wrong := [f"{option} {path} is a folder; expected a file's path, such as {path / name}"
                 for option, (path, name) in expected.items() if path and path.is_dir()]:  # fmt: skip
        sys.exit("\n".join(wrong))
    try:
        names = options.names.read_text(encoding="utf-8").splitlines() if options.names else ()
        found = classroom(options.folder, names)
        _write(found, options.html, options.csv)
    except (OSError, UnicodeDecodeError) as problem:
        sys.exit(f"{problem}")
    return 0 if found.students else 1


def _write(found: Classroom, html: Path | None, csv: Path | None) -> None:
    if html is not None:
        html.write_text(found.page(), encoding="utf-8")
    if csv is not None:
        csv.write_text(found.csv(), encoding="utf-8-sig", newline="")  # the mark tells spreadsheets that it is UTF-8
    if html is None and csv is None:
        print(found)
    else:
        read_in, left = count(len(found.students), "student"), count(len(found.left_out), "file")
        print(f"{read_in}, {left} left out. {found.note}".strip())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
