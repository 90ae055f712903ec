"""The second paper's partitions: data, the collectives they cost, where attention lies, and what cannot be.

Source: arXiv 2211.05102, sections 3.2 to 3.4, figures 2 and 5, appendix A.2.
"""

from __future__ import annotations

import pytest

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.model import block as blocks
from mtfcore.model.phases import plan_placed
from mtfcore.model.places import placement
from mtfcore.model.serving import FEEDFORWARD, SERVING
from mtfcore.model.storing import stored_texts

CUBE = "x:4 y:4 z:4"
PALM = mtf.model.config("palm-540b", heads=64)
E, F = PALM.d_model, PALM.d_ff
TOKENS = 512


def told(program):
    """Kind, axes and bytes held of every collective, in order."""
    return [(step.kind, "".join(step.axes), step.n_bytes) for step in program.collectives()]


# ---- the data ---------------------------------------------------------------------------------------------------

PAPER = {  # figures 2 and A.1: x between layers, x and W_in and h as multiplied, in the paper's notation
    "ws1d": ("BLE_xyz", "BLE", "EF_xyz", "BLF_xyz"),
    "ws2d": ("BLE_xyz", "BLE_x", "E_xF_yz", "BLF_yz"),
    "wg_x": ("B_xLE_yz", "B_xLE", "EF_yz", "B_xLF_yz"),
    "wg_xy": ("B_xyLE_z", "B_xyLE", "EF_z", "B_xyLF_z"),
    "wg_xyz": ("B_xyzLE", "B_xyzLE", "EF", "B_xyzLF"),
}


@pytest.mark.parametrize("name", PAPER)
def test_each_tensor_lies_where_the_paper_has_it(name):
    sites = FEEDFORWARD[name].sites
    for site, text in zip(("residual", "x", "w_in", "h"), PAPER[name], strict=True):
        assert mtf.Sharding(sites[site]).same_sets(mtf.Sharding.from_paper(text)), site
    assert mtf.Sharding(sites["stored"]) == mtf.Sharding("E F:xyz" if name == "ws1d" else "E:x F:zy")


def test_weights_are_gathered_over_innermost_axes_only():
    for ffn in FEEDFORWARD.values():
        assert ffn.stored_e.startswith(ffn.e) and ffn.stored_f.startswith(ffn.f), ffn.name


def test_they_are_partitions_like_the_first_papers():
    assert {"ws1d-heads", "ws2d-batch", "wg_x-heads", "wg_xy-batch", "wg_xyz-heads"} <= set(mtf.model.partitions)
    for name, partition in SERVING.items():
        assert mtf.model.partitions[name] is partition and partition.name == name
        assert "2211.05102" in partition.source and partition.axes == ("x", "y", "z")
        assert mtf.model.read_layout(name) == partition.layout
    assert mtf.model.partitions["wg_x-batch"].words == "B:x E:zy"


# ---- the feedforward layer at PaLM 540B's sizes -----------------------------------------------------------------


def feedforward(name, tokens, *, gated=False, pinned=True, search=False):
    """One feedforward layer of one partition on 4 x 4 x 4: x and the result lie as the residual stream does."""
    cfg = PALM if gated else PALM.but(activation="gelu")
    where = placement(cfg, "decode", mtf.Mesh(CUBE), SERVING[f"{name}-heads"], batch=tokens)
    where = where if pinned else where.free()
    texts = {n: text.split(" ", 1)[1] for n, text in stored_texts(cfg).items() if n in ("w_in", "w_in_gate", "w_out")}

    def call(x, **w):
        return mtf.reshard(blocks.feedforward(cfg, x, w, where.pins), "B L E")

    place = {n: where.place[n] for n in texts}
    fn = Function.of("feedforward", {"x": f"B L E:{E}", **texts}, call)
    return mtf.plan(fn, CUBE, where.layout, sizes=f"B:{tokens} L:1", place=place, dtype="bf16", search=search)


