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

    `program`: what `mtf.plan` gave; `topology`: "v4:4x4x4"; `wiring`: how the mesh lies on the grid, "x→0, y→1". The
    report has bytes (compiled), cycles (compiled) and seconds (modelled from compiled schedule) of one device.

    Raises `LayoutError` for a slice that is none or that the mesh does not fit.
    """
    _expect_one_program(program)
    refuse([*_wide(program), *_option_faults(donate, timeout, told, stop)], "compile")
    slice_ = expect_tpu(as_topology(topology))
    wired = _as_priced(program, slice_) if wiring is None else wire(program.mesh, slice_, wiring)
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


def _as_priced(program: Program, slice_: Topology) -> Wiring:
    """How `mtf.price` lays the mesh; of a dtype without a published peak it has no price, but a compiler."""
    try:
        return price(program, slice_).wiring
    except LayoutError:
        return wire(program.mesh, slice_)


def _wide(program: Program) -> list[str]:
    """64-bit types, which a TPU has not, and which the compiler's process would cut without a word."""
    wide = sorted({dtype for dtype in program.dtypes.values() if dtype in ("f64", "i64")})
    return [f"{program.name} uses {', '.join(wide)}; plan it with f32 and i32"] if wide else []


def _option_faults(donate: object, timeout: object, told: object, stop: object) -> list[str]:
    """What is wrong with options that no program is needed to judge."""
    faults = []
    if not (donate is None or isinstance(donate, str | Sequence | Mapping | set | frozenset)):
        faults.append(f"donate is {donate!r:.100}; names of inputs, such as ['x']")
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0
    if timeout is not None and not is_number:
        faults.append(f"timeout is {timeout!r:.100}; seconds, more than 0, or None for no limit")
    if not callable(told):
        faults.append(f"told is {told!r:.100}; a function of one text, such as print")
    if stop is not None and not isinstance(stop, Event):
        faults.append(f"stop is {stop!r:.100}; a threading.Event")
    return faults


def _donated(program: Program, donate: Sequence[str] | None) -> tuple[str, ...]:
    if donate is None:
        return tuple(sorted(in_place(program)))
    names = [port.name for port in program.inputs]
    given = (donate,) if isinstance(donate, str) else tuple(donate)
    refuse([f"donate names {name!r:.100}; {nearest(name, names)}" for name in given if name not in names])
    return given
