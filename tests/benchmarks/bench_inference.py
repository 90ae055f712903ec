"""How many configurations `mtf.costs.inference` works out a second, on one core, and how long a single one takes.

A configuration is a setting under one partition, prefill and decode, memory and the choice included. "random" draws the
model, the chip, the grid, batch, lengths and dtypes of every setting; cold, every structure has yet to be planned.
"""

from __future__ import annotations

import time

import numpy as np

import mtfcore as mtf
from mtfcore.numbers import format_seconds

N, PARTITIONS = 20_000, 10
MODELS = ("palm-540b", "palm-62b", "llama-3-70b")
SLICES = ("v4:4x4x4", "v4:4x4x8", "v5e:8x8", "v5p:4x4x4", "h100:8x8")
WANTED = 100_000


def main() -> None:
    """Print one line for each kind of question."""
    print("inference (measured, this computer, one core)")
    rng = np.random.default_rng(0)
    asked = {
        "one model and slice": {"cfg": "palm-62b", "topology": "v4:4x4x4"},
        "random": {"cfg": drawn(rng, MODELS), "topology": drawn(rng, SLICES), "weights": drawn(rng, ("bf16", "int8"))},
    }
    numbers = {"batch": 2 ** rng.integers(0, 10, N), "input_tokens": 64 * rng.integers(1, 33, N), "output_tokens": 64}
    for name, some in asked.items():
        for state in ("cold", "warm"):
            begin = time.process_time()
            mtf.costs.inference(**some, **numbers)
            rate = N * PARTITIONS / (time.process_time() - begin)
            goal = f", wanted {WANTED:,}" if state == "warm" else ""
            print(f"  {name}, {state}: {rate:,.0f} configurations a second of CPU{goal}")
    single()


def drawn(rng: np.random.Generator, words: tuple[str, ...]) -> np.ndarray:
    """A word for each setting."""
    return np.array(words, object)[rng.integers(0, len(words), N)]


def single() -> None:
    """One setting with all partitions, as a slider asks for it."""
    for state, batch in (("first", 48), ("again, another batch", 80)):
        begin = time.perf_counter()
        mtf.costs.inference("palm-8b", "v4:2x2x4", batch=batch)
        print(f"  a single setting, {state}: {format_seconds(time.perf_counter() - begin)}")
