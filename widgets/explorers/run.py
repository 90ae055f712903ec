"""One program modelled, compiled, measured and published, side by side with errors, and what ran before.

    from widgets import run
    run()                                                    # a decode step of PaLM 540B on 64 TPU v4
    run(prog, "v5e:4x4")                                     # your own program
    run("prefill", "v4:4x4x4", batch=1, tokens=2048, partition="ws2d-heads")
    run("collective", "v4:2x2x1", mesh="x:4", kind="all_reduce", axes="x", n_bytes=1 << 20)

Simulate checks the answer and counts what is sent, and says nothing of speed. Compile asks the compiler for a slice
that nobody here owns. Run on device takes the chip in the room, or one device's share where there are fewer. Every run
is kept on this computer with its provenance, and stands here again when the notebook is opened tomorrow. Sources: the
rows of arXiv 2211.05102, as `mtfcore.reference` has them. Next file to read: `run_inputs`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, ClassVar

import ipywidgets

import mtfcore as mtf
from tpu_runs.records import Record
from widgets.closing import close_all
from widgets.controls import Button, Control
from widgets.explorers import run_inputs, run_jobs, run_published
from widgets.explorers.on_device import OnDevice, differs, without_job
from widgets.explorers.run_columns import columns
from widgets.explorers.run_inputs import MODELS, START, WORDS, asked
from widgets.explorers.run_program import program_of, small
from widgets.explorers.run_records import case_of, heads, listed, notes_of, recorded
from widgets.figures.run_html import run_html, run_svg, side_by_side
from widgets.figures.run_words import sentence, table
from widgets.frame import Frame, Offer, Progress, Refused, Shown
from widgets.state import State, call_text
from widgets.views.pick_view import PickView, still_picks

KINDS = ("compiled", "measured", "simulated")


class RunExplorer(OnDevice, Frame):
    """The explorer; call `run(…)`."""

    question = "What is modelled, compiled, measured and published of one program, and how far apart are they?"
    call = "run"
    start = START
    instead = "Simulate runs the same steps on simulated devices"
    compiler: ClassVar[Any] = None  # None: mtf.compile

    def __init__(self, own: mtf.Program | None = None, **settings: Any) -> None:
        self.own = own
        super().__init__(**settings)
        self.children = [*self.children, self.below]  # under the sentence, which stays near the controls

    def make_picture(self) -> PickView:
        self.side = PickView(label="every number by its origin, with errors")
        self.below = ipywidgets.VBox([self.side])
        view = PickView(label="seconds, bytes and memory by origin, and the history of runs")
        view.on_pick(self._picked)
        return view

    def close(self) -> None:
        close_all(self.side, self.below)
        super().close()

    # Controls ---------------------------------------------------------------------------------------------------

    @property
    def own_name(self) -> str:
        """What the menu calls the program that was given."""
        return "" if self.own is None else f"{self.own.name} (yours)"

    def controls(self, state: State) -> list[Control]:
        return run_inputs.controls(state, self.own_name)

    def edit(self, state: State, name: str, value: Any) -> State:
        return run_inputs.edited(state, name, value)

    def run_buttons(self) -> list[Control]:
        device, stop = super().run_buttons()[-2:]
        names = {"simulate": ("Simulate", "values and bytes, no speed"), "compile": ("Compile", "for the slice above")}
        own = [
            Button(name, None, label, "run", hint, enabled=not self.measuring) for name, (label, hint) in names.items()
        ]
        return [*own, device, stop]

    def press_run(self, name: str) -> bool:
        jobs = {"simulate": ("simulated", self.simulate), "compile": ("compiled", self.compile)}
        if name in jobs:
            self.start_job(*jobs[name])
            return True
        return super().press_run(name)

    def _picked(self, value: str) -> None:
        """A run of the history: its settings, so that its numbers stand in the columns again."""
        found = next((one for one in self.history.listed(self.call) if f"record:{one.id}" == value), None)
        if found is not None:
            with self.told():
                names = self.start.keys()
                self._go({**self.state, **{key: each for key, each in found.params.items() if key in names}}, True)

    # Picture ----------------------------------------------------------------------------------------------------

    def program(self, state: State) -> mtf.Program:
        """What these settings name."""
        return self.own if self.own is not None and state["what"] == self.own_name else program_of(state)

    def draw(self, **state: Any) -> Shown:
        run_inputs.check(state, self.own_name)
        own = self.own if state["what"] == self.own_name else None
        mesh = mtf.Mesh(state["mesh"]) if own is None else own.mesh
        run_inputs.check_mesh(mesh, state["topology"], state, own is not None)
        program = self.program(state)
        found = {kind: (record, said) for kind in KINDS for record, said in [self.found(kind)] if record is not None}
        if "compiled" not in found and (kept := recorded(state)) is not None:
            found["compiled"] = (kept, "")
        records = {kind: record for kind, (record, _) in found.items()}
        old = {kind: said for kind, (_, said) in found.items() if said}
        if "simulated" in old:  # it has no time to keep in sight
            del old["simulated"], records["simulated"]
        facts = columns(state, program, state["topology"], records, old)
        facts |= notes_of({kind: each for kind, each in records.items() if kind not in old}, program)
        facts |= {
            "old": old, "title": self.title(state), "device": self.device_facts(),
            "history": listed(self.history, self.start), "missing": self.missing(state),
            "heads": heads(records, run_published.row_of(state), facts["constants"]),
        }  # fmt: skip
        return Shown(sentence(facts), facts, table(facts), offers=tuple(self.ways_on(state)))

    def title(self, state: State) -> str:
        """One launch of what."""
        words = WORDS.get(state["what"], f"one launch of {state['what']}")
        words = words if state["what"] not in MODELS else f"{words} of {state['model']}"
        return f"{words[:1].upper()}{words[1:]}"

    def missing(self, state: State) -> dict[str, str]:
        """Why a column is empty, where that is known beforehand."""
        kind = mtf.topology(state["topology"]).chip.kind
        return {"compiled": "only slices of TPUs are compiled here"} if kind != "TPU" else {}

    def ways_on(self, state: State) -> Iterator[Offer]:
        """A size that simulated devices can hold, where this one is too large."""
        if run_jobs.too_large(self.program(state)):
            yield from self.smaller(state)

    def smaller(self, state: State) -> Iterator[Offer]:
        """The same kind at a size that a computer can play, unless this is it already."""
        fewer = small(state)
        if any(state[name] != value for name, value in fewer.items()):
            yield Offer("a size to simulate", fewer)

    def paint(self, shown: Shown) -> None:
        self.picture.show(run_html(shown.facts))
        self.side.show(side_by_side(shown.facts))

    def pictures(self) -> tuple[ipywidgets.VBox, ...]:
        return (self.stage, self.below)

    def still(self, shown: Shown) -> str:
        parts = f"{run_html(shown.facts)}{side_by_side(shown.facts)}"
        return still_picks(parts)

    def svg(self) -> str:
        return run_svg(self.value) if self.value else ""

    def call_code(self) -> str:
        named = run_inputs.names_of(self.state)
        shown = {
            name: self.state[name] for name in named if name in ("what", "topology") or self.state[name] != START[name]
        }
        text = call_text(self.call, shown)
        if self.own is not None and self.state["what"] == self.own_name:  # an object of the reader's
            return text.replace(f"what={self.own_name!r}", "prog")
        return text

    # Running ----------------------------------------------------------------------------------------------------

    def run_settings(self) -> State:
        return asked(self.state)

    def device_state(self, state: State) -> State:
        if self.own is not None and state["what"] == self.own_name:
            return {**asked(state), "program": fingerprint(self.own)}
        return asked(state)

    def device_program(self, settings: State) -> tuple[mtf.Program, str]:
        return self.program(settings), settings["topology"]

    def device_case(self, settings: State) -> tuple[str, State] | None:
        return case_of(settings)

    def class_offers(self, settings: State) -> list[Offer]:
        state = {**self.state, **self._known(settings)}
        return [offer for offer in self.smaller(state) if self.device_case({**state, **offer.settings})]

    def simulate(self, settings: State) -> Iterator[Progress]:
        """On this computer: the answer checked, what is sent counted."""
        own = without_job(settings)
        program = self.program(own)
        if words := run_jobs.too_large(program):
            raise Refused(words, list(self.ways_on({**self.state, **self._known(own)})))
        return run_jobs.simulated(program, own, self.call, 3, type(self).measure)

    def compile(self, settings: State) -> Iterator[Progress]:
        """For a slice that is not here."""
        own = without_job(settings)
        program, topology = self.device_program(own)
        return run_jobs.compiled(program, own, self.call, topology, self.stopping, self._waits, type(self).compiler)

    def _waits(self, words: str) -> None:
        """Other compilers are at work on this computer."""
        self._mark(True, words or f"compiling for {self.state['topology']}")

    def _known(self, settings: State) -> State:
        return {name: value for name, value in settings.items() if name in self.start}

    @property
    def records(self) -> list[Record]:
        """What ran and was compiled here, the newest first."""
        return self.history.listed(self.call)


def fingerprint(program: mtf.Program) -> str:
    """Steps, shapes and places of a program in a few letters: the same steps have the same."""
    return hashlib.sha256(f"{program.mesh} {program.table()}".encode()).hexdigest()[:12]


def run(what: mtf.Program | str = START["what"], topology: object = START["topology"], **settings: Any) -> RunExplorer:
    """Model, simulate, compile and run a program: one of yours, or by name a whole step, a layer or a collective.

    Names: "decode", "prefill", "decode layer", "prefill layer", "feedforward", "attention" with model, partition,
    batch, tokens, weights, cache; "two_layers" with sizes, layout, dtype; "collective" with kind, axes, n_bytes. All
    take mesh; without one, that of the slice.
    """
    own = what if isinstance(what, mtf.Program) else None
    name = what if own is None else f"{own.name} (yours)"
    state = {"what": name, "topology": str(topology), **settings}
    if own is None and "mesh" not in settings:
        state["mesh"] = run_inputs.mesh_for({**START, **state})
    return RunExplorer(own, **state)


__all__ = ["RunExplorer", "differs", "fingerprint", "run"]
