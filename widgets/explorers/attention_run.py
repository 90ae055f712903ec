"""Attention run for real, small: checked against the oracle first, then watched collective by collective.

    for progress in run_attention(cfg, "x:2 y:2 z:2", 16, "batch", pause_seconds=0.1):
        progress.value                     # Ran(program, tally, difference, state)

Mesh and heads are those of the settings, all else is short (`smaller`), and the steps are the same. The oracle is plain
`jax.numpy` on whole arrays (`mtf.single`). A run whose values differ by more than `TOLERANCE` of the largest is said to
be wrong and no traffic is shown. Next file to read: `watching`.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.events import Tally, expected_events
from mtfcore.model.configs import Config
from widgets.explorers.attention_program import LENGTH, attention_program, smaller
from widgets.explorers.inputs import example_inputs
from widgets.explorers.watching import MOST_DEVICES, watched
from widgets.frame import Progress
from widgets.numbers import count

TOLERANCE = 1e-4  # of the largest value: float32, sums in another order


@dataclass(frozen=True)
class Ran:
    """A run as far as it has come."""

    program: mtf.Program
    tally: Tally
    difference: float  # the largest from the oracle, over the largest value
    state: str  # "running", "finished", "stopped"


def small_program(cfg: Config, mesh: str, batch: int, by: str) -> mtf.Program:
    """The attention of these settings at a small size, in float32."""
    if (size := mtf.Mesh(mesh).size) > MOST_DEVICES:
        raise LayoutError(f"mesh '{mesh}' has {size:,} devices; a run here has up to {MOST_DEVICES}")
    short, sequences = smaller(cfg, mesh, batch)
    return attention_program(short, mesh, sequences, LENGTH, by, "f32", "f32")


def small_inputs(program: mtf.Program) -> dict[str, np.ndarray]:
    """Arrays that tell devices apart, weights scaled so that scores stay near one."""
    arrays = example_inputs(program)
    wide = {"wq": 1, "wkv": 1, "wo": -1}
    return {name: array / np.float32(np.sqrt(_summed(array, wide[name]))) if name in wide else array
            for name, array in arrays.items()}  # fmt: skip


def _summed(array: np.ndarray, first: int) -> int:
    return array.shape[0] if first > 0 else array.size // array.shape[-1]


def difference(program: mtf.Program, arrays: dict[str, np.ndarray]) -> float:
    """The largest difference between the devices' results and the oracle's, over the oracle's largest value."""
    found, expected = mtf.simulate(program)(**arrays), mtf.single(program)(**arrays)
    return max(float(np.abs(found[name] - expected[name]).max() / np.abs(expected[name]).max()) for name in expected)


def run_attention(cfg: Config, mesh: str, batch: int, by: str, pause: Any) -> Generator[Progress, None, Ran]:
    """Check, then watch; `pause(program)` gives the seconds for which each collective is held."""
    program = small_program(cfg, mesh, batch, by)
    total, arrays = expected_events(program), small_inputs(program)
    yield Progress(0, total, f"starting {count(program.mesh.size, 'simulated device')}; checking against the oracle")
    off = difference(program, arrays)
    if not off <= TOLERANCE:
        raise ArithmeticError(
            f"attention by {by} on '{mesh}' differs from the oracle by {off:.1e} of its largest value"
        )
    tally = Tally(program)
    for tally in watched(program, arrays, pause(program)):
        yield Progress(
            tally.n_events, total, f"{tally.n_events:,} of {total:,} events", Ran(program, tally, off, "running")
        )
    return Ran(program, tally, off, "finished" if tally.n_events == total else "stopped")
