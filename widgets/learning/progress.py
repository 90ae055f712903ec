"""A student's progress: predictions and checks in one small JSON file beside the notebook.

    progress = Progress()                       # .meshwork-progress.json in the working folder
    progress.update("checks", "01 local_rows", passed=True)
    progress.entry("checks", "01 local_rows")   # {"passed": True}

Two notebooks may be open at once, so each change reads the file again, changes one entry and replaces the file in one
step. The file is data only: its shape is checked and nothing in it is ever executed. A damaged file is renamed, never
deleted, and `note` says so. Read next: `predictions.py`.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

FILE_NAME = ".meshwork-progress.json"
VERSION = 1
MOST_REASON = 600  # characters of what is wrong with a file
Json = dict[str, Any]

ENTRY_TYPES: dict[str, dict[str, tuple[type, ...]]] = {
    "predictions": {
        "question": (str,),
        "unit": (str,),
        "answer": (str, int, float),
        "before": (bool,),
        "actual": (str, int, float),
    },
    "checks": {"passed": (bool,), "tries": (int,), "help": (int,)},
}


class Progress:
    """The progress file of one folder. `note` is a sentence for the student when something about the file is wrong."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path is not None else Path.cwd() / FILE_NAME
        self.note = ""
        self._unsaved: Json | None = None  # kept in memory where the folder cannot be written

    @property
    def student(self) -> str:
        """The student's name, or a random id made once and stored: the seed of every check."""
        data = self._read()
        if not self.path.exists():
            self._write(data)
        return data["student"]

    @student.setter
    def student(self, name: str) -> None:
        self._write(self._read() | {"student": str(name)})

    def entry(self, kind: str, name: str) -> Json:
        """What is stored about one prediction or check; empty if nothing is."""
        return dict(self._read()[kind].get(name, {}))

    def update(self, kind: str, name: str, **values: Any) -> None:
        """Change some fields of one entry and save at once."""
        data = self._read()
        data[kind][name] = data[kind].get(name, {}) | values
        if faults := list(_faults(data)):
            raise ValueError(f"This cannot be stored as progress: {'; '.join(faults)}.")
        self._write(data)

    def entries(self, kind: str) -> Json:
        """All stored entries of a kind, by name; read once."""
        return dict(self._read()[kind])

    def names(self, kind: str) -> list[str]:
        """The names of all stored entries of a kind."""
        return sorted(self._read()[kind])

    def _read(self) -> Json:
        if self._unsaved is not None:
            return self._unsaved
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return _empty()
        except (OSError, ValueError, RecursionError) as problem:  # not JSON, not UTF-8, or brackets in brackets
            return self._set_aside(str(problem))
        faults = list(_faults(data))
        return self._set_aside("; ".join(faults)) if faults else data

    def _set_aside(self, reason: str) -> Json:
        """Rename an unreadable file to a free name beside it and start anew."""
        reason = reason if len(reason) < MOST_REASON else f"{reason[:MOST_REASON]} …"
        number = 1
        while (kept := self.path.with_name(f"{self.path.stem}.damaged-{number}.json")).exists():
            number += 1
        try:
            self.path.rename(kept)
            self.note = f"The progress file could not be read ({reason}). It is kept as {kept.name}; a new one starts."
        except OSError as problem:
            self._unsaved = _empty()
            self.note = f"The progress file cannot be read or moved ({problem}); progress lasts until the kernel stops."
        return self._unsaved or _empty()

    def _write(self, data: Json) -> None:
        """Write beside the file and replace it, so that a crash leaves the old file or the new one, never half."""
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        try:
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".meshwork-", suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as part:
                    part.write(text)
                os.replace(name, self.path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as problem:
            self._unsaved = data
            self.note = f"Progress could not be saved ({problem}); it lasts until the kernel stops."


def _empty() -> Json:
    return {"version": VERSION, "student": secrets.token_hex(4), "predictions": {}, "checks": {}}


def _faults(data: Any) -> list[str]:
    """Everything that is wrong with the shape of a progress file, in words."""
    if not isinstance(data, dict):
        return ["it is not a table of names"]
    faults = [] if data.get("version") == VERSION else [f"version {data.get('version')!r} instead of {VERSION}"]
    if not isinstance(data.get("student"), str):
        faults.append("no student")
    for kind, types in ENTRY_TYPES.items():
        entries = data.get(kind)
        if not isinstance(entries, dict):
            faults.append(f"no table {kind!r}")
            continue
        faults += [f for name, entry in entries.items() for f in _entry_faults(f"{kind} {name!r}", entry, types)]
    return faults


def _entry_faults(label: str, entry: Any, types: dict[str, tuple[type, ...]]) -> list[str]:
    if not isinstance(entry, dict):
        return [f"{label} is not a table"]
    unknown = [f"{label} has an unknown field {key!r}" for key in entry if key not in types]
    wrong = [k for k, legal in types.items() if k in entry and not is_a(entry[k], legal)]
    return unknown + [f"{label}: {key} is {entry[key]!r}" for key in wrong]


def is_a(value: Any, legal: tuple[type, ...]) -> bool:
    """isinstance, without Python's habit of counting True as the number 1."""
    return isinstance(value, bool) == (bool in legal) and isinstance(value, legal)
