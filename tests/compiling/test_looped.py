"""Looped collectives in a TPU's compiled schedule: less link time is exposed than with the plain collectives.

Exposed link seconds come from the compiler's own schedule and cycles, and our links: modelled from compiled schedule.
"""

from __future__ import annotations

from functools import cache

import pytest
from compiling.compiled import MESH, SLICE, needs_compiler

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.compiling.timing import links
from mtfcore.overlap import pays

pytestmark = needs_compiler


@mtf.function
def layer(x: "B E", w: "E F", v: "F E"):
    """A gather before the first product, a reduce-scatter behind the second."""
    h = mtf.relu(mtf.einsum(x, w, out="B F:x", at=("B E", "E F:x")))
    return mtf.einsum(h, v, out="B E:x", at=("B F:x", "F:x E"))


@cache
def report(form: str = "") -> CompiledReport:
    place = {"x": "B E:x", "w": "E F:x", "v": "F:x E"}
    program = mtf.plan(layer, "x:4", sizes="B:1024 E:2048 F:8192", place=place, dtype="bf16")
    looped = mtf.looped(program, 2, form) if form else program
    return mtf.compile(looped, "v5e:2x2")


def test_rings_hide_links_in_the_compiled_schedule():
    plain, looped = report(), report("latency")
    assert plain.exposed_link_seconds == pytest.approx(plain.link_seconds)
    assert looped.exposed_link_seconds < plain.exposed_link_seconds / 2
    assert looped.link_bytes == plain.link_bytes


def test_every_permute_is_compiled_as_planned_and_runs_beside_something():
    looped = report("latency")
    assert {sent.kind for sent in looped.collectives} == {"permute"}
    assert all(sent.is_async for sent in looped.collectives)
    assert len(looped.collectives) == len(looped.program.collectives()) == 6
    assert {links(sent) for sent in looped.collectives} == {(("x", 1),), (("x", -1),)}  # a direction for each


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("phase", "options"), [
    ("decode", {"attention": "batch", "batch": 512, "cached_tokens": 2048}),
    ("prefill", {"attention": "heads", "batch": 8, "new_tokens": 2048}),
])  # fmt: skip
def test_the_540b_phases_expose_less(phase, options):
    cfg = mtf.model.config("palm-540b", heads=64)
    plan = mtf.model.plan_phase(cfg, phase, MESH, ffn="ws2d", **options)
    looped = mtf.looped(plan, form="latency", where=pays(plan, SLICE, form="latency"))
    before, after = mtf.compile(plan, SLICE), mtf.compile(looped, SLICE)
    assert after.exposed_link_seconds < before.exposed_link_seconds
