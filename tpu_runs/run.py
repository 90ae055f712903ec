"""One run of one case: checked, sized, measured, and a record of it whatever happens.

    going = rows("product", {"m": 64}, on="simulated")      # Progress before each part; stop by closing it
    record = finish(going, lambda now: print(now.text))     # a Record: ok, failed or refused, with its reason

Nothing runs that the memory model says cannot fit; compile time stands apart, each repetition is kept as it was, and
the answer is checked before any time is seen (`mtfcore.measuring`). A failure that can be expected is a record: refused
parameters, no chip, out of memory, a wrong answer (without a time). Everything else is a fault of ours and is raised.
Next file to read: `running`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

import mtfcore as mtf
from mtfcore.errors import DeviceError, LayoutError, sure
from mtfcore.measuring import WrongAnswer, places
from mtfcore.measuring.chip_state import chip_state
from tpu_runs.cases import Case, check
from tpu_runs.cases import case as case_named
from tpu_runs.entries import commit, measured_fields
from tpu_runs.hosts import SIGNS
from tpu_runs.records import Record

if TYPE_CHECKING:
    from mtfcore.measuring import Measured, Progress

SIMULATED = 64  # devices, as in every lesson
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")
WORDS = 600  # of a reason


def rows(
    case: Case | str, params: Mapping[str, Any], on: str = "simulated", *, repeats: int = 5, warm_up: int = 1,
    share: str | bool = "auto", check: bool = True, topology: Any = None, together: int = 0,
) -> Generator[Progress, None, Record]:  # fmt: skip
    """Run it on "attached" devices or "simulated" ones; options as in `mtf.measure`. Returns its record.

    `together`: how many devices several hosts have together, all of which must take part; 0 on one host.
    """
    case = case_named(case) if isinstance(case, str) else case
    kept = {"case": case.name, "params": dict(params), "commit": commit(),
            "where": {"platform": "simulated"} if on == "simulated" else {}}  # fmt: skip
    how = {"on": on, "repeats": repeats, "warm_up": warm_up, "check": check}
    try:
        found = yield from _measured(case, params, kept, how, share, topology, together)
    except (LayoutError, DeviceError) as fault:
        return _without_time(kept, "refused", str(fault))
    except WrongAnswer as fault:
        return _without_time(kept, "failed", f"wrong answer: {fault}")
    except Exception as fault:
        if not is_out_of_memory(fault):
            raise
        return _without_time(kept, "failed", f"out of memory: {fault}")
    return Record(**{**kept, **found})


def finish(going: Generator[Any, None, Record], told: Callable[[Any], None] = lambda now: None) -> Record:
    """Run to the end; `told` hears of each part before it begins."""
    while True:
        try:
            told(next(going))
        except StopIteration as done:
            return done.value


def stopped(case: Case | str, params: Mapping[str, Any], on: str, reason: str) -> Record:
    """The record of a run that somebody ended."""
    name = case if isinstance(case, str) else case.name
    where = {"platform": "simulated"} if on == "simulated" else {}
    return _without_time({"case": name, "params": dict(params), "commit": commit(), "where": where}, "stopped", reason)


def is_out_of_memory(fault: BaseException) -> bool:
    """Whether a device or this computer had too little memory: of JAX's errors the one that is expected."""
    if isinstance(fault, MemoryError):
        return True
    import jax

    return isinstance(fault, jax.errors.JaxRuntimeError) and any(word in str(fault) for word in OUT_OF_MEMORY)


def is_from_elsewhere(fault: BaseException) -> bool:
    """Whether JAX failed because another host of this run has gone or cannot be reached."""
    import jax

    return isinstance(fault, jax.errors.JaxRuntimeError) and any(sign in str(fault) for sign in (*SIGNS, "ABORTED"))


def _measured(
    case: Case, params: Mapping[str, Any], kept: dict[str, Any], how: dict[str, Any], share: str | bool, topology: Any,
    together: int,
) -> Generator[Progress, None, dict[str, Any]]:  # fmt: skip
    """The fields of a record that a run fills in; `kept` gets what is known before it."""
    kept["params"] = full = check(case, params)
    facts: dict[str, Any] = {"expected_bytes": case.bytes(full)}
    kept["facts"] = facts
    kept["versions"] = places.versions()
    _expect_devices(how["on"])
    if together:
        _expect_together(case, full, together)
        share = False
    if case.program is None:
        _expect_whole(case, full, share)
        found = yield from sure(case.run)(full, **how)
        return {**found, "facts": facts | found["facts"]}
    share = share if case.shares else _expect_whole(case, full, share)
    from mtfcore.measuring import steps

    measured = yield from steps(case.program(full), **how, share=share, topology=topology)
    return {**measured_fields(measured), "facts": facts | _facts(measured)}


def _facts(measured: Measured) -> dict[str, Any]:
    memory = {f"memory_{name.replace(' ', '_')}": n_bytes for name, n_bytes in measured.memory.items()}
    return {"carried": list(measured.carried), **memory} if measured.carried else memory


def _expect_devices(on: str) -> None:
    """Start simulated devices, or say at once why there is no chip: never a silent fall to the CPU."""
    if on == "attached":
        chip_state().expect_ready()
        return
    with contextlib.suppress(DeviceError):  # JAX runs already with fewer: then those are what there is
        mtf.devices(SIMULATED)


def _expect_together(case: Case, params: Mapping[str, Any], devices: int) -> None:
    """Of several hosts none may stand aside: it would have no part of any array."""
    if case.program is None:
        raise DeviceError(f"{case.name}: the engine runs on one host; take away --hosts")
    if case.devices(params) != devices:
        raise DeviceError(f"mesh '{params['mesh']}' has {case.devices(params)} devices, the hosts have {devices} "
                          f"together, and all must take part: such as mesh=x:{devices}")  # fmt: skip


def _expect_whole(case: Case, params: Mapping[str, Any], share: str | bool) -> bool:
    if share is True:
        raise LayoutError(f"{case.name}: one device's share says nothing here; it needs all {case.devices(params)}")
    return False


def _without_time(kept: Mapping[str, Any], status: str, reason: str) -> Record:
    """A record of what did not run, or gave no answer that may be timed."""
    try:
        return Record(**kept, status=status, reason=reason[:WORDS])
    except ValueError:  # parameters that are not even JSON
        return Record(**{**kept, "params": {"given": repr(kept["params"])[:WORDS]}}, status=status,
                      reason=reason[:WORDS])  # fmt: skip
