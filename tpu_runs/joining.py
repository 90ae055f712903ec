"""One host among several: joining JAX's processes, keeping in step, and noticing when nobody watches any more.

    join(hosts=2, host=0, coordinator="10.0.0.1:8476", on="attached")
    for now in in_step(rows(...)): ...          # every host takes each part, or none does

`jax.distributed` connects the hosts; on simulated devices Gloo carries the collectives. All hosts run the same cases in
the same order, which is compared at the start. Between two parts of a run they agree that all are well, so that a wrong
answer on one ends the run on all, and nobody waits in a collective for somebody who has left it. Next file to read:
`compare`.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
import zlib
from collections.abc import Callable, Generator
from typing import Any, NoReturn

from mtfcore.errors import DeviceError, LayoutError
from mtfcore.platforms import settle
from tpu_runs.hosts import GATHER_SECONDS, GATHERING, LOST, MARK
from tpu_runs.records import Record


def tell(words: str) -> None:
    """Say to the watching process what is being done."""
    print(f"{MARK}{words}", file=sys.stderr, flush=True)


def lost(words: str) -> NoReturn:
    """End at once because another host has gone: an ordinary end would wait for it."""
    tell(f"lost {' '.join(words.split())[:400]}")
    sys.stdout.flush()
    os._exit(LOST)


def failed(fault: Exception) -> NoReturn:
    """End at once for a reason of our own: said in words where it is a refusal, else with all of its trace."""
    if isinstance(fault, (LayoutError, DeviceError)):
        print(fault, file=sys.stderr)
    else:
        traceback.print_exception(fault)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def join(hosts: int, host: int, coordinator: str, on: str, devices: int = 2, patience: int = 20) -> int:
    """Become host number `host` of so many; returns how many devices all have together.

    `patience`: seconds without a sign of life after which a host counts as gone. `devices`: simulated ones of a host.
    """
    settle()
    import jax

    threading.Thread(target=_end_with_the_watcher, daemon=True).start()
    if on == "simulated":
        jax.config.update("jax_num_cpu_devices", devices)
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    here = coordinator.rpartition(":")[0] in ("localhost", "127.0.0.1", "[::1]")
    tell(f"{GATHERING} {hosts} hosts at {coordinator}")
    jax.distributed.initialize(
        coordinator, hosts, host, initialization_timeout=GATHER_SECONDS, heartbeat_timeout_seconds=patience,
        shutdown_timeout_seconds=patience, coordinator_bind_address=coordinator if here else None,
    )  # fmt: skip
    tell("looking for devices")
    return jax.device_count("cpu" if on == "simulated" else None)


def expect_same(words: str) -> None:
    """Refuse to begin where hosts would do different things: other commits, versions or cases."""
    numbers = _gathered(zlib.crc32(words.encode()))
    if len(set(numbers)) > 1:
        raise DeviceError("the hosts do not agree on what to run: give all the same command, code and versions "
                          f"(this one: {words[:300]})")  # fmt: skip


def in_step(going: Generator[Any, None, Record], otherwise: Callable[[str], Record]) -> Generator[Any, None, Record]:
    """The same run, each part begun by all hosts or by none; `otherwise` makes the record of one that others ended."""
    while True:
        now, done = _next(going)
        states = _gathered(0 if done is None else 1 if done.status == "ok" else 2)
        if len(set(states)) > 1:
            going.close()
            which = ", ".join(str(host) for host, state in enumerate(states) if state)
            return done or otherwise(f"host {which} could not go on; its own output says why")
        if done is not None:
            return done
        yield now


def any_of(said: bool) -> bool:
    """Whether one of the hosts says so; the same answer on all, whose clocks differ."""
    return any(_gathered(int(said)))


def leave(status: int) -> None:
    """Part from the others when all is done; after Ctrl-C at once, since they may still wait in a collective."""
    import jax

    if status == 130:
        sys.stdout.flush()
        os._exit(status)
    tell("parting")
    jax.distributed.shutdown()


def _next(going: Generator[Any, None, Record]) -> tuple[Any, Record | None]:
    try:
        return next(going), None
    except StopIteration as end:
        return None, end.value


def _gathered(number: int) -> list[int]:
    """A number of each host, at every host."""
    import numpy as np
    from jax.experimental import multihost_utils

    return [int(each) for each in np.ravel(multihost_utils.process_allgather(np.asarray([number], np.uint32)))]


def _end_with_the_watcher() -> None:
    """The watching process holds our standard input open: when it ends in any way, so do we."""
    while os.read(0, 1024):
        pass
    os._exit(LOST)
