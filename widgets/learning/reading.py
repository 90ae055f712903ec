"""Read one student's exported file: checked from its first byte, never run, and refused with a reason.

    data = read("meshwork-progress-Ada.json")         # the same plain data that `export.exported` made
    read("photo.json")                                # LeftOut: 4,200,113 bytes; at most 262,144 are read

A file comes from somebody else's computer, so nothing in it is believed: size, kind, encoding, JSON, version, every
name and type, and the range of every number. Next file to read: `classroom.py`.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from .export import CHECK_FIELDS, FORMAT, LONGEST_NAME, PREDICTION_FIELDS, VERSION, Json, clean_name
from .progress import ENTRY_TYPES, is_a

MOST_BYTES = 256 * 1024
MOST_ENTRIES = 500
LONGEST_TEXT = 300
MOST = {"tries": 1_000_000, "help": 3}
_ENTRY = re.compile(r"\d\d [^\x00-\x1f]{1,78}")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_RELEASE = re.compile(r"[0-9A-Za-z.+-]{1,40}")
_FIELDS = {
    "checks": {field: ENTRY_TYPES["checks"][field] for field in CHECK_FIELDS},
    "predictions": {field: ENTRY_TYPES["predictions"][field] for field in PREDICTION_FIELDS},
}
_KEYS = ("format", "version", "name", "exported", "meshwork", *_FIELDS)


class LeftOut(Exception):
    """This file is not counted; the text says why, for the teacher."""


def read(path: Path | str) -> Json:
    """The checked content of one exported file, or `LeftOut` with the first reason."""
    data = _parsed(_content(path))
    if not isinstance(data, dict):
        raise LeftOut("not a progress file: no table of names")
    _check_kind(data)
    if fault := next(_faults(data), None):
        raise LeftOut(fault)
    guesses = {name: _shown_safely(entry) for name, entry in data["predictions"].items()}
    return data | {"name": clean_name(data["name"]), "predictions": guesses}


def _shown_safely(entry: Json) -> Json:
    """An answer in words without invisible characters, which could hide or turn what stands beside them."""
    return {field: clean_name(value) if isinstance(value, str) else value for field, value in entry.items()}


def _content(path: Path | str) -> bytes:
    """The bytes of a plain file, as many as are allowed; nothing is read from links, folders, pipes and devices."""
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise LeftOut("a link, not a file")
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise LeftOut("not a plain file")
            if found.st_size > MOST_BYTES:
                raise LeftOut(f"{found.st_size:,} bytes; at most {MOST_BYTES:,} are read")
            return file.read(MOST_BYTES)
    except OSError as problem:
        raise LeftOut("not a plain file" if os.path.isdir(path) else f"cannot be read: {problem.strerror}") from None


def _parsed(content: bytes) -> Any:
    def refuse(word: str) -> None:
        raise LeftOut(f"not a progress file: {word} is no number")

    try:
        return json.loads(content.decode("utf-8-sig"), parse_constant=refuse, object_pairs_hook=_each_name_once)
    except UnicodeDecodeError:
        raise LeftOut("not a progress file: not text") from None
    except json.JSONDecodeError as problem:
        raise LeftOut(f"not a progress file: not JSON (line {problem.lineno})") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets in brackets
        raise LeftOut("not a progress file: not JSON that a progress file could hold") from None


def _each_name_once(pairs: list[tuple[str, Any]]) -> Json:
    if len(dict(pairs)) < len(pairs):
        raise LeftOut("not a progress file: a name stands in it twice")
    return dict(pairs)


def _check_kind(data: Json) -> None:
    """Whether it is one of ours at all, and of a version that is known here."""
    if data.get("format") != FORMAT:
        own = "student" in data and "checks" in data
        raise LeftOut("the lessons' own file; ask for the exported one" if own else "not a progress file")
    version: Any = data.get("version")
    if not is_a(version, (int,)) or version < 1:
        raise LeftOut(f"no known version: {_quoted(version)}")
    if version > VERSION:
        raise LeftOut(f"made by a newer Meshwork (version {_quoted(version)} of the file; known here: {VERSION})")


def _faults(data: Json) -> Iterator[str]:
    """What is wrong with a file of a known version, one after the other."""
    yield from (f"unknown field {_quoted(key)}" for key in data if key not in _KEYS)
    yield from (f"no field {key!r}" for key in _KEYS if key not in data)
    for key, legal in (("name", _is_name), ("exported", _is_date), ("meshwork", _is_release)):
        if not legal(data[key]):
            yield f"{key} is {_quoted(data[key])}"
    for kind in _FIELDS:
        yield from _table_faults(kind, data[kind])


def _table_faults(kind: str, entries: Any) -> Iterator[str]:
    if not isinstance(entries, dict):
        yield f"{kind} is not a table"
        return
    if len(entries) > MOST_ENTRIES:
        yield f"{len(entries):,} {kind}; at most {MOST_ENTRIES} are read"
        return
    for name, entry in entries.items():
        if not _ENTRY.fullmatch(name):
            yield f"{kind}: no name of the course: {_quoted(name)}"
        elif not isinstance(entry, dict):
            yield f"{kind} {_quoted(name)} is not a table"
        else:
            yield from (f"{kind} {_quoted(name)}: {fault}" for fault in _entry_faults(entry, _FIELDS[kind]))


def _entry_faults(entry: Json, types: dict[str, tuple[type, ...]]) -> Iterator[str]:
    yield from (f"unknown field {_quoted(key)}" for key in entry if key not in types)
    if "passed" in types:
        yield from (f"no field {key!r}" for key in CHECK_FIELDS if key not in entry)
    for key, legal in types.items():
        if key in entry and not (is_a(entry[key], legal) and _in_range(key, entry[key])):
            yield f"{key} is {_quoted(entry[key])}"


def _in_range(key: str, value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    if key in MOST:
        return 0 <= value <= MOST[key]
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_NAME


def _is_release(value: Any) -> bool:
    return isinstance(value, str) and bool(_RELEASE.fullmatch(value))


def _is_date(value: Any) -> bool:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _quoted(value: Any) -> str:
    """A value of a file for one line of a report: short, printable, whatever it is."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > 10**40:
        return "a number of very many digits"
    return clean_name(repr(value)[:200])[:40]
