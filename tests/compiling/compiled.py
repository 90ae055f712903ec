"""Programs that the tests compile, each once: a compiler's child takes seconds to start, and stays warm for all."""

from __future__ import annotations

import importlib.util
from functools import cache

import pytest

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.model.engine.programs import Shape, decoding, reading

MESH = "x:4 y:4 z:4"
SLICE = "v4:4x4x4"
# One process for all of them where tests run side by side: it owns the compiler's child.
needs_compiler = [
    pytest.mark.skipif(
        importlib.util.find_spec("libtpu") is None, reason="libtpu is not here: no wheel for this computer, or LITE=1"
    ),
    pytest.mark.xdist_group("compiling"),
]


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def small(mesh: str = "rows:2 cols:2", batch: int = 512, io: int = 1024, hidden: int = 2048) -> mtf.Program:
    """Two layers whose first matrix must be gathered over rows, and whose result is summed over cols."""
    sizes = f"batch:{batch} io:{io} hidden:{hidden}"
    at = {"w": "io:rows hidden:cols"}
    return mtf.plan(two_layers, mesh, "batch:rows hidden:cols", sizes=sizes, place=at, dtype="bf16")


@cache
def small_report(slice_: str = "v5e:2x2") -> CompiledReport:
    return mtf.compile(small(), slice_)


@cache
def palm(phase: str, ffn: str = "ws2d", attention: str = "batch", **options: object) -> mtf.Program:
    """A whole phase of 540B on 64 chips, heads padded as in the paper."""
    return mtf.model.plan_phase(
        mtf.model.config("palm-540b", heads=64), phase, MESH, ffn=ffn, attention=attention, **options
    )


def engine_shape(partition: str, sequences: int, length: int) -> Shape:
    cfg = mtf.model.config("palm-540b", heads=64)
    return Shape(cfg, mtf.Mesh(MESH), partition, sequences, length, "i8", "bf16", cfg.vocab)


@cache
def decode(turns: int = 1, drawn: bool = False) -> mtf.Program:
    """The engine's own program: a token of 64 sequences that hold up to 2,112."""
    return decoding(engine_shape("ws2d-batch", 64, 2112), turns, drawn)


@cache
def prefill() -> mtf.Program:
    """The engine's own program: a chunk of one prompt."""
    return reading(engine_shape("ws2d-heads", 1, 2048), 512)


@cache
def report_of(program: mtf.Program, partitioned: bool = False) -> CompiledReport:
    return mtf.compile(program, SLICE, partitioned=partitioned)
