"""What a compiled layer computes, what its links carry meanwhile, and what rings of permutes change.

    from widgets import timeline
    timeline()                                                  # PaLM 8B prefill on 8 TPU v4, plain and looped
    timeline("palm-62b", "v4:2x2x4", phase="decode", partition="ws2d-batch", batch=256, schedule="plain")
    timeline(program=prog, topology="v5e:2x2")                  # any planned program

Let a control go and the compiler answers after some seconds; nothing compiles while you drag, Stop cancels, and what
was answered once is kept. Point at a bar to read the step of the plan it came from; open the loop of a step to see one
layer. Cycles are the compiler's, links are ours: modelled from compiled schedule. Source: "Efficiently Scaling
Transformer Inference" (arXiv 2211.05102), section 3.5. Lesson 12 uses it. Next file to read: `timeline_inputs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import mtfcore as mtf
from mtfcore.compiling.process import HOW_TO_GET_IT, has_compiler
from mtfcore.errors import LayoutError
from widgets.controls import Button, Control
from widgets.explorers import timeline_inputs
from widgets.explorers.compiling import Compiling, Stopped
from widgets.explorers.growing import Growing
from widgets.explorers.timeline_answers import KINDS, Answer, ask, keep, record_settings, recorded, said
from widgets.explorers.timeline_inputs import OF_THE_PROGRAM, START
from widgets.figures.timeline import Facts, bars_of, empty, panel
from widgets.figures.timeline_svg import saved_timeline
from widgets.figures.timeline_words import sentence, table
from widgets.frame import Progress, Result, Shown
from widgets.state import State, call_text
from widgets.views.timeline_view import TimelineView, still_timeline

KEPT: dict[object, Answer] = {}  # of named models, for all explorers of this kernel
WAITING = "not compiled yet"


class TimelineExplorer(Growing):
    """The explorer; call `timeline(…)`."""

    question = "What does a layer compute, what do its links carry meanwhile, and what waits for what?"
    call = "timeline"
    start = START

    def __init__(self, program: mtf.Program | None = None, **settings: Any) -> None:
        self.own, self.compiling = program, Compiling(self._waits)
        self.kept: dict[object, Answer] = KEPT if program is None else {}
        self.last: Facts | None = None  # the newest picture that had bars
        self.asked: State = {}  # what the compiler is busy with
        self.waits_for = ""  # what other kernels compile first, in words
        super().__init__(**settings)

    def make_picture(self) -> TimelineView:
        view = TimelineView()
        view.on_zoom(self._opened)
        return view

    def close(self) -> None:
        self.compiling.stop()
        super().close()

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        return timeline_inputs.controls(state, self.own.name if self.own else "")

    def edit(self, state: State, name: str, value: Any) -> State:
        return timeline_inputs.edited(state, name, value)

    def run_buttons(self) -> list[Control]:
        compile_ = Button("run", None, "Compile", "Answer", "by itself when a control is let go", enabled=not self.busy)
        return [compile_, Button("stop", None, "Stop", "Answer", enabled=self.busy)]

    def press_run(self, name: str) -> bool:
        """Stop ends the compiler's process, too: a compilation has no steps between which to stop."""
        if name == "stop":
            self.queue.stop()
            self.compiling.stop()
        elif name == "run" and self.kind == "ok":
            self.start_refining()
        return name in ("run", "stop")

    def _opened(self, which: str) -> None:
        with self.told():
            self._go({**self.state, "window": which}, True)

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, **state: Any) -> Shown:
        timeline_inputs.check(state)
        answers, axes = self._answers(state)
        panels = [self._panel(kind, answers.get(kind), state, axes) for kind in self._kinds(state)]
        says, rings = self._about(answers, state), self._rings(answers)
        facts: Facts = {"panels": panels, "stale": "", "says": says, "rings": rings}
        missing = bool(self._missing(state))
        if missing and self.last and not any(one["bars"] for one in panels):
            facts = {**self.last, "stale": "the picture is that of the settings before", "says": ""}
        words = sentence(facts) if not facts["stale"] else ""
        notes = tuple(filter(None, (facts["stale"], self._no_compiler(state) if missing else "")))
        hint = "" if not missing or notes[1:] else "The compiler answers when a control is let go, after some seconds."
        return Shown(f"{words} {hint}".strip() or WAITING, facts, table(facts["panels"]), notes)

    def _kinds(self, state: State) -> tuple[str, ...]:
        return KINDS if state["schedule"] == "both" else (state["schedule"],)

    def _answers(self, state: State) -> tuple[dict[str, Answer], list[str]]:
        """What is known by schedule, and the axes that have links."""
        if state["record"]:
            found = recorded()[state["record"]]
            lines = [line for answer in found.values() for line in answer.lines.values()]
            return found, panel("plain", lines[0])["rows"][1:]
        mesh = self._program(state).mesh
        known = {kind: self.kept[key] for kind in KINDS if (key := self._key(state, kind)) in self.kept}
        return known, [axis for axis, size in mesh.axes if size > 1]

    def _panel(self, kind: str, answer: Answer | None, state: State, axes: list[str]) -> Facts:
        rows = ["compute", *axes]
        if answer is None:
            return empty(kind, rows, "no record" if state["record"] else WAITING)
        if answer.says:
            return empty(kind, rows, answer.says)
        window = state["window"]
        if window not in answer.lines:
            return empty(kind, rows, f"nothing kept of {'the step' if window == 'step' else 'a layer: it has no loop'}")
        return {**panel(kind, answer.lines[window], said), "about": answer.about}

    def _about(self, answers: dict[str, Answer], state: State) -> str:
        """Who compiled it, and how much memory it takes."""
        said: dict[str, list[str]] = {}
        for kind in self._kinds(state):
            if kind in answers and answers[kind].lines:
                said.setdefault(answers[kind].about, []).append(kind)
        return " ".join(f"{' and '.join(kinds).capitalize()}: {about}." for about, kinds in said.items() if about)

    def _rings(self, answers: dict[str, Answer]) -> int:
        return answers["looped"].rings if "looped" in answers else 1

    def _no_compiler(self, state: State) -> str:
        if has_compiler():
            return ""
        more = "; recorded timelines stand in the menu" if recorded() and self.own is None else ""
        return f"{HOW_TO_GET_IT}{more}"

    def paint(self, shown: Shown) -> None:
        facts = shown.facts
        if not facts["stale"]:
            self.last = facts if bars_of(facts["panels"]) else self.last
        (self.stage.add_class if facts["stale"] else self.stage.remove_class)("mw-stale")
        self.picture.show(facts["panels"], f"{self.state['record']} {self.state['window']}")

    def still(self, shown: Shown) -> str:
        return still_timeline(shown.facts["panels"])

    def svg(self) -> str:
        return saved_timeline(self.value["panels"]) if self.value else ""

    def call_code(self) -> str:
        always = ("topology",) if self.own else () if self.state["record"] else ("model", "topology")
        said = OF_THE_PROGRAM if self.state["record"] else ()  # by the record
        chosen = {key: value for key, value in self.state.items() if key not in said}
        shown = {key: value for key, value in chosen.items() if key in always or value != START[key]}
        text = call_text(self.call, shown)
        return text.replace("timeline(", f"timeline(program={self.own.name}, ", 1) if self.own else text

    # Compiling --------------------------------------------------------------------------------------------------

    def _program(self, state: State) -> mtf.Program:
        if self.own is None:
            return timeline_inputs.program_of(state)
        timeline_inputs.expect_fit(self.own.mesh, state["topology"])
        return self.own

    def _key(self, state: State, kind: str) -> tuple[object, ...]:
        of = ("topology",) if self.own is not None else OF_THE_PROGRAM
        return (kind, state["form"] if kind == "looped" else "", *(state[name] for name in of))

    def _missing(self, state: State) -> list[str]:
        if state["record"]:
            return []
        return [kind for kind in self._kinds(state) if self._key(state, kind) not in self.kept]

    def settle(self) -> None:
        """A compilation that nobody waits for any more makes room."""
        if self.asked and self._key(self.asked, "looped") != self._key(self.state, "looped"):
            self.compiling.stop()
        super().settle()

    def refine(self, settings: State) -> Iterator[Progress]:
        """Compile what is missing, one program after another."""
        if not has_compiler() or self._key(settings, "looped") != self._key(self.state, "looped"):
            return
        jobs = self._missing(settings)
        self.compiling.begin()
        self.asked = settings
        try:
            for n, kind in enumerate(jobs):
                words = f"compiling {kind} for {settings['topology']}"
                yield Progress(n, len(jobs), words)
                self.waits_for = ""
                with self.compiling.clocked(partial(self._passed, words, n, len(jobs))):
                    answer = ask(self._program(settings), settings["topology"], self.compiling, kind, settings["form"])
                keep(self.kept, self._key(settings, kind), answer)
                yield Progress(n + 1, len(jobs), f"compiled {kind}", value=True)
        except Stopped:
            return
        finally:
            self.asked = {}

    def _waits(self, words: str) -> None:
        """Other kernels compile first."""
        self.waits_for = words
        if words:
            self._mark(True, words)

    def _passed(self, words: str, done: int, total: int, passed: int) -> None:
        self._mark(True, f"{self.waits_for or words}, {passed} s", done, total)

    def show_progress(self, progress: Progress) -> None:
        if progress.value:
            self.redraw()

    def what(self) -> str:
        return "what the compiler made"

    def _stamp(self, result: Result) -> str:
        try:
            missing = self._missing(self.state)
        except LayoutError:
            return ""
        return "stopped" if missing else ""


def timeline(
    model: str = START["model"], topology: str = START["topology"], *, program: mtf.Program | None = None,
    **settings: Any,
) -> TimelineExplorer:  # fmt: skip
    """Compute and links over time, of a model's phase or of any planned program, compiled for a TPU slice.

    Settings: phase, partition, batch, tokens, weights, cache, mesh, schedule ("plain", "looped", "both"), form
    ("latency", "throughput"), window ("layer", "step"), record (the name of one that the project keeps).
    """
    if program is None:
        record = record_settings(str(settings.get("record", "")))
        chosen = {"model": model, "topology": str(topology), **settings, **record}
        chosen.setdefault("mesh", timeline_inputs.mesh_for(chosen["topology"]))
        return TimelineExplorer(**chosen)
    return TimelineExplorer(program, topology=str(topology), mesh=str(program.mesh), **settings)
