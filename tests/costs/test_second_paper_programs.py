"""The second paper's closed forms equal planned programs, in bytes, and priced ones, in the paper's seconds."""

from __future__ import annotations

import pytest

import mtfcore as mtf
from mtfcore.costs.second_paper import LAYOUTS, attention, collectives, feedforward, serving
from mtfcore.costs.second_paper.programs import paper_bytes, paper_steps, places, planned
from mtfcore.errors import LayoutError
from mtfcore.model.phases import plan_phase

MESHES = ((4, 2, 2), (2, 4, 2), (2, 2, 4), (1, 4, 2), (4, 1, 2), (2, 4, 1), (1, 1, 8), (8, 1, 1))
TOKENS = (32, 3)  # sequences, tokens of each
SIZES = (96, 64, 256)  # tokens, d_model, d_ff


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("weights", ["", "i8"])
def test_a_feedforward_layer_moves_what_its_formula_says(layout, mesh, gated, weights):
    plan = planned(layout, mesh, *TOKENS, *SIZES[1:], gated=gated, weights=weights)
    how = {"gated": gated, "weight_itemsize": 1 if weights else None}
    assert paper_bytes(plan) == feedforward.layout_bytes(layout, *SIZES, *mesh, **how)
    assert sum(n_bytes for _, n_bytes in paper_steps(plan)) == paper_bytes(plan)
    exact = feedforward.layout_bytes(layout, *SIZES, *mesh, **how, exact=True)
    assert plan.link_bytes().total == pytest.approx(exact, rel=1e-12)
    assert {port.name: port.sharding.text() for port in plan.inputs}.keys() == places(layout, gated).keys()


def body(cfg: mtf.model.Config, by: str, length: int, mesh: str) -> mtf.Program:
    """One layer of a phase; the sums of its norms, in f32, are not in the paper's count."""
    phase = "prefill" if length > 1 else "decode"
    plan = plan_phase(
        cfg, phase, mesh, ffn="ws2d", attention=by, batch=32, new_tokens=length, cached_tokens=0 if length > 1 else 64
    )
    return next(step.body for step in plan.steps if step.kind == "repeat")


@pytest.mark.parametrize("kv_heads", [16, 1])
@pytest.mark.parametrize("by", ["heads", "batch"])
@pytest.mark.parametrize("block", ["parallel", "serial"])
@pytest.mark.parametrize("length", [1, 8])
def test_a_block_moves_what_its_formula_says(kv_heads, by, block, length):
    shape = {"d_model": 256, "d_ff": 1024, "heads": 16, "kv_heads": kv_heads, "head_size": 32}
    cfg = mtf.model.config("tiny-palm", block=block, **shape)
    layer = body(cfg, by, length, "x:4 y:2 z:2")
    how = {"x": 4, "yz": 4, "by": by, "parallel": block == "parallel", "gated": True}
    without_norms = [step for step in layer.collectives() if step.dtype != "f32"]
    exact = attention.block_bytes(32 * length, **shape, **how, exact=True)
    assert sum(step.link_bytes for step in without_norms) == pytest.approx(exact, rel=1e-12)
    assert paper_bytes(layer, without="f32") == attention.block_bytes(32 * length, **shape, **how)


@pytest.mark.parametrize("ffn", ["wg_x", "wg_xy", "wg_xyz"])
def test_int8_weights_halve_what_is_gathered_of_them(ffn):
    """Section 3.6: weights move as they are stored, activations as they are computed."""
    cfg = mtf.model.config("tiny-palm", d_model=256, d_ff=1024, heads=16, head_size=32)
    moved = {}
    for weights in ("bf16", "int8"):
        plan = plan_phase(cfg, "prefill", "x:4 y:2 z:2", ffn=ffn, attention="batch", batch=32, new_tokens=8,
                          weights=weights)  # fmt: skip
        sent = next(step.body for step in plan.steps if step.kind == "repeat").collectives()
        matrices = [step for step in sent if {"E"} < set(step.after.names) and "B" not in step.after.names]
        moved[weights] = sum(step.link_bytes for step in matrices)
    over = {"wg_x": 4, "wg_xy": 8, "wg_xyz": 16}[ffn]
    in_ffn = feedforward.gathered_weights(256, 1024, over, 16, itemsize=1, gated=True, exact=True)
    assert moved["bf16"] == 2 * moved["int8"] > 2 * in_ffn
    in_attention = 2 * 256 * (16 + 1) * 32 * (over - 1) / 16
    assert moved["int8"] == in_ffn + in_attention


def test_a_parallel_block_saves_one_gather_and_one_scatter_of_e():
    shape = {"d_model": 256, "d_ff": 1024, "heads": 16, "kv_heads": 1, "head_size": 32, "x": 4, "yz": 4}
    parallel, serial = (attention.block_bytes(32, **shape, parallel=way) for way in (True, False))
    assert serial - parallel == attention.residual_bytes(32, 256, 4, 4) == 2 * 32 * 256 // 4 * 2


