"""What a record may hold: plain JSON, and in each field what is read and printed of it.

    plain((1, np.float32(0.5), Fraction(7, 2)), "facts")     # [1, 0.5, 3.5]; ValueError for NaN, arrays, objects
    faults_of(record)                        # each field of the wrong kind, in words

Next file to read: `appending`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpu_runs.records import Record

STATUSES = ("ok", "failed", "refused", "stopped")
ORIGINS = ("measured", "compiled")
PLATFORMS = ("", "simulated", "gpu", "tpu", "compiler")  # "" where nothing is known, as of a run refused without a chip
LONGEST = 1e12  # seconds: beyond it nothing is a time


def plain(value: Any, name: str) -> Any:
    """A value as JSON gives it back: what is written reads back equal."""
    try:
        text = json.dumps(value, allow_nan=False, default=_number, ensure_ascii=False)
        return json.loads(text.encode("utf-8", "replace"))  # half a character, as of a name cut short, becomes "?"
    except (TypeError, ValueError, RecursionError) as fault:
        raise ValueError(f"not a record: {name} is not plain JSON ({fault})") from None


def _number(value: Any) -> Any:
    """numpy's numbers and bytes that do not divide as Python's, mappings as dicts; anything else is not plain."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain")


def faults_of(record: Record) -> list[str]:
    """What keeps this from being a record: each field of the wrong kind."""
    faults = [f"{name} is not words" for name in ("case", "id", "when", "reason", "commit")
              if not isinstance(getattr(record, name), str)]  # fmt: skip
    faults += [f"{name} is not an object" for name in ("params", "where", "versions", "check", "counts", "facts")
               if not isinstance(getattr(record, name), dict)]  # fmt: skip
    faults += [] if faults else [*_inner_faults(record)]
    faults += [f"{name} is empty" for name in ("case", "id", "when") if getattr(record, name) == ""]
    if record.share is not None and not isinstance(record.share, dict):
        faults.append("share is neither null nor an object")
    if not isinstance(record.seconds, list) or not all(map(_is_time, record.seconds)):
        faults.append("seconds is not a list of times")
    if record.compile_seconds is not None and not _is_time(record.compile_seconds):
        faults.append("compile_seconds is not a time")
    platform = record.where.get("platform", "") if isinstance(record.where, dict) else ""
    for name, value, legal in (("status", record.status, STATUSES), ("origin", record.origin, ORIGINS),
                               ("where.platform", platform, PLATFORMS)):  # fmt: skip
        faults += [] if value in legal else [f"{name} {value!r}; legal: {', '.join(filter(None, legal))}"]
    return faults


def _inner_faults(record: Record) -> Iterator[str]:
    """What is printed of its objects, and could not be."""
    for name in ("device_kind", "topology"):
        if not isinstance(record.where.get(name) or "", str):
            yield f"where.{name} is not words"
    for name in ("devices", "hosts"):
        if not isinstance(record.where.get(name) or 1, int):
            yield f"where.{name} is not a whole number"
    if not isinstance(record.check.get("against") or "", str):
        yield "check.against is not words"
    error = record.check.get("error")
    if not (error is None or isinstance(error, float) or _is_time(error)):
        yield "check.error is not a number"


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LONGEST