def expected(name, tokens, inputs):
    """What figure 2 and appendix A.2 have, in bytes held before: `inputs` is 2 where a gate comes with W_in."""
    x, f = 2 * tokens * E, 2 * tokens * F  # bytes of all activations, bf16
    w = 2 * E * F // 64  # of each device's part of one matrix
    return {
        "ws1d": [("all_gather", "xyz", x // 64), ("reduce_scatter", "xyz", x)],
        "ws2d": [
            ("all_gather", "zy", x // 64), ("reduce_scatter", "x", inputs * f // 16), ("all_gather", "x", f // 64),
            ("reduce_scatter", "zy", x // 4),
        ],
        "wg_x": [
            ("all_gather", "zy", x // 64), ("all_gather", "x", inputs * w), ("all_gather", "x", w),
            ("reduce_scatter", "zy", x // 4),
        ],
        "wg_xy": [
            ("all_gather", "z", x // 64), ("all_gather", "x", inputs * w), ("all_gather", "y", inputs * 4 * w),
            ("all_gather", "y", w), ("all_gather", "x", 4 * w), ("reduce_scatter", "z", x // 16),
        ],
        "wg_xyz": [
            ("all_gather", "x", inputs * w), ("all_gather", "zy", inputs * 4 * w), ("all_gather", "zy", w),
            ("all_gather", "x", 16 * w),
        ],
    }[name]  # fmt: skip


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("name", FEEDFORWARD)
def test_pins_give_the_papers_collectives(name, gated):
    for tokens in (TOKENS, 512 * 2_048):
        program = feedforward(name, tokens, gated=gated)
        assert told(program) == expected(name, tokens, 1 + gated)
        assert program.flops() == (3 if gated else 2) * 2 * tokens * E * F // 64  # no device repeats another's work


def test_what_2d_sends_is_the_papers_volume():
    """Section 3.2.2: 2 BL (E/X + F/YZ), with (g-1)/g kept exact."""
    elements = 2 * TOKENS * (E / 4 * 15 / 16 + F / 16 * 3 / 4)
    assert feedforward("ws2d", TOKENS).link_bytes() == 2 * elements


@pytest.mark.parametrize("search", [False, True], ids=["default", "search"])
@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("name", FEEDFORWARD)
def test_a_free_plan_costs_no_more(name, gated, search):
    for tokens in (64, TOKENS, 512 * 2_048):
        pinned = feedforward(name, tokens, gated=gated)
        free = feedforward(name, tokens, gated=gated, pinned=False, search=search)
        assert free.link_bytes() <= pinned.link_bytes() and free.flops() == pinned.flops()


@pytest.mark.parametrize("name", SERVING)
@pytest.mark.parametrize(("kind", "new", "cached"), [("prefill", TOKENS, 0), ("decode", 1, TOKENS)])
def test_a_free_plan_of_a_whole_phase_costs_no_more(name, kind, new, cached):
    mesh = mtf.Mesh(CUBE)
    where = placement(PALM, kind, mesh, SERVING[name], batch=512, new_tokens=new)
    pinned, free = (plan_placed(PALM, kind, mesh, way, 512, new, cached) for way in (where, where.free()))
    assert free.link_bytes() <= pinned.link_bytes() and free.flops() == pinned.flops()


# ---- a whole layer ----------------------------------------------------------------------------------------------


def layer(cfg=PALM, kind="decode", ffn="ws2d", attention="batch", mesh=CUBE, batch=512, **more):
    """The collectives of one turn of the loop, in words."""
    program = mtf.model.plan_phase(cfg, kind, mesh, ffn=ffn, attention=attention, batch=batch, **more)
    (loop,) = [step for step in program.steps if step.kind == "repeat"]
    assert loop.times == cfg.layers
    return [f"{step.label()}: {step.arrow()}" for step in loop.body.collectives()]


def test_decode_by_batch_step_by_step():
    """Section 3.3 and figure 5b: queries, keys and values go to their sequences' devices, the mixture comes back."""
    assert layer(PALM.but(norm="rms"), cached_tokens=2_048) == [
        "all_gather over zy of E: B L E:xzy → B L E:x",
        "all_reduce over x: B L partialsum:x → B L",  # the norm's mean square
        "reduce_scatter over x into B: B L H:zy D partialsum:x → B:x L H:zy D",
        "all_to_all over zy from H to B: B:x L H:zy D → B:xzy L H D",
        "reduce_scatter over x into B: B L pair D:zy partialsum:x → B:x L pair D:zy",
        "all_to_all over zy from D to B: B:x L pair D:zy → B:xzy L pair D",
        "all_to_all over zy from B to H: B:xzy L H D → B:x L H:zy D",
        "all_gather over x of B: B:x L H:zy D → B L H:zy D",
        "reduce_scatter over x into F: B L pair F:zy partialsum:x → B L pair F:zyx",
        "all_gather over x of F: B L F:zyx → B L F:zy",
        "reduce_scatter over zy into E: B L E:x partialsum:yz → B L E:xzy",  # of attention and feedforward together
    ]


def test_prefill_by_heads_keeps_queries_where_they_are_made():
    """Figure 5a; keys and values are copied, for multiquery attention has one head of them."""
    found = layer(PALM.but(norm="rms"), "prefill", attention="heads", new_tokens=2_048)
    assert found[2:6] == [
        "reduce_scatter over x into H: B L H:zy D partialsum:x → B L H:zyx D",
        "all_reduce over x: B L pair D:zy partialsum:x → B L pair D:zy",
        "all_gather over zy of D: B L pair D:zy → B L pair D",
        "all_gather over x of H: B L H:zyx D → B L H:zy D",
    ]


def test_side_by_side_the_sublayers_share_a_gather_and_a_reduce_scatter():
    """Section 3.4: one after the other they do both twice."""
    gather = "all_gather over zy of E: B L E:xzy → B L E:x"
    both = gather, "reduce_scatter over zy into E: B L E:x partialsum:yz → B L E:xzy"
    side_by_side, one_by_one = layer(cached_tokens=64), layer(PALM.but(block="serial"), cached_tokens=64)
    assert [side_by_side.count(text) for text in both] == [1, 1]
    assert [one_by_one.count(text) for text in both] == [2, 2]


def test_one_dimensional_layers_have_one_gather_and_one_reduce_scatter():
    found = layer(PALM, ffn="ws1d", attention="heads", cached_tokens=64)
    assert [text for text in found if "pair" not in text] == [
        "all_gather over xyz of E: B L E:xyz → B L E",
        "reduce_scatter over xyz into E: B L E partialsum:xyz → B L E:xyz",
    ]


def test_where_x_does_not_divide_the_heads_it_takes_the_length_in_prefill():
    """48 heads on 64 devices: 3 on each of 16. In decode the devices along x do the same work."""
    cfg = mtf.model.config("palm-540b")
    found = layer(cfg, "prefill", attention="heads", new_tokens=2_048)
    assert "reduce_scatter over x into L: B L H:zy D partialsum:x → B L:x H:zy D" in found
    assert "all_gather over x of L: B L:x H:zy D → B L H:zy D" in found
    assert "all_reduce over x: B L H:zy D partialsum:x → B L H:zy D" in layer(cfg, attention="heads", cached_tokens=64)
    cores = [placement(cfg, kind, mtf.Mesh(CUBE), SERVING["ws2d-heads"], batch=512, new_tokens=n).core
             for kind, n in (("prefill", 2_048), ("decode", 1))]  # fmt: skip
    assert [(core.heads, core.length, core.idle) for core in cores] == [({"H": "zy"}, "x", ""), ({"H": "zy"}, "", "x")]


def test_weights_of_whole_numbers_are_gathered_as_such():
    program = mtf.model.plan_phase(PALM, "prefill", CUBE, ffn="wg_xyz", batch=512, new_tokens=2_048, weights="int8")
    halves = mtf.model.plan_phase(PALM, "prefill", CUBE, ffn="wg_xyz", batch=512, new_tokens=2_048)
    sent = {dtype: sum(s.link_bytes * s.times for s in program.collectives() if s.dtype == dtype and s.times > 1)
            for dtype in ("i8", "bf16")}  # fmt: skip
    assert sent["i8"] == sum(s.link_bytes * s.times for s in halves.collectives() if s.times > 1) // 2
    assert sent["bf16"] < sent["i8"] / 1_000  # scales, one for each output


# ---- where keys and values lie ----------------------------------------------------------------------------------


def kept(cfg, mesh, attention, batch, cached=2_048, ffn="ws2d", cache="bf16"):
    """(text, bytes a device) of the cache, keys and values together."""
    program = mtf.model.plan_phase(
        cfg, "decode", mesh, ffn=ffn, attention=attention, batch=batch, cached_tokens=cached, cache=cache
    )
    ports = [port for port in program.inputs if port.name in ("cache_k", "cache_v")]
    made = {port.name: port.sharding for port in program.outputs}
    assert {made["k"].axes, made["v"].axes} == {port.sharding.axes for port in ports}  # new ones lie as the cache does
    return ports[0].sharding.text(), sum(port.sharding.bytes_per_device(program.mesh, port.dtype) for port in ports)


def test_one_head_of_keys_by_heads_and_by_batch():
    """126.7 GB in all; a full copy everywhere by heads; by batch as many parts as axes divide the batch."""
    whole = 2 * 118 * 256 * 2 * 2_048 * 512
    assert kept(PALM, CUBE, "heads", 512) == ("layers B S D", whole)
    assert kept(PALM, CUBE, "batch", 512) == ("layers B:xzy S D", whole // 64)
    assert kept(PALM, "x:8 y:8", "batch", 8) == ("layers B:x S D", whole // 64 // 8)  # 8 sequences, 8 copies
    assert whole // 64 // 8 == pytest.approx(0.247e9, rel=2e-3) and whole == pytest.approx(126.7e9, rel=1e-3)


def test_grouped_keys_take_the_axes_that_divide_their_heads():
    """8 heads of 128 in 80 layers on 16 devices, 32 sequences of 8,192: 80 GiB in all."""
    cfg, whole = mtf.model.config("llama-3-70b"), 80 * 2**30
    assert kept(cfg, "z:8 y:2", "heads", 32, 8_192) == ("layers B S K:z D", whole // 8)
    assert kept(cfg, "x:2 z:8", "batch", 2, 8_192) == ("layers B:x S K:z D", whole // 16 // 16)  # of 2 sequences
    assert kept(cfg, "z:4 y:4", "heads", 32, 8_192) == ("layers B S K:z D", whole // 4)
    assert kept(cfg, "z:4 y:4", "batch", 32, 8_192) == ("layers B:zy S K D", whole // 16)
    assert kept(cfg, "z:4 y:4", "batch", 32, 8_192, cache="int8") == ("layers B:zy S K D", whole // 32)


def test_grouped_query_heads_lie_over_groups_where_keys_cannot():
    where = placement(mtf.model.config("llama-3-70b"), "decode", mtf.Mesh(CUBE), SERVING["ws2d-heads"], batch=8)
    assert where.core.heads == {"K": "z", "G": "y"} and where.core.keys == {"K": "z"}
    assert where.place["wq"] == "E:x K:z G:y D" and where.place["wkv"] == "E:x K:z D:y"


def test_every_matrix_of_a_layer_is_cut_over_all_devices():
    """Also keys' and values': what their heads cannot take goes to D, so that nothing but norms is copied."""
    mesh = mtf.Mesh(CUBE)
    for name in ("palm-540b", "mt-nlg-530b", "llama-3-70b"):
        for partition in SERVING.values():
            cfg = mtf.model.config(name)
            where = placement(cfg, "decode", mesh, partition, batch=64)
            for matrix, text in stored_texts(cfg).items():
                if text.startswith("layers") and len(text.split()) > 3 and not matrix.startswith("b"):
                    s = mtf.Sharding(mtf.Sharding(text).dims, where.place[matrix]).check(mesh)
                    assert s.copies(mesh) == 1, (name, partition.name, matrix)


@pytest.mark.parametrize(("mesh", "same"), [("x:1 y:8 z:1", "y:8"), ("z:4 x:2", "x:2 y:1 z:4")])
def test_axes_of_size_one_drop_out(mesh, same):
    cfg = mtf.model.config("tiny-palm")
    sent = [told(mtf.model.plan_phase(cfg, "decode", m, ffn=ffn, attention=attention, batch=8, cached_tokens=16))
            for m in (mesh, same) for ffn in FEEDFORWARD for attention in ("heads", "batch")]  # fmt: skip
    assert sent[:10] == sent[10:] and any(sent)


# ---- what cannot be ---------------------------------------------------------------------------------------------

REFUSED = {
    "unknown words": (
        {"ffn": "ws3d", "attention": "head", "phase": "train"},
        ["3 faults", "no ffn 'ws3d'; did you mean 'ws2d'?", "no attention 'head'; did you mean 'heads'?",
         "no phase 'train'; legal here: 'prefill', 'decode'"],
    ),
    "another mesh": (
        {"mesh": "rows:4 cols:2"},
        ["mesh 'rows:4 cols:2' has rows, cols; these partitions lie on mesh axes x, y and z: write e.g. 'x:4 y:2'"],
    ),
    "a fourth axis": ({"mesh": "w:2 x:2 y:2 z:2"}, ["has w;", "merge some into three"]),
    "batch below the axis": (
        {"ffn": "wg_x", "batch": 2},
        ["batch 2 does not divide over x:4, as wg_x needs; nearest: batch=4, or ffn=\"ws2d\", which cuts no batch"],
    ),
    "batch beside the axes": ({"ffn": "wg_xyz", "batch": 100}, ["nearest: batch=64 or batch=128"]),
    "one sequence by batch": (
        {"attention": "batch", "batch": 1},
        ["batch 1 divides over none of x:4 y:4 z:4", "nearest: batch=4, or attention=\"heads\""],
    ),
    "heads that do not divide": (
        {"mesh": "x:2 y:4 z:8", "batch": 64},
        ["48 heads do not divide over z:8 y:4; nearest: cfg.but(heads=64), padded on request, or attention=\"batch\" "
         "(batch 64 over x:2 z:8 y:4), or a mesh whose z and y make 24 parts"],
    ),
    "groups that do not divide": (
        {"model": "smollm2-135m", "mesh": "x:2 y:2 z:2"},
        ["3 key/value heads with 3 query heads each do not divide over z:2 y:2; nearest: cfg.but(heads=12)",
         "a mesh whose z and y make 3 parts"],
    ),
    "matrices that do not divide": (
        {"model": "smollm2-135m", "mesh": "x:5"},
        ["d_model 576 does not divide over x:5 (5 parts), as ws2d needs; nearest: 575 or 580, padded on request",
         "d_ff 1536 does not divide over x:5"],
    ),
    "numbers": (
        {"batch": 0, "new_tokens": 2.5, "cached_tokens": -1},
        ["3 faults", "batch is 0;", "new_tokens is 2.5;", "cached_tokens is -1;"],
    ),
    "decode of several": ({"new_tokens": 4}, ["decode takes 1 token a sequence, not new_tokens=4; use phase"]),
    "too many positions": (
        {"model": "tiny-lm", "mesh": "x:2", "cached_tokens": 128},
        ["tiny-lm has 128 learned positions, fewer than 129 tokens; use cfg.but(max_length=129)"],
    ),
    "an encoder": ({"model": "tiny-translate", "mesh": "x:2"}, ["tiny-translate has an encoder"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_named_with_the_nearest_choice(case):
    change, texts = REFUSED[case]
    asked = {"model": "palm-540b", "mesh": CUBE, "phase": "decode", "ffn": "ws2d", "attention": "heads", "batch": 64}
    asked |= change
    cfg, mesh, phase = mtf.model.config(asked.pop("model")), asked.pop("mesh"), asked.pop("phase")
    with pytest.raises(mtf.LayoutError) as refusal:
        mtf.model.plan_phase(cfg, phase, mesh, **asked)
    for text in texts:
        assert text in str(refusal.value)
    reasons = mtf.model.possible(cfg, mesh=mesh, phase=phase, **asked)
    assert reasons and all(reason in str(refusal.value) for reason in reasons)


def test_what_a_refusal_offers_can_be_planned():
    plan = lambda cfg, **asked: mtf.model.plan_phase(cfg, "decode", "x:2 y:4 z:8", cached_tokens=64, **asked)  # noqa: E731
    cfg = mtf.model.config("palm-540b")
    assert plan(cfg.but(heads=64), batch=64).name == plan(cfg, attention="batch", batch=64).name == "decode"
    smol = mtf.model.config("smollm2-135m", heads=12)
    assert mtf.model.plan_phase(smol, "decode", "x:2 y:2 z:2", batch=4).collectives()


def test_heads_padded_on_request_cost_a_third_more_in_attention():
    """48 heads on 64 devices as 64."""
    cfg = mtf.model.config("palm-540b")
    sizes = [sum(c.params[name].n_elements for name in ("wq", "wo")) for c in (cfg, PALM)]
    assert sizes[1] * 3 == sizes[0] * 4
    flops = [mtf.model.plan_phase(c, "decode", CUBE, attention="heads", batch=64).flops() * 64 for c in (cfg, PALM)]
    assert flops[1] > flops[0] > 2 * 64 * 540e9
