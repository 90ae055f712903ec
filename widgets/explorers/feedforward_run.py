"""The chosen layout's layer at a small size: a mesh of few devices, the same steps, and an answer that is checked.

    >>> small = small_layer("ws2d", Layer(18432, 73728), (4, 4, 4))
    >>> small.mesh, small.layer.batch, small.layer.d_model, small.layer.d_ff
    ((4, 4, 4), 2, 64, 256)

The mesh stays while simulated devices suffice; else its longest axes are halved. E and F keep their ratio as nearly as
they can be cut, and there are two sequences for each part of the batch. The answer is laid beside that of the oracle,
plain `jax.numpy` on whole arrays. Next file to read: `watching`.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.events import Tally
from widgets.explorers.inputs import example_inputs
from widgets.explorers.watching import watched
from widgets.figures.feedforward import Layer, Mesh3, parts_of, program_of
from widgets.numbers import count, origin, quantity

MOST_DEVICES, SMALLEST = 64, 64
SLOW_SECONDS = 2.0  # about how long a run takes, so that eyes can follow
CLOSE = 1e-5  # of the largest value of the oracle's answer, in f32


@dataclass(frozen=True)
class Small:
    """What is run: the same layout and options, smaller."""

    layout: str
    layer: Layer
    mesh: Mesh3

    @property
    def program(self) -> mtf.Program:
        """Its planned program, in f32."""
        return program_of(self.layout, self.layer, self.mesh, "f32")

    @property
    def words(self) -> str:
        """Its sizes."""
        x, y, z = self.mesh
        one = self.layer
        return f"x:{x} y:{y} z:{z}, B {one.batch}, L {one.length}, E {one.d_model}, F {one.d_ff}, f32"


@dataclass(frozen=True)
class Ran:
    """A run that has ended: what was sent, and how far its answer is from the oracle's."""

    small: Small
    tally: Tally
    error: float

    @property
    def same(self) -> bool:
        """Whether both answers are the same, as f32 can say."""
        return self.error <= CLOSE

    @property
    def sentence(self) -> str:
        """What this run has shown, in one line; nothing of how long it took."""
        n, sent = count(self.small.program.mesh.size, "simulated device"), self.tally.total
        if not self.same:
            return f"Run on {n}: the answer of {self.small.layout} is NOT that of one device."
        told = origin(quantity(sent, "iB"), "counted")
        as_planned = "as planned" if sent == self.small.program.link_bytes().total else "which is not as planned"
        return f"Run on {n}: the answer of {self.small.layout} is that of one device; each sent {told}, {as_planned}."

    @property
    def details(self) -> str:
        """At which size, and how near."""
        return f"{self.small.words}; largest difference {self.error:.0e} of the oracle's largest value."


def small_layer(layout: str, layer: Layer, mesh: Mesh3) -> Small:
    """The run of a layer that a simulated mesh can hold."""
    mesh = smaller_mesh(mesh)
    parts = parts_of(layout, mesh)
    ratio = layer.d_ff / layer.d_model
    d_model = _rounded(SMALLEST, parts["E"])
    d_ff = _rounded(max(ratio * d_model, 1), parts["F"])
    batch, length = max(2 * parts["B"], 2), min(layer.length, 2)
    return Small(layout, replace(layer, d_model=d_model, d_ff=d_ff, batch=batch, length=length), mesh)


def smaller_mesh(mesh: Mesh3) -> Mesh3:
    """The same with its longest axes halved until few devices are left."""
    sizes = list(mesh)
    while math.prod(sizes) > MOST_DEVICES:
        longest = max(range(3), key=lambda n: sizes[n])
        sizes[longest] = max(sizes[longest] // 2, 1)
    return (sizes[0], sizes[1], sizes[2])


def _rounded(size: float, parts: int) -> int:
    """The multiple of `parts` nearest to a size, at least one."""
    return max(round(size / parts), 1) * parts


def run_watched(small: Small, quick: bool = False) -> Generator[Tally, None, Ran]:
    """Run it with marks, giving what has been sent so far; then lay its answer beside the oracle's."""
    program = small.program
    arrays = example_inputs(program)
    turns = sum(step.times for step in program.collectives())
    pause = 0.0 if quick else min(0.3, SLOW_SECONDS / max(turns, 1))
    tally = Tally(program)
    running = watched(program, arrays, pause)
    try:
        while True:
            tally = next(running)
            yield tally
    except StopIteration as end:
        return Ran(small, tally, difference(end.value, mtf.single(program)(**arrays)))
    finally:
        running.close()


def difference(answer: Any, expected: Any) -> float:
    """The largest difference, in parts of the largest expected value; infinite where a value is not finite."""
    found, right = (np.asarray(each, dtype=np.float64) for each in (answer, expected))
    if not np.isfinite(found).all():
        return math.inf
    return float(np.abs(found - right).max() / (np.abs(right).max() or 1.0))
