"""How fast templates price: 10,000 settings of one step of a 540B model on one core, and planning what they need.

A setting is a batch, a length and a mesh, each its own; "all sizes" gives every size of the model as an array too.
"""

from __future__ import annotations

import numpy as np

import mtfcore as mtf
from mtfcore.costs.links.wiring import Leg
from mtfcore.costs.pricing.rates import rates
from mtfcore.costs.templates.template import Template
from mtfcore.model.phases import plan_phase

from .bench_plan import empty_caches
from .pairs import repeated, report

N = 10_000
PALM = {"layers": 118, "E": 18432, "F": 73728, "H": 64, "D": 256, "V": 256128}
PHASES = {"prefill": {"B": 512, "L": 2048}, "decode": {"B": 512, "S": 2048}}


def plan(phase: str, ffn: str, sizes: dict[str, int]) -> mtf.Program:
    """One step of the model at these sizes, 4 x 4 x 4 devices."""
    cfg = mtf.model.config(
        "palm-540b", layers=sizes["layers"], d_model=sizes["E"], d_ff=sizes["F"], heads=sizes["H"],
        head_size=sizes["D"], vocab=sizes["V"],
    )  # fmt: skip
    tokens = {"new_tokens": sizes.get("L", 1), "cached_tokens": sizes.get("S", 0)}
    return plan_phase(cfg, phase, "x:4 y:4 z:4", ffn=ffn, attention="batch", batch=sizes["B"], weights="int8", **tokens)


def main() -> None:
    """Print one line a phase and partition."""
    print("templates (measured, this computer, one core)")
    for phase, tokens in PHASES.items():
        for ffn in ("ws2d", "wg_xyz"):
            bench(phase, ffn, PALM | tokens)


def bench(phase: str, ffn: str, sizes: dict[str, int]) -> None:
    """Planning, evaluating and timing one template."""
    made = []
    planning = repeated(
        lambda: made.append(Template.planned(lambda some: plan(phase, ffn, some), sizes)), 3, empty_caches
    )
    template, at, rng = made[-1], rates("v4", "physical"), np.random.default_rng(1)
    mesh = {axis: 2 ** rng.integers(0, 4, N) for axis in "xyz"}
    legs = {axis: Leg(size, size >= 4, 4.5e10, "links", 1e-6) for axis, size in mesh.items()}
    tokens = {name: rng.integers(1, 64, N) * 64 for name in sizes if name in "BLS"}
    what = f"{phase} {ffn}, {len(template.rows)} rows"
    report(f"{what}: two plans and a template", planning.seconds(), "0.1 s")
    for words, some in (
        ("", sizes | tokens),
        (", all sizes", {n: np.full(N, size) for n, size in sizes.items()} | tokens),
    ):
        evaluated = repeated(lambda some=some: template.evaluate(some, mesh, fast_memory=1.28e8).values, 20)
        report(f"{what}: {N:,} evaluated{words}", evaluated.seconds(), "15 ms")
        timed = repeated(
            lambda some=some: template.seconds(some, mesh, at, lambda axes: [legs[a] for a in axes]).total, 20
        )
        report(f"{what}: {N:,} evaluated and timed{words}", timed.seconds(), "15 ms")


if __name__ == "__main__":
    main()
