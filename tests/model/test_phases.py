"""Prefill and decode as programs: values against the oracle on 8 devices, int8, and what a step consists of."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from core.sweep.checking import counted_traffic, planned_traffic

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.model import block as blocks
from mtfcore.model.past import Keys, attend_parts, new_keys, quantised
from mtfcore.model.phases import phase
from mtfcore.model.pins import Pin, product
from mtfcore.model.serving import SERVING
from mtfcore.model.storing import stored_texts, whole_numbers

BATCH, KEPT = 8, 4
MESH = "x:2 y:2 z:2"

MODELS = {
    "multiquery, side by side": ("tiny-palm", {}),
    "multiquery, too few heads for x": ("tiny-palm", {"heads": 4, "norm": "rms"}),
    "grouped": ("tiny-grouped", {}),
    "grouped, biases": ("tiny-grouped", {"kv_heads": 4, "qkv_biases": True, "activation": "geglu"}),
    "multihead, learned positions": ("tiny-lm", {"biases": True}),
    "multihead, a vocabulary that divides by nothing": ("tiny-lm", {"vocab": 251, "activation": "gelu"}),
}


@functools.cache
def model(name: str):
    """Configuration, parameters none of which is 0 or 1 everywhere, tokens, and the oracle's logits."""
    base, changes = MODELS[name]
    cfg, random = mtf.model.config(base, **changes), np.random.default_rng(0)
    params = mtf.model.initial(cfg)
    for key, param in cfg.params.items():
        if param.init != "normal":
            params[key] = params[key] + random.normal(size=param.shape).astype(np.float32) * 0.2
    tokens = random.integers(0, cfg.vocab, (BATCH, KEPT + 2), np.int32)
    whole = mtf.plan(mtf.model.forward(cfg), "x:1", sizes=f"B:{BATCH} L:{KEPT + 2}")
    return cfg, params, tokens, np.asarray(mtf.single(whole)(inputs=tokens, **params))


def kept(found):
    """The cache that a prefill leaves, as a later step takes it."""
    return {f"cache_{name}": value for name, value in found.items() if name != "logits"}


def planned(name, kind, partition, mesh=MESH, **more):
    cfg, (ffn, attention) = model(name)[0], partition.split("-")
    return mtf.model.plan_phase(cfg, kind, mesh, ffn=ffn, attention=attention, batch=BATCH, **more)


def near(found, expected, share=1e-5):
    """float32 rounds to 6e-8; some hundred roundings in a row stay below 1e-5 of the largest logit."""
    np.testing.assert_allclose(np.asarray(found, np.float32), expected, rtol=0, atol=share * np.abs(expected).max())


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.long)


CASES = [  # the model; the partitions of prefill and of decode: weights and cache serve both
    ("multiquery, side by side", "wg_xyz-batch", "ws2d-batch", MESH),
    ("grouped", "ws2d-heads", "wg_xy-batch", MESH),
    slow("multiquery, too few heads for x", "ws2d-heads", "ws2d-heads", MESH),
    slow("multihead, learned positions", "wg_xy-heads", "ws2d-heads", MESH),
    slow("grouped, biases", "ws2d-heads", "ws2d-batch", MESH),
    slow("multihead, learned positions", "wg_x-batch", "wg_x-heads", MESH),
    slow("multihead, a vocabulary that divides by nothing", "wg_xyz-heads", "ws2d-batch", MESH),
    slow("multiquery, side by side", "ws1d-heads", "ws1d-batch", MESH),
    slow("multihead, learned positions", "ws1d-batch", "ws1d-heads", "x:8"),
    slow("grouped", "ws2d-batch", "wg_xyz-batch", "y:2 z:4"),
    slow("grouped", "ws1d-heads", "ws1d-batch", MESH),
    slow("multiquery, too few heads for x", "ws1d-heads", "ws1d-heads", "x:4 y:2"),
    slow("multiquery, side by side", "wg_xy-batch", "ws2d-batch", "x:2 z:2"),
]


@pytest.mark.parametrize(("name", "prefill", "decode", "mesh"), CASES)
def test_prefill_and_decode_give_the_oracles_logits(name, prefill, decode, mesh):
    cfg, params, tokens, expected = model(name)
    given, exact = mtf.model.stored(cfg, params, "f32"), {"weights": "f32", "cache": "f32"}
    first = mtf.simulate(planned(name, "prefill", prefill, mesh, new_tokens=KEPT, **exact))
    found = first(tokens=tokens[:, :KEPT], **given)
    near(found["logits"], expected[:, KEPT - 1])
    step = mtf.simulate(planned(name, "decode", decode, mesh, cached_tokens=KEPT, **exact))
    after = step(tokens=tokens[:, KEPT : KEPT + 1], **given, **kept(found))
    near(after["logits"], expected[:, KEPT])
    assert after["k"].shape == (cfg.layers, BATCH, 1, *found["k"].shape[3:])


