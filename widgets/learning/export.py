"""A student's progress as one small file for the teacher: what it holds, and its name.

    data = exported(Progress(), "Ada")                # plain data, schema-versioned
    write(data, Path("."))                            # meshwork-progress-Ada.json beside the notebook

It holds the name that was typed, the date, the version of Meshwork, and for what the course asks: checks with tries
and helps, predictions with results. Nothing of the machine, and nothing that the course did not ask.
Next file to read: `reading.py`, the other end.
"""

from __future__ import annotations

import json
import os
import tempfile
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from mtfcore import __version__

from .outline import course
from .progress import Progress

FORMAT, VERSION = "meshwork-progress", 1
LONGEST_NAME = 80
LONGEST_IN_FILE_NAME = 40
CHECK_FIELDS = {"passed": False, "tries": 0, "help": 0}
PREDICTION_FIELDS = ("answer", "actual", "before")
Json = dict[str, Any]


def exported(progress: Progress, name: str, now: datetime | None = None) -> Json:
    """The file's content."""
    checks, guesses = progress.entries("checks"), progress.entries("predictions")
    asked = [each.name for lesson in course() for each in lesson.predictions]
    tried = [check for lesson in course() for check in lesson.checks]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": clean_name(name),
        "exported": (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "meshwork": __version__,
        "checks": {name: CHECK_FIELDS | checks[name] for name in tried if name in checks},
        "predictions": {name: kept for name in asked if (kept := _of_prediction(guesses.get(name, {})))},
    }


def _of_prediction(entry: Json) -> Json:
    """Answer, result and which came first; a question that was only looked at leaves nothing."""
    return {field: entry[field] for field in PREDICTION_FIELDS if field in entry}


def clean_name(typed: str) -> str:
    """A name as it can be shown in one line: no line breaks, no invisible characters, at most 80 long."""
    normal = unicodedata.normalize("NFC", typed)
    return " ".join("".join(c if c.isprintable() else " " for c in normal).split())[:LONGEST_NAME].strip()


def file_name(name: str) -> str:
    """A file's name for any name of a person: letters and digits of any script are kept, all else becomes one dash."""
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in clean_name(name))
    return f"meshwork-progress-{'-'.join(kept[:LONGEST_IN_FILE_NAME].split()) or 'no-name'}.json"


@dataclass(frozen=True)
class Exported:
    """A file that was written; in a notebook a link to it, so that its owner can look into it."""

    path: Path
    n_bytes: int

    def __repr__(self) -> str:
        return f"Written: {self.path.name} ({self.n_bytes:,} bytes), beside this notebook. Give it to your teacher."

    def _repr_html_(self) -> str:
        name = escape(self.path.name)
        return escape(repr(self)).replace(name, f'<a href="{name}">{name}</a>', 1)


def write(data: Json, folder: Path) -> Exported:
    """Write the file whole or not at all; an earlier one of the same name is replaced."""
    path, content = folder / file_name(data["name"]), _text(data).encode("utf-8", "replace")
    handle, part = tempfile.mkstemp(dir=folder, prefix=".meshwork-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(part, 0o644)  # a file made by mkstemp is its owner's alone, and this one is to be given away
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    return Exported(path, len(content))


def _text(data: Json) -> str:
    """One line for each check and prediction, so that a person can read the file too."""

    def lines(entries: Json) -> str:
        rows = (f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(entry, ensure_ascii=False)}"
                for name, entry in entries.items())  # fmt: skip
        return "{\n" + ",\n".join(rows) + "\n }" if entries else "{}"

    values = ((key, lines(value) if isinstance(value, dict) else json.dumps(value, ensure_ascii=False))
              for key, value in data.items())  # fmt: skip
    return "{\n" + ",\n".join(f' "{key}": {value}' for key, value in values) + "\n}\n"
