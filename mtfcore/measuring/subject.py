"""What is timed: a function of arrays, how these are made, what is carried from run to run, how it is checked.

    subject = whole_of(prog, None, "simulated")       # as it stands; `share.share_of` makes one device's part

Next file to read: `timing`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtfcore.errors import DeviceError
from mtfcore.measuring import places
from mtfcore.measuring.measured import Share
from mtfcore.numbers import count, format_bytes
from mtfcore.steps import Program

EXHAUSTED = "RESOURCE_EXHAUSTED"  # JAX's word for too little memory
SMALLER = "take a smaller batch, fewer layers, narrower weights or a larger mesh"


@dataclass(frozen=True, eq=False)
class Subject:
    """What is timed: a function of arrays, how to make these, what is carried from run to run, how it is checked."""

    program: Program
    devices: Sequence[Any]
    jax_mesh: Any
    fn: Callable
    shapes: Sequence[Any]  # of the arrays it takes
    places: Sequence[Any]  # where each lies: shardings
    make: Callable[[Sequence[Any]], list[Any]]  # the arrays, where and as these formats say
    carried: Mapping[int, int]  # place among the arrays → place among the results that follows it
    names: tuple[str, ...]  # of what the program itself updates in place
    check: Callable[[Sequence[Any]], dict[str, Any]]
    expected_bytes: int  # of one device
    share: Share | None = None


def whole_of(program: Program, given: Mapping[str, Any] | None, on: str) -> Subject:
    """The program as it stands, on as many devices as its mesh has."""
    import jax

    from mtfcore import runs
    from mtfcore.costs.pricing.liveness import peak_memory
    from mtfcore.device_pool import launch
    from mtfcore.measuring import checking, filling
    from mtfcore.resident import input_sharding, placed

    run = (runs.attach if on == "attached" else runs.simulate)(program)
    devices = list(run.jax_mesh.devices.flat)
    inputs = [port.name for port in program.inputs]
    carried = carried_places(program)

    def make(formats: Sequence[Any]) -> list[Any]:
        if given is None:
            return filling.fill(program, formats)
        arrays = placed(run, given)
        own = [_own(arrays[name], given[name], place in carried) for place, name in enumerate(inputs)]
        return [launch(jax.device_put, array, at) for array, at in zip(own, formats, strict=True)]

    return Subject(
        program, devices, run.jax_mesh, run.fn, run.shapes, [input_sharding(run, port) for port in program.inputs],
        make, carried, tuple(inputs[place] for place in carried),
        lambda results: checking.checked(program, results, given, devices), peak_memory(program).total,
    )  # fmt: skip


def _own(array: Any, given: Any, donated: bool) -> Any:
    """What a run may use up must not be the caller's."""
    return array.copy() if donated and array is given else array


def carried_places(program: Program) -> dict[int, int]:
    """Input → result, by place, of what a program updates in place."""
    from mtfcore.costs.pricing.liveness import in_place

    names = in_place(program)
    results = {port.name: place for place, port in enumerate(program.outputs) if not port.sharding.partial}
    return {n: results[port.name] for n, port in enumerate(program.inputs) if port.name in names & results.keys()}


class OutOfMemory(MemoryError):
    """A program did not fit, though the memory model thought so."""


def expect_room(subject: Subject) -> None:
    """Refuse what the memory model says cannot fit, before anything is made; simulated devices share one memory."""
    first = places.near(subject.devices)
    here = len(subject.devices) if first.platform == "cpu" else 1
    needed, free = subject.expected_bytes * here, places.free_bytes(first)
    if needed <= free:
        return
    of = f" for {count(here, 'simulated device')}" if here > 1 else ""
    raise DeviceError(
        f"{_what(subject)} is expected to need {format_bytes(needed)}{of} (modelled), and {format_bytes(free)} are "
        f"free on {'this computer' if first.platform == 'cpu' else first.device_kind}; {SMALLER}"
    )


@contextlib.contextmanager
def told(subject: Subject) -> Iterator[None]:
    """The device's own refusal, in words: too little memory after all."""
    import jax

    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if EXHAUSTED not in str(error):
            raise
        expected, said = format_bytes(subject.expected_bytes), str(error).splitlines()[0][:200]
        raise OutOfMemory(
            f"{_what(subject)} did not fit on {subject.devices[0].device_kind}: expected were {expected} a device "
            f"(modelled); {SMALLER}. The device said: {said}"
        ) from error


def _what(subject: Subject) -> str:
    name = f"{subject.program.name} on mesh '{subject.program.mesh}'"
    return f"one device's share of {name}" if subject.share else name


def may_choose_order(device: Any) -> bool:
    """Whether the compiler orders the dimensions of inputs as it likes, as `mtf.compile` has it: TPUs gain by it."""
    return device.platform == "tpu"


def any_order(place: Any) -> Any:
    """The format of an array that lies there, its dimensions in the order that the compiler chooses."""
    from jax.experimental.layout import Format, Layout

    return Format(Layout.AUTO, place)
