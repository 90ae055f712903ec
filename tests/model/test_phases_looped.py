"""Prefill and decode with looped collectives: every partition's results against the plain program's, and its bytes."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from core.sweep.checking import counted_traffic, planned_traffic, quick

import mtfcore as mtf

BATCH, KEPT, MESH = 8, 4, "x:2 y:2 z:2"
FEEDFORWARD = ("ws1d", "ws2d", "wg_x", "wg_xy", "wg_xyz")
NEAR = {"f32": 1e-5, "bf16": 0.04, "int8": 0.04}  # of the largest logit: sums in another order, some roundings apart


@functools.cache
def arrays(weights: str):
    cfg, random = mtf.model.config("tiny-palm"), np.random.default_rng(0)
    stored = mtf.model.stored(cfg, mtf.model.initial(cfg), weights)
    tokens = random.integers(0, cfg.vocab, (BATCH, KEPT), np.int32)
    return cfg, stored, tokens


@functools.cache
def plain(kind: str, ffn: str, attention: str, weights: str) -> mtf.Program:
    more = {"cached_tokens": KEPT} if kind == "decode" else {"new_tokens": KEPT}
    cache = "f32" if weights == "f32" else "bf16"
    cfg = arrays(weights)[0]
    return mtf.model.plan_phase(
        cfg, kind, MESH, ffn=ffn, attention=attention, batch=BATCH, weights=weights, cache=cache, **more
    )


def results(program: mtf.Program, kind: str, weights: str):
    """Logits, and new keys and values, behind a cache of random numbers in decode."""
    _, stored, tokens = arrays(weights)
    given = {port.name: stored[port.name] for port in program.inputs if port.name in stored}
    random = np.random.default_rng(1)
    for port in program.inputs:
        if port.name.startswith("cache"):
            given[port.name] = random.normal(size=port.sharding.shape).astype(np.float32)
    run = quick(mtf.simulate(program))
    return run, run(tokens=tokens if kind == "prefill" else tokens[:, :1], **given)


CASES = [
    ("decode", "ws2d", "batch", "int8", 2, "latency"), ("prefill", "wg_xyz", "heads", "f32", 1, "throughput"),
]  # fmt: skip
REST = [
    (kind, ffn, attention, weights, 1 + n % 2, form)
    for n, (kind, ffn, attention, weights, form) in enumerate(
        (kind, ffn, attention, weights, form)
        for kind in ("prefill", "decode") for ffn in FEEDFORWARD for attention in ("heads", "batch")
        for weights in NEAR for form in ("throughput", "latency"))
]  # fmt: skip


def check(kind: str, ffn: str, attention: str, weights: str, ways: int, form: str, rows: int) -> None:
    program = plain(kind, ffn, attention, weights)
    looped = mtf.looped(program, ways, form, rows=rows)
    assert looped.link_bytes().by_axis.keys() == program.link_bytes().by_axis.keys()
    assert looped.link_bytes() == program.link_bytes() and looped.flops() == program.flops()
    assert any("loop" in step.params for step in looped.collectives())
    run, found = results(looped, kind, weights)
    counted = mtf.count(run.fn, *run.shapes)
    assert planned_traffic(looped) == counted_traffic(counted)
    _, expected = results(program, kind, weights)
    for name, value in expected.items():
        value, close = np.asarray(value, np.float32), np.asarray(found[name], np.float32)
        np.testing.assert_allclose(close, value, rtol=0, atol=NEAR[weights] * np.abs(value).max(), err_msg=name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_looped_gives_the_same(case):
    check(*case, rows=1)


@pytest.mark.long
@pytest.mark.parametrize("case", REST, ids=lambda case: "-".join(map(str, case)))
def test_every_partition_looped_gives_the_same(case):
    check(*case, rows=64)
