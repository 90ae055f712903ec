"""The door: a few addresses that take and give JSON, for whoever has the class's token.

    POST   /requests        {"case": "product", "params": {"m": 4096}, "fresh": false}  → {"id": …}
    GET    /requests/ID     how it stands; with ?seen=MARK the answer waits until that changed (10 s at most)
    DELETE /requests/ID     take it back
    GET    /  and  /cases   the chip, the queue and the limits; the cases and their parameters

Every refusal is {"error": words}. The token travels as `Authorization: Bearer …` and is compared in constant time. No
answer carries a header for other sites' scripts (CORS is off), and a body must be called application/json, which such
scripts may not send unasked. Next file to read: `desk`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import re
import zlib
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tornado.web import Application, RequestHandler

from mtfcore.numbers import format_bytes
from tpu_runs.serve.desk import Desk
from tpu_runs.serve.engine import Engine
from tpu_runs.serve.limits import Limits, Rate, Refused, Request, read_request

WAIT_SECONDS = 10.0  # of one question about a request; shorter than proxies and notebooks lose their patience
MOVES_SECONDS = 0.4  # in which moves in the queue are gathered; a start or an end is told at once
CLIENT = re.compile(r"[A-Za-z0-9-]{1,64}")
WORDS = {404: "no such address here; GET / tells what there is", 405: "no such method at this address"}


def _digest(word: str) -> bytes:
    return hashlib.sha256(word.encode("utf-8", "replace")).digest()


class Tokens:
    """Who may come in: one token for the class, or one for each student."""

    def __init__(self, tokens: dict[str, str]) -> None:  # each with whose it is; "" where all share it
        self._names = {_digest(token): name for token, name in tokens.items()}

    def name(self, said: str) -> str | None:
        """Whose token it is, or None; every token is compared, and wholly, so that time tells nothing of them."""
        asked = _digest(said)
        found = [name for digest, name in self._names.items() if hmac.compare_digest(digest, asked)]
        return found[0] if found else None


@dataclass
class House:
    """What the addresses share: who may come in, how much, the desk, and the engine behind it."""

    desk: Desk
    engine: Engine
    menu: ModuleType
    tokens: Tokens
    limits: Limits
    rate: Rate
    device_bytes: int | None = None
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    sizing: Executor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def order(self, content_type: str, body: bytes) -> Request:
        """A body as a request that may run: of a known case, with params of the right kind, and small enough."""
        asked = read_request(content_type, body, self.limits)
        try:
            params = self.menu.check(asked.case, asked.params)
            n_bytes = self.menu.size(asked.case, params, self.engine.on)
        except ValueError as fault:
            raise Refused(400, str(fault)) from None
        if self.device_bytes is not None and n_bytes > self.device_bytes:
            of = "the class's computer" if self.engine.on == "simulated" else "each of the class's devices"
            needed, there = format_bytes(n_bytes), format_bytes(self.device_bytes)
            raise Refused(400, f"{asked.case} in this size needs about {needed} of {of} (modelled); {there} are "
                               "there: ask for something smaller")  # fmt: skip
        return Request(asked.case, params, asked.fresh)

    def status(self) -> dict[str, Any]:
        """The class at a glance."""
        desk, running = self.desk, self.desk.running()
        return {
            "on": self.engine.on,
            "worker": "ready" if self.engine.up else "starting again",
            **desk.here,
            "device_bytes": self.device_bytes,
            "running": running.request.case if running else None,
            "waiting": len(desk.waiting()),
            "trouble": desk.trouble,
            "limits": {name: getattr(self.limits, name) for name in ("body_bytes", "queued_per_client", "run_seconds")},
        }


class Handler(RequestHandler):
    """The token, the rate and the words for all addresses."""

    house: House
    client: str

    def initialize(self, house: House) -> None:
        self.house = house

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")):
            self.set_header(name, value)

    def prepare(self) -> None:
        """Who asks; turns and limits go by this name."""
        kind, _, token = self.request.headers.get("Authorization", "").partition(" ")
        name = self.house.tokens.name(token.strip()) if kind.lower() == "bearer" else None
        if name is None:
            raise Refused(401, "the token is missing or wrong: copy the line that the class's owner printed")
        notebook = self.request.headers.get("Meshwork-Client", "")
        # A student's own token says who it is; the class's says nothing, so each notebook names itself.
        self.client = name or (notebook if CLIENT.fullmatch(notebook) else self.request.remote_ip or "")
        self.house.rate.take(self.client)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        fault = kwargs.get("exc_info", (None, None, None))[1]
        words = WORDS.get(status_code, "the request could not be read") if status_code < 500 else "a fault of the owner"
        if isinstance(fault, Refused):
            words = fault.words
            self.set_status(fault.status)
            if fault.retry_seconds:
                self.set_header("Retry-After", f"{fault.retry_seconds:g}")
        self.finish({"error": words})

    def log_exception(self, kind: Any, value: Any, trace: Any) -> None:
        """A refusal is an answer, not a fault to print."""
        if not isinstance(value, Refused):
            super().log_exception(kind, value, trace)

    def told(self, id: str) -> dict[str, Any]:
        """How a request stands, with a mark by which a change is seen."""
        told = self.house.desk.look(self.client, id)
        return {**told, "mark": f"{zlib.crc32(json.dumps(told).encode()):08x}"}


class Front(Handler):
    """GET /: the class at a glance."""

    def get(self) -> None:
        self.finish(self.house.status())


class Cases(Handler):
    """GET /cases: what may be asked for."""

    def get(self) -> None:
        self.finish({"cases": self.house.menu.describe()})


class Requests(Handler):
    """POST /requests."""

    async def post(self) -> None:
        kind = self.request.headers.get("Content-Type", "")
        loop = asyncio.get_running_loop()  # sizing plans a program: in a thread, while others are answered
        asked = await loop.run_in_executor(self.house.sizing, self.house.order, kind, self.request.body)
        ticket = self.house.desk.ask(self.client, asked)
        self.set_status(202)
        self.finish(self.told(ticket.id))


class OneRequest(Handler):
    """GET and DELETE /requests/ID."""

    async def get(self, id: str) -> None:
        seen = self.get_query_argument("seen", "")
        told = await self.after(id, WAIT_SECONDS, lambda told: told["state"] == "done" or told["mark"] != seen)
        if told["state"] == "waiting" and seen:  # every run that ends moves all who wait: told once for several
            told = await self.after(id, MOVES_SECONDS, lambda told: told["state"] != "waiting")
        self.finish(told)

    async def after(self, id: str, seconds: float, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """How a request stands as soon as it is `enough`, or after some seconds; nothing new is an answer too."""
        told = self.told(id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self.house.changed:
                while not enough(told := self.told(id)):
                    await self.house.changed.wait()
        return told

    def delete(self, id: str) -> None:
        self.house.desk.cancel(self.client, id)
        self.finish(self.told(id))


class Nowhere(Handler):
    """All other addresses."""

    def prepare(self) -> None:
        super().prepare()
        raise Refused(404, WORDS[404])


def application(house: House) -> Application:
    """All addresses."""
    shared = {"house": house}
    routes = [("/", Front), ("/cases", Cases), ("/requests", Requests), ("/requests/([0-9a-f]{32})", OneRequest)]
    quiet: dict[str, Any] = {
        "log_function": lambda handler: None,
        "default_handler_class": Nowhere,
        "default_handler_args": shared,
    }
    return Application([(address, handler, shared) for address, handler in routes], **quiet)
