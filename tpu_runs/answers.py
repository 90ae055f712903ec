"""What a class's owner answered, read with care: a request's state, a record, or a refusal as an exception with words.

    told_of({"id": "…", "mark": "…", "state": "done", "record": {…}}, address)     # itself, if it has that form
    refusal_of(401, b'{"error": "the token is wrong"}')                            # WrongToken("the token is wrong")

The address may be anybody's, so nothing in an answer is believed before it was looked at. Needs Python alone. Next file
to read: `asking`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tpu_runs.records import Record

ANSWER_BYTES = 2**20
LONGEST_WORDS = 1_000  # of a refusal


class AskingError(Exception):
    """No answer: the text says why and what to do."""


class OwnerAway(AskingError):
    """Nobody answers at the class's address."""


class WrongToken(AskingError):
    """The owner does not know this token."""


class RequestRefused(AskingError):
    """The owner answered, and will not run this: its words say what would be taken."""

    def __init__(self, words: str, status: int = 400, retry_seconds: float = 0.0) -> None:
        super().__init__(words)
        self.status, self.retry_seconds = status, retry_seconds


def read_answer(body: bytes, address: str) -> dict[str, Any]:
    """An answer's object."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):  # not JSON, or brackets in brackets
        told = None
    if not isinstance(told, dict) or len(body) > ANSWER_BYTES:
        raise not_an_owner(address)
    return told


def not_an_owner(address: str) -> AskingError:
    """Something answers there that is no owner of a class."""
    return AskingError(f"{address:.200} answered, but not as a class's owner does: is the address right?")


def told_of(told: dict[str, Any], address: str) -> dict[str, Any]:
    """How a request stands, in the form that `Asked` and `in_words` read."""
    state, kinds = told.get("state"), {"id": str, "mark": str, "state": str}
    step, record = told.get("progress") or {}, told.get("record")
    whole = all(isinstance(told.get(name), kind) for name, kind in kinds.items()) and len(str(told["id"])) <= 64
    whole &= state != "waiting" or {"position", "waiting"} <= told.keys()
    whole &= isinstance(step, dict) and (not step or {"text", "done", "total"} <= step.keys())
    whole &= state != "done" or (isinstance(record, dict) and isinstance(record.get("status"), str))
    if not whole:
        raise not_an_owner(address)
    return told


def refusal_of(status: int, body: bytes, retry: str | None = None) -> AskingError:
    """An answer with an error's status as an exception."""
    try:
        words = str(json.loads(body)["error"])[:LONGEST_WORDS].strip()
    except (ValueError, KeyError, TypeError, RecursionError):
        words = ""
    if not words:
        words = f"the address answered with HTTP {status}, and not as a class's owner does"
    if status == 401:
        return WrongToken(words)
    seconds = float(retry) if retry and re.fullmatch(r"[0-9.]{1,6}", retry) else 0.0
    return RequestRefused(words, status, seconds)


def record_of(named: Mapping[str, Any], address: str) -> Record:
    """A record; fields that this version does not know are left out."""
    known = {each.name for each in fields(Record)}
    try:
        return Record(**{name: value for name, value in named.items() if name in known})
    except (TypeError, ValueError):  # a field is missing, or is none
        raise not_an_owner(address) from None
