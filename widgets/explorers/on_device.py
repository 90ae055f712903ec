"""The button "Run on device" that explorers share: one program of the settings, on the chip in the room or the class's.

    class Roofline(OnDevice, Frame):
        def device_state(self, state):                  # the settings that decide what is run
            return {name: state[name] for name in ("model", "batch")}
        def device_program(self, settings):             # and the program, with the slice that its links are modelled on
            return mtf.model.plan_phase(...), "v4:4x4x4"
        def draw(self, **state):
            facts["device"] = self.device_facts()       # the measured point, stamped, aged when the settings move on

What was measured is kept as a record, so it stands again on the axes when the notebook is opened tomorrow. Where
nothing is attached, one sentence says so. `measure` and `chips` take another measurer, as tests do; with
MESHWORK_CLASS set, the class's owner is asked, for what `device_case` can put as one of its cases. Next file to read:
`run_jobs`.
"""

from __future__ import annotations

import dataclasses
import re
import uuid
from collections.abc import Generator, Iterable
from threading import Event
from typing import Any, ClassVar

import mtfcore as mtf
from mtfcore.errors import DeviceError
from tpu_runs.asking import Asked, AskingError, Class, RequestRefused, in_words, the_class
from tpu_runs.records import Record
from widgets.controls import Button, Control
from widgets.explorers import plan_inputs, run_jobs
from widgets.explorers.device_line import DeviceLine, differs
from widgets.explorers.history import OF, History, kind_of
from widgets.figures.on_device import point_facts
from widgets.frame import Offer, Progress, Result
from widgets.numbers import origin, quantity
from widgets.queue import Settings
from widgets.state import State

SIMULATES = "on simulated devices, at a small size"
JOB = "job"  # among a job's settings: which button it is of
REPEATS = 5
SHORT = 80  # letters that fit beside the buttons


class NotTaken(DeviceError):
    """The class's owner runs no such thing; with ways out, as `Refused` has."""

    def __init__(self, words: str, offers: Iterable[Offer] = ()) -> None:
        super().__init__(words)
        self.offers = tuple(offers)


