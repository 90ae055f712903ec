"""Which feedforward layout moves least at this batch, where everything lies, and the same layer run.

    from widgets import feedforward
    feedforward()                                            # a layer of PaLM 540B, 512 tokens, 64 devices
    feedforward("palm-62b", batch=64, length=2048, x=2, y=4, z=4, weights="int8", layout="wg_xy")

Drag the batch: weight-stationary layouts move more and more activations, weight-gathered ones hardly more, and the
winner changes. Drag x, y, z: E is cut by x and F by y and z. Run performs the chosen layout's own steps on simulated
devices, at a small size, and lays the answer beside one device's. Source: "Efficiently Scaling Transformer Inference"
(arXiv 2211.05102), section 3.2 and Figures 2, 3, 6 and 7. Lesson 08 uses it. Next file to read: `feedforward_run`.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import ipywidgets

import mtfcore as mtf
from widgets.closing import close_all
from widgets.controls import Button, Control
from widgets.explorers import feedforward_inputs as inputs
from widgets.explorers.feedforward_figures import known, work_out
from widgets.explorers.feedforward_inputs import START, layer_of, mesh_of, mesh_text
from widgets.explorers.feedforward_lies import lying, totals_html
from widgets.explorers.feedforward_live import LayerRun
from widgets.explorers.feedforward_program import LayerProgram
from widgets.explorers.feedforward_run import Ran, small_layer
from widgets.explorers.on_device import OnDevice, slice_of
from widgets.figures.feedforward import layer_facts, program_of, reason
from widgets.figures.feedforward_published import figure_facts, figure_sentence, figure_svg, figure_table
from widgets.figures.feedforward_svg import feedforward_html, saved_feedforward
from widgets.figures.feedforward_words import sentence, table
from widgets.figures.on_device import device_html, device_row, stamped
from widgets.figures.program import program_facts
from widgets.figures.program_html import steps_html
from widgets.figures.slices import mesh_facts
from widgets.frame import Frame, Progress, Result, Shown
from widgets.queue import RunQueue
from widgets.state import State
from widgets.views.pick_view import PickView, still_picks
from widgets.views.slices_view import SlicesView
from widgets.views.steps_view import StepsView

MOST_LIVE = 64  # devices; slices of more are drawn when the hand lets go
ON_A_DEVICE = "One layer on a device"
LOOKING = ("step", "counted", "chart")  # settings that a run does not depend on


class FeedforwardExplorer(OnDevice, Frame):
    """The explorer; call `feedforward(…)`."""

    question = "Which feedforward layout moves least at this batch?"
    call = "feedforward"
    start = START
    always = ("batch", "length", "x", "y", "z")
    opened: LayerProgram | None = None

    def __init__(self, **settings: Any) -> None:
        self.ran: tuple[State, Ran] | None = None  # the last run, and the settings that it is of
        self.asking = RunQueue(self._told_more, on_error=self.tell)  # for figures 6 and 7
        super().__init__(**settings)
        self.children = [*self.children, self.small.part, self.below]  # under the sentence, which stays at the controls

    def make_picture(self) -> PickView:
        view = PickView(label="bytes of every layout against tokens, and what moves at this batch")
        view.on_pick(self._picked)
        self.slices, self.steps, self.small = SlicesView(), StepsView(), LayerRun()
        self.steps.observe(lambda change: self.look("step", change.new), "step")
        self.sliced = ipywidgets.VBox([self.slices])  # an anywidget alone does not take on a class
        self.below = ipywidgets.VBox([self.sliced, self.steps])
        return view

    def close(self) -> None:
        self.asking.stop()
        self.small.close()
        close_all(self.slices, self.sliced, self.steps, self.below)
        if self.opened is not None:
            self.opened.close()
        super().close()

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        verb = "Hide" if self.opened else "Show"
        return [*inputs.controls(state), Button("program", None, f"{verb} its program below", "run")]

    def edit(self, state: State, name: str, value: Any) -> State:
        if name == "model":
            return inputs.with_sizes_of(state, value)
        return {**state, name: value}

    def _picked(self, value: str) -> None:
        what, _, which = value.partition(":")
        with self.told():
            if what == "layout":
                self._go({**self.state, "layout": "best" if which == self.state["layout"] else which}, True)

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, **state: Any) -> Shown:
        inputs.check(state)
        layer, mesh = layer_of(state), mesh_of(state)
        facts = layer_facts(layer, mesh, state["layout"])
        if not facts["chosen"]:
            inputs.refuse_all(layer, mesh)
        asked = state["layout"]
        is_other = asked not in ("best", facts["chosen"])
        notes = (f"{asked} {reason(asked, layer, mesh)}, so the best is shown",) if is_other else ()
        facts["program"] = program_facts(program_of(facts["chosen"], layer, mesh))
        said, rows = sentence(facts), table(facts)
        if (figure := state["chart"]) != "layer":
            facts["figure"] = figure_facts(figure, known(figure))
            said, rows = f"{figure_sentence(facts['figure'])} {said}", [*figure_table(facts["figure"]), *rows]
        if self.ran is not None and self.ran[0] == self.run_settings():
            said = f"{self.ran[1].sentence}\n{said}"
        facts["device"] = self.device_facts()
        facts["device_modelled"] = self.beside(facts["device"])
        rows = [*rows, *device_row(facts["device"], "one layer, on a device", len(rows[-1]))]
        return Shown(said, facts, rows, notes, tuple(inputs.ways_to(facts, layer, mesh)))

    def paint(self, shown: Shown) -> None:
        facts, state = shown.facts, self.state
        self.picture.show(_html(facts))
        if state["chart"] != "layer" and len(known(state["chart"])) < len(facts["figure"]["points"]):
            self.asking.latest(lambda settings: work_out(settings["chart"]), state)
        if facts["devices"] <= MOST_LIVE or not self.slices.drawing["panels"]:
            self._show_slices()
        else:
            self.sliced.add_class("mw-stale")  # they are of earlier settings until the hand lets go
        rows = facts["program"]["steps"]
        at = min(max(state["step"], 0), max(len(rows) - 1, 0))
        with self.following(), self.steps.hold_sync():
            self.steps.drawing = {
                "steps": steps_html({**facts["program"], "apart": []}), "totals": totals_html(facts["program"], at),
                "count": len(rows),
            }  # fmt: skip
            self.steps.step = at

    def _show_slices(self) -> None:
        self.sliced.remove_class("mw-stale")
        chosen, mesh = self.value["chosen"], mesh_of(self.state)
        self.slices.show(mesh_facts(mtf.Mesh(mesh_text(mesh))), lying(chosen, layer_of(self.state), mesh))

    def settle(self) -> None:
        super().settle()
        if self.kind == "ok" and self.value["devices"] > MOST_LIVE:
            self._show_slices()

    def still(self, shown: Shown) -> str:
        return still_picks(_html(shown.facts))

    def svg(self) -> str:
        if not self.value:
            return ""
        return stamped(saved_feedforward(self.value, _chart(self.value)), self.value["device"], ON_A_DEVICE)

    def _told_more(self, progress: Progress) -> None:
        """One more point of a figure is known."""
        with self.drawing:
            self._notes = list(self._said)
            self._redraw()
            self.refresh_still()

    def pictures(self) -> tuple[ipywidgets.VBox, ...]:
        return (self.stage, self.below)

    # The same layer in `program` --------------------------------------------------------------------------------

    def pressed(self, name: str) -> None:
        """Open the chosen layout's program, which has its own controls, or close it."""
        if self.opened is None and not self._true:
            return  # what is refused has no program; the line says why
        if self.opened is None:
            self.opened = LayerProgram(self.value["chosen"], layer_of(self.state), mesh_of(self.state))
            self.children = [*self.children, self.opened]
        else:
            self.children = [part for part in self.children if part is not self.opened]
            self.opened.close()
            self.opened = None
        self._show_controls()

    # Running ----------------------------------------------------------------------------------------------------

    def run_settings(self) -> State:
        return {name: value for name, value in self.state.items() if name not in LOOKING}

    def run(self, settings: State) -> Generator[Progress, None, Ran]:
        """The chosen layout's steps on simulated devices, its traffic as it happens, its answer checked."""
        layer, mesh = layer_of({**START, **settings}), mesh_of(settings)
        inputs.check({**START, **settings})
        chosen = layer_facts(layer, mesh, settings["layout"])["chosen"]
        if not chosen:
            inputs.refuse_all(layer, mesh)
        ran = yield from self.small.steps(small_layer(chosen, layer, mesh), self.drawing)
        self.ran = (settings, ran)
        return ran

    def device_program(self, settings: State) -> tuple[mtf.Program, str]:
        """The chosen layout's layer at its full size."""
        state = {**START, **settings}
        layer, mesh = layer_of(state), mesh_of(state)
        chosen = layer_facts(layer, mesh, state["layout"])["chosen"]
        return program_of(chosen, layer, mesh), slice_of(math.prod(mesh))

    def show_result(self, result: Result) -> None:
        with self.drawing:
            self._redraw()
            self.refresh_still()

    def result_part(self) -> ipywidgets.VBox:
        return self.small.part

    def _stamp(self, result: Result) -> str:
        """Never how long it took, which says nothing about hardware."""
        if self.stale:
            return super()._stamp(result)
        return "stopped" if result.stopped else "run, and checked against one device"


def _chart(facts: Any) -> str:
    """A figure of the paper instead of the lines; nothing where it is the lines."""
    return figure_svg(facts["figure"]) if "figure" in facts else ""


def _html(facts: Any) -> str:
    strip = device_html(facts["device"], ON_A_DEVICE, facts["device_modelled"])
    return f"{feedforward_html(facts, _chart(facts))}{strip}"


def feedforward(model: str = "", **settings: Any) -> FeedforwardExplorer:
    """Compare the five layouts of a feedforward layer: what they move, where it lies, and run one.

    Settings: d_model and d_ff (or a model's), batch (sequences), length (new tokens of each; 1 is a decode step), x, y,
    z, layout ("best" or one of the five), gated ("yes" or "no"), weights ("bf16" or "int8"), counted ("sent", or
    "paper", which lets (K-1)/K be 1), chart ("layer", "Figure 6", "Figure 7"), step (of the list).
    """
    return FeedforwardExplorer(**{**(inputs.sizes_of_model(model) if model else {}), **settings})
