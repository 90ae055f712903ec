"""Prefill and decode under every partition, at random sizes and meshes: templates by structure against fresh plans."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.costs.pricing import price
from mtfcore.costs.step_time import rates
from mtfcore.costs.step_work import hbm_bytes, works
from mtfcore.costs.templates_family import Family
from mtfcore.costs.templates_routes import routes_on
from mtfcore.costs.wiring import wire
from mtfcore.errors import LayoutError
from mtfcore.model.phases import plan_phase

FAST = 3_000_000
FFN, ATTENTION, PHASES = ("ws1d", "ws2d", "wg_x", "wg_xy", "wg_xyz"), ("heads", "batch"), ("prefill", "decode")
MODELS = {"tiny-palm": {"H": 64}, "tiny-lm": {"H": 64}, "tiny-grouped": {"K": 8, "G": 8}}
CASES = [(*case, model) for case, model in zip(itertools.product(PHASES, FFN, ATTENTION), itertools.cycle(MODELS))]
DIVIDED = ("B", "H", "K", "G", "L", "D")


def family(phase: str, ffn: str, attention: str, model: str, weights: str) -> Family:
    def plan(s: dict[str, int], mesh: dict[str, int]) -> mtf.Program:
        heads = s["H"] if "H" in s else s["K"] * s["G"]
        kept = s.get("K", 1 if model == "tiny-palm" else heads)
        cfg = mtf.model.config(
            model, layers=s["layers"], d_model=s["E"], d_ff=s["F"], heads=heads, kv_heads=kept, head_size=s["D"],
            vocab=s["V"], max_length=10**6,
        )  # fmt: skip
        return plan_phase(
            cfg, phase, mtf.Mesh(mesh), ffn=ffn, attention=attention, batch=s["B"], new_tokens=s.get("L", 1),
            cached_tokens=s.get("S", 0), weights=weights,
        )  # fmt: skip

    return Family(plan, DIVIDED, fixed=("layers",))


def settings(rng: np.random.Generator, phase: str, model: str, n: int) -> tuple[dict, dict]:
    """Sizes and meshes, some of which cannot be: then planning says why."""
    sizes = {"layers": 8, "E": rng.integers(2, 20, n) * 512, "F": rng.integers(2, 20, n) * 1024, "D": 128, "V": 32768}
    tokens = {"L": rng.integers(1, 64, n) * 64} if phase == "prefill" else {"S": rng.integers(1, 4096, n)}
    mesh = {axis: 2 ** rng.integers(0, 4, n) for axis in "xyz"}
    return {**sizes, **MODELS[model], "B": 2 ** rng.integers(2, 11, n), **tokens}, mesh


def one(made: Family, number: int, sizes: dict, mesh: dict) -> list[dict[str, int]]:
    each = made.at(np.array([number]), sizes, mesh)
    return [{name: int(np.ravel(value)[0]) for name, value in settings_.items()} for settings_ in each]


def possible(made: Family, sizes: dict, mesh: dict, n: int) -> dict[int, mtf.Program]:
    found = {}
    for number in range(n):
        try:
            found[number] = made.plan(*one(made, number, sizes, mesh))
        except LayoutError:  # heads or a batch that do not divide
            continue
    return found


def totals(program: mtf.Program) -> list[int]:
    """FLOPs, bytes held before collectives, HBM bytes."""
    asked = [(w.step.times, w.step.flops, w.step.n_bytes, hbm_bytes(w, program.mesh, FAST)) for w in works(program)]
    return [sum(times * amounts[place] for times, *amounts in asked) for place in range(3)]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_every_setting_asks_what_a_fresh_plan_asks(case):
    phase, _, _, model = case
    rng = np.random.default_rng(CASES.index(case))
    made = family(*case, weights=("int8", "bf16")[CASES.index(case) % 2])
    sizes, mesh = settings(rng, phase, model, 7)
    programs = possible(made, sizes, mesh, 7)
    numbers = np.array([*programs])
    sizes, mesh = made.at(numbers, sizes, mesh)
    seen = 0
    for template, members in made.groups(sizes, mesh):
        found = template.evaluate(*made.at(members, sizes, mesh), fast_memory=FAST)
        ours = [(found.times * amounts).sum(0) for amounts in (found.flops, found.n_bytes, found.hbm_bytes)]
        for place, member in enumerate(members):
            assert [int(amount[place]) for amount in ours] == totals(programs[numbers[member]])
            seen += 1
    assert seen == len(programs) >= 2


def test_seconds_of_all_settings_are_those_of_their_programs():
    """Permutes too: wg_xy turns the embedding's table."""
    made, at = family("decode", "wg_xy", "batch", "tiny-palm", "int8"), rates("v4", "calibrated")
    sizes, mesh = settings(np.random.default_rng(3), "decode", "tiny-palm", 6)
    programs = possible(made, sizes, mesh, 6)
    numbers = np.array([*programs])
    sizes, mesh = made.at(numbers, sizes, mesh)
    for template, members in made.groups(sizes, mesh):
        for member in members:  # one by one: each mesh is laid over the torus in its own way
            program = programs[numbers[member]]
            wired = wire(program.mesh, "v4:8x8x8")
            found = template.seconds(*made.at(np.array([member]), sizes, mesh), at, wired.legs, routes_on([wired]))
            cost = price(program, "v4:8x8x8", "calibrated", wired)
            assert abs(found.total - cost.additive_seconds) <= 1e-12 * cost.additive_seconds


def test_a_size_on_which_the_structure_depends_is_kept_apart():
    """Sums of at least 64 rows are scattered, of fewer not, whatever divides."""

    def plan(sizes: dict[str, int], mesh: dict[str, int]) -> mtf.Program:
        @mtf.function
        def product(x: "a b", w: "b c"):
            return mtf.einsum(x, w, out="a:x c" if sizes["a"] >= 64 else "a c")

        said = " ".join(f"{name}:{size}" for name, size in sizes.items())
        return mtf.plan(product, mtf.Mesh(mesh), place={"x": "a b:x", "w": "b:x c"}, sizes=said)

    sizes, mesh = {"a": np.array([32, 48, 128, 192, 48]), "b": 64, "c": 5}, {"x": 4}
    groups = [(template.rows[1].kind, list(members)) for template, members in Family(plan, ("b",)).groups(sizes, mesh)]
    assert groups == [("all_reduce", [0]), ("all_reduce", [1, 4]), ("reduce_scatter", [2]), ("reduce_scatter", [3])]
    by_size = [list(members) for _, members in Family(plan, ("b",), fixed=("a",)).groups(sizes, mesh)]
    assert sorted(by_size) == [[0], [1, 4], [2], [3]]