@pytest.mark.long
def test_a_prompt_may_be_prefilled_in_chunks():
    name = "grouped"
    cfg, params, tokens, expected = model(name)
    given, exact = mtf.model.stored(cfg, params, "f32"), {"weights": "f32", "cache": "f32"}
    found = mtf.simulate(planned(name, "prefill", "ws2d-batch", new_tokens=KEPT, **exact))(
        tokens=tokens[:, :KEPT], **given
    )
    step = mtf.simulate(planned(name, "prefill", "ws2d-batch", new_tokens=2, cached_tokens=KEPT, **exact))
    near(step(tokens=tokens[:, KEPT:], **given, **kept(found))["logits"], expected[:, -1])


@pytest.mark.long
def test_without_pins_the_same_function_takes_any_layout():
    name = "multihead, learned positions"
    cfg, params, tokens, expected = model(name)
    layout = mtf.Layout("B:rows F:cols H:cols V:cols")
    program = mtf.plan(phase(cfg, "prefill", weights="f32", cache="f32"), "rows:2 cols:2", layout, sizes="B:8 L:6")
    found = mtf.simulate(program)(tokens=tokens, **mtf.model.stored(cfg, params, "f32"))
    near(found["logits"], expected[:, -1])


@pytest.mark.long
def test_padded_heads_change_nothing():
    """6 heads as 8, the further ones with weights of 0 behind them."""
    small = mtf.model.config("tiny-palm", heads=6)
    params, tokens = mtf.model.initial(small), np.arange(BATCH * 4, dtype=np.int32).reshape(BATCH, 4)
    expected = np.asarray(mtf.model.forward(small)(inputs=tokens, **params))[:, -1]
    cfg, noise = small.but(heads=8), np.random.default_rng(1).normal(size=(2, 64, 2, 16)).astype(np.float32)
    padded = params | {
        "wq": np.concatenate([params["wq"], noise], 2), "wo": np.pad(params["wo"], ((0, 0), (0, 2), (0, 0), (0, 0))),
    }  # fmt: skip
    program = mtf.model.plan_phase(
        cfg, "prefill", "y:4 z:2", attention="heads", batch=BATCH, new_tokens=4, weights="f32", cache="f32"
    )
    near(mtf.simulate(program)(tokens=tokens, **mtf.model.stored(cfg, padded, "f32"))["logits"], expected)


# ---- whole numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", ["E:x", "F:x"])
def test_sums_over_devices_of_whole_numbers(cut):
    """Column [127, 1] over two devices, x = [1, 1]: 128, not 254. What travels is the float, not i32."""
    weights, scales = whole_numbers(np.array([[127, -254], [1, 2]], np.float32), (0,))
    np.testing.assert_array_equal(scales, [1, 2])

    def call(x, w, w_scale):
        return product(x, {"w": w, "w_scale": w_scale}, "w", "B F", {"w": Pin(("B E" + cut[1:] * (cut[0] == "E"),
                       "E F".replace(cut[0], cut)), "B F:x")})  # fmt: skip

    fn = Function.of("column", {"x": "B E", "w": "E F", "w_scale": "F"}, call, {"w": "i8"})
    place = {"w": cut, "w_scale": cut if cut[0] == "F" else ""}
    program = mtf.plan(fn, "x:2", sizes="B:1 E:2 F:2", place=place)
    found = mtf.simulate(program)(np.ones((1, 2), np.float32), weights, scales)
    np.testing.assert_array_equal(found, [[128, -252]])
    assert [(step.kind, step.dtype) for step in program.collectives()] == [("reduce_scatter", "f32")] * (cut[0] == "E")


