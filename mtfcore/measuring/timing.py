"""`measure`: a program's time on the chip in the room, or, in slow motion, on simulated devices.

    found = mtf.measure(prog)                                  # the attached TPU or GPU
    found = mtf.measure(prog, on="simulated", repeats=3)       # this computer's time: it says so
    for now in measuring.steps(prog, on="simulated"): ...      # the same, with a stop before each part

Inputs are made on the devices before the clock starts; compiling is timed apart; some runs come first and do not count;
each repetition is waited for, and kept as it was; the answer is compared with the oracle before any time is shown.
Inputs that a program updates in place (a cache, weights in training) are donated, as they are in
earnest: each repetition then begins with what the one before left, and the words say so.

With fewer devices than the mesh needs, one device's share runs instead (`share`). Next file to read: `cutting`.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.measuring import places
from mtfcore.measuring.measured import Measured, Progress
from mtfcore.measuring.subject import Subject, any_order, expect_room, may_choose_order, told, whole_of
from mtfcore.notation import as_size, as_whole
from mtfcore.steps import Program

ON = ("attached", "simulated")
MOST = 10_000  # repetitions


def measure(
    program: Program, arrays: Any = None, *, on: str = "attached", repeats: int = 5, warm_up: int = 1,
    share: str | bool = "auto", check: bool = True, topology: Any = None, model: Any = "calibrated",
) -> Measured:  # fmt: skip
    """The time of a program on attached devices (or simulated ones), its answer checked first.

    `arrays`: the inputs by name or in order; by default made on the devices, each its own part. `share`: one device's
    part alone, collectives left out and modelled on `topology` by `mtf.price` under `model`; "auto" where there are
    fewer devices than the mesh needs. `WrongAnswer`: the answer is not the oracle's. `DeviceError`: no such devices,
    or too little memory by the memory model.

    `program`: what `mtf.plan` gave; `on`: "attached" or "simulated" (whose times are never hardware speed); `repeats`
    timed calls after `warm_up` others. `check=False` leaves out the comparison with the oracle. Times are seconds
    (measured), each kept.
    """
    going = steps(program, arrays, on=on, repeats=repeats, warm_up=warm_up, share=share, check=check,
                  topology=topology, model=model)  # fmt: skip
    while True:
        try:
            next(going)
        except StopIteration as done:
            return done.value


def steps(
    program: Program, arrays: Any = None, *, on: str = "attached", repeats: int = 5, warm_up: int = 1,
    share: str | bool = "auto", check: bool = True, topology: Any = None, model: Any = "calibrated",
) -> Generator[Progress, None, Measured]:  # fmt: skip
    """The same, told before each of its parts; whoever stops asking ends it there. Returns what `measure` does."""
    _expect(program, on, repeats, warm_up, share, check)
    _expect_model(arrays, topology, model)
    total = repeats + warm_up + 3
    subject = _subject(program, arrays, on, share, topology, model)
    expect_room(subject)
    yield Progress(0, total, "compiling")
    runs = Runs(subject)
    yield Progress(1, total, "making the inputs on the devices")
    runs.fill()
    yield Progress(2, total, "checking the answer" if check else "first run")
    first = runs.run(keep=check)
    said = subject.check(first) if check else {"against": "not asked", "error": None, "tolerance": None}
    seconds = []
    for number in range(warm_up + repeats):
        which = number - warm_up
        text = "warming up" if which < 0 else f"repetition {which + 1} of {repeats}"
        yield Progress(3 + number, total, text)
        took = runs.run()
        seconds += [took] if which >= 0 else []
    return runs.measured(tuple(seconds), warm_up, said)


class Runs:
    """The compiled function with its arrays: compiled once, run again and again."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        start = time.perf_counter()
        self.compiled = self._compile()  # traced, lowered, compiled
        self.compile_seconds = time.perf_counter() - start
        self.arrays: list[Any] = []

    def _compile(self) -> Any:
        import jax

        from mtfcore.device_pool import inside

        subject = self.subject
        free = may_choose_order(subject.devices[0])
        at = [any_order(place) if free and n not in subject.carried else place
              for n, place in enumerate(subject.places)]  # fmt: skip
        with inside(subject.jax_mesh), told(subject):
            jitted = jax.jit(subject.fn, in_shardings=at, donate_argnums=tuple(subject.carried))
            return jitted.lower(*subject.shapes).compile()

    def fill(self) -> None:
        """Make the arrays on the devices, in the order of their dimensions that the compiler chose."""
        free = may_choose_order(self.subject.devices[0])
        with told(self.subject):
            self.arrays = self.subject.make(self.compiled.input_formats[0] if free else self.subject.places)

    def run(self, keep: bool = False) -> Any:
        """One run, waited for: its seconds, or with `keep` its results. One launch in flight in the whole process."""
        import jax

        from mtfcore.device_pool import LAUNCH, inside

        with LAUNCH, inside(self.subject.jax_mesh), told(self.subject):
            jax.block_until_ready(self.arrays)  # copies to the devices end before the clock starts
            start = time.perf_counter()
            results = jax.block_until_ready(self.compiled(*self.arrays))
            took = time.perf_counter() - start
        for place, result in self.subject.carried.items():
            self.arrays[place] = results[result]
        return results if keep else took

    def measured(self, seconds: tuple[float, ...], warm_up: int, check: Mapping[str, Any]) -> Measured:
        """All that was found."""
        subject, devices = self.subject, self.subject.devices
        place = places.where(devices)
        chip = None if place["platform"] == "simulated" else places.chip_of(place["device_kind"])
        return Measured(
            subject.program.name, str(subject.program.mesh), seconds, self.compile_seconds, warm_up + 1, place,
            places.versions(), check, _counts(subject.program, chip), subject.share, subject.names,
            places.memory(places.near(devices)), _peak(subject.program, chip),
        )  # fmt: skip


