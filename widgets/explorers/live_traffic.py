"""Explorer 3, second part: the traffic of a running program, by axis, by pair of devices and by step, as it runs.

    from widgets import traffic
    traffic(program=prog)
    traffic(my_function, mesh="rows:4 cols:2", layout="batch:rows hidden:cols", sizes="batch:64 io:512 hidden:2048")

Press Run: the program runs on simulated devices with a mark behind each collective (`mtfcore.events`), and every bar
and cell is a sum over the events of this run alone. In slow motion each mark holds its device for a moment, so that
eyes can follow; neither pace says anything about hardware. Next file to read: `../figures/live_traffic`.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.dims import parse_dims
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError
from mtfcore.events import Event, Tally, Watch, expected_events, watch
from mtfcore.functions import Function
from widgets.controls import Choice, Control, IntBox, TextBox, most
from widgets.explorers.inputs import example_inputs
from widgets.explorers.planned import guard, planned
from widgets.figures.live_traffic import Facts, live_facts, pair_words, plan_words, run_words, table
from widgets.frame import Frame, Progress, Result, Shown
from widgets.numbers import count, tagged_html
from widgets.state import State, call_text
from widgets.views.live_view import LiveView, still_live

MOST_DEVICES = 64
MOST_EVENTS = 20_000  # a mark costs about a millisecond
SLOW_SECONDS = 4.0  # about how long a run takes in slow motion
PACES = (("slow", "slow motion"), ("full", "as fast as marks allow"))
_PACE_HINT = "neither says anything about hardware"
START: State = {"mesh": "", "layout": "", "sizes": "", "place": "", "dtype": "f32", "pace": "slow"}


class LiveTraffic(Frame):
    """The explorer; call `traffic(program=…)` or `traffic(function, mesh, layout, sizes=…)`."""

    question = "Who sends how much to whom while this program runs?"
    call = "traffic"
    start = START

    def __init__(self, what: Function | mtf.Program, inputs: Mapping[str, Any] | None = None, **settings: Any) -> None:
        self._what, self._inputs = what, inputs
        self._live: tuple[mtf.Program, Facts, str] | None = None  # of the last run, as far as it has come
        super().__init__(**settings)

    def make_picture(self) -> LiveView:
        view = LiveView()
        view.observe(self._point, "pair")
        return view

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        pace = Choice("pace", state["pace"], "pace", "run", _PACE_HINT, options=PACES)
        if not isinstance(self._what, Function):
            return [pace]
        mesh, dims = mtf.Mesh(state["mesh"]), parse_dims(state["sizes"])
        return [
            TextBox("mesh", state["mesh"], "axes", "Mesh", "names and sizes, e.g. rows:4 cols:2"),
            *(self._axis(mesh, axis, size) for axis, size in mesh.axes),
            *(IntBox(f"size.{d.name}", d.size or 1, d.name, "Dimensions", high=1 << 18) for d in dims),
            TextBox("layout", state["layout"], "layout", "Where", "rules, e.g. batch:rows hidden:cols"),
            pace,
        ]

    def _axis(self, mesh: mtf.Mesh, axis: str, size: int) -> Control:
        others = [n for name, n in mesh.axes if name != axis]
        return IntBox(f"axis.{axis}", size, axis, "Mesh", high=most(MOST_DEVICES, *others))

    def edit(self, state: State, name: str, value: Any) -> State:
        what, _, which = name.partition(".")
        if what == "axis":
            axes = [(axis, value if axis == which else size) for axis, size in mtf.Mesh(state["mesh"]).axes]
            return {**state, "mesh": str(mtf.Mesh(axes))}
        if what == "size":
            sized = [mtf.Dim(d.name, value if d.name == which else d.size) for d in parse_dims(state["sizes"])]
            return {**state, "sizes": " ".join(map(str, sized))}
        return {**state, name: value}

    # Picture ----------------------------------------------------------------------------------------------------

    def plan(self, settings: State) -> tuple[mtf.Program, tuple[str, ...]]:
        """The program of these settings, and the warnings of planning it."""
        if isinstance(self._what, mtf.Program):
            return self._what, ()
        texts = {name: value for name, value in settings.items() if name != "pace"}
        return planned(self._what, **{**texts, "dtype": canonical(texts["dtype"])})

    def draw(self, **state: Any) -> Shown:
        if state["pace"] not in dict(PACES):
            raise LayoutError(f"no pace {state['pace']!r}; legal here: 'slow', 'full'")
        program, notes = self.plan(state)
        if program.mesh.size > MOST_DEVICES:
            many = f"mesh '{program.mesh}' has {program.mesh.size:,} devices"
            raise LayoutError(f"{many}; a run here has up to {MOST_DEVICES}")
        facts = live_facts(program, Tally(program))
        return Shown(plan_words(facts), facts, table(facts), notes)

    def paint(self, shown: Shown) -> None:
        self._show()

    def still(self, shown: Shown) -> str:
        return still_live(self.live or shown.facts)

    def call_code(self) -> str:
        name = self._what.name if isinstance(self._what, mtf.Program) else self._what.__name__
        if isinstance(self._what, mtf.Program):
            more = {} if self.state["pace"] == START["pace"] else {"pace": self.state["pace"]}
            return call_text(self.call, {"program": name, **more}).replace(f"program={name!r}", f"program={name}")
        shown = {key: value for key, value in self.state.items() if value != START[key]}
        return call_text(self.call, {"fn": name, **shown}).replace(f"fn={name!r}", f"fn={name}")

    @property
    def live(self) -> Facts | None:
        """What the last run has sent, as far as it has come."""
        return self._live[1] if self._live else None

    def _show(self) -> None:
        """The run's traffic while it belongs to the plan on show, else a plan of which nothing has happened."""
        facts = (self._shown.facts if self._shown else None) or self.live
        state = "planned"
        if self._live is not None and self._true_of_plan():
            _, facts, state = self._live
        about = "Press Run to see it happen." if state == "planned" else run_words(facts, state)
        self.picture.show(facts, tagged_html(about), self._pointed(facts))

    def _true_of_plan(self) -> bool:
        return self.kind != "refused" and self._live[0] is self.plan(self.state)[0]

    def _pointed(self, facts: Facts) -> str:
        pair = self.picture.pair
        inside = len(pair) == 2 and max(pair) < facts["n_devices"]
        return tagged_html(pair_words(facts, *pair)) if inside else "Point at a cell to read it."

    def _point(self, change: Any) -> None:
        with self.told():
            facts = self.live if self._live is not None and self._true_of_plan() else self._shown.facts
            self.picture.pointed = self._pointed(facts)

    # Running ----------------------------------------------------------------------------------------------------

    def run_settings(self) -> State:
        return {name: value for name, value in self.state.items() if name != "pace"}

    def run(self, settings: State) -> Iterator[Progress]:
        """Run with marks on a thread of its own, and tell what has happened 20 times a second."""
        program, _ = self.plan(settings)
        self._check_size(program, settings)
        happened: queue.SimpleQueue[Event] = queue.SimpleQueue()
        total = expected_events(program)
        yield Progress(0, total, f"starting {count(program.mesh.size, 'simulated device')}")
        watched, tally = watch(program, happened.put), Tally(program)
        self._tell(program, tally, "running")
        yield Progress(0, total, "compiling")
        arrays = self._inputs if self._inputs is not None else example_inputs(program)
        running = _Running(watched, arrays, self._pause(program))
        try:
            while running.alive or not happened.empty():
                _take(happened, tally)
                self._tell(program, tally, "running")
                yield Progress(tally.n_events, total, f"{tally.n_events:,} of {total:,} events")
        finally:
            running.hurry()
            self._tell(program, tally, "stopped" if tally.n_events < total else "finished")
        running.raise_fault()
        return tally

    def _check_size(self, program: mtf.Program, settings: State) -> None:
        if (events := expected_events(program)) > MOST_EVENTS:
            raise LayoutError(
                f"this run would tell of {events:,} events, each of which costs about a millisecond here; the limit is "
                f"{MOST_EVENTS:,}: fewer devices, or fewer turns of its loop"
            )
        if isinstance(self._what, Function):
            texts = {name: value for name, value in settings.items() if name != "pace"}
            guard(program, {**texts, "dtype": canonical(texts["dtype"])}, self._what)

    def _pause(self, program: mtf.Program) -> float:
        turns = sum(step.times for step in program.collectives())
        return min(0.4, SLOW_SECONDS / max(turns, 1)) if self.state["pace"] == "slow" else 0.0

    def _tell(self, program: mtf.Program, tally: Tally, state: str) -> None:
        with self.drawing:
            self._live = (program, live_facts(program, tally), state)
            self._show()

    def result_part(self) -> Any:
        return None  # the picture goes back to the plan at once: nothing old stays on show

    def _stamp(self, result: Result) -> str:
        """Never how long it took, which says nothing about hardware."""
        if self.stale:
            return super()._stamp(result)
        return "stopped" if result.stopped else f"{count(result.value.n_events, 'event')}, all of this run"


class _Running:
    """The launch, on a thread: the worker must stay free to tell what has happened."""

    def __init__(self, watched: Watch, arrays: Any, pause: float) -> None:
        self._watched, self._arrays, self._fault = watched, arrays, None
        watched.pause_seconds = pause
        self._thread = threading.Thread(target=self._work, name="meshwork-watched", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._watched(**self._arrays) if isinstance(self._arrays, Mapping) else self._watched(*self._arrays)
        except Exception as fault:  # a thread has nobody to raise to: `raise_fault` does it on the worker
            self._fault = fault

    @property
    def alive(self) -> bool:
        """Whether it runs; asks at most 20 times a second."""
        self._thread.join(1 / 20)
        return self._thread.is_alive()

    def hurry(self) -> None:
        """Let the run come to its end at once: a launch cannot be taken back."""
        self._watched.pause_seconds = 0.0
        self._thread.join()

    def raise_fault(self) -> None:
        """Raise on the worker what the run raised."""
        if self._fault is not None:
            raise self._fault


def _take(happened: queue.SimpleQueue[Event], tally: Tally) -> None:
    while True:
        try:
            tally.add(happened.get_nowait())
        except queue.Empty:
            return
