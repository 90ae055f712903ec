"""What a client may send, and how much of it: everything is refused here, in words, before it costs anything.

    asked = read_request("application/json", b'{"case": "product", "params": {"m": 4096}}')
    asked.case, asked.params, asked.fresh          # ("product", {"m": 4096}, False); Refused says what was wrong

JSON and nothing else: a class's owner runs on somebody's account and holds a chip, so a body is never code and never
a pickle. Next file to read: `turns`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn


@dataclass(frozen=True)
class Limits:
    """How much one class, one client and one run may take."""

    body_bytes: int = 16 * 1024
    queued: int = 400  # requests that wait, of all clients together
    queued_per_client: int = 40  # that wait or run; turns are fair, so many of one delay nobody else
    requests_per_second: float = 50.0  # of one client, over some seconds
    burst: int = 200
    run_seconds: float = 300.0  # past which a run's worker is killed
    patience_seconds: float = 90.0  # a request that nobody looks at for so long is given up
    device_bytes: int | None = None  # what one device holds; None: as its worker says


class Refused(Exception):
    """A request that is answered with words: what was given, what is legal, and the status of HTTP."""

    def __init__(self, status: int, words: str, retry_seconds: float | None = None) -> None:
        super().__init__(words)
        self.status, self.words, self.retry_seconds = status, words, retry_seconds


@dataclass(frozen=True)
class Request:
    """One measurement somebody wants; `fresh`: not one from the records."""

    case: str
    params: dict[str, Any]
    fresh: bool = False

    @property
    def asked(self) -> str:
        """Equal for equal requests, in the form of `Record.asked`."""
        return json.dumps([self.case, self.params], sort_keys=True, ensure_ascii=False)


def read_request(content_type: str, body: bytes, limits: Limits | None = None) -> Request:
    """The request in a body, or Refused: not JSON, too long, or of another form."""
    most = (limits or Limits()).body_bytes
    if len(body) > most:
        raise Refused(413, f"a body of {len(body):,} bytes; at most {most:,}: send a case and its parameters only")
    if content_type.split(";")[0].strip().lower() != "application/json":
        raise Refused(415, f"Content-Type {content_type[:60]!r}; only application/json is read here")
    found = _json(body)
    if not isinstance(found, dict):
        raise Refused(400, f'not an object; send {{"case": "…", "params": {{…}}}}, not a {_kind(found)}')
    if faults := _faults(found):
        raise Refused(400, "; ".join(faults))
    return Request(found["case"], found.get("params", {}), found.get("fresh", False))


def _json(body: bytes) -> Any:
    if body[:1] == b"\x80":  # how every pickle since protocol 2 begins
        raise Refused(400, "this looks like a pickle; the class takes JSON, never code or objects")
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as fault:
        raise Refused(400, f"not JSON ({str(fault)[:120]}); the class takes JSON, never code or objects") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number of JSON")


def _faults(found: dict[str, Any]) -> list[str]:
    """All that is wrong with a request's form, at once."""
    kinds: dict[str, type] = {"case": str, "params": dict, "fresh": bool}
    faults = [f"unknown field {name[:40]!r}; known: {', '.join(kinds)}" for name in found if name not in kinds]
    faults += [
        f"{name} is a {_kind(found[name])}; it must be a {_kind(kind())}"
        for name, kind in kinds.items()
        if name in found and not isinstance(found[name], kind)
    ]
    return faults + ["case is missing: which measurement?"] * ("case" not in found)


def _kind(value: Any) -> str:
    names = {bool: "true or false", str: "word", dict: "object", list: "list", type(None): "null"}
    return names.get(type(value), "number")


@dataclass
class Rate:
    """Requests of each client over time: a bucket that fills steadily and holds one burst."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)

    def take(self, client: str) -> None:
        """Count one request, or refuse it with the time to wait."""
        now = self.clock()
        left, then = self._left.get(client, (float(self.limits.burst), now))
        left = min(float(self.limits.burst), left + (now - then) * self.limits.requests_per_second)
        if left < 1:
            raise Refused(429, "too many requests: ask again in a second", retry_seconds=1.0)
        self._left[client] = (left - 1, now)
        if len(self._left) > 4096:  # those who asked longest ago start with a full bucket again
            for name in sorted(self._left, key=lambda name: self._left[name][1])[:2048]:
                del self._left[name]
