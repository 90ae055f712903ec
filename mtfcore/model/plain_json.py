"""An object from a JSON file that somebody else wrote: small, plain and finite, or refused with the reason.

    >>> read_json(Path("config.json"))["hidden_size"]
    4096

A file is only data, but it may be anything: a gigabyte, no text, nested until Python gives up, numbers of a million
digits, the same name twice with two values. JSON has no NaN and no infinities, so neither has this. Next file to read:
`params`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mtfcore.errors import LayoutError

MOST_BYTES = 2**20


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file."""
    try:
        if not path.is_file():
            raise LayoutError(f"no file {str(path)!r:.300}; {_beside(path)}")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as fault:  # not ours to read, or a name that no file can have
        raise LayoutError(f"{str(path)!r:.300} cannot be read: {fault.strerror}") from None
    if len(data) > MOST_BYTES:
        raise LayoutError(f"{path.name} has more than {MOST_BYTES:,} bytes; a model's configuration has a few thousand")
    try:
        found = json.loads(
            data.decode("utf-8-sig"), parse_constant=_no_number, parse_int=_whole, object_pairs_hook=_once
        )
    except RecursionError:
        raise LayoutError(f"{path.name} is nested too deeply for a model's configuration") from None
    except ValueError as fault:  # no UTF-8, no JSON, or one of ours below
        raise LayoutError(f"{path.name} is no JSON that can be read: {fault!s:.200}") from None
    if not isinstance(found, dict):
        raise LayoutError(f'{path.name} holds a {type(found).__name__}; expected an object, {{"hidden_size": …}}')
    return found


def _beside(path: Path) -> str:
    near = sorted(other.name for other in path.parent.glob("*.json"))[:5] if path.parent.is_dir() else []
    return f"JSON files there: {', '.join(near) or 'none'}"


def _whole(digits: str) -> int:
    if len(digits) > 40:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name {name!r:.100} stands twice")
        found[name] = value
    return found
