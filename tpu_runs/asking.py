"""Ask the class's owner for a measurement: what a notebook does where only one process may hold the chip.

    # once: %env MESHWORK_CLASS=http://127.0.0.1:8899 k3v…        (the line that `make class` prints)
    record = ask("product", {"m": 4096}, progress=print)          # a Record, measured now or kept from before
    asked = the_class().start("product", {"m": 4096}); asked.cancel()

Needs Python alone. What cannot be had is an AskingError in words: the owner is away, the token is wrong, the request
was refused. Next file to read: `serve`, for the other side.
"""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tpu_runs.answers import (
    ANSWER_BYTES,
    AskingError,
    OwnerAway,
    RequestRefused,
    WrongToken,
    not_an_owner,
    read_answer,
    record_of,
    refusal_of,
    told_of,
)  # fmt: skip
from tpu_runs.records import Record

ENVIRONMENT = "MESHWORK_CLASS"
TRIES = 4  # at reaching an owner that we reached before, or at asking again what came too soon
_NOTEBOOK = uuid.uuid4().hex  # this process's name for fair turns; it says nothing of whose it is


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An owner never sends one elsewhere, and a token must not follow."""

    def redirect_request(self, *_: Any) -> None:
        return None


# The class is in this room or on this machine: no proxy stands between.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())


def the_class(words: str | None = None) -> Class | None:
    """The class that the environment names ("http://host:port token"); None where it names none."""
    said = os.environ.get(ENVIRONMENT, "") if words is None else words
    parts = said.strip().strip("\"'").split()
    if not parts:
        return None
    if len(parts) != 2 or not parts[0].startswith(("http://", "https://")):
        raise AskingError(f"{ENVIRONMENT} must be an address and a token, as in "
                          f'"http://127.0.0.1:8899 abc…"; it has {len(parts)} words')  # fmt: skip
    return Class(parts[0].rstrip("/"), parts[1])


def ask(
    case: str,
    params: Mapping[str, Any] | None = None,
    *,
    fresh: bool = False,
    progress: Callable[[str], None] | None = None,
    place: Class | None = None,
) -> Record:
    """One measurement, waited for; `progress` is told in words how it stands. Ctrl-C takes the request back."""
    place = place or the_class()
    if place is None:
        raise AskingError(f"no class is named: set {ENVIRONMENT} to the line that `make class` printed")
    asked = place.start(case, params, fresh=fresh)
    try:
        return asked.wait(None if progress is None else lambda told: progress(in_words(told)))
    except KeyboardInterrupt:
        asked.cancel()
        raise


def in_words(told: Mapping[str, Any]) -> str:
    """How a request stands, in one line."""
    if told["state"] == "waiting":
        going = " while another run is going" if told.get("running") else ""
        return f"number {told['position']} of {told['waiting']} that wait{going}"
    if told["state"] == "running":
        step = told.get("progress") or {}
        return f"running: {step['text'] or 'step'} ({step['done']} of {step['total']})" if step else "running"
    kept = " (kept from before)" if told.get("source") == "records" else ""
    return f"{told['record']['status']}{kept}"


@dataclass(frozen=True)
class Class:
    """The owner of a class's chip, from afar."""

    address: str
    token: str = field(repr=False)
    notebook: str = _NOTEBOOK
    timeout: float = 30.0

    def start(self, case: str, params: Mapping[str, Any] | None = None, *, fresh: bool = False) -> Asked:
        """Ask, and do not wait: with `fresh` for a new measurement, otherwise an equal one kept from before will do."""
        try:
            body = json.dumps({"case": case, "params": dict(params or {}), "fresh": fresh}, allow_nan=False)
        except (TypeError, ValueError) as fault:
            raise RequestRefused(f"params must be plain numbers and words ({fault})") from None
        told = told_of(self._call("POST", "/requests", body.encode()), self.address)
        return Asked(self, told["id"], told)

    def status(self) -> dict[str, Any]:
        """The chip, the queue and the limits."""
        return self._call("GET", "/")

    def cases(self) -> dict[str, Any]:
        """What may be asked for, with each parameter's kind, default and legal values."""
        found = self._call("GET", "/cases").get("cases")
        if not isinstance(found, dict):
            raise not_an_owner(self.address)
        return found

    def _call(self, method: str, path: str, body: bytes | None = None, timeout: float | None = None) -> dict[str, Any]:
        """One question; one that came too soon after others is asked again when the owner says."""
        for _ in range(TRIES):
            try:
                return self._once(method, path, body, timeout or self.timeout)
            except RequestRefused as fault:
                if not fault.retry_seconds:
                    raise
                refusal = fault
                time.sleep(min(fault.retry_seconds, 5.0))
        raise refusal

    def _once(self, method: str, path: str, body: bytes | None, timeout: float) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Meshwork-Client": self.notebook}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.address + path, data=body, headers=headers, method=method)
        try:
            with _OPENER.open(request, timeout=timeout) as answer:
                said = answer.read(ANSWER_BYTES + 1)
                if answer.length and len(said) <= ANSWER_BYTES:
                    raise ConnectionError("the answer was cut off")
                return read_answer(said, self.address)
        except urllib.error.HTTPError as fault:
            with fault:
                raise refusal_of(fault.code, fault.read(16384), fault.headers.get("Retry-After")) from None
        except (OSError, OverflowError, http.client.HTTPException) as fault:  # no answer, one cut off, or no port
            raise OwnerAway(f"nobody answers at {self.address} ({getattr(fault, 'reason', fault)}): is `make class` "
                            "running there, and can this machine reach it?") from None  # fmt: skip


@dataclass
class Asked:
    """One request on its way."""

    place: Class
    id: str
    told: dict[str, Any]

    def look(self, seen: str = "") -> dict[str, Any]:
        """How it stands; with `seen`, the mark of an earlier answer, the owner answers when that changed (10 s)."""
        self.told = told_of(self.place._call("GET", f"/requests/{self.id}?seen={seen}"), self.place.address)
        return self.told

    def cancel(self) -> dict[str, Any]:
        """Take it back: answered at once as stopped, while the chip ends the repetition that it is in."""
        self.told = self.place._call("DELETE", f"/requests/{self.id}", timeout=5)  # somebody pressed Stop
        return self.told

    def wait(self, progress: Callable[[dict[str, Any]], None] | None = None) -> Record:
        """Wait for its record, whatever its status; `cancel` from another thread ends this too."""
        mark, failed = "", 0
        while True:
            if progress is not None and self.told["mark"] != mark:
                progress(self.told)
            mark = self.told["mark"]
            if self.told["state"] == "done":
                return record_of(self.told["record"], self.place.address)
            try:
                self.look(mark)
                failed = 0
            except OwnerAway:  # for a moment, perhaps
                failed += 1
                if failed == TRIES:
                    raise
                time.sleep(0.5 * failed)


__all__ = [
    "Asked", "AskingError", "Class", "OwnerAway", "RequestRefused", "WrongToken", "ask", "in_words", "the_class",
]  # fmt: skip
