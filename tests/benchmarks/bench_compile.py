"""The plan's own steps against XLA's partitioner, both compiled for 64 chips of v4 that nobody here owns.

The partitioner gets whole arrays with the plan's placements as constraints. Bytes are those of one device in one run;
seconds are modelled from compiled schedule: the compiler's cycles, and the links that nothing hides. How long
compiling takes on this computer stands last.
"""

from __future__ import annotations

import time

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.errors import DeviceError
from mtfcore.numbers import format_bytes, format_seconds

SLICE = "v4:4x4x4"
PHASES = {
    "decode, batch 64, int8": ("decode", {"attention": "batch", "batch": 64, "cached_tokens": 2048, "weights": "int8"}),
    "decode, batch 512, bf16": ("decode", {"attention": "batch", "batch": 512, "cached_tokens": 2048}),
    "prefill of 2,048 tokens, int8": ("prefill", {"batch": 1, "new_tokens": 2048, "weights": "int8"}),
}  # fmt: skip


def compiled(phase: str, options: dict, partitioned: bool) -> tuple[CompiledReport, float]:
    """One phase of the 540B model on a 2D weight-stationary layout, and what compiling took."""
    cfg = mtf.model.config("palm-540b", heads=64)
    program = mtf.model.plan_phase(cfg, phase, "x:4 y:4 z:4", ffn="ws2d", **options)
    start = time.perf_counter()
    return mtf.compile(program, SLICE, partitioned=partitioned), time.perf_counter() - start


def line(name: str, report: CompiledReport, took: float) -> str:
    """One report in one line."""
    start = f"    {name:<12} "
    if report.refusal:
        return f"{start}does not fit: {report.refusal}"
    parts = (
        f"sends {format_bytes(report.link_bytes):>9}", f"cycles {format_seconds(report.compute_seconds):>8}",
        f"exposed links {format_seconds(report.exposed_link_seconds):>8}",
        f"in all {format_seconds(report.seconds):>8}",
        f"{format_bytes(report.memory.total):>9} a device", f"compiled in {format_seconds(took)}",
    )  # fmt: skip
    return start + ", ".join(parts)


def main() -> None:
    """Print both ways for each phase, and their ratios."""
    print(f"540B on {SLICE}, explicit against the compiler's partitioner (modelled from compiled schedule)")
    for name, (phase, options) in PHASES.items():
        try:
            (ours, took), (theirs, theirs_took) = (compiled(phase, options, way) for way in (False, True))
        except DeviceError as error:
            print(f"  {name}: {error}")
            return
        plan = format_bytes(ours.program.link_bytes().total)
        print(f"  {name}: planned to send {plan} a device")
        print(line("explicit", ours, took))
        print(line("partitioned", theirs, theirs_took))
        if ours.fits and theirs.fits:
            bytes_, seconds = ours.link_bytes / theirs.link_bytes, ours.seconds / theirs.seconds
            never = "" if bytes_ <= 1 else ", MORE than the partitioner"
            print(f"    ratio: bytes {float(bytes_):.3f} (wanted at most 1{never}), seconds {seconds:.3f}")
