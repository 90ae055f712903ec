"""What is moved in each explorer, as data: the call, and the controls that a class would drag.

    SUBJECTS["layouts"].moves     # (Slide("batch"), Slide("rows"), …)

Next file to read: sliders.py, which moves them.
"""

from __future__ import annotations

from dataclasses import dataclass

TOP = ".mw-top [data-control='{name}']"


@dataclass(frozen=True)
class Slide:
    """A slider: dragged by the mouse, a step at a time."""

    name: str
    inside: str = ""  # a selector, where it is no control of the frame's row

    @property
    def selector(self) -> str:
        """Where it is in the page."""
        return self.inside or f"{TOP.format(name=self.name)} input[type=range]"


@dataclass(frozen=True)
class Choose:
    """A menu, walked with the arrow keys."""

    name: str

    @property
    def selector(self) -> str:
        """Where it is in the page."""
        return f"{TOP.format(name=self.name)} select"


@dataclass(frozen=True)
class Walk:
    """A part of the picture through which arrow keys walk: forward, back."""

    name: str
    selector: str
    keys: tuple[str, str] = ("ArrowRight", "ArrowLeft")


Move = Slide | Choose | Walk


@dataclass(frozen=True)
class Subject:
    """An explorer: how it is called, what is moved, and whether a worker adds to its picture meanwhile."""

    call: str
    moves: tuple[Move, ...]
    grows: bool = False

    @property
    def explorer(self) -> str:
        """The function's name."""
        return self.call.partition("(")[0]


def _slides(*names: str) -> tuple[Slide, ...]:
    return tuple(map(Slide, names))


HOPS = Slide("hop", ".mw-live .mw-hop-bar input[type=range]")
STEPS = Walk("steps", ".mw-program-view .mw-steps", ("ArrowDown", "ArrowUp"))
DEVICES = Walk("devices", ".mw-slices .mw-slot[role=application]", ("ArrowDown", "ArrowUp"))
LARGE = 'slices("B:64 E:4096 F:16384", "x:4 y:4 z:4", "B:x F:zy", tensors="x: B E; w: E F; h: B F")'
RECORD = "palm-540b/decode/64@2079/ws2d-batch/int8/v4:4x4x4/x4y4z4"  # answers without a compiler

SUBJECTS: dict[str, Subject] = {
    # walks come first: sliders may end at what is refused, where a walk shows nothing
    "slices": Subject("slices()", (DEVICES, *_slides("axis.rows", "axis.cols", "size.batch"))),
    "slices of 64 devices": Subject(LARGE, _slides("axis.x", "axis.z", "size.E")),
    "program": Subject("program()", (STEPS, *_slides("axis.rows", "axis.cols", "size.batch"))),
    "traffic": Subject("traffic()", (*_slides("n_bytes", "axis.x"), HOPS)),
    "traffic of 64 devices": Subject('traffic("all_reduce", "x:4 y:4 z:4")', (*_slides("n_bytes", "axis.y"), HOPS)),
    "layouts": Subject("layouts()", _slides("batch", "rows", "cols", "hidden")),
    "iteration_space": Subject("iteration_space()", _slides("processors", "u")),
    "planner": Subject("planner()", _slides("batch", "input_tokens", "output_tokens"), grows=True),
    "frontier": Subject("frontier()", _slides("most_batch", "most_chips", "input_tokens"), grows=True),
    "roofline": Subject("roofline()", _slides("batch")),
    "feedforward": Subject("feedforward()", _slides("batch", "length", "x", "y")),
    "attention": Subject("attention()", _slides("batch", "context", "axis.x")),
    "generate": Subject("generate()", _slides("slots", "axis.x", "axis.y"), grows=True),
    "run": Subject("run()", _slides("batch")),
    "timeline": Subject(f"timeline(record={RECORD!r})", (Choose("record"), Choose("schedule")), grows=True),
}
