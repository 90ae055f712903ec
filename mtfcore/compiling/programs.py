"""`compile`: a planned program, compiled for a TPU slice that is not there.

    report = mtf.compile(prog, "v4:4x4x4")                 # the steps of the plan
    report = mtf.compile(prog, "v4:4x4x4", partitioned=True)   # whole arrays: what XLA's partitioner makes of them

The mesh lies on the slice as `mtf.price` lays it. Next file to read: `mtfcore.counting.hlo_text`, which counts the same
texts without knowing any plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtfcore.compiling.memory import Compiled, refusal
from mtfcore.compiling.process import WORKER
from mtfcore.compiling.report import CompiledReport
from mtfcore.compiling.slices import expect_tpu, target_of
from mtfcore.costs.links.wiring import Wiring, wire
from mtfcore.costs.links.wiring_choices import Given
from mtfcore.costs.pricing.liveness import in_place
from mtfcore.costs.pricing.price import price
from mtfcore.errors import DeviceError, nearest, refuse
from mtfcore.runs import expect_program
from mtfcore.steps import Program
from mtfcore.topologies import Topology
from mtfcore.topologies import topology as as_topology


def compile(
    program: Program, topology: str | Topology, *, partitioned: bool = False, wiring: Given | Wiring = None,
    donate: Sequence[str] | None = None, timeout: float | None = 600.0,
) -> CompiledReport:  # fmt: skip
    """Compile a program for a slice, without any device; a program that does not fit is a report too.

    `partitioned` hands over whole arrays with sharding constraints instead of the plan's own steps. `donate` names
    inputs whose memory results may take over; by default those that the plan updates in place. The others lie in memory
    as the compiler likes them best, as weights that are put there once may. `DeviceError`: no
    libtpu here, the compiler ended, or it took longer than `timeout` seconds.
    """
    expect_program(program)
    slice_ = expect_tpu(as_topology(topology))
    wired = price(program, slice_).wiring if wiring is None else wire(program.mesh, slice_, wiring)
    names = _donated(program, donate)
    request = {"program": program, "target": target_of(wired), "donate": names, "partitioned": partitioned}
    answer = WORKER.ask(request, timeout)
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


def _donated(program: Program, donate: Sequence[str] | None) -> tuple[str, ...]:
    if donate is None:
        return tuple(sorted(in_place(program)))
    names = [port.name for port in program.inputs]
    given = (donate,) if isinstance(donate, str) else tuple(donate)
    refuse([f"donate names {name!r:.100}; {nearest(name, names)}" for name in given if name not in names])
    return given
