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


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The object in a file of at most so many bytes."""
    try:
        if not path.is_file():
            raise LayoutError(f"no file {str(path)!r:.300}; {_beside(path)}")
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
    except OSError as fault:  # not ours to read, or a name that no file can have
        raise LayoutError(f"{str(path)!r:.300} cannot be read: {fault.strerror}") from None
    if len(data) > most_bytes:
        usual = "; a model's configuration has a few thousand" if most_bytes == MOST_BYTES else ""
        raise LayoutError(f"{path.name} has more than {most_bytes:,} bytes{usual}")
    return parse_json(data, path.name)


def parse_json(data: bytes, name: str) -> dict[str, Any]:
    """The object that bytes say; `name` is what a refusal calls them."""
    try:
        found = json.loads(
            data.decode("utf-8-sig"), parse_constant=_no_number, parse_int=_whole, object_pairs_hook=_once
        )
    except RecursionError:
        raise LayoutError(f"{name} is nested too deeply for a model's configuration") from None
    except ValueError as fault:  # no UTF-8, no JSON, or one of ours below
        raise LayoutError(f"{name} is no JSON that can be read: {fault!s:.200}") from None
    if not isinstance(found, dict):
        raise LayoutError(f'{name} holds a {type(found).__name__}; expected an object, {{"hidden_size": …}}')
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
