"""The traffic of a running program, by axis, by pair of devices and by step, as it runs.

    from widgets import traffic
    traffic(program=prog)
    traffic(my_function, mesh="rows:4 cols:2", layout="batch:rows hidden:cols", sizes="batch:64 io:512 hidden:2048")

Press Run: the program runs on simulated devices with a mark behind each collective (`mtfcore.events`), and every bar
and cell is a sum over the events of this run alone. In slow motion each mark holds its device for a moment, so that
eyes can follow; neither pace says anything about hardware. Next file to read: `../figures/live_traffic`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.dims import parse_dims
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError, sure
from mtfcore.events import Tally, expected_events
from mtfcore.functions import Function
from widgets.controls import Button, Choice, Control, IntBox, TextBox
from widgets.explorers.inputs import example_inputs
from widgets.explorers.mesh_controls import axis_boxes, moved_axis, moved_size
from widgets.explorers.planned import planned, run_bytes
from widgets.explorers.watching import MOST_DEVICES, PACE_HINT, PACES, PLACES, SLOW_SECONDS, watched
from widgets.figures.live_traffic import Facts, live_facts, pair_words, plan_words, run_words, table
from widgets.frame import Frame, Progress, Result, Shown
from widgets.numbers import count, origin, quantity, tagged_html
from widgets.state import State, call_text
from widgets.views.live_view import LiveView, still_live

MOST_BYTES = 1 << 30
MOST_EVENTS = 20_000  # a mark costs about a millisecond
START: State = {
    "mesh": "", "layout": "", "sizes": "", "place": "", "dtype": "f32", "search": False, "on": "simulated",
    "pace": "slow",
}  # fmt: skip
OF_THE_RUN = ("on", "pace")  # settings that do not change the plan


class LiveTraffic(Frame):
    """The explorer; call `traffic(program=…)` or `traffic(function, mesh, layout, sizes=…)`."""

    question = "Who sends how much to whom while this program runs?"
    call = "traffic"
    start = START

    def __init__(self, what: Function | mtf.Program, inputs: Mapping[str, Any] | None = None, **settings: Any) -> None:
        self._what, self._inputs = what, inputs
        self._planned: mtf.Program | None = None  # what is on show
        self._live: tuple[mtf.Program, Facts, str] | None = None  # of the last run, as far as it has come
        super().__init__(**settings)

    def make_picture(self) -> LiveView:
        view = LiveView()
        view.observe(self._point, "pair")
        return view

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        how: list[Control] = [
            Choice("on", state["on"], "on", "run", options=PLACES),
            Choice("pace", state["pace"], "pace", "run", PACE_HINT, options=PACES),
        ]
        if not isinstance(self._what, Function):
            return how
        mesh, dims = mtf.Mesh(state["mesh"]), parse_dims(state["sizes"])
        return [
            TextBox("mesh", state["mesh"], "axes", "Mesh", "names and sizes, e.g. rows:4 cols:2"),
            *axis_boxes(mesh, MOST_DEVICES),
            *(IntBox(f"size.{d.name}", d.size or 1, d.name, "Dimensions", high=1 << 18) for d in dims),
            TextBox("layout", state["layout"], "layout", "Where", "rules, e.g. batch:rows hidden:cols"),
            *how,
        ]

    def edit(self, state: State, name: str, value: Any) -> State:
        what, _, which = name.partition(".")
        if what == "axis":
            return {**state, "mesh": moved_axis(state["mesh"], which, value)}
        if what == "size":
            return {**state, "sizes": moved_size(state["sizes"], which, value)}
        return {**state, name: value}

    # Picture ----------------------------------------------------------------------------------------------------

    def plan(self, settings: State) -> tuple[mtf.Program, tuple[str, ...]]:
        """The program of these settings, and the warnings of planning it."""
        if isinstance(self._what, mtf.Program):
            return self._what, ()
        return planned(self._what, **_plan_texts(settings))

    def draw(self, **state: Any) -> Shown:
        if state["pace"] not in dict(PACES):
            raise LayoutError(f"no pace {state['pace']!r}; legal here: 'slow', 'full'")
        if state["on"] not in dict(PLACES):
            raise LayoutError(f"no place {state['on']!r} to run on; legal here: 'simulated', 'attached'")
        program, notes = self.plan(state)
        if program.mesh.size > MOST_DEVICES:
            many = f"mesh '{program.mesh}' has {program.mesh.size:,} devices"
            raise LayoutError(f"{many}; a run here has up to {MOST_DEVICES}")
        self._planned, ended = program, ""
        facts = live_facts(program, Tally(program))
        if self._live is not None and self._of_plan() and self._live[2] != "running":
            _, facts, ended = self._live
        return Shown(plan_words(facts, ended), facts, table(facts), notes)

    def paint(self, shown: Shown) -> None:
        self._show()

    def still(self, shown: Shown) -> str:
        return still_live((self.live if self._of_plan() else None) or shown.facts)

    def call_code(self) -> str:
        name = self._what.name if isinstance(self._what, mtf.Program) else self._what.__name__
        shown = {key: value for key, value in self.state.items() if value != START[key]}
        key = "program" if isinstance(self._what, mtf.Program) else "fn"
        return call_text(self.call, {key: name, **shown}).replace(f"{key}={name!r}", f"{key}={name}")

    @property
    def live(self) -> Facts | None:
        """What the last run has sent, as far as it has come."""
        return self._live[1] if self._live else None

    def _show(self) -> None:
        """The run's traffic while it belongs to the plan on show, else a plan of which nothing has happened."""
        run, about = self._live if self._of_plan() else None, "Press Run to see it happen."
        facts = sure((self._shown.facts if self._shown else None) or self.live)
        if run is not None:
            _, facts, state = run
            about = run_words(facts, state)
        self.picture.show(facts, tagged_html(about), self._pointed(facts))

    def _of_plan(self) -> bool:
        """Whether the last run is one of the program on show."""
        return self._live is not None and self._live[0] is self._planned

    def _pointed(self, facts: Facts) -> str:
        pair = self.picture.pair
        inside = len(pair) == 2 and max(pair) < facts["n_devices"]
        return tagged_html(pair_words(facts, *pair)) if inside else "Point at a cell to read it."

    def _point(self, change: Any) -> None:
        with self.told():
            facts = (self.live if self._of_plan() else None) or sure(self._shown).facts
            self.picture.pointed = self._pointed(facts)

    # Running ----------------------------------------------------------------------------------------------------

    def run_settings(self) -> State:
        return {name: value for name, value in self.state.items() if name != "pace"}

    def run(self, settings: State) -> Generator[Progress, None, Tally]:
        """Run with marks, and tell what has happened 20 times a second."""
        program, _ = self.plan(settings)
        self._check_size(program)
        total, tally, what = expected_events(program), Tally(program), f"{settings['on']} device"
        yield Progress(0, total, f"starting {count(program.mesh.size, what)}")
        self._tell(program, tally, "running")
        arrays = self._inputs if self._inputs is not None else example_inputs(program)
        try:
            for tally in watched(program, arrays, self._pause(program), settings["on"] == "attached"):
                self._tell(program, tally, "running")
                yield Progress(tally.n_events, total, f"{tally.n_events:,} of {total:,} events")
        finally:
            self._tell(program, tally, "finished" if tally.n_events == total else "stopped")
        return tally

    def _check_size(self, program: mtf.Program) -> None:
        if (held := run_bytes(program)) > MOST_BYTES:
            raise LayoutError(
                f"this run would hold {origin(quantity(held, 'iB'), 'modelled')} of values of all its devices in this "
                f"computer's memory; the limit here is {quantity(MOST_BYTES, 'iB')}: use smaller sizes"
            )
        if (events := expected_events(program)) > MOST_EVENTS:
            raise LayoutError(
                f"this run would tell of {events:,} events, each of which costs about a millisecond here; the limit is "
                f"{MOST_EVENTS:,}: fewer devices, or fewer turns of its loop"
            )

    def _pause(self, program: mtf.Program) -> float:
        turns = sum(step.times for step in program.collectives())
        return min(0.4, SLOW_SECONDS / max(turns, 1)) if self.state["pace"] == "slow" else 0.0

    def _tell(self, program: mtf.Program, tally: Tally, state: str) -> None:
        with self.drawing:
            before, self._live = self._live, (program, live_facts(program, tally), state)
            if state == "running" and before is not None and before[2] == "running":
                self._show()
            else:  # a run begins or ends: what the sentence says is another thing
                self._redraw()
                self.refresh_still()

    def result_part(self) -> Any:
        return None  # the picture goes back to the plan at once: nothing old stays on show

    def _stamp(self, result: Result) -> str:
        """Never how long it took, which says nothing about hardware."""
        if self.stale:
            return super()._stamp(result)
        return "stopped" if result.stopped else f"{count(result.value.n_events, 'event')}, all of this run"


def _plan_texts(settings: State) -> State:
    """The settings that make the plan."""
    texts = {name: value for name, value in settings.items() if name not in OF_THE_RUN}
    return {**texts, "dtype": canonical(texts["dtype"])}


class Watchable(Frame):
    """A frame that shows a function this too: a button that opens its live traffic, of the same settings."""

    watching: LiveTraffic | None = None

    def watch_button(self) -> Button:
        """Opens it, and closes it again."""
        verb = "Hide" if self.watching else "Watch"
        return Button("watch", None, f"{verb} its traffic below", "traffic")  # it opens out of sight

    def toggle_watching(self, what: Function, inputs: Mapping[str, Any] | None, settings: State) -> None:
        """Open the live traffic of these settings as the last part, or close it."""
        if self.watching is None:
            self.watching = LiveTraffic(what, inputs, **settings)
            self.children = [*self.children, self.watching]
        else:
            self.children = [part for part in self.children if part is not self.watching]
            self.watching.close()
            self.watching = None
        self._show_controls()  # the button says what it does now

    def close(self) -> None:
        """Close it with the rest."""
        if self.watching is not None:
            self.watching.close()
        super().close()
