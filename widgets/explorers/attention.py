"""Who holds which part of the key-value cache, by heads or by batch, and what is copied.

    from widgets import attention
    attention()                                                    # PaLM 540B by heads: 64 copies of one head
    attention("palm-540b heads=64", by="batch", batch=512, context=8192)
    attention("llama-3.1-70b", mesh="x:2 y:8 z:1", batch=32, context=8192, chip="v5e")

Point at a device or a block to see who else holds it; drag batch, heads or an axis and the copies follow. Memory,
longest contexts and steps are modelled; Table 1 and Figure 8 stand beside them as published. Run checks the same steps
at a small size against the oracle, then shows their traffic, counted as it happens. Source: "Efficiently Scaling
Transformer Inference" (arXiv 2211.05102), sections 3.3 and 4.2. Lesson 09 uses it. Next file to read:
`attention_inputs`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import ipywidgets

import mtfcore as mtf
from widgets.closing import close_all
from widgets.controls import Choice, Control
from widgets.explorers import attention_inputs, attention_times, plan_inputs
from widgets.explorers.attention_facts import Facts, attention_facts
from widgets.explorers.attention_inputs import START
from widgets.explorers.attention_published import published_here, settings_of, table_1
from widgets.explorers.attention_run import Ran, run_attention
from widgets.explorers.growing import Growing
from widgets.explorers.on_device import JOB, OnDevice
from widgets.explorers.watching import PACE_HINT, PACES, SLOW_SECONDS
from widgets.figures.attention_html import attention_file, attention_html
from widgets.figures.attention_words import sentence, table
from widgets.figures.live_traffic import live_facts, pair_words, run_words
from widgets.figures.on_device import device_row
from widgets.figures.slices_svg import STYLE as SLICES_STYLE
from widgets.frame import Offer, Progress, Result, Shown
from widgets.numbers import origin, tagged_html
from widgets.state import State
from widgets.views.live_view import LiveView
from widgets.views.pick_view import STYLE, PickView
from widgets.views.slices_view import SlicesView, still_panels

OF_THE_RUN = ("model", "mesh", "batch", "by")  # settings that change what runs
OF_A_STEP = (*OF_THE_RUN, "context", "chip", "weights", "cache")  # and what a device runs, a decode step


class Attention(OnDevice, Growing):
    """The explorer; call `attention(…)`."""

    question = "Who holds which part of the cache, and what is copied?"
    call = "attention"
    start = START
    always = ("model", "mesh", "batch", "context", "by")
    pace = "slow"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.children = [*self.children, self.results, self.below]  # sentence and traffic stay near the controls

    def make_picture(self) -> SlicesView:
        self.charts, self.live = PickView(label="memory, steps, contexts and times by heads and by batch"), LiveView()
        self.charts.on_pick(self._picked)
        self.live.observe(self._point, "pair")
        self.live.layout.display = "none"
        self.below, self.results = ipywidgets.VBox([self.charts]), ipywidgets.VBox([self.live])
        return SlicesView()

    def close(self) -> None:
        close_all(self.charts, self.live, self.below, self.results)
        super().close()

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        pace = Choice("pace", self.pace, "pace", "run", PACE_HINT, options=PACES)
        return [*attention_inputs.controls(state), pace]

    def edit(self, state: State, name: str, value: Any) -> State:
        if name == "pace":
            self.pace = value
            return state
        return attention_inputs.edited(state, name, value)

    def _picked(self, value: str) -> None:
        """A bar or line chooses the way; a row of Table 1 loads its settings."""
        what, _, which = value.partition(":")
        with self.told():
            self._go(settings_of(int(which)) if what == "table" else {**self.state, what: which}, True)

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, **state: Any) -> Shown:
        cfg, notes, mesh = attention_inputs.check(state)
        facts = attention_facts(state, cfg, mesh)
        facts |= {"times": attention_times.times(state, cfg), "table_1": table_1(), "published": published_here(state),
                  "device": self.device_facts()}  # fmt: skip
        rows = [*table(facts), *device_row(facts["device"], "decode step, on a device", 3)]
        return Shown(sentence(facts), facts, rows, notes, tuple(ways_on(facts)))

    def paint(self, shown: Shown) -> None:
        self.picture.show(shown.facts["holds"]["mesh"], shown.facts["holds"]["tensors"])
        self.charts.show(attention_html(shown.facts))

    def pictures(self) -> tuple[ipywidgets.VBox, ...]:
        return (self.stage, self.below)

    def still(self, shown: Shown) -> str:
        held = shown.facts["holds"]
        charts = f'<div class="mw-picks">{attention_html(shown.facts)}</div>'
        return f"<style>{SLICES_STYLE}{STYLE}</style>{still_panels(held['mesh'], held['tensors'])}{charts}"

    def svg(self) -> str:
        return attention_file(self.value) if self.value else ""

    # Times, which take longer -----------------------------------------------------------------------------------

    def refine(self, settings: State) -> Iterator[Progress]:
        """Plan and price steps at other contexts until the settings change."""
        jobs = attention_times.missing(settings, plan_inputs.read_model(settings["model"]))
        for n, job in enumerate(jobs, 1):
            if settings != self.state:  # a hand has moved on; the newest request waits
                return
            attention_times.step_ms(*job)
            yield Progress(n, len(jobs), f"looking at {self.what()}")

    def show_progress(self, progress: Progress) -> None:
        if isinstance(progress.value, Ran):
            self._show_ran(progress.value)

    def what(self) -> str:
        return "times at other contexts"

    # Running ----------------------------------------------------------------------------------------------------

    def run_settings(self) -> State:
        return {name: self.state[name] for name in OF_THE_RUN}

    def run(self, settings: State) -> Iterator[Progress]:
        """The attention of these settings at a small size: the oracle first, then traffic as it happens."""
        cfg, _, mesh = attention_inputs.check({**self.state, **settings})
        return run_attention(cfg, str(mesh), settings["batch"], settings["by"], self._pause)

    def _pause(self, program: mtf.Program) -> float:
        return min(0.4, SLOW_SECONDS / max(len(program.collectives()), 1)) if self.pace == "slow" else 0.0

    def _finished(self, result: Result) -> None:
        """A run is kept with its settings; what was looked at is only drawn."""
        if isinstance(result.value, Ran) or JOB in result.settings or result.settings.keys() == set(OF_THE_RUN):
            super()._finished(result)
            return
        self.redraw()
        self._mark(False, f"looked at {self.what()}")
        self.age_result()

    def device_state(self, state: State) -> State:
        return {name: state[name] for name in OF_A_STEP}

    def device_program(self, settings: State) -> tuple[mtf.Program, str]:
        """The decode step that the chart of times shows, at its full size."""
        return attention_times.step_program(settings)

    def show_result(self, result: Result) -> None:
        if isinstance(result.value, Ran):
            self._show_ran(dataclasses.replace(result.value, state="stopped") if result.stopped else result.value)

    def result_part(self) -> ipywidgets.VBox:
        return self.results

    def _stamp(self, result: Result) -> str:
        """What was run; never how long it took, which says nothing about hardware."""
        if self.stale:
            old = ", ".join(f"{key} {value}" for key, value in result.settings.items() if self.state[key] != value)
            return f"the traffic below is for {old}"
        if result.stopped or not isinstance(result.value, Ran):
            return "stopped"
        return f"{result.value.tally.n_events:,} events, all of this run"

    def _show_ran(self, ran: Ran) -> None:
        with self.drawing:
            self.ran = ran
            facts = live_facts(ran.program, ran.tally)
            checked = origin(f"{ran.difference:.0e}", "measured")
            about = (
                f"{run_words(facts, ran.state)} Checked first: at most {checked} of the largest value off the oracle."
                f" {small_words(ran.program)}"
            )
            self.live.layout.display = None
            self.live.show(facts, tagged_html(about), self._pointed(facts))

    ran: Ran | None = None

    def _pointed(self, facts: Facts) -> str:
        pair = self.live.pair
        inside = len(pair) == 2 and max(pair) < facts["n_devices"]
        return tagged_html(pair_words(facts, *pair)) if inside else "Point at a cell to read it."

    def _point(self, change: Any) -> None:
        with self.told():
            if self.ran is not None:
                self.live.pointed = self._pointed(live_facts(self.ran.program, self.ran.tally))


def small_words(program: mtf.Program) -> str:
    """What was shortened."""
    sizes = {dim.name: dim.size for port in program.inputs for dim in port.sharding.dims}
    return f"Small size: B {sizes['B']}, S {sizes['S']}, D {sizes['D']}, E {sizes['E']}; mesh and heads as above."


def ways_on(facts: Facts) -> Iterator[Offer]:
    """The other way where it copies less or fits; padded heads where axes are idle; a context that fits."""
    by = facts["by"]
    other = next(name for name in facts["ways"] if name != by)
    own, theirs = facts["ways"][by], facts["ways"][other]
    if not theirs["reason"] and (theirs["copies"] < own["copies"] or (theirs["fits"] and not own["fits"])):
        yield Offer(f"by {other}", {"by": other})
    if facts["padding"]:
        yield Offer(
            f"pad {facts['n_heads']} heads to {facts['padding']['heads']}", {"model": facts["padding"]["model"]}
        )
    if not own["fits"] and own["longest"] >= 1 and facts["room"] == "rest":
        yield Offer(f"context {own['longest']:,}", {"context": own["longest"]})


def attention(
    model: str = START["model"], mesh: str | mtf.Mesh = START["mesh"], batch: int = START["batch"],
    context: int = START["context"], by: str = START["by"], **settings: Any,
) -> Attention:  # fmt: skip
    """Who holds which part of a model's cache on a mesh, with attention `by` "heads" or "batch".

    Settings: chip, weights, cache (dtypes) and room ("rest", "table": 30 % of memory).
    """
    return Attention(model=model, mesh=str(mtf.Mesh(mesh)), batch=batch, context=context, by=by, **settings)