def test_by_batch_costs_exchanges_and_by_heads_one_shared_head_costs_gathers():
    """What decoding by batch pays for a cache n times as small."""
    palm = {"heads": 64, "kv_heads": 1, "head_size": 256, "x": 4, "yz": 16}
    by_batch, by_heads = (attention.attention_bytes(512, **palm, by=by) for by in ("batch", "heads"))
    exchanged = 2 * (64 + 1) * 512 * 256 // 64 * 2
    assert by_batch - 2 * (64 + 1) * 512 * 256 // 16 * 2 == exchanged
    assert by_heads - 2 * 64 * 512 * 256 // 16 * 2 == 2 * (2 * 512 * 256 // 16 + 512 * 256) * 2


def test_grouped_attention_by_heads_and_unknown_ways_are_refused():
    with pytest.raises(LayoutError, match="multihead and multiquery attention, not 8 of 64 heads"):
        attention.attention_bytes(1, 64, 8, 128, 4, 16, by="heads")
    with pytest.raises(LayoutError, match="no attention by 'sequence'"):
        attention.attention_bytes(1, 64, 8, 128, 4, 16, by="sequence")


# ---- and in seconds: `mtf.price(..., model="paper")`

V4_LINKS, V4_PEAK, V4_HBM = 270e9, 275e12, 1.2e12  # section 4: all links of a chip, bf16, HBM


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grid", ["4x4x4", "4x4x8", "2x2x4"])
@pytest.mark.parametrize("exact", [False, True])
def test_a_priced_feedforward_layer_takes_what_its_formulas_say(layout, grid, exact):
    mesh = tuple(map(int, grid.split("x")))
    n = mesh[0] * mesh[1] * mesh[2]
    plan = planned(layout, mesh, n, 3, 256, 1024)
    cost = mtf.price(plan, f"v4:{grid}", model="paper", exact=exact)
    n_bytes = feedforward.layout_bytes(layout, 3 * n, 256, 1024, *mesh, exact=exact)
    assert cost.link_seconds == pytest.approx(n_bytes / V4_LINKS, rel=1e-12)
    assert cost.compute_seconds == pytest.approx(serving.flops_per_token(2 * 256 * 1024) * 3 / V4_PEAK, rel=1e-12)
    assert cost.hop_seconds == 0
    if layout in ("ws1d", "ws2d"):  # matrices are read where they lie
        assert cost.hbm_seconds == pytest.approx(serving.weight_seconds(2 * 256 * 1024, n, V4_HBM), rel=1e-12)


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
@pytest.mark.parametrize("group", [4, 8])
def test_a_priced_collective_is_that_of_appendix_a_1(kind, group):
    before, after = {
        "all_gather": ("B:xy E:z", "B:xy E"), "reduce_scatter": ("B:xy E partialsum:z", "B:xy E:z"),
        "all_reduce": ("B:xy E partialsum:z", "B:xy E"),
    }[kind]  # fmt: skip

    @mtf.function
    def moved(t: "B E"):
        return mtf.reshard(t, after)

    plan = mtf.plan(moved, f"x:4 y:4 z:{group}", sizes="B:16 E:1048576", place={"t": before}, dtype="bf16")
    assert [step.kind for step in plan.collectives()] == [kind]
    for exact in (False, True):
        cost = mtf.price(plan, f"v4:4x4x{group}", model="paper", exact=exact)
        form = getattr(collectives, kind)(2 * 1048576, group, V4_LINKS, exact)
        assert cost.link_seconds == pytest.approx(form, rel=1e-12)


@pytest.mark.parametrize("by", ["heads", "batch"])
def test_a_priced_layer_takes_what_its_formula_says(by):
    """The decode step's own link time, less that of its norms' sums, its embedding and its logits."""
    shape = {"d_model": 256, "d_ff": 1024, "heads": 64, "kv_heads": 1, "head_size": 32}
    cfg = mtf.model.config("tiny-palm", **shape, layers=3)
    plan = plan_phase(cfg, "decode", "x:4 y:4 z:4", ffn="ws2d", attention=by, batch=64, cached_tokens=128)
    cost = mtf.price(plan, "v4:4x4x4", model="paper")
    sent = [each for each in cost.steps if each.step.is_collective and each.step.times == 3]
    n_bytes = 3 * attention.block_bytes(64, **shape, x=4, yz=16, by=by, gated=True)
    seconds = sum(each.seconds for each in sent if each.step.dtype != "f32")
    assert seconds == pytest.approx(n_bytes / V4_LINKS, rel=1e-9)
