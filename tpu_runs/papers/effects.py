"""What a choice gains, by compiling it both ways: serial blocks, loops, and the compiler's own partitioner.

    >>> print(effects_table())

The second paper prints two of them: decoding with serial blocks takes 14 % longer (section 4.3), and all its low-level
optimisations together, loops among them, make a step 1.4 times as fast as what a compiler of 2022 partitioned and
scheduled by itself (section 3.5). Next file to read: `explained`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import mtfcore as mtf
from mtfcore.costs.serving.grids import orientations
from mtfcore.reference import rows as published_rows
from mtfcore.tables import Column, Table
from tpu_runs.papers.inference import by_compiler, changed, looping, machine
from tpu_runs.papers.machine import Machine
from tpu_runs.records import Record

SERIAL, FASTER = "more latency", "speed"  # the quantities of the two published figures
PHASES = {
    "decode, 64 sequences, int8": ("decode", "ws2d", "batch", 64, "int8"),
    "decode, 512 sequences, bf16": ("decode", "ws2d", "batch", 512, "bf16"),
    "prefill of 1 x 2,048 tokens, int8": ("prefill", "ws2d", "heads", 1, "int8"),
    "prefill of 64 x 2,048 tokens, bf16, weights gathered": ("prefill", "wg_xyz", "batch", 64, "bf16"),
}
LOOPS = (("latency", 3, ""), ("latency", 2, "x"))  # form, so many of the largest, of those along these axes
GATHERED = (("latency", 5, ""), ("throughput", 5, ""))
PARTITIONED = tuple(PHASES)[:3]  # of weights that are gathered the partitioner makes other programs altogether


@dataclass(frozen=True)
class Effect:
    """One program beside others that do the same otherwise."""

    name: str
    base: Machine
    others: tuple[tuple[str, Machine], ...]
    published: str = ""


@cache
def effects() -> tuple[Effect, ...]:
    """All of them, on 64 chips."""
    bases = {name: _base(*what) for name, what in PHASES.items()}
    serial = changed(bases["decode, 512 sequences, bf16"], block="serial")
    said = {row.quantity: row.printed for row in published_rows("second", "Headlines")}
    one = Effect("decode, 512 sequences, bf16", bases["decode, 512 sequences, bf16"], (("serial blocks", replace(serial, timeline=False)),),
                 f"{said[SERIAL]} % longer")  # fmt: skip
    return (one, *(_loops(name, base, said[FASTER]) for name, base in bases.items()))


def _base(phase: str, ffn: str, attention: str, batch: int, weights: str) -> Machine:
    setup = {
        "model": "palm-540b", "changes": {"heads": 64}, "topology": "v4:4x4x4", "input_tokens": 2048,
        "output_tokens": 64, "ffn": ffn, "batch": batch, "weights": weights, "cache": "bf16",
    }  # fmt: skip
    (wired,) = orientations(mtf.topology(setup["topology"]), ffn)
    return replace(machine(setup, phase, attention, wired), timeline=True)


def _loops(name: str, base: Machine, faster: str) -> Effect:
    kinds = GATHERED if base.params["ffn"] == "wg_xyz" else LOOPS
    loops = [(f"the {largest} largest{f' over {axes}' * bool(axes)} looped, {form}", looping(base, form, largest, axes))
             for form, largest, axes in kinds]  # fmt: skip
    whole = [("left to the compiler's partitioner", by_compiler(base))] if name in PARTITIONED else []
    return Effect(name, base, tuple((words, replace(one, timeline=one is loops[0][1])) for words, one in (*loops, *whole)),
                  f"{faster} times as fast as the partitioner's" if whole else "")  # fmt: skip


def machines() -> Iterator[Machine]:
    """Everything that is compiled for these."""
    for effect in effects():
        yield from (effect.base, *(one for _, one in effect.others))
