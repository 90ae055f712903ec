"""Timelines made up by hand, and a pretended compiler: what the tests of explorer 12 show.

pretend(monkeypatch)                    # `ask` answers at once; its calls are kept in the list that this returns
"""

from __future__ import annotations

import threading

from mtfcore.compiling.timeline import COMPUTE, Bar, Timeline
from mtfcore.compiling.timing import Took
from widgets.explorers import timeline as home
from widgets.explorers.timeline_answers import Answer

LAYERS, US = 4, 1e-6
STEPS = {"3.1": "all_gather over x of E", "3.2": "einsum B L E , E F → B L F", "3.4": "permute over y, +1 on the ring"}


def layer(rings: bool = False) -> Timeline:
    """100 µs of computing; a gather that is waited for, or half of it hidden, and a hidden permute."""
    waits = 20 if rings else 40
    bars = (
        Bar("all_gather", "gather.1", "3.1", ("x →", "x ←"), 0, 40 * US, 40 * US, waits * US),
        Bar("wait", "gather.1", "3.1", (COMPUTE,), (40 - waits) * US, 40 * US, waits * US, waits * US),
        *([Bar("compute", "fusion.0", "", (COMPUTE,), 0, 20 * US, 20 * US, cycles=21_000)] if rings else []),
        Bar("compute", "fusion.1", "3.2", (COMPUTE,), 40 * US, 140 * US, 100 * US, cycles=105_000),
        Bar("permute", "permute.2", "3.4", ("y →",), 50 * US, 70 * US, 20 * US),
    )
    took = Took((100 + 20 * rings) * US, 60 * US, waits * US)
    return Timeline("layer", "made", "v4:2x2x2", (COMPUTE, "x →", "x ←", "y →", "y ←"), bars, took, LAYERS,
                    whole(took), 1.05e9, STEPS)  # fmt: skip


def whole(took: Took) -> Took:
    return Took(LAYERS * took.compute_seconds, LAYERS * took.link_seconds, LAYERS * took.exposed_link_seconds)


def step(rings: bool = False) -> Timeline:
    """Four layers."""
    took = layer(rings).whole
    loop = Bar("loop", "while.1", "3", (COMPUTE,), 0, took.seconds, took.compute_seconds, parts=LAYERS, cycles=420_000)
    wait = Bar("wait", "while.1", "3", (COMPUTE,), 0, took.seconds, took.exposed_link_seconds, 0.0, parts=LAYERS)
    links = Bar("loop", "while.1", "3", ("x",), 0, took.seconds, took.link_seconds, took.exposed_link_seconds)
    bars = (loop, wait, links)
    return Timeline("step", "made", "v4:2x2x2", (COMPUTE, "x", "y"), bars, took, 1, took, 1.05e9, {"3": "repeat"})


def answer(kind: str) -> Answer:
    """What the pretended compiler says."""
    rings = kind == "looped"
    return Answer({"layer": layer(rings), "step": step(rings)}, "", "a compiler", 2 if rings else 0)


class Pretended:
    """Stands for `ask`: what it was asked, and a gate that keeps it busy while closed."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.answers: dict[str, Answer] = {}

    def __call__(self, program: object, topology: str, compiling: object, kind: str, form: str) -> Answer:
        self.asked.append((kind, topology))
        while not self.gate.wait(0.005):
            compiling.expect()
        return self.answers.get(kind) or answer(kind)


def pretend(monkeypatch: object = None) -> Pretended:
    """From now on nothing is compiled; without a monkeypatch for good, as in a notebook of its own."""
    found = Pretended()
    put = monkeypatch.setattr if monkeypatch is not None else setattr
    put(home, "ask", found)
    put(home, "has_compiler", lambda: True)
    put(home, "KEPT", {})
    return found
