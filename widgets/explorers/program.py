"""The steps of a function on a mesh, what they send, and what every device holds as they run.

    from widgets import program
    program()                                                     # the first paper's two layers
    program(my_function, mesh="x:2 y:2", layout="B:x F:y", sizes="B:64 E:512 F:2048", search=True)

Walk the steps with the arrow keys; drag a mesh axis and the plan follows; press Run and the same steps run on
simulated devices, and any device's values can be seen before and after each step. What one device computes, holds
and sends is modelled; values are those of the run, which has no times: simulated devices share one computer. "Watch its
traffic" opens `live_traffic` on the same settings.
Ideas: "Mesh-TensorFlow" (arXiv 1811.02084, section 4) and "Efficiently Scaling Transformer Inference" (arXiv
2211.05102, section 3). Lessons 02, 04 and 06 use it. Next file to read: `../figures/program`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import ipywidgets

import mtfcore as mtf
from mtfcore.device_pool import LAUNCH
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError, nearest
from mtfcore.functions import Function
from widgets.closing import close_all
from widgets.controls import Control
from widgets.explorers import program_inputs
from widgets.explorers.examples import EXAMPLES
from widgets.explorers.inputs import example_inputs
from widgets.explorers.live_traffic import Watchable
from widgets.explorers.mesh_controls import moved_axis, moved_size
from widgets.explorers.planned import guard, planned, write_place, write_text
from widgets.explorers.program_inputs import START
from widgets.figures.held import held_facts
from widgets.figures.held_html import held_html
from widgets.figures.program import Facts, compared, program_facts, table, walk, why
from widgets.figures.program_svg import program_svg
from widgets.figures.words import device_words
from widgets.frame import Progress, Result, Shown
from widgets.numbers import count
from widgets.state import State, call_text
from widgets.views.held_view import HeldView
from widgets.views.steps_view import StepsView, still_steps

LOOKING = ("step", "device")  # settings that only say where to look


class ProgramExplorer(Watchable):
    """The explorer; call `program(…)`."""

    question = "Which steps does this function become, and what does each device hold and send?"
    call = "program"
    start = START
    launch_lock = LAUNCH

    def __init__(self, own: Function | None = None, inputs: Mapping[str, Any] | None = None, **settings: Any) -> None:
        self._own, self._inputs, self._given = own, inputs, {**START, **settings}
        self.held: Facts | None = None
        super().__init__(**settings)
        self.children = [*self.children, self.results]  # below the sentence, which stays beside the controls

    def make_picture(self) -> StepsView:
        self.steps, self.values = StepsView(), HeldView()
        self.steps.observe(lambda change: self.look("step", change.new), "step")
        self.values.observe(lambda change: self.look("device", change.new), "device")
        self.steps.observe(self._show_source, ["unfolded", "drawing"])
        self.results = ipywidgets.VBox([self.values])  # a box of its own: greyed when the controls have moved on
        return self.steps

    def pressed(self, name: str) -> None:
        settings = self.run_settings()
        call = self.function(settings.pop("fn"))
        self.toggle_watching(call, self._inputs if call is self._own else None, settings)

    def close(self) -> None:
        close_all(self.values, self.results)
        super().close()

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        return [*program_inputs.controls(state, self._owned()), self.watch_button()]

    def edit(self, state: State, name: str, value: Any) -> State:
        what, _, which = name.partition(".")
        if what == "axis":
            return {**state, "mesh": moved_axis(state["mesh"], which, value)}
        if what == "size":
            return {**state, "sizes": moved_size(state["sizes"], which, value)}
        if what == "search":
            return {**state, "search": value == "search"}
        if what == "fn":
            own = {key: self._given[key] for key in ("mesh", "layout", "sizes", "place")}
            chosen = own if value in self._owned() else EXAMPLES[value].settings
            return {**state, **chosen, "fn": value, "step": 0, "device": 0}
        return {**state, name: value}

    def _owned(self) -> dict[str, Function]:
        return {self._own.__name__: self._own} if self._own is not None else {}

    def function(self, name: str) -> Function:
        """A function of the menu."""
        known = {name: each.fn for name, each in EXAMPLES.items()} | self._owned()
        if name not in known:
            raise LayoutError(f"no function {name!r}; {nearest(name, known)}")
        return known[name]

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, fn: str, step: int, device: int, search: bool, dtype: str, **texts: str) -> Shown:
        call, dtype = self.function(fn), canonical(dtype)
        program, notes = planned(call, **texts, dtype=dtype, search=search)
        other, _ = planned(call, **texts, dtype=dtype, search=not search)
        facts = compared(program_facts(program), program_facts(other), search)
        at = min(max(step, 0), max(len(facts["steps"]) - 1, 0))
        sentence = why(facts["steps"], at) if facts["steps"] else f"{fn} has no steps: it returns what it was given."
        return Shown(sentence, {**facts, "step": at, "device": device}, table(facts), notes)

    def paint(self, shown: Shown) -> None:
        with self.following():
            self.steps.show(shown.facts, shown.facts["step"])
        self._show_held()

    def still(self, shown: Shown) -> str:
        return still_steps(shown.facts)

    def svg(self) -> str:
        return program_svg(self.value)

    def call_code(self) -> str:
        example = EXAMPLES.get(self.state["fn"])
        usual = {"place": example.settings["place"] if example else "", **dict.fromkeys(("search", *LOOKING), 0)}
        shown = {name: value for name, value in self.state.items() if name not in usual or value != usual[name]}
        text = call_text(self.call, shown)
        if self.state["fn"] in self._owned():  # the reader's own function is an object of theirs, not a name of ours
            text = text.replace(f"fn={self.state['fn']!r}", f"fn={self.state['fn']}")
        return text

    def _show_source(self, change: Any = None) -> None:
        """The same program in plain JAX, made only for an open fold."""
        if self.steps.unfolded and self.value:
            with self.told():
                s = self.run_settings()
                program, _ = planned(self.function(s.pop("fn")), **{**s, "dtype": canonical(s["dtype"])})
                self.steps.source = program.source()

    # Running ----------------------------------------------------------------------------------------------------

    def run_settings(self) -> State:
        return {name: value for name, value in self.state.items() if name not in LOOKING}

    def run(self, settings: State) -> Generator[Progress, None, Any]:
        """Run the shown steps on simulated devices, keeping every value; one launch after the other."""
        texts = {name: value for name, value in settings.items() if name != "fn"}
        call = self.function(settings["fn"])
        program, _ = planned(call, **{**texts, "dtype": canonical(texts["dtype"])})
        guard(program, texts, call)
        yield Progress(0, 3, f"starting {count(program.mesh.size, 'simulated device')}")
        run = mtf.simulate(program)
        yield Progress(1, 3, "compiling and running the steps")
        run(**self._arrays(program))
        yield Progress(2, 3, "running them again, keeping every value")
        if program.steps:
            run.values(0)
        return run

    def _arrays(self, program: mtf.Program) -> Mapping[str, Any]:
        """The reader's arrays for the reader's function, else arrays that tell devices apart."""
        if self._inputs is not None and program.name in self._owned():
            return self._inputs
        return example_inputs(program)

    def show_result(self, result: Result) -> None:
        with self.drawing:
            self._show_held()

    def result_part(self) -> ipywidgets.VBox:
        return self.results

    def age_result(self) -> None:
        super().age_result()
        self.steps.ran = self.result is not None and not self.stale and not self.result.stopped

    def _stamp(self, result: Result) -> str:
        """What the values belong to; never how long it took, which says nothing about hardware."""
        if self.stale:
            return super()._stamp(result)
        return "stopped: no values" if result.stopped else "all steps have run"

    def _show_held(self) -> None:
        """Values of the last run at the chosen step and device, or what to do to see some."""
        run = None if self.result is None or self.result.stopped else self.result.value
        facts = self._shown.facts if self._shown else {}
        if run is None or not run.program.steps:
            self.held = None
            self.values.show("", [], 0, "Press Run to see what each device holds before and after each step.")
            return
        mesh, paths = run.program.mesh, [path for path, *_ in walk(run.program)]
        device = min(max(facts["device"], 0), mesh.size - 1)
        self.held = held_facts(run, paths[min(facts["step"], len(paths) - 1)], device)
        names = [device_words(mesh.coordinates(each), each) for each in range(mesh.size)]
        what = f"{run.program.name} on {count(mesh.size, 'simulated device')}"
        about = f"Values of this run, {what}, step {self.held['step'] + 1}: {self.held['label']}"
        with self.following():
            self.values.show(held_html(self.held), names, device, about)


def program(
    fn: Function | str | None = None,
    mesh: object = None,
    layout: object = None,
    sizes: object = None,
    place: Mapping[str, object] | str | None = None,
    dtype: object = "f32",
    search: bool = False,
    inputs: Mapping[str, Any] | None = None,
    step: int = 0,
    device: int = 0,
) -> ProgramExplorer:
    """Walk through the steps of a named function: one of your own, or one of ours by name (the first: two_layers).

    What is left out is as in that example; for a function of your own, as for two_layers, so give its sizes.
    `inputs` are whole arrays by name for the run; without them it makes some that tell devices apart.
    """
    own = fn if isinstance(fn, Function) else None
    name = own.__name__ if own is not None else str(fn or START["fn"])
    settings = dict((EXAMPLES.get(name) or EXAMPLES[START["fn"]]).settings)
    if own is not None:
        settings = {**EXAMPLES[START["fn"]].settings, "place": ""}
    given = {"mesh": mesh, "layout": layout, "sizes": sizes}
    settings |= {key: write_text(value) for key, value in given.items() if value is not None}
    settings |= {"place": write_place(place)} if place is not None else {}
    more = {"dtype": canonical(dtype), "search": search, "step": step, "device": device}
    return ProgramExplorer(own, inputs, fn=name, **settings, **more)
