"""Where each step of a layer lies under the roofline, in prefill and in decode, and what it waits for.

    from widgets import roofline
    roofline()                                                     # PaLM 540B on 64 TPU v4
    roofline(model="palm-62b", topology="v5e:4x4", batch=256, weights="bf16", prefill="ws1d-heads")

Drag the batch: the products of decode climb the slope of HBM, those of prefill stand at the peak, and attention over
the cache does not move, since each sequence brings its own. What is sent has no place under the roof: see the strip of
time. All of it is modelled, from the planned steps; Run on device puts a whole phase, measured, on the same axes.
Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), sections 2 and 4. Lesson 07 uses it.
"""

from __future__ import annotations

from typing import Any

import mtfcore as mtf
from mtfcore.costs.pricing.cost import Cost
from mtfcore.errors import LayoutError
from widgets.controls import Choice, Control, IntBox
from widgets.explorers import plan_inputs
from widgets.explorers.estimates import Setup
from widgets.explorers.layer_steps import layer_steps, outside_seconds, priced, roof
from widgets.explorers.on_device import OnDevice
from widgets.explorers.plan_finding import possible
from widgets.figures.on_device import device_html, device_row, stamped
from widgets.figures.roofline import Facts, side
from widgets.figures.roofline_svg import roofline_svg, saved_rooflines
from widgets.figures.roofline_words import PHASES, sentence, table
from widgets.frame import Frame, Offer, Refused, Shown
from widgets.state import State
from widgets.views.pick_view import PickView, still_picks

START: State = {
    "model": "palm-540b", "topology": "v4:4x4x4", "batch": 64, "tokens": 2048, "weights": "int8", "cache": "bf16",
    "prefill": "ws2d-heads", "decode": "ws2d-batch", "chosen": "",
}  # fmt: skip
ENDS = {"batch": (1, 4096), "tokens": (1, 1 << 20)}


class Roofline(OnDevice, Frame):
    """The explorer; call `roofline(…)`."""

    question = "What does each step of a layer wait for: computing, HBM, or its links?"
    call = "roofline"
    start = START
    always = ("model", "topology", "batch")
    instead = "the explorer `run` simulates and compiles the same steps"
    phase = "decode"  # which one a device is asked to run

    def make_picture(self) -> PickView:
        view = PickView(label="rooflines of a layer in prefill and decode")
        view.on_pick(self._picked)
        return view

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        options = plan_inputs.choices(*plan_inputs.PARTITIONS)
        return [
            IntBox("batch", state["batch"], "batch", "Request", "sequences at a time", high=ENDS["batch"][1]),
            IntBox("tokens", state["tokens"], "tokens", "Request", "new in prefill, cached in decode",
                   high=ENDS["tokens"][1]),
            *plan_inputs.model_controls(state),
            *plan_inputs.slice_controls(state),
            *plan_inputs.type_controls(state),
            *(Choice(phase, state[phase], phase, "Partition", options=options) for phase in PHASES),
            Choice("phase", self.phase, "phase", "run", "which one Run on device takes",
                   options=plan_inputs.choices(*PHASES)),
        ]  # fmt: skip

    def edit(self, state: State, name: str, value: Any) -> State:
        if name == "phase":
            self.phase = value
            return state
        if name in ("preset", "chip", "slice"):
            state = plan_inputs.edited(state, name, value)
        else:
            state = {**state, name: value}
        return state if name in ("batch", "tokens") else {**state, "chosen": ""}  # another plan has other steps

    def _picked(self, value: str) -> None:
        with self.told():
            self._go({**self.state, "chosen": "" if value == self.state["chosen"] else value}, True)

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, **state: Any) -> Shown:
        plan_inputs.check_words(state)
        plan_inputs.check_sizes(state, ENDS)
        facts = roofline_facts(state)
        for phase in PHASES:
            facts[phase]["device"] = self.device_point(phase, state)
        rows = table(facts)
        for phase in PHASES:
            rows += device_row(facts[phase]["device"], f"{phase}, on a device", len(rows[0]))
        facts["device"], facts["phase"] = facts[self.phase]["device"], self.phase
        facts["device_modelled"] = self.beside(facts["device"])
        return Shown(sentence(facts), facts, rows)

    # On a device --------------------------------------------------------------------------------------------------

    def device_state(self, state: State) -> State:
        return of_phase(state, self.phase)

    def device_program(self, settings: State) -> tuple[mtf.Program, str]:
        """The whole phase, whose layers the chart shows."""
        return priced_of(settings).program, settings["topology"]

    def device_point(self, phase: str, state: State) -> Facts | None:
        """A measured phase on the roofline's axes: planned FLOPs a byte of HBM, FLOPs in the time it took."""
        point = self.device_facts(of_phase(state, phase))
        if point is None or point["params"]["phase"] != phase:
            return None
        cost = priced_of(point["params"])
        flops, hbm = cost.program.flops(), sum(step.step.times * step.ask.hbm_bytes for step in cost.steps)
        return {**point, "intensity": flops / hbm if hbm else 0.0, "rate": flops / point["seconds"]}

    def paint(self, shown: Shown) -> None:
        self.picture.show(_html(shown.facts))

    def still(self, shown: Shown) -> str:
        return still_picks(_html(shown.facts))

    def svg(self) -> str:
        if not self.value:
            return ""
        return stamped(saved_rooflines(self.value), self.value["device"], f"{self.value['phase']} on a device")


