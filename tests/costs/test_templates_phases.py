"""Prefill and decode under every partition: templates at random sizes and meshes against fresh plans."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from costs.test_templates import of_rows, of_steps, steps_of

import mtfcore as mtf
from mtfcore.costs.links.wiring import wire
from mtfcore.costs.pricing.price import price
from mtfcore.costs.pricing.rates import rates
from mtfcore.costs.templates.routes import routes_on
from mtfcore.costs.templates.template import Template
from mtfcore.model.configs import MADE_UP
from mtfcore.model.phases import plan_phase

FFN, ATTENTION, PHASES = ("ws1d", "ws2d", "wg_x", "wg_xy", "wg_xyz"), ("heads", "batch"), ("prefill", "decode")
MODELS = {"tiny-palm": {"H": 64}, "tiny-lm": {"H": 64}, "tiny-grouped": {"K": 8, "G": 8}}
CASES = [(*case, model) for case, model in zip(itertools.product(PHASES, FFN, ATTENTION), itertools.cycle(MODELS))]
LIKE = {"x": 2, "y": 4, "z": 8}  # of two axes that are gathered the shorter goes first, so their order is kept
Plan = Callable[[dict[str, int], dict[str, int]], mtf.Program]


def planner(phase: str, ffn: str, attention: str, model: str, weights: str) -> Plan:
    def plan(s: dict[str, int], mesh: dict[str, int]) -> mtf.Program:
        heads = s["H"] if "H" in s else s["K"] * s["G"]
        kept = s.get("K", 1 if model == "tiny-palm" else heads)
        cfg = mtf.model.config(model).but(
            name=MADE_UP, layers=s["layers"], d_model=s["E"], d_ff=s["F"], heads=heads, kv_heads=kept,
            head_size=s["D"], vocab=s["V"], max_length=10**6,
        )  # fmt: skip
        return plan_phase(
            cfg, phase, mtf.Mesh(mesh), ffn=ffn, attention=attention, batch=s["B"], new_tokens=s.get("L", 1),
            cached_tokens=s.get("S", 0), weights=weights,
        )  # fmt: skip

    return plan


def sizes_of(phase: str, model: str, rng: random.Random) -> dict[str, int]:
    """Powers of 2 times odd numbers: an axis of the mesh divides all of them or none."""
    tokens = {"S": rng.randint(9, 4096)} if phase == "decode" else {"L": 64 * rng.choice((3, 5, 27))}
    units = {"E": 1024, "F": 4096, "D": 128, "V": 32768, "B": 512, **MODELS[model]}
    return (
        {name: unit * rng.choice((1, 3, 5)) for name, unit in units.items()} | tokens | {"layers": rng.randint(2, 99)}
    )


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_every_step_is_that_of_a_fresh_plan(case):
    """Of settings that divide alike; then FLOPs, bytes, groups, turns and HBM bytes are equal, step by step."""
    rng = random.Random("-".join(case))
    plan = planner(*case, weights=rng.choice(("int8", "bf16")))
    some = sizes_of(case[0], case[-1], rng)
    template, usual, same = Template.planned(lambda s: plan(s, LIKE), some), steps_of(plan(some, LIKE)), 0
    for mesh in (LIKE, {"x": 2, "y": 4, "z": 4}, {"x": 4, "y": 8, "z": 8}):
        sizes = sizes_of(case[0], case[-1], rng)
        program = plan(sizes, mesh)
        if steps_of(program) == usual:
            assert of_rows(template, sizes, mesh) == of_steps(program)
            same += 1
    assert same  # at least on the first mesh


@pytest.mark.parametrize("case", [CASES[7], CASES[13], CASES[17]], ids="-".join)
def test_seconds_are_those_of_the_priced_program(case):
    """With the permutes of wg_xy, on the real grid."""
    rng = random.Random("-".join(case))
    plan = planner(*case, weights="int8")
    some = sizes_of(case[0], case[-1], rng)
    template = Template.planned(lambda s: plan(s, LIKE), some)
    sizes = {**some, "E": 4 * some["E"], "B": 3 * some["B"]}
    program = plan(sizes, LIKE)
    assert steps_of(program) == steps_of(plan(some, LIKE))
    for where in ("v4:4x4x4", "v5e:8x8"):
        wired = wire(program.mesh, where)
        found = template.seconds(sizes, LIKE, rates(where.split(":")[0], "calibrated"), wired.legs, routes_on([wired]))
        cost = price(program, where, "calibrated", wired)
        assert abs(found.total - cost.additive_seconds) <= 1e-12 * cost.additive_seconds