@pytest.mark.parametrize("cut", ["B:x", "K:x", "L:x"])
def test_a_cache_of_whole_numbers_is_near_the_floats(cut):
    """Two parts, S and N, in one softmax; each vector of keys and values has a scale."""
    cfg, random = mtf.model.config("tiny-grouped", heads=4), np.random.default_rng(2)
    dims = {"q": "B L K G D", "k": "B S K D", "v": "B S K D", "new_k": "B L K D", "new_v": "B L K D"}
    sizes = {"B": 2, "L": 2, "S": 6, "K": 2, "G": 2, "D": 16}
    arrays = {name: random.normal(size=[sizes[letter] for letter in text.split()]).astype(np.float32)
              for name, text in dims.items()}  # fmt: skip

    def call(q, k, v, new_k, new_v):
        (k, k_scale), (v, v_scale) = quantised(k), quantised(v)
        past = Keys(k, v, "S", None, k_scale, v_scale)
        return attend_parts(cfg, q, [past, new_keys(new_k, new_v, "N", blocks.causal(q, "N"))])

    place = {name: cut for name, text in dims.items() if cut[0] in text}
    found = mtf.simulate(mtf.plan(Function.of("attended", dims, call), "x:2", sizes=sizes, place=place))(**arrays)
    q, (k, v) = arrays["q"].astype(np.float64), (np.concatenate([arrays[n], arrays[f"new_{n}"]], 1) for n in "kv")
    scores = np.einsum("blkgd,bskd->bkgls", q, k) / 4
    scores[..., 0, 7] = -np.inf  # the first new token does not see the second
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bkgls,bskd->blkgd", shares / shares.sum(-1, keepdims=True), v)
    assert 1e-5 < np.abs(found - expected).max() < 3 * np.abs(v).max() / 127


@pytest.mark.long
def test_int8_weights_and_cache_stay_near_the_floats():
    """Eight bits of each output's largest weight: rounding errors of 1/254, of some tens of products in a row."""
    name = "grouped"
    cfg, params, tokens, expected = model(name)
    given, whole = mtf.model.stored(cfg, params, "int8"), {"weights": "int8", "cache": "int8"}
    first = planned(name, "prefill", "wg_xyz-batch", new_tokens=KEPT, **whole)
    found = mtf.single(first)(tokens=tokens[:, :KEPT], **given)
    assert found["k"].dtype == np.int8 and np.abs(found["k"].astype(int)).max(-1).min() >= 126
    near(found["logits"], expected[:, KEPT - 1], 0.06)
    step = planned(name, "decode", "ws2d-batch", cached_tokens=KEPT, **whole)
    after = mtf.simulate(step)(tokens=tokens[:, KEPT : KEPT + 1], **given, **kept(found))
    near(after["logits"], expected[:, KEPT], 0.06)


def test_each_output_of_a_matrix_has_a_scale():
    cfg, params = model("grouped")[:2]
    given, floats = mtf.model.stored(cfg, params, "int8"), mtf.model.stored(cfg, params, "f32")
    assert list(given["wkv"].shape) == [2, 64, 2, 2, 16] and given["wkv_scale"].shape == (2, 2, 2, 16)
    assert given["wq"].shape == (2, 64, 2, 4, 16) and given["wo_scale"].shape == (2, 64)
    for name in ("wq", "wkv", "w_in_gate"):
        assert given[name].dtype == np.int8
        error = np.abs(given[name] * given[f"{name}_scale"][:, None] - floats[name])
        assert (error <= given[f"{name}_scale"][:, None] * 0.501).all()
    assert given["embedding"].dtype == np.float32 and set(floats) == set(stored_texts(cfg))
    np.testing.assert_array_equal(floats["wkv"][:, :, 1], params["wv"])


# ---- what a step consists of ------------------------------------------------------------------------------------


def test_a_step_of_540b_is_one_loop_and_its_flops_are_those_of_its_matrices():
    cfg = mtf.model.config("palm-540b", heads=64)
    program = mtf.model.plan_phase(
        cfg, "decode", "x:4 y:4 z:4", attention="batch", batch=512, cached_tokens=2_048, weights="int8"
    )
    assert [step.times for step in program.steps if step.kind == "repeat"] == [118]
    norms = sum(p.n_elements for p in cfg.params.values() if p.init == "ones")
    attention = 2 * 118 * 64 * 256 * 2_049  # multiply-adds of scores and mixtures, for one token
    assert program.flops() * 64 == 2 * 512 * (cfg.n_params - norms + attention)
    dtypes = {port.name: port.dtype for port in program.inputs}
    assert [dtypes[name] for name in ("tokens", "wq", "wq_scale", "embedding", "cache_k")] == [
        "i32", "i8", "bf16", "bf16", "bf16",
    ]  # fmt: skip
    assert program.outputs[0].sharding.text() == "B V:zyx"