def _html(facts: Facts) -> str:
    slots = "".join(f'<div class="mw-slot">{roofline_svg(facts, phase)}</div>' for phase in PHASES)
    strip = device_html(facts["device"], f"{facts['phase'].capitalize()} on a device", facts["device_modelled"])
    return f'<div class="mw-charts">{slots}</div>{strip}'


def of_phase(state: State, phase: str) -> State:
    """What one phase depends on."""
    names = ("model", "topology", "batch", "tokens", "weights", "cache")
    return {"phase": phase, "partition": state[phase], **{name: state[name] for name in names}}


def priced_of(settings: State) -> Cost:
    """The phase of such settings, priced."""
    names = ("topology", "phase", "partition", "batch", "tokens", "weights", "cache")
    return priced(plan_inputs.read_model(settings["model"]), *(settings[name] for name in names))


def roofline_facts(state: State) -> Facts:
    """Both phases' layers on the slice."""
    cfg, topology = plan_inputs.read_model(state["model"]), plan_inputs.read_slice(state["topology"])
    facts: Facts = {"chosen": state["chosen"], "title": topology.chip.title, "topology": str(topology)}
    given = [state[name] for name in ("batch", "tokens", "weights", "cache")]
    for phase in PHASES:
        try:
            cost = priced(cfg, str(topology), phase, state[phase], *given)
        except LayoutError as fault:
            raise Refused(str(fault), ways_out(cfg, state, phase)) from None
        lengths = f"batch {state['batch']:,}, {state['tokens']:,} {'new' if phase == 'prefill' else 'cached'} tokens"
        facts["roof"] = roof(cost, state["weights"])
        facts[phase] = side(phase, layer_steps(cost), facts["roof"], about=f"{lengths}, {state[phase]}",
                            outside=outside_seconds(cost), layers=cfg.layers)  # fmt: skip
    return facts


def ways_out(cfg: mtf.model.Config, state: State, phase: str) -> list[Offer]:
    """Partitions, batches and slices with which this phase can be planned."""
    setup = Setup(cfg, state["topology"], state["batch"], state["tokens"], weights=state["weights"],
                  cache=state["cache"])  # fmt: skip
    given = [state[name] for name in ("batch", "tokens", "weights", "cache")]
    can = [name for name in plan_inputs.PARTITIONS if name != state[phase] and _can(cfg, state, phase, name, given)]
    offers = [Offer(f"{phase} {name}", {phase: name}) for name in can[:2]]
    if (padded := plan_inputs.padded_heads(state["model"])) and _can(
        plan_inputs.read_model(padded), state, phase, state[phase], given
    ):
        offers.append(Offer(f"pad heads: {padded}", {"model": padded}))
    return offers or list(possible(setup))


def _can(cfg: mtf.model.Config, state: State, phase: str, name: str, given: list[Any]) -> bool:
    try:
        priced(cfg, state["topology"], phase, name, *given)
    except LayoutError:
        return False
    return True


def roofline(
    model: str = START["model"], topology: str = START["topology"], batch: int = START["batch"], **settings: Any
) -> Roofline:  # fmt: skip
    """Where each step of a layer of a model lies on a slice's roofline, in prefill and decode.

    Settings: tokens (new in prefill, cached in decode), weights, cache, prefill, decode (partitions), chosen.
    """
    return Roofline(model=model, topology=str(topology), batch=batch, **settings)
