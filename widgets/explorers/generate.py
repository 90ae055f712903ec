"""A real model writes on a mesh, and what each token costs is seen as it comes.

    from widgets import generate
    generate()                                                     # SmolLM2 on 8 simulated devices, if it was fetched
    generate("Name three rivers.", mesh="x:4 y:2 z:1", decode="ws2d-batch", slots=8, others=3)

Say something and press Write: the prompt is read, given to a slot, and written on, launch by launch. Partitions can be
switched between two turns: the kept tokens move, the weights do not, and the conversation goes on; another mesh reads
it again. Bytes are counted from the steps that ran; seconds on a TPU are modelled from the same programs; seconds here
are simulated and say nothing of hardware. Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102),
sections 2 to 4. Lesson 11 uses it. Next file to read: `generate_inputs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mtfcore as mtf
from mtfcore.device_pool import LAUNCH
from mtfcore.errors import LayoutError, sure
from mtfcore.model.serving import PHASES
from widgets.controls import Button, Control
from widgets.explorers import generate_inputs, generate_prices
from widgets.explorers.generate_inputs import START, model_here, ways
from widgets.explorers.generate_run import Writer
from widgets.explorers.growing import Growing
from widgets.explorers.on_device import OnDevice
from widgets.figures.generate_html import NAMES, mesh_pairs, picture
from widgets.figures.generate_words import sentence, table
from widgets.figures.on_device import device_row
from widgets.frame import Offer, Progress, Result, Shown
from widgets.saved import SAID, stacked, table_svg, text_block
from widgets.shown import Refused
from widgets.state import State, call_text
from widgets.views.writing_view import STYLE, WritingView

MORE = "And why twice a day?"


class Generate(OnDevice, Growing):
    """The explorer; call `generate(…)`."""

    question = "What happens, and what is sent, while a model reads and writes on a mesh?"
    call = "generate"
    start = START
    launch_lock = LAUNCH
    instead = "Write runs the same steps on simulated devices"
    _taken = ""  # out of the box, by the last press of Write

    def __init__(self, **settings: Any) -> None:
        self.writer = Writer()
        super().__init__(**settings)

    def make_picture(self) -> WritingView:
        return WritingView()

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        return generate_inputs.controls(state, self.writer.facts is not None and not self.measuring)

    def edit(self, state: State, name: str, value: Any) -> State:
        return generate_inputs.edited(state, name, value)

    def run_buttons(self) -> list[Control]:
        write = Button("run", None, "Write", "Prompt", enabled=not self.measuring)
        device, _ = super().run_buttons()[-2:]
        return [write, Button("stop", None, "Stop", "Prompt", enabled=self.busy), device]

    def press_run(self, name: str) -> bool:
        """Write what stands in the box, which is empty then for what is said next."""
        if name != "run" or self.measuring:
            return super().press_run(name)
        if not self._true:
            return True  # the settings are refused: the sentence says why, and what would work
        if not self.state["prompt"].strip():
            raise Refused("Say something first: type it into the box, press Enter, then press Write.",
                          [Offer(MORE, {"prompt": MORE})])  # fmt: skip
        self._taken = self.state["prompt"]
        if self.queue.start(self.run, self.run_settings()):
            self.state = {**self.state, "prompt": ""}
        return True

    def _failed(self, fault: BaseException) -> None:
        """What was not read goes back into the box, before the sentence says why."""
        with self.drawing:
            if not self.state["prompt"] and not self._job:
                self.state = {**self.state, "prompt": self._taken}
        super()._failed(fault)

    def pressed(self, name: str) -> None:
        if name == "new" and not self.measuring:
            self.writer.begin_again()
            self.redraw()

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, **state: Any) -> Shown:
        generate_inputs.check(state)
        facts = self.facts_of(state)
        if facts["modelled"] and facts["modelled"]["reason"]:
            raise LayoutError(facts["modelled"]["reason"])
        rows = table(facts)
        rows = [*rows, *device_row(facts["device"], "a token of every slot, on a device", len(rows[0]))]
        return Shown(sentence(facts), facts, rows, offers=tuple(self._ways_on(state)))

    def facts_of(self, state: State) -> dict[str, Any]:
        """What is asked, what is modelled for it, and what has happened."""
        asked, model = generate_prices.asked_of(state), model_here(state["model"])
        ways_of = {phase: ways(model, state["mesh"], state["slots"], phase) for phase in PHASES}
        own = {name: state[name] for name in ("on", "slots", "others", "chip", *PHASES)}
        return {**own, "model": model, "mesh": mesh_pairs(state["mesh"]), "mesh_text": state["mesh"],
                "topology": asked.topology, "modelled": generate_prices.known(asked), "live": self.writer.facts,
                "ways": ways_of, "device": self.device_facts()}  # fmt: skip

    def paint(self, shown: Shown) -> None:
        self.picture.show(picture(shown.facts))

    def still(self, shown: Shown) -> str:
        return f'<style>{STYLE}</style><div class="mw-writing">{picture(shown.facts)}</div>'

    def svg(self) -> str:
        live = self.value["live"] if self.value else None
        turns = (f"{NAMES[who]}: {text}".lstrip(": ") for who, text in live["log"]) if live else ()
        return stacked([*text_block("\n".join(turns), 640, *SAID), table_svg(sure(self._shown).table)])

    def call_code(self) -> str:
        said = next((text for who, text in reversed(self.writer.log) if who == "you"), START["prompt"])
        shown = {"prompt": self.state["prompt"] or said}
        shown |= {name: value for name, value in self.state.items() if name != "prompt" and value != START[name]}
        return call_text(self.call, shown)

    def _ways_on(self, state: State) -> Iterator[Offer]:
        """What to try with the next turn."""
        if self.writer.facts is None or self.measuring:
            return
        if not state["prompt"]:
            yield Offer(MORE, {"prompt": MORE})
        other = "ws2d-batch" if state["decode"] != "ws2d-batch" else "ws2d-heads"
        if not ways(model_here(state["model"]), state["mesh"], state["slots"], "decode")[other]:
            yield Offer(f"decode {other}", {"decode": other, "prefill": "ws2d-heads"})

    # A token of every slot on a device, timed ---------------------------------------------------------------------

    def device_state(self, state: State) -> State:
        return {name: state[name] for name in ("model", "mesh", "slots", "decode", "chip")}

    def device_program(self, settings: State) -> tuple[mtf.Program, str]:
        """The engine's own program."""
        asked = generate_prices.asked_of({**START, **settings})
        return generate_prices.token_program(asked), asked.topology

    # What is modelled takes a moment ------------------------------------------------------------------------------

    def start_refining(self) -> None:
        """Only where there is something to find out: its end draws anew, over whatever the sentence says."""
        if generate_prices.known(generate_prices.asked_of(self.state)) is None:
            super().start_refining()

    def refine(self, settings: State) -> Iterator[Progress]:
        """Plan and price the programs of these settings."""
        yield Progress(0, 1, f"looking at {self.what()}")
        generate_prices.modelled(generate_prices.asked_of(settings))
        yield Progress(1, 1, f"looked at {self.what()}")

    def what(self) -> str:
        return "the steps of these settings"

    # Running ----------------------------------------------------------------------------------------------------

    def run(self, settings: State) -> Iterator[Progress]:
        """One turn of the conversation."""
        return self.writer.turn(settings)

    def show_progress(self, progress: Progress) -> None:
        if progress.value is None:
            return
        with self.drawing:
            if self._true:  # else the settings for the next turn are being refused, and that stays on show
                self._notes = list(self._said)
                self._redraw()
            else:
                self._live(progress.value)

    def result_part(self) -> None:
        return None  # a conversation goes on whatever is set for its next turn

    def age_result(self) -> None:
        """Nothing of a conversation becomes old."""
        if self.result is not None and not self.busy:
            self._mark(False, self._stamp(self.result))

    def _finished(self, result: Result) -> None:
        super()._finished(result)
        self.redraw()  # the buttons and the ways on are those of one that rests
        if not self._true:  # what was written stays in sight while settings for the next turn are refused
            self._live(self.writer.facts)

    def _live(self, facts: Any) -> None:
        self.picture.show(picture({**(self.value or {}), "live": facts}))

    def _stamp(self, result: Result) -> str:
        """Never how long it took, which says nothing about hardware."""
        if result.value is None:
            return f"looked at {self.what()}"
        return "stopped" if result.stopped else "the answer is written"


def generate(prompt: str = START["prompt"], mesh: str | mtf.Mesh = START["mesh"], **settings: Any) -> Generate:
    """Talk with a model on a mesh; see the module's text.

    Settings: prefill and decode (partitions or "auto"), model ("auto", "smollm2-135m", "untrained"), slots, others
    (served beside you), tokens (of an answer, at most), temperature, seed, chip (for what is modelled), on
    ("simulated", "attached").
    """
    return Generate(prompt=prompt, mesh=str(mtf.Mesh(mesh)), **settings)