# ---- what is run ------------------------------------------------------------------------------------------------


def _subject(program: Program, arrays: Any, on: str, share: str | bool, topology: Any, model: Any) -> Subject:
    from mtfcore.arrays import named_arrays
    from mtfcore.device_pool import attached_devices, simulated_devices
    from mtfcore.measuring.chip_state import chip_state
    from mtfcore.platforms import settle

    settle()
    args, kwargs = ((), arrays or {}) if arrays is None or isinstance(arrays, Mapping) else (tuple(arrays), {})
    given = named_arrays(program, args, kwargs, every=arrays is not None)  # refuses 64-bit types too
    if on == "attached" and (state := chip_state()).kind in ("held", "version"):
        state.expect_ready()  # said before JAX starts without the chip
    most = 64 if share == "auto" else max(64, program.mesh.size)  # where JAX has not started: as `mtf.simulate` does
    found = attached_devices() if on == "attached" else simulated_devices(most)
    alone = len(found) < program.mesh.size if share == "auto" else bool(share)
    if alone and (found or on == "simulated"):
        from mtfcore.measuring.share import share_of

        return share_of(program, given or None, places.near(found), topology, model)
    return whole_of(program, given or None, on)


# ---- words and numbers ------------------------------------------------------------------------------------------


def _counts(program: Program, chip: Any) -> dict[str, float]:
    """What one device computes and moves, as planned; HBM bytes where a chip says how much stays beside its units."""
    from mtfcore.costs.pricing.asking import asks
    from mtfcore.costs.pricing.rates import rates

    found = {"flops": program.flops(), "link_bytes": float(program.link_bytes())}
    if chip is not None:
        found["hbm_bytes"] = sum(ask.hbm_bytes * ask.step.times for ask in asks(program, rates(chip)))
    return found


def _peak(program: Program, chip: Any) -> float | None:
    """The published peak for the type that most of the FLOPs are in."""
    by_type: dict[str, int] = {}
    for step in program.walk():
        by_type[step.dtype] = by_type.get(step.dtype, 0) + step.flops * step.times
    if chip is None or not any(by_type.values()):
        return None
    try:
        return chip.peak_flops_per_device(max(by_type, key=by_type.__getitem__))
    except LayoutError:
        return None


def _expect(program: object, on: object, repeats: object, warm_up: object, share: object, check: object) -> None:
    from mtfcore.runs import expect_program

    expect_program(program)
    faults = [] if isinstance(on, str) and on in ON else [f"on is {on!r:.100}; {nearest(on, ON)}"]
    if (as_size(repeats) or MOST + 1) > MOST:
        faults.append(f"repeats is {repeats!r:.100}; a whole number, 1 to {MOST:,}")
    turns = as_whole(warm_up)
    if turns is None or not 0 <= turns <= MOST:
        faults.append(f"warm_up is {warm_up!r:.100}; a whole number, 0 to {MOST:,}")
    if not isinstance(share, bool) and share != "auto":
        faults.append(f"share is {share!r:.100}; expected True, False or 'auto'")
    if not isinstance(check, bool):
        faults.append(f"check is {check!r:.100}; expected True or False")
    refuse(faults, "measure")


def _expect_model(arrays: object, topology: Any, model: object) -> None:
    """What only a share uses is refused without one too, or a slip of the pen would be seen on the chip alone."""
    from mtfcore.costs.pricing.constants import Constants
    from mtfcore.costs.pricing.rates import MODELS
    from mtfcore.topologies import topology as as_topology

    if topology is not None:
        as_topology(topology)
    faults = []
    if not (isinstance(model, Constants) or model in MODELS):
        faults.append(f"no model of time {model!r:.100}; {nearest(model, MODELS)}")
    if arrays is not None and not isinstance(arrays, Iterable):
        faults.append(f"arrays is {arrays!r:.100}; the inputs by name or in order, or None to have them made")
    refuse(faults, "measure")
