"""The three jobs of the run explorer, each a generator that can be stopped between its parts and returns a record.

    for progress in simulated(program, asked, repeats=3): ...     # values on this computer's devices, no hardware speed
    for progress in compiled(program, "v4:4x4x4", asked): ...     # what the compiler for a slice makes of it
    for progress in attached(program, "v4:4x4x4", asked): ...     # the chip in the room, or the class's

`explorer` and the settings go into every record, which is how it is found again. Next file to read: `history`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from threading import Event
from typing import TYPE_CHECKING, Any

import mtfcore as mtf
from mtfcore.errors import DeviceError
from tpu_runs.entries import commit, compiled_fields, measured_fields
from tpu_runs.records import Record
from widgets.explorers.history import OF
from widgets.frame import Progress
from widgets.numbers import count, quantity
from widgets.state import State

if TYPE_CHECKING:
    from mtfcore.compiling import CompiledReport
    from mtfcore.measuring import Measured

Job = Generator[Progress, None, Record]
MOST_DEVICES, MOST_BYTES = 64, 1 << 30
CASE = "program"


# ---- simulated


def too_large(program: mtf.Program) -> str:
    """Why this computer cannot play the devices; nothing where it can."""
    held = program.memory() * program.mesh.size
    if program.mesh.size > MOST_DEVICES:
        return (f"{program.name} on mesh '{program.mesh}' needs {program.mesh.size:,} devices; "
                f"simulated ones are at most {MOST_DEVICES}")  # fmt: skip
    if held > MOST_BYTES:
        return (
            f"{count(program.mesh.size, 'simulated device')} would hold {quantity(held, 'iB')} [modelled] of "
            f"{program.name} in this computer's memory; the limit here is {quantity(MOST_BYTES, 'iB')}. Compiling "
            "needs none of it, and neither does the model of its time"
        )
    return ""


def simulated(program: mtf.Program, settings: State, explorer: str, repeats: int, measure: Any = None) -> Job:
    """Run it on simulated devices: the answer checked, bytes and FLOPs counted in what ran."""
    yield Progress(0, 1, f"starting {count(program.mesh.size, 'simulated device')}")
    run = mtf.simulate(program)  # which starts as many devices as are needed, if JAX has not started
    found = yield from _measured(measure, program, on="simulated", repeats=repeats)
    counts = mtf.count(run.fn, *run.shapes)
    counted = {"flops": counts.flops, "sent": counts.link_bytes}
    return record_of(found, settings, explorer, {"counted": counted})


# ---- attached


def attached(
    program: mtf.Program, settings: State, explorer: str, topology: str, repeats: int, measure: Any = None,
    chips: Any = None, instead: str = "",
) -> Job:  # fmt: skip
    """Run it on the chip in the room; with fewer devices than the mesh needs, one device's share of it."""
    yield Progress(0, 1, "looking for a chip")
    state = (chips or _chip_state)(program.mesh)
    if state.kind not in ("ready", "fewer"):
        raise DeviceError("; ".join(filter(None, (state.words, instead if state.kind == "none" else state.fix))))
    found = yield from _measured(measure, program, on="attached", repeats=repeats, topology=topology or None)
    if found.share is not None and not program.flops():
        mesh, n_here = program.mesh, found.where["devices"]
        raise DeviceError(f"mesh '{mesh}' needs {mesh.size:,} devices; attached: {n_here}. Of a collective alone "
                          "there is nothing that one device could do by itself")  # fmt: skip
    return record_of(found, settings, explorer, {})


def _chip_state(mesh: mtf.Mesh) -> Any:
    from mtfcore.measuring.chip_state import chip_state

    return chip_state(mesh)


def _measured(measure: Any, program: mtf.Program, **options: Any) -> Generator[Progress, None, Measured]:
    """`mtfcore.measuring.steps`, its progress as ours."""
    if measure is None:
        from mtfcore.measuring import steps

        measure = steps
    going = measure(program, **options)
    try:
        while True:
            now = next(going)
            yield Progress(now.done, now.total, now.text)
    except StopIteration as done:
        return done.value
    finally:
        going.close()


def record_of(found: Measured, settings: State, explorer: str, facts: Mapping[str, Any]) -> Record:
    """A measurement as a record that is found again by its settings."""
    facts = {OF: explorer, "name": found.name, **facts}
    return Record(case=CASE, params=dict(settings), commit=commit(), facts=facts, **measured_fields(found))


def unfinished(settings: State, explorer: str, status: str, reason: str, origin: str = "measured") -> Record:
    """A run that gave no number, kept with its reason."""
    return Record(case=CASE, params=dict(settings), status=status, reason=reason, origin=origin, commit=commit(),
                  facts={OF: explorer})  # fmt: skip


# ---- compiled


def compiled(
    program: mtf.Program, settings: State, explorer: str, topology: str, stop: Event, told: Callable[[str], None],
    compiler: Any = None,
) -> Job:  # fmt: skip
    """Hand it to the compiler; its refusal is a record too. `stop` ends it at any moment; `told` hears of waiting."""
    yield Progress(0, 1, f"compiling for {topology}")
    report = (compiler or mtf.compile)(program, topology, told=told, stop=stop)
    yield Progress(1, 1, "reading what the compiler made of it")
    return compiled_record(report, settings, explorer)


def compiled_record(report: CompiledReport, settings: State, explorer: str) -> Record:
    """What is kept of a report, with the reasons why it is not as planned."""
    found = compiled_fields(report)
    own: dict[str, Any] = {OF: explorer, "name": report.program.name}
    if report.fits:
        own["whys"] = list(dict.fromkeys(how.why for _, how in report.differences))[:8]
    return Record(case=CASE, params=dict(settings), commit=commit(), **{**found, "facts": found["facts"] | own})
