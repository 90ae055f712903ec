"""The owner of a class's chip: starts everything, says where it is, and ends all of it when it ends.

    run(options(["--on", "simulated", "--port", "8899"]))         # what `make class` calls; Ctrl-C or SIGTERM ends it

It loads no JAX and holds no device: only the worker does, so that a run which hangs or dies takes nothing along but
itself. Records are appended here, one by one, and an owner that is started again answers from them. Next file to
read: `app`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import re
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from tpu_runs import records
from tpu_runs.serve.app import House, Tokens, application
from tpu_runs.serve.desk import Desk
from tpu_runs.serve.engine import Engine
from tpu_runs.serve.limits import Limits, Rate
from tpu_runs.serve.lines import Lines

TOKEN = "MESHWORK_CLASS_TOKEN"  # the environment's, since other users of a machine can read command lines
START_SECONDS = 120  # in which a worker is there, JAX started and the chip found
LOOPBACK = ("127.0.0.1", "::1", "localhost")
OPEN = (
    "This answers the whole network that it is on, unencrypted: whoever reads the traffic reads the token, and\n"
    "can then ask for measurements (nothing else). On a network that you do not trust keep to this machine, and let\n"
    "each student bring the port home: ssh -L {port}:127.0.0.1:{port} this-machine"
)


def options(words: list[str]) -> argparse.Namespace:
    """What may follow `make class`."""
    about = (__doc__ or "").partition("Next file")[0].rstrip()
    parser = argparse.ArgumentParser(prog="python -m tpu_runs.serve", allow_abbrev=False, description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--on", choices=["attached", "simulated"], default="attached",
                        help="the chips of this machine (default), or simulated devices, to practise")  # fmt: skip
    parser.add_argument("--port", type=int, default=8899, help="the port (8899); 0: any free one")
    parser.add_argument("--host", default="127.0.0.1", help="the address to answer at; 0.0.0.0 opens it to the room")
    parser.add_argument("--students", type=int, default=0, metavar="N",
                        help="a token for each of N students, not one for all: turns go by token")  # fmt: skip
    parser.add_argument("--limit", type=float, default=Limits.run_seconds, metavar="SECONDS",
                        help="a run that takes longer is ended (%(default)g)")  # fmt: skip
    parser.add_argument("--records", type=Path, help="the file to keep records in (default: your own of this month)")
    parser.add_argument("--quiet", action="store_true", help="print no line for each request and each answer")
    parser.add_argument("--menu", default="tpu_runs.serve.menu", help=argparse.SUPPRESS)
    chosen = parser.parse_args(words)
    if not 0 <= chosen.port <= 65535:
        parser.error(f"--port {chosen.port}: 1 to 65535, or 0 for any free one")
    if not 0 <= chosen.students <= 1000:
        parser.error(f"--students {chosen.students}: 1 to 1000, or 0 for one token for all")
    if not chosen.limit > 0:  # NaN is refused too
        parser.error(f"--limit {chosen.limit:g}: seconds, more than 0")
    return chosen


def run(chosen: argparse.Namespace) -> int:
    """Own the chip until told to end; the exit status."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{12,200}|", os.environ.get(TOKEN, "")):
        return _say(f"{TOKEN} must be 12 or more letters, digits, - and _", 1)
    try:
        return asyncio.run(_own(chosen))
    except KeyboardInterrupt:  # where the loop takes no signals (Windows)
        return 0


async def _own(chosen: argparse.Namespace) -> int:
    end = _end_by_signal()
    try:
        sockets = bind_sockets(chosen.port, chosen.host)
    except OSError as fault:
        return _say(f"Cannot answer at {chosen.host} port {chosen.port} ({fault.strerror}): choose another --port", 1)
    house = _house(chosen)
    starting = asyncio.ensure_future(_start(house))
    server = HTTPServer(application(house), max_body_size=2**20, max_header_size=2**14, body_timeout=20.0,
                        idle_connection_timeout=60.0)  # fmt: skip
    either: list[asyncio.Future[Any]] = [starting, end]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not end.done() and (problem := starting.result()):
            return _say(f"{problem}\nTo practise without a chip: --on simulated", 1)
        if not end.done():
            server.add_sockets(sockets)
            _greet(chosen, house, sockets[0].getsockname()[1])
            return await _tick(house, end)
        return 0
    finally:
        server.stop()
        await asyncio.wait([starting], timeout=5)  # a worker half started would complain of our end
        starting.cancel()
        house.desk.end()
        await house.engine.close()
        house.sizing.shutdown(wait=False)