class OnDevice(DeviceLine):
    """What explorers inherit; see the module's text."""

    measure: ClassVar[Any] = None  # None: mtfcore.measuring.steps
    chips: ClassVar[Any] = None  # None: mtfcore.measuring.chip_state
    instead: ClassVar[str] = "Run does the same on simulated devices"
    repeats = REPEATS

    def __init__(self, **settings: Any) -> None:
        self.history = History()
        self.last: dict[str, Record] = {}  # of each kind, of this session: shown greyed when the settings move on
        self._job, self.stopping = "", Event()
        self._job_settings: State = {}
        self._class_run: Asked | None = None
        super().__init__(**settings)

    # What an explorer gives -------------------------------------------------------------------------------------

    def device_program(self, settings: State) -> tuple[mtf.Program, str]:
        """The program, and the slice on which links are modelled where only one device's share is run."""
        raise NotImplementedError

    def device_case(self, settings: State) -> tuple[str, State] | None:
        """The same as a case of `tpu_runs`, for the class's owner; None where it is none."""
        return None

    def class_offers(self, settings: State) -> list[Offer]:
        """Ways out where the class's owner takes no such run, or one so large."""
        return []

    # Buttons ----------------------------------------------------------------------------------------------------

    def run_buttons(self) -> list[Control]:
        """Run on device, before Stop."""
        own = super().run_buttons() or [Button("stop", None, "Stop", "run", enabled=self.measuring)]
        hint = "on the TPU or GPU of this computer, or of the class"
        device = Button("device", None, "Run on device", own[-1].group, hint, enabled=not self.measuring)
        hinted = [dataclasses.replace(one, hint=one.hint or SIMULATES) if one.name == "run" else one for one in own]
        return [*hinted[:-1], device, hinted[-1]]

    def press_run(self, name: str) -> bool:
        """Handle this button; a class that is asked hears of Stop at once."""
        if name == "device":
            self.start_job("measured", self.run_on_device)
            return True
        if name == "stop":
            self.stopping.set()
            if self._class_run is not None:
                self._class_run.cancel()
        return super().press_run(name)

    def start_job(self, kind: str, job: Any) -> None:
        """Start a job of these settings, which returns a record; nothing while another is on."""
        if self._true and not self.measuring:  # what is refused has no program; the line says why
            self.queue.start(job, {JOB: kind, **self.device_state(self.state)})

    # Running ----------------------------------------------------------------------------------------------------

    def run_on_device(self, settings: State) -> Generator[Progress, None, Record]:
        """Ask the class where one is named, else the chip of this computer."""
        own = without_job(settings)
        try:
            asking = the_class()
            if asking is not None:
                return (yield from self._ask(asking, own))
        except AskingError as fault:
            offers = self.class_offers(own) if isinstance(fault, RequestRefused) else ()
            raise NotTaken(str(fault), offers) from None
        program, topology = self.device_program(own)
        return (yield from run_jobs.attached(program, own, self.call, topology, self.repeats, type(self).measure,
                                             type(self).chips, self.instead))  # fmt: skip

    def _ask(self, asking: Class, settings: State) -> Generator[Progress, None, Record]:
        found = self.device_case(settings)
        if found is None:
            raise NotTaken("the class's owner takes collectives, and whole steps of a model by its name with no "
                           "more than `layers` and `heads` changed; this is neither. `run` has both",
                           self.class_offers(settings))  # fmt: skip
        yield Progress(0, 1, "asking the class's owner")
        self._class_run = run = asking.start(*found)
        try:
            record = run.wait(progress=lambda told: self._mark(True, in_words(told)))
        finally:
            self._class_run = None
        if record.status in ("failed", "refused"):
            raise DeviceError(f"the class's run ended: {record.reason}")
        facts = {**record.facts, OF: self.call, "name": found[0], "asked": record.id}
        return dataclasses.replace(record, id=uuid.uuid4().hex, params=settings, facts=facts)

    # What comes of it -------------------------------------------------------------------------------------------

    def _begun(self, settings: Settings) -> None:
        self._job, self._job_settings = settings.get(JOB, ""), without_job(settings)
        self.stopping.clear()
        super()._begun(settings)

    def _progress(self, progress: Progress) -> None:
        if self._job:
            self._mark(True, progress.text, progress.done, progress.total)
        else:
            super()._progress(progress)

    def _finished(self, result: Result) -> None:
        if JOB not in result.settings:
            super()._finished(result)
        elif result.stopped or not isinstance(result.value, Record):
            self._ended("stopped", "stopped by hand")
        else:
            self.keep(self._job, result.value)
            self._mark(False, self.job_stamp(self._job, result.value))

    def _failed(self, fault: BaseException) -> None:
        if not self._job:
            super()._failed(fault)
        elif self.stopping.is_set() and isinstance(fault, DeviceError):  # it was stopped, which it says as a fault
            self._ended("stopped", str(fault))
        else:
            expected = isinstance(fault, (DeviceError, mtf.LayoutError))  # no chip, too little memory: nothing ran
            if not expected:
                self._ended("failed", f"{type(fault).__name__}: {fault}"[:300])
            self._mark(False, f"nothing was run: {in_short(fault)}" if expected else "the run failed")
            self.tell(fault)

    def _ended(self, status: str, reason: str) -> None:
        """Keep a run that gave no number, with its reason."""
        origin = "compiled" if self._job == "compiled" else "measured"
        self.keep(self._job, run_jobs.unfinished(self._job_settings, self.call, status, reason, origin))
        self._mark(False, status)

    def keep(self, kind: str, record: Record) -> None:
        """Keep a record, and draw what it changes."""
        self.history.add(record)
        if record.status in ("ok", "refused"):
            self.last[kind_of(record)] = record  # a class may practise on simulated devices
        with self.drawing:
            self._notes = [*self._said, *([self.history.note] if self.history.note else [])]
            self._redraw()
            self.refresh_still()

    def job_stamp(self, kind: str, record: Record) -> str:
        """What has just ended; a time is a device's or is not said."""
        if kind == "measured" and record.simulated:
            return "run on the class's simulated devices, which have no hardware's speed"
        said = {"measured": "", "simulated": "run, and checked", "compiled": "compiled"}  # of a device, `stamp` says it
        return "stopped" if record.status == "stopped" else said[kind]

    def found(self, kind: str, settings: State | None = None) -> tuple[Record | None, str]:
        """The newest record of these settings; else the last of this session, and for which settings it is."""
        state = self.device_state(self.state) if settings is None else settings
        if (record := self.history.newest(self.call, state, kind)) is not None:
            return record, ""
        if (record := self.last.get(kind)) is not None:
            return record, differs(record.params, state)
        return None, ""

    def beside(self, point: dict[str, Any] | None) -> str:
        """What the model says of what a device ran, for a strip; nothing where the settings are others."""
        if point is None or point["old"]:
            return ""
        program, topology = self.device_program(point["params"])
        if not topology:
            return ""
        seconds = mtf.price(program, topology, model="calibrated").seconds
        return f"{origin(quantity(seconds, 's'), 'modelled')} on {topology}"

    def device_facts(self, settings: State | None = None) -> dict[str, Any] | None:
        """The measured point of these settings, or the last one with the settings that it is of."""
        record, old = self.found("measured", settings)
        return point_facts(record, old) if record is not None and record.seconds else None


def in_short(fault: BaseException) -> str:
    """The first part of a sentence, for the line beside the buttons; all of it stands below the picture."""
    first = re.split(r"; | \(|\. |\n", str(fault), maxsplit=1)[0]
    return first if len(first) <= SHORT else f"{first[: SHORT - 1].rstrip()}…"


def slice_of(n_devices: int, chip: str = "v4") -> str:
    """The slice of a chip with so many devices, sides as alike as they come; nothing if there is none."""
    return next((str(one) for one in plan_inputs.slices_of(chip) if one.devices == n_devices), "")


def without_job(settings: Settings) -> State:
    """The settings themselves."""
    return {name: value for name, value in settings.items() if name != JOB}


__all__ = ["JOB", "OnDevice", "differs", "kind_of", "slice_of", "without_job"]
