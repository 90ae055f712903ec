"""What runs in the worker, the one process of a class that loads JAX and holds the chip.

    run("a1b2", '{"menu": "tpu_runs.serve.menu", "on": "attached", "case": "product", "params": {"m": 4096}}')

JSON text in, JSON text out: a run reports that it started, each step, and its record, as events of Dask's scheduler,
so that the owner has a record before anything could lose it. Between two repetitions it looks whether somebody asked
it to stop. Next file to read: `menu`, for what a case is here.
"""

from __future__ import annotations

import json
import pkgutil
import traceback
from collections.abc import Generator
from typing import Any

TOPIC = "meshwork"
_STOP: set[str] = set()  # keys of runs that were asked to stop; filled from the worker's event loop by `stop`


def run(key: str, request: str) -> None:
    """Run one checked request and report; nothing is returned, so that the scheduler has no result to lose."""
    asked = json.loads(request)
    _report(key, "started")
    try:
        rows = pkgutil.resolve_name(asked["menu"]).rows(asked["case"], asked["params"], asked["on"])
        _follow(key, rows)
    except Exception as fault:  # a fault of ours or of JAX: told to whoever asked, and the next request goes on
        lines = traceback.format_exception(fault)
        _report(key, "failed", reason=f"{type(fault).__name__}: {fault}"[:2000], trace="".join(lines)[-4000:])
    finally:
        _STOP.discard(key)


def place(key: str, request: str) -> None:
    """Look once what is attached and report it: where records are made, and what one device holds."""
    asked = json.loads(request)
    try:
        _report(key, "place", **pkgutil.resolve_name(asked["menu"]).place(asked["on"]))
    except Exception as fault:  # no chip, held by another process, wrong version: words of `chip_state`
        _report(key, "place", problem=str(fault)[:2000])


def stop(key: str) -> None:
    """Ask a run to end before its next repetition; called in the worker while the run goes on in its thread."""
    _STOP.add(key)


def _follow(key: str, rows: Generator[Any, None, Any]) -> None:
    """Each step of a run as an event, and at its end its record."""
    while True:
        try:
            step = next(rows)
        except StopIteration as end:
            return _report(key, "finished", record=end.value.line())
        if key in _STOP:
            rows.close()  # a lock that it holds is let go
            return _report(key, "stopped", done=step.done, total=step.total)
        _report(key, "progress", done=step.done, total=step.total, text=str(step.text)[:300])


def _report(key: str, what: str, **facts: Any) -> None:
    from distributed import get_worker  # here, so that the owner can name this module without a worker

    get_worker().log_event(TOPIC, json.dumps({"key": key, "what": what, **facts}))
