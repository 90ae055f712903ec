"""A collective as hops in time, who sends which block to whom over which link, and the same for real.

    from widgets import traffic
    traffic()                                                     # all-gather on a ring of 8
    traffic("all_reduce", mesh="x:4 y:4", way="two_way", n_bytes=1 << 20, hop=3)
    traffic(program=prog)                                         # live traffic of a running program: `live_traffic`

Play, step or scrub the hops; press Run, and JAX's own collective runs on simulated or attached devices, each
device's values beside what the schedule's hops leave there. Bytes of hops are modelled; the run has no times. Rings
and their bytes: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102, appendix A.1). Lessons 03 and 10
use it. Next file to read: `../figures/traffic`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import ipywidgets

import mtfcore as mtf
from mtfcore.errors import LayoutError, nearest
from mtfcore.functions import Function
from mtfcore.one_collective import perform
from mtfcore.planned_collective import KINDS, planned_collective
from mtfcore.schedules import WAYS
from widgets.closing import close_all
from widgets.controls import Choice, Control, IntBox, TextBox, most
from widgets.explorers.examples import EXAMPLES
from widgets.explorers.live_traffic import LiveTraffic
from widgets.explorers.mesh_controls import axis_boxes, moved_axis
from widgets.explorers.on_device import OnDevice, slice_of
from widgets.explorers.planned import write_place, write_text
from widgets.explorers.watching import PLACES
from widgets.figures.on_device import device_html, device_row, stamped
from widgets.figures.traffic import MOST_AXES, MOST_DEVICES, NAMES, traffic_facts
from widgets.figures.traffic_run import arrays_for, run_facts, run_html
from widgets.figures.traffic_words import table, why
from widgets.frame import Frame, Progress, Result, Shown
from widgets.state import State
from widgets.views.traffic_view import TrafficView, saved_hops, still_hops

START: State = {
    "kind": "all_gather", "mesh": "x:8", "way": "ring", "n_bytes": 1 << 20, "at_once": True, "hop": 0,
    "on": "simulated",
}  # fmt: skip
LOOKING = ("hop", "n_bytes")  # a run moves small arrays, whatever is drawn
LARGEST = 1 << 30
ON_A_DEVICE = "The collective on a device"
ORDERS = (("at_once", "all at once"), ("in_turn", "one after another"))
_WAYS = tuple((way, words.split(":")[0]) for way, words in WAYS.items())


class Traffic(OnDevice, Frame):
    """The explorer; call `traffic(…)`."""

    question = "Which block goes over which link in which step, and what has each device then?"
    call = "traffic"
    start = START
    always = ("kind", "mesh", "way")

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        top, stage, sentence = self.children
        self.children = [top, stage, self.strip, sentence, self.results]

    def make_picture(self) -> TrafficView:
        view = TrafficView()
        view.observe(lambda change: self.look("hop", change.new), "hop")
        self.values, self.strip = ipywidgets.HTML(_ASK), ipywidgets.HTML()
        self.results = ipywidgets.VBox([self.values])
        return view

    def close(self) -> None:
        close_all(self.values, self.strip, self.results)
        super().close()

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        mesh = mtf.Mesh(state["mesh"])
        order = ORDERS[not state["at_once"]][0]
        several = sum(size > 1 for _, size in mesh.axes) > 1
        hint = "of several axes: a share of the data starts on each, or they take turns"
        return [
            Choice("kind", state["kind"], "kind", "Collective", options=tuple(NAMES.items())),
            IntBox("n_bytes", state["n_bytes"], "bytes a device holds", "Collective", high=LARGEST),
            TextBox("mesh", state["mesh"], "axes", "Mesh", "names and sizes, e.g. x:4 y:4"),
            Choice("n_axes", str(len(mesh.axes)), "number", "Mesh", options=tuple((n, n) for n in "123")),
            *axis_boxes(mesh, MOST_DEVICES),
            Choice("way", state["way"], "wires", "Links", options=_WAYS),
            *([Choice("order", order, "axes", "Links", hint, options=ORDERS)] if several else []),
            Choice("on", state["on"], "on", "run", options=PLACES),
        ]

    def edit(self, state: State, name: str, value: Any) -> State:
        what, _, which = name.partition(".")
        if name != "n_bytes" and name != "on":
            state = {**state, "hop": 0}  # another schedule begins at its beginning
        if what == "axis":
            return {**state, "mesh": moved_axis(state["mesh"], which, value)}
        if what == "n_axes":
            return {**state, "mesh": _with_axes(mtf.Mesh(state["mesh"]), int(value))}
        if what == "order":
            return {**state, "at_once": value == "at_once"}
        return {**state, name: value}

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, kind: str, mesh: str, way: str, n_bytes: int, at_once: bool, hop: int, on: str) -> Shown:
        if on not in dict(PLACES):
            raise LayoutError(f"no place {on!r} to run on; {nearest(on, dict(PLACES))}")
        if not 0 <= n_bytes <= 1 << 50:
            raise LayoutError(f"a device cannot hold {n_bytes:,} bytes here; from 0 to 1 PiB")
        facts = traffic_facts(kind, mtf.Mesh(mesh).axes, way, n_bytes, at_once)
        at, device = min(max(hop, 0), facts["steps"]), self.device_facts()
        rows = table(facts, at)
        rows = [*rows, *device_row(device, "the collective, on a device", len(rows[0]))]
        return Shown(why(facts, at), {**facts, "hop": at, "device": device}, rows)

    def paint(self, shown: Shown) -> None:
        with self.following():
            self.picture.show(shown.facts, shown.facts["hop"])
        self.strip.value = f'<div class="mw">{self._strip(shown)}</div>'

    def _strip(self, shown: Shown) -> str:
        return device_html(shown.facts["device"], ON_A_DEVICE)

    def still(self, shown: Shown) -> str:
        return f"{still_hops(shown.facts, shown.facts['hop'])}{self._strip(shown)}"

    def svg(self) -> str:
        return stamped(saved_hops(self.value, self.value["hop"]), self.value["device"], ON_A_DEVICE)

    # Running ----------------------------------------------------------------------------------------------------

    def run_settings(self) -> State:
        return {name: value for name, value in self.state.items() if name not in LOOKING}

    def run(self, settings: State) -> Generator[Progress, None, dict[str, Any]]:
        """JAX's own collective on small arrays that tell devices apart, compared with the schedule's end."""
        mesh, kind = mtf.Mesh(settings["mesh"]), settings["kind"]
        traffic_facts(kind, mesh.axes, settings["way"], 1, settings["at_once"])  # refused in the picture's words
        yield Progress(0, 2, f"starting {mesh.size} {settings['on']} devices")
        before = arrays_for(kind, mesh.size)
        after = perform(kind, mesh, before, attached=settings["on"] == "attached")
        yield Progress(1, 2, "comparing with the schedule")
        return run_facts(kind, settings["mesh"], settings["way"], settings["at_once"], before, after)

    # The same bytes on a device, timed ------------------------------------------------------------------------------

    def device_state(self, state: State) -> State:
        return {name: state[name] for name in ("kind", "mesh", "n_bytes")}

    def device_program(self, settings: State) -> tuple[mtf.Program, str]:
        """The collective over all axes, planned as one step."""
        mesh, kind = mtf.Mesh(settings["mesh"]), settings["kind"]
        if kind not in KINDS:
            named = ", ".join(NAMES[each] for each in KINDS)
            raise LayoutError(f"of {NAMES[kind]} only values are run here, with Run; a device is timed with {named}")
        return planned_collective(kind, mesh, "", settings["n_bytes"], "f32"), slice_of(mesh.size)

    def device_case(self, settings: State) -> tuple[str, State]:
        return "collective", {**settings, "axes": "", "dtype": "f32"}

    def show_result(self, result: Result) -> None:
        if not result.stopped:
            self.values.value = run_html(result.value, result.settings["on"])

    def result_part(self) -> ipywidgets.VBox:
        return self.results

    def _stamp(self, result: Result) -> str:
        """Never how long it took, which says nothing about hardware."""
        if self.stale:
            return super()._stamp(result)
        if result.stopped:
            return "stopped"
        return "the run and the schedule agree" if result.value["same"] else "the run and the schedule differ"


_ASK = '<div class="mw mw-ran">Press Run to see the devices\' values before and after the real collective.</div>'


def _with_axes(mesh: mtf.Mesh, wanted: int) -> str:
    """More axes get a free letter and size 2 if there is room; fewer drop the last ones."""
    axes = list(mesh.axes[:wanted])
    while len(axes) < min(wanted, MOST_AXES):
        name = next(letter for letter in "xyzw" if letter not in dict(axes))
        axes.append((name, min(2, most(MOST_DEVICES, *(size for _, size in axes)))))
    return str(mtf.Mesh(axes))


def traffic(
    kind: str | Function | mtf.Program | None = None,
    mesh: object = None,
    layout: object = None,
    sizes: object = None,
    place: Mapping[str, object] | str | None = None,
    *,
    way: str = START["way"],
    n_bytes: int = START["n_bytes"],
    at_once: bool = True,
    hop: int = 0,
    on: str = START["on"],
    program: mtf.Program | None = None,
    fn: Function | str | None = None,
    inputs: Mapping[str, Any] | None = None,
    dtype: str = "f32",
    search: bool = False,
    pace: str = "slow",
) -> Traffic | LiveTraffic:
    """A collective's hops, by its kind; or the live traffic of a program, or of a named function on a mesh.

    Of a function by name (the examples of `program`) what is left out is as in that example.
    """
    running = program or fn or (kind if isinstance(kind, (Function, mtf.Program)) else None)
    if running is None:
        texts = {"kind": START["kind"] if kind is None else str(kind), "mesh": write_text(mesh or START["mesh"])}
        return Traffic(**texts, way=way, n_bytes=n_bytes, at_once=at_once, hop=hop, on=on)
    if isinstance(running, mtf.Program):
        return LiveTraffic(running, inputs, on=on, pace=pace)
    given = {"mesh": mesh, "layout": layout, "sizes": sizes}
    settings: dict[str, Any] = {}
    if isinstance(running, str):
        if running not in EXAMPLES:
            raise LayoutError(f"no function {running!r}; {nearest(running, EXAMPLES)}")
        example = EXAMPLES[running]
        running, settings = example.fn, dict(example.settings)
    settings |= {key: write_text(value) for key, value in given.items() if value is not None}
    settings |= {"place": write_place(place)} if place is not None else {}
    return LiveTraffic(running, inputs, **settings, dtype=str(dtype), search=search, on=on, pace=pace)
