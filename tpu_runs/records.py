"""Records: what was run, where, and what it gave, one JSON object a line, in files that only grow.

    append(Record(case="product", params={"m": 4096}, seconds=[1.2e-3, 1.3e-3], where={"platform": "gpu"}), path)
    records, notes = read(path)          # a file or a folder of them; what cannot be read is a note, never an exception
    records[-1].median, records[-1].spread, records[-1].words()

A record is appended when it is made, and `append` returns when it is on the disk: a process killed at any moment
loses none that it acknowledged. A failed or refused run is a record too. Needs Python alone. Next file to read:
`plainness`.
"""

from __future__ import annotations

import json
import os
import statistics
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tpu_runs.appending import LINE_BYTES, append_line, read_lines
from tpu_runs.plainness import faults_of, plain

SCHEMA = 1
COMMITTED = Path(__file__).parent / "records"
ENVIRONMENT = "MESHWORK_RECORDS"  # another folder, or one file, for one's own records
MOST = 20_000  # records kept of one reading, the newest


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run of one case with one set of parameters. All it holds is plain JSON, so it reads back equal."""

    case: str
    params: dict[str, Any] = field(default_factory=dict)
    status: str = "ok"
    reason: str = ""
    origin: str = "measured"
    where: dict[str, Any] = field(default_factory=dict)  # platform, device_kind, devices, hosts, topology
    versions: dict[str, Any] = field(default_factory=dict)  # python, jax, jaxlib, libtpu, meshwork
    commit: str = ""  # "abc1234", "abc1234+" with changes of one's own, "" unknown
    compile_seconds: float | None = None
    warm_up: int = 0
    seconds: list[float] = field(default_factory=list)  # each repetition, raw
    check: dict[str, Any] = field(default_factory=dict)  # against, error, tolerance
    counts: dict[str, Any] = field(default_factory=dict)  # flops, link_bytes, hbm_bytes of one device
    share: dict[str, Any] | None = None  # mesh, left_out, modelled_link_seconds: one device's part of a larger mesh
    facts: dict[str, Any] = field(default_factory=dict)  # what the case adds
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    when: str = field(default_factory=_now)
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        """Everything as JSON gives it back: tuples are lists, numpy's numbers are Python's, keys are words."""
        for each in fields(self):
            object.__setattr__(self, each.name, plain(getattr(self, each.name), each.name))
        if faults := faults_of(self):
            raise ValueError("not a record: " + "; ".join(faults))

    @property
    def median(self) -> float | None:
        """The middle of the repetitions, in seconds; None where none was timed."""
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def spread(self) -> float | None:
        """(Slowest - fastest) / median of the repetitions; None where none was timed."""
        return (max(self.seconds) - min(self.seconds)) / self.median if self.seconds and self.median else None

    @property
    def asked(self) -> str:
        """The case and its parameters in one fixed form: equal for equal requests."""
        return json.dumps([self.case, self.params], sort_keys=True, ensure_ascii=False)

    @property
    def simulated(self) -> bool:
        """Whether its times are those of this computer playing many devices, and say nothing of any chip."""
        return self.where.get("platform") == "simulated"

    def words(self) -> str:
        """Where this number comes from, in one line."""
        parts = [self._what(), _place(self.where), *self._times(), *self._made_with(), self.when[:16].replace("T", " ")]
        return " · ".join(part for part in parts if part) + " UTC"

    def line(self) -> str:
        """As one line of a file."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        first = {key: named.pop(key) for key in ("schema", "id", "when")}
        return json.dumps(first | named, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    def _what(self) -> str:
        reason = " ".join(self.reason.split())
        said = self.origin if self.status == "ok" else f"{self.status}: {reason}".rstrip(": ")
        return f"{said} (one device's share of {self.share.get('mesh', 'a mesh')})" if self.share else said

    def _times(self) -> list[str]:
        if self.median is None:
            return []
        spread = f", spread {self.spread:.0%}" if self.spread is not None and len(self.seconds) > 1 else ""
        own = "; this computer's time, never hardware speed" if self.simulated else ""
        return [f"median {_seconds(self.median)} of {len(self.seconds)}{spread}{own}"]

    def _made_with(self) -> list[str]:
        named = [f"{name} {self.versions[name]}" for name in ("jax", "libtpu") if self.versions.get(name)]
        return [", ".join(named), f"commit {self.commit}" if self.commit else ""]


def append(record: Record, path: str | Path | None = None) -> Path:
    """Add a record to a file (your own by default, one a month); it is on the disk when this returns."""
    path = own_file() if path is None else _expanded(path)
    line = record.line().encode("utf-8", "replace")
    if len(line) > LINE_BYTES:
        raise ValueError(f"a record of {len(line):,} bytes; at most {LINE_BYTES:,}: give its facts fewer words")
    append_line(path, line)
    return path


def read(path: str | Path) -> tuple[list[Record], list[str]]:
    """The records of a file or of a folder's files, oldest first, and notes on all that was left out."""
    path = _expanded(path)
    files = sorted(path.glob("*.jsonl")) if os.path.isdir(path) else [path]
    found: dict[str, Record] = {}
    notes: list[str] = []
    for file in files:
        try:
            _read_file(file, found, notes)
        except OSError as fault:
            notes.append(f"{file.name}: {fault.strerror or fault}")
    kept = sorted(found.values(), key=lambda record: record.when)
    if len(kept) > MOST:
        notes.append(f"{len(kept) - MOST:,} older records left out: the newest {MOST:,} are kept")
    return kept[-MOST:], notes


def committed() -> list[Record]:
    """The records that come with the project."""
    return read(COMMITTED)[0]


def mine() -> list[Record]:
    """The records of this computer's own runs."""
    return read(own_place())[0]


def own_place() -> Path:
    """The folder (or, where the environment names one, the file) of one's own records; it need not exist yet."""
    named = os.environ.get(ENVIRONMENT)
    return _expanded(named) if named else Path.home() / ".local" / "share" / "meshwork" / "records"


def own_file() -> Path:
    """Where a new record of one's own goes: a file for each month."""
    place = own_place()
    return place if place.suffix == ".jsonl" else place / f"{_now()[:7]}.jsonl"


def why_no_file(path: Path) -> str:
    """What keeps a path from becoming a file of records, and the nearest that could; nothing where it can be one."""
    path = _expanded(path)
    if os.path.isdir(path):
        return f"is a folder; expected a file, such as {path / 'run.jsonl'}"
    above = next((place for place in path.parents if os.path.exists(place)), path)
    if above != path and not os.path.isdir(above):
        return f"lies below {above}, which is a file; expected a path below folders, such as {above.parent / path.name}"
    return ""


def _expanded(path: str | Path) -> Path:
    """With ~ as somebody's home; where there is no such person, as it stands."""
    return Path(os.path.expanduser(path))


def _read_file(file: Path, found: dict[str, Record], notes: list[str]) -> None:
    """Add a file's records to those found, by id; the same id twice is kept once."""
    for number, line, whole in read_lines(file):
        if not line.strip():
            continue
        read_one = _record(line)
        if isinstance(read_one, Record):
            found.setdefault(read_one.id, read_one)
        else:
            notes.append(f"{file.name} line {number}: " + (read_one if whole else "torn: its writer was cut short"))


def _record(line: bytes) -> Record | str:
    """A line's record, or why it is none."""
    try:
        named = json.loads(line)
    except (ValueError, RecursionError):  # of other bytes too: a UnicodeDecodeError is a ValueError
        return "not JSON: torn, or not ours"
    if not isinstance(named, dict) or "schema" not in named:
        return "not a record"
    if named["schema"] != SCHEMA or isinstance(named["schema"], bool):
        return f"schema {str(named['schema'])[:20]!r}; this version reads {SCHEMA}"
    known = {each.name for each in fields(Record)}
    try:
        if not {"id", "when", "case"} <= set(named):
            return "not a record: id, when or case is missing"
        return Record(**{key: value for key, value in named.items() if key in known})
    except ValueError as fault:
        return str(fault)[:300]


def _place(where: Mapping[str, Any]) -> str:
    """The devices in words: "4 × TPU v4, v4:2x2x1, 2 hosts"."""
    if where.get("platform") == "compiler":
        return f"for {where.get('topology') or where.get('device_kind') or 'a slice'}"
    kind = "simulated device" if where.get("platform") == "simulated" else where.get("device_kind") or ""
    devices = f"{where['devices']} × {kind}" if where.get("devices") else kind
    hosts = f"{where['hosts']} hosts" if where.get("hosts", 1) != 1 else ""
    return ", ".join(part for part in (devices, where.get("topology") or "", hosts) if part)


def _seconds(value: float) -> str:
    unit, factor = ("s", 1.0) if value >= 1 else ("ms", 1e3) if value >= 1e-3 else ("µs", 1e6)
    return f"{value * factor:.3g} {unit}"
