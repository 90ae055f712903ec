"""Records of what explorers ran and compiled: kept on this computer's disk, found again by settings.

    history = History()
    history.add(record)                                  # appended to one's own records, and shown at once
    history.newest("run", settings, "measured")          # the last one of these settings, whenever it was made
    history.listed()                                     # the newest first

Every record holds which explorer made it and with which settings (`params`), so it shows again when a notebook is
opened tomorrow. A disk that takes no more is said, and loses nothing that is on show. Next file to
read: `../figures/run_html`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tpu_runs.records import Record, append, own_place, read

MOST_LISTED = 100
OF = "explorer"  # the fact that names the explorer

_read: dict[Any, tuple[Record, ...]] = {}
_lock = threading.Lock()


class History:
    """One's own records, read once for all explorers until a file changes."""

    def __init__(self) -> None:
        self.note = ""  # why the last record could not be kept
        self._new: list[Record] = []
        self._old = _own()

    @property
    def records(self) -> Sequence[Record]:
        """All of them, oldest first."""
        known = {record.id for record in self._old}
        return (*self._old, *(record for record in self._new if record.id not in known))

    def add(self, record: Record) -> None:
        """Keep a record; where the disk takes none, it stays on show and `note` says why."""
        self._new.append(record)
        try:
            append(record)
            self.note = ""
        except (OSError, ValueError) as fault:
            self.note = f"not kept on the disk: {fault}"

    def newest(self, explorer: str, settings: Mapping[str, Any], kind: str) -> Record | None:
        """The last good record of these settings: kind is "compiled", "measured" (on a device) or "simulated"."""
        for record in reversed(self.records):
            if record.facts.get(OF) == explorer and kind_of(record) == kind and record.params == dict(settings):
                if record.status == "ok" or (kind == "compiled" and record.status == "refused"):
                    return record
        return None

    def listed(self, explorer: str = "") -> list[Record]:
        """The newest first, of one explorer or of all that ran here."""
        found = [record for record in self.records if not explorer or record.facts.get(OF) == explorer]
        return found[: -MOST_LISTED - 1 : -1]


def kind_of(record: Record) -> str:
    """Which column a record belongs to."""
    if record.origin == "compiled":
        return "compiled"
    return "simulated" if record.simulated else "measured"


def _own() -> tuple[Record, ...]:
    """One's own records; read again only where a file has changed."""
    place = own_place()
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place] if place.exists() else []
    key = (str(place), *((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files))
    with _lock:
        if key not in _read:
            _read.clear()
            _read[key] = tuple(read(place)[0]) if files else ()
        return _read[key]
