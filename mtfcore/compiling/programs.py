"""`compile`: a planned program, compiled for a TPU slice that is not there.

    report = mtf.compile(prog, "v4:4x4x4")                 # the steps of the plan
    report = mtf.compile(prog, "v4:4x4x4", partitioned=True)   # whole arrays: what XLA's partitioner makes of them
    report = mtf.compile(engine.plans["decode"], "v4:4x4x4")   # one phase of an engine

The mesh lies on the slice as `mtf.price` lays it. No device is touched, and two kernels may compile at once; beside a
process that holds a real TPU this is untested. Next file to read: `mtfcore.counting.hlo_text`, which counts the same
texts without knowing any plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Event

from mtfcore.compiling.memory import Compiled, refusal
from mtfcore.compiling.process import WORKER, Wait, say
from mtfcore.compiling.report import CompiledReport
from mtfcore.compiling.slices import expect_tpu, target_of
from mtfcore.costs.links.wiring import Wiring, wire
from mtfcore.costs.links.wiring_choices import Given
from mtfcore.costs.pricing.liveness import in_place
from mtfcore.costs.pricing.price import price
from mtfcore.errors import DeviceError, LayoutError, nearest, refuse
from mtfcore.numbers import count
from mtfcore.runs import expect_program
from mtfcore.steps import Program
from mtfcore.topologies import Topology
from mtfcore.topologies import topology as as_topology


def compile(
    program: Program, topology: str | Topology, *, partitioned: bool = False, wiring: Given | Wiring = None,
    donate: Sequence[str] | None = None, timeout: float | None = 600.0, told: Callable[[str], None] = say,
    stop: Event | None = None,
) -> CompiledReport:  # fmt: skip
    """Compile a program for a slice, without any device; a program that does not fit is a report too.

    `partitioned` hands over whole arrays with sharding constraints instead of the plan's own steps. `donate` names
    inputs whose memory results may take over; by default those that the plan updates in place. The others lie in memory
    as the compiler likes them best, as weights that are put there once may.

    Where there is no room for one more compiler this waits, without limit and apart from `timeout`, which limits the
    compilation itself. `told` hears what is waited for ("waiting for 2 other compilers"), and "" when that is over; by
    default it is printed. A `stop` that another thread sets ends it, waiting or at work. `DeviceError`: no libtpu
    here, the compiler ended, was stopped, or took longer than `timeout` seconds.
    """
    _expect_one_program(program)
    slice_ = expect_tpu(as_topology(topology))
    wired = price(program, slice_).wiring if wiring is None else wire(program.mesh, slice_, wiring)
    names = _donated(program, donate)
    request = {"program": program, "target": target_of(wired), "donate": names, "partitioned": partitioned}
    answer = WORKER.ask(request, timeout, Wait(told, stop.is_set) if stop else Wait(told))
    if "failed" in answer:
        raise DeviceError(f"{program.name} could not be handed to the compiler:\n{answer['failed']}")
    refused = refusal(answer["refused"]) if "refused" in answer else None
    if "refused" in answer and refused is None:
        raise DeviceError(f"the compiler for {slice_} refused {program.name}: {answer['refused']}")
    memory = Compiled(**answer["memory"]) if "memory" in answer else None
    return CompiledReport(
        program, slice_, wired, bool(partitioned), answer.get("version", ""), answer.get("text", ""),
        answer.get("stablehlo", ""), memory, refused, answer.get("compile_seconds", 0.0),
    )  # fmt: skip


def _expect_one_program(program: object) -> None:
    """Refuse what is no program; of what holds several, such as an engine, name them."""
    plans = getattr(program, "plans", None)
    if isinstance(plans, Mapping) and not isinstance(program, Program):
        names = ", ".join(map(repr, plans))
        raise LayoutError(
            f"{type(program).__name__} has {count(len(plans), 'program')}, {names}; "
            f"one is compiled at a time: mtf.compile(engine.plans[{next(iter(plans), '')!r}], topology)"
        )
    if isinstance(getattr(program, "program", None), Program):
        raise LayoutError(f"got a {type(program).__name__}; compile what it runs: mtf.compile(it.program, topology)")
    expect_program(program)


def _donated(program: Program, donate: Sequence[str] | None) -> tuple[str, ...]:
    if donate is None:
        return tuple(sorted(in_place(program)))
    names = [port.name for port in program.inputs]
    given = (donate,) if isinstance(donate, str) else tuple(donate)
    refuse([f"donate names {name!r:.100}; {nearest(name, names)}" for name in given if name not in names])
    return given