def _end_by_signal() -> asyncio.Future[None]:
    """Done when Ctrl-C or SIGTERM comes."""
    loop = asyncio.get_running_loop()
    end: asyncio.Future[None] = loop.create_future()

    def told() -> None:
        if not end.done():
            end.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, told)
        except NotImplementedError:  # Windows: Ctrl-C is a KeyboardInterrupt there
            continue
    return end


def _house(chosen: argparse.Namespace) -> House:
    """All parts, joined."""
    limits = Limits(run_seconds=chosen.limit)
    engine = Engine(chosen.menu, chosen.on)
    desk = Desk(engine, limits, chosen.records or records.own_file())
    if not chosen.records:
        desk.remember_earlier(records.mine())
    house = House(desk, engine, importlib.import_module(chosen.menu), Tokens({}), limits, Rate(limits))
    desk.changed = lambda: _later(_notify(house))
    if not chosen.quiet:
        desk.lines = Lines(_say)
    return house


class _First:
    """Hears the worker's first words, about its place; then the desk listens."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.told = desk, asyncio.get_running_loop().create_future()

    def event(self, told: dict[str, Any]) -> None:
        if told["what"] != "place":
            self.desk.event(told)
        elif not self.told.done():
            self.told.set_result(told)

    def died(self) -> None:
        self.desk.died()


async def _start(house: House) -> str:
    """Start the worker and learn what it holds; a problem's words, or nothing."""
    first = _First(house.desk)
    await house.engine.start(first)
    house.engine.look("place")
    try:
        told = await asyncio.wait_for(first.told, START_SECONDS)
    except TimeoutError:
        return f"The worker did not say within {START_SECONDS} s what is attached here."
    house.engine.drop("place")
    if problem := told.get("problem"):
        return problem
    house.desk.here = {name: told[name] for name in ("where", "versions", "commit") if name in told}
    house.device_bytes = house.limits.device_bytes or told.get("device_bytes")
    return ""


async def _tick(house: House, end: asyncio.Future[None]) -> int:
    """Watch the limits until told to end, or until there is no worker any more."""
    clock = asyncio.get_running_loop().time
    seen = clock()
    while not end.done():
        await asyncio.wait([end], timeout=0.5)
        house.desk.tick()
        seen = clock() if house.engine.up else seen
        if clock() - seen > START_SECONDS:
            return _say("The worker ended and could not be started again. Start the class again; if it cannot be "
                        "started either, the words then say why. Records are kept.", 1)  # fmt: skip
    return 0


async def _notify(house: House) -> None:
    async with house.changed:
        house.changed.notify_all()


_PENDING: set[asyncio.Future[Any]] = set()


def _later(work: Any) -> None:
    """Do it soon, and keep hold of it until it is done."""
    task = asyncio.ensure_future(work)
    _PENDING.add(task)
    task.add_done_callback(_PENDING.discard)


def _greet(chosen: argparse.Namespace, house: House, port: int) -> None:
    """The line for every notebook of the class; the names of clients are not asked for."""
    host = chosen.host if chosen.host not in ("0.0.0.0", "::") else socket.gethostname()
    tokens = _tokens(chosen.students)
    house.tokens = Tokens(tokens)
    where = house.desk.here["where"]
    chips = f"{where.get('devices', '?')} × {where.get('device_kind', '?')}"
    if chosen.on == "simulated":
        chips = f"{where.get('devices', '?')} simulated devices, to practise: times are this computer's"
    _say(f"\nFor the class: {chips}. Records: {house.desk.file}\n"
         "For its notebooks, before they start or in a first cell (%env …):\n")  # fmt: skip
    for token in tokens:
        _say(f'    MESHWORK_CLASS="http://{host}:{port} {token}"')
    _say("\nCtrl-C here ends it." if chosen.host in LOOPBACK else f"\n{OPEN.format(port=port)}\nCtrl-C here ends it.")


def _tokens(students: int) -> dict[str, str]:
    """Each token and whose it is; one for the class ("": its notebooks name themselves) unless students have theirs."""
    if students:
        return {secrets.token_urlsafe(16): f"student {number}" for number in range(1, students + 1)}
    return {os.environ.get(TOKEN) or secrets.token_urlsafe(16): ""}


def _say(words: str, status: int = 0) -> int:
    print(words, file=sys.stderr if status else sys.stdout, flush=True)
    return status
