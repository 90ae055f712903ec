"""The committed records of the papers' machines, by name: read, and rewritten as a whole.

    >>> kept()["palm-540b/decode/64@2079/ws2d-batch/int8/v4:4x4x4/x4y4z4"].facts["seconds"]

A file is written beside itself and then put in its own place, so that who reads it finds all of the old records or all
of the new. Next file to read: `comparing`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tpu_runs.papers.machine import KINDS
from tpu_runs.records import COMMITTED, Record, read


def file_of(kind: str, folder: Path = COMMITTED) -> Path:
    """Where the records of one kind of machines are."""
    return folder / f"papers_{kind}.jsonl"


@cache
def kept(folder: Path = COMMITTED) -> dict[str, Record]:
    """All of them, by name; what cannot be read is a fault here, since these come with the project."""
    found: dict[str, Record] = {}
    for file in (file_of(kind, folder) for kind in KINDS):
        records, notes = read(file) if file.exists() else ([], [])
        if notes:
            raise ValueError(f"{file.name}: " + "; ".join(notes))
        found |= {record.params["name"]: record for record in records}
    return found


def keep(records: Iterable[Record], folder: Path = COMMITTED) -> None:
    """Put records in the place of those of the same names; files of other kinds stay as they are."""
    kept.cache_clear()
    for kind, new in _by_kind(records).items():
        everything = {name: record for name, record in kept(folder).items() if record.params["kind"] == kind} | new
        _write(file_of(kind, folder), [everything[name] for name in sorted(everything)])
    kept.cache_clear()


def forget_others(names: Iterable[str], folder: Path = COMMITTED) -> list[str]:
    """Drop the records of machines that are no longer among these; the names that went."""
    kept.cache_clear()
    everything, known = kept(folder), set(names)
    gone = [name for name in everything if name not in known]
    for kind in {everything[name].params["kind"] for name in gone}:
        left = {name: record for name, record in everything.items() if record.params["kind"] == kind and name in known}
        _write(file_of(kind, folder), [left[name] for name in sorted(left)])
    kept.cache_clear()
    return gone


def _by_kind(records: Iterable[Record]) -> dict[str, dict[str, Record]]:
    found: dict[str, dict[str, Record]] = {}
    for record in records:
        found.setdefault(record.params["kind"], {})[record.params["name"]] = record
    return found


def _write(file: Path, records: list[Record]) -> None:
    beside = file.with_suffix(".new")
    file.parent.mkdir(parents=True, exist_ok=True)
    with beside.open("w", encoding="utf-8") as out:
        out.writelines(record.line() + "\n" for record in records)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(file)