@pytest.mark.parametrize(("kind", "weights"), [("prefill", "bf16"), ("decode", "int8")])
@pytest.mark.parametrize("partition", SERVING)
def test_what_is_sent_is_counted_in_what_runs(partition, kind, weights):
    """Planned for PaLM 540B's layers, on 8 devices: nothing is run, the jaxpr is read."""
    (ffn, attention), cfg = partition.split("-"), mtf.model.config("palm-540b")
    more = {"new_tokens": 64} if kind == "prefill" else {"cached_tokens": 64}
    program = mtf.model.plan_phase(
        cfg, kind, MESH, ffn=ffn, attention=attention, batch=64, weights=weights, cache=weights, **more
    )
    run = mtf.simulate(program)
    counted = mtf.count(run.fn, *run.shapes)
    assert counted_traffic(counted) == planned_traffic(program)
    assert counted.flops == program.flops()


def test_the_cache_is_read_where_it_lies_and_never_copied():
    for attention in ("heads", "batch"):
        program = mtf.model.plan_phase(
            mtf.model.config("llama-3-70b"), "decode", "x:2 y:2 z:2", attention=attention, batch=8, cached_tokens=512
        )
        touched = [s for s in program.walk() if any("S" in b.names and "D" in b.names for b in s.before)]
        assert {s.kind for s in touched if s.kind != "repeat"} == {"einsum"}
        assert not any("S" in s.after.names for s in program.collectives())


def test_prefill_makes_logits_of_the_last_position_only():
    cfg = mtf.model.config("tiny-palm")
    flops = [mtf.model.plan_phase(cfg, "prefill", "x:1", batch=4, new_tokens=n).flops() for n in (8, 16)]
    per_token = sum(p.n_elements for name, p in cfg.params.items() if p.init == "normal" and name != "embedding")
    pairs = 2 * cfg.layers * cfg.heads * cfg.head_size
    expected = [2 * 4 * (n * per_token + n * n * pairs + cfg.vocab * cfg.d_model) for n in (8, 16)]
    assert flops == expected


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"weights": "i4"}, "weights is 'i4'; legal here: 'f32', 'bf16', 'i8', 'int8'"),
        ({"cache": 8}, "cache is 8; did you mean 'i8'?"),
        ({"cfg": "palm-54b"}, "did you mean 'palm-540b'?"),
    ],
)
def test_names_that_are_refused(asked, text):
    with pytest.raises(mtf.LayoutError, match=text.replace("?", r"\?")):
        mtf.model.plan_phase(**{"cfg": "tiny-palm", "phase": "decode", "mesh": "x:2", "batch": 2, **asked})


# ---- what was added to the library for this ---------------------------------------------------------------------


def summed(where, at_once):
    def call(t):
        return mtf.reshard(mtf.sum(t, "E"), where, at_once=at_once)

    return mtf.plan(Function.of("sums", {"t": "B E"}, call), "x:4 y:2", "B:y", sizes="B:16 E:8", place={"t": "E:x B"})


def test_sums_that_are_wanted_by_one_collective():
    """The copies along y could share the sum, in two collectives; asked for at once it is one."""
    whole = mtf.Sharding("B")
    kinds = [[step.kind for step in summed(whole, at_once).collectives()] for at_once in (False, True)]
    assert kinds == [["all_reduce", "all_gather"], ["all_reduce"]]
    t = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    for where in (whole, "B", "B:x", "B partialsum:x"):
        found = mtf.simulate(summed(where, True))(t)
        np.testing.assert_allclose(found, t.sum(1), rtol=1e-5)
    assert summed("B partialsum:x", True).collectives() == []


def test_a_sharding_without_axes_is_whole_whatever_the_layout_says():
    places = [program.outputs[0].sharding.text() for program in (summed("B", False), summed(mtf.Sharding("B"), False))]
    assert places == ["B:y", "B"]


def test_a_core_of_its_own_takes_the_place_of_attention():
    """The block hands over queries, keys and values, and takes what comes back."""
    cfg = mtf.model.config("tiny-palm")
    seen = []

    def call(x, **w):
        def core(q, k, v):
            seen.extend(t.names for t in (q, k, v))
            return q

        return blocks.block(cfg, x, w, core=core)

    texts = {n: p.text.split(" ", 1)[1] for n, p in cfg.params.items() if p.dims[0].name == "layers"}
    mtf.plan(Function.of("layer", {"x": "B L E", **texts}, call), "x:1", sizes="B:2 L:4")
    assert seen == [("B", "L", "H", "D"), ("B", "L", "D"), ("B", "L", "D")]
