"""Dask's scheduler as the queue before one chip: it orders, runs, and starts a worker again that died.

    engine = Engine("tpu_runs.serve.menu", "simulated")
    await engine.start(listener)                     # listener.event({...}), listener.died()
    engine.submit("a1b2", "product", {"m": 4096}, priority(0, 1))
    engine.ask_to_stop("a1b2"); engine.drop("a1b2"); engine.kill()

The chip is a resource of one, so one run has it at a time; what waits is the scheduler's, and outlives the worker.
Scheduler and worker listen on loopback only and speak TLS, each asking the other for a certificate of this run: Dask
sends pickles, so whoever could speak to it could run code here, and other users of this machine must not. Their
HTTP pages are off. Next file to read: `worker`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import Any, Protocol

import dask.config
import psutil
from distributed import Client, Future, Nanny, Scheduler, Security
from distributed.diagnostics.plugin import SchedulerPlugin

from tpu_runs.serve import worker

QUIET: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": 10**9,  # who died while running is for the desk to say; the rest waits on
    "distributed.scheduler.worker-ttl": None,  # a worker deep in a run may be silent for long; the limit ends it
    "distributed.admin.low-level-log-length": 100,  # of events, records among them
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,  # looking into threads 100 times a second would disturb what we time
    "distributed.nanny.pre-spawn-environ": {},  # would leave one core to numpy and the CPU's own products
}


class Listener(Protocol):
    """Who is told what happens, on the owner's event loop."""

    def event(self, told: dict[str, Any]) -> None: ...
    def died(self) -> None: ...


class _Ears(SchedulerPlugin):
    """What the scheduler hears from its worker, passed on."""

    name = "meshwork"

    def __init__(self, engine: Engine, listener: Listener) -> None:
        self.engine, self.listener = engine, listener

    def log_event(self, topic: str, msg: Any) -> None:
        if topic == worker.TOPIC:
            self.listener.event(json.loads(msg))

    def add_worker(self, scheduler: Any, worker: str) -> None:
        self.engine.up = True

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        self.engine.up = False
        self.listener.died()


class Engine:
    """One scheduler in this process, one worker in another, kept alive by its nanny."""

    def __init__(self, menu: str, on: str) -> None:
        self.menu, self.on, self.up = menu, on, False
        self._nanny: Nanny | None = None
        self._futures: dict[str, Future] = {}
        self._asking: set[asyncio.Future[Any]] = set()

    async def start(self, listener: Listener) -> None:
        """Start the scheduler and its worker; back when the worker answers."""
        dask.config.set(QUIET)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the desk tells what clients need to know
        shared: dict[str, Any] = {"host": "127.0.0.1", "protocol": "tls://", "security": Security.temporary(),
                                  "dashboard": False, "dashboard_address": "127.0.0.1:0"}  # fmt: skip
        self._scheduler = await Scheduler(**shared)
        self._nanny = await Nanny(self._scheduler.address, nthreads=1, memory_limit=0, resources={"chip": 1},
                                  silence_logs=logging.CRITICAL, **shared)  # fmt: skip
        self._client = await Client(self._scheduler.address, security=shared["security"], asynchronous=True,
                                    set_as_default=False)  # fmt: skip
        self.up = True
        self._scheduler.add_plugin(_Ears(self, listener))

    def submit(self, key: str, case: str, params: dict[str, Any], priority: int) -> None:
        """Put a run into the queue. What travels is JSON text, checked before."""
        self._send(worker.run, key, priority, case=case, params=params)

    def look(self, key: str) -> None:
        """Have the worker report what is attached, before all else."""
        self._send(worker.place, key, 1)

    def drop(self, key: str) -> None:
        """Forget a run: it ended, or shall not start; one that goes on is not interrupted by this."""
        if future := self._futures.pop(key, None):
            future.release()  # nobody else holds it, so the scheduler forgets it, also where it waits

    def ask_to_stop(self, key: str) -> None:
        """Ask a run to end before its next repetition; a worker that dies meanwhile has stopped it too."""
        if self.up:
            asking = asyncio.ensure_future(self._client.run(worker.stop, key, on_error="ignore"))
            self._asking.add(asking)  # the loop itself keeps no hold of it
            asking.add_done_callback(self._asking.discard)

    def kill(self) -> None:
        """End the worker and all it started, at once; the nanny starts another."""
        _kill(self._nanny.pid if self._nanny else None)

    async def close(self) -> None:
        """End all that was started, whatever it is doing."""
        if self._nanny is None:
            return
        self._nanny.close_gracefully()  # it shall not start another
        self.kill()  # nothing is lost with it: every answer was reported when it was there
        with contextlib.suppress(TimeoutError):  # a worker that was just starting ends with this process
            async with asyncio.timeout(8):
                await self._client.close()
                await self._nanny.close()
                await self._scheduler.close()

    def _send(self, function: Any, key: str, priority: int, **more: Any) -> None:
        request = json.dumps({"menu": self.menu, "on": self.on, **more})
        self._futures[key] = self._client.submit(
            function, key, request, key=key, priority=priority, resources={"chip": 1}, pure=False
        )


def _kill(pid: int | None) -> None:
    """A process and its children, if they are there still; None where a worker is just being started again."""
    if pid is None:  # psutil would take it for this very process
        return
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
