"""A menu without JAX for tests of the class's owner: one case that sleeps in steps, dies or fails as asked.

Every run that starts writes its `tag` into the file that PRETENDING_LOG names, so that a test can count them.
"""

from __future__ import annotations

import os
import time
from collections import namedtuple
from collections.abc import Generator
from pathlib import Path
from typing import Any

from tpu_runs.records import Record

Step = namedtuple("Step", "done total text")
KNOWN = {"tag": 0, "ms": 1, "steps": 2, "then": "end", "gib": 0}
WHERE = {"platform": "simulated", "device_kind": "pretended", "devices": 1}


def check(case: str, params: dict[str, Any]) -> dict[str, Any]:
    if case != "sleep":
        raise ValueError(f"no case {case!r:.60}; known: sleep")
    faults = [f"no parameter {name!r:.60}" for name in params if name not in KNOWN]
    full = {**KNOWN, **{name: value for name, value in params.items() if name in KNOWN}}
    faults += [f"{name} is a {type(full[name]).__name__}, not a {type(KNOWN[name]).__name__}" for name in KNOWN
               if type(full[name]) is not type(KNOWN[name])]  # fmt: skip
    if faults:
        raise ValueError("sleep: " + "; ".join(faults))
    return full


def size(case: str, params: dict[str, Any], on: str) -> int:
    return params["gib"] * 2**30


def describe() -> dict[str, Any]:
    return {
        "sleep": {"about": "sleeps in steps", "params": {name: {"default": value} for name, value in KNOWN.items()}}
    }


def place(on: str) -> dict[str, Any]:
    if os.environ.get("PRETENDING_HELD"):
        raise ValueError("The chip is held by another process: pid 4711.")
    return {"where": WHERE, "versions": {"jax": "0"}, "device_bytes": 2**34}


def rows(case: str, params: dict[str, Any], on: str) -> Generator[Step, None, Record]:
    with Path(os.environ["PRETENDING_LOG"]).open("a", encoding="utf-8") as log:
        log.write(f"{params['tag']}\n")
    for done in range(params["steps"]):
        yield Step(done, params["steps"], f"repetition {done + 1}")
        time.sleep(params["ms"] / 1000)
    if params["then"] == "die":
        os._exit(9)
    if params["then"] == "fault":
        raise RuntimeError("the device said no")
    return Record(case=case, params=params, seconds=[params["ms"] / 1000] * params["steps"], where=WHERE,
                  versions={"jax": "0"})  # fmt: skip
