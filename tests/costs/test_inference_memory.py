"""Will it fit: the cases of users of neighbouring tools, the paper's figures, and every term by hand."""

from __future__ import annotations

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.costs import second_paper
from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.costs.serving_memory.activation_bytes import moments
from mtfcore.costs.serving_memory.cache_bytes import cache, token_bytes
from mtfcore.costs.serving_memory.inference_memory import TERMS, device_bytes
from mtfcore.costs.serving_memory.memory_limits import largest_batch, longest_context
from mtfcore.costs.serving_memory.weight_bytes import evenly, gathered, stored

GIB = 2**30
PALM = mtf.model.config("palm-540b")
PADDED = PALM.but(heads=64)
MULTIHEAD = PALM.but(heads=64, kv_heads=64, head_size=128)  # Table 1's: 64 heads, padded as section 4 says
THIRTEEN = mtf.model.config("llama-2-13b")  # 40 layers, 40 key and value heads of 128
SEVENTY = mtf.model.config("llama-3-70b")  # 80 layers, 8 key and value heads of 128


# ---- the cases --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kv_heads", "mib"), [(8, 8), (1, 1), (32, 32)])
def test_a_step_reads_key_and_value_heads_not_query_heads(kv_heads, mib):
    cfg = mtf.model.config("llama-3-8b", layers=1, kv_heads=kv_heads)
    assert cache(cfg, (1, 1, 1), batch=1, context=2048).bytes == mib * 2**20


def test_heads_are_shared_by_a_number_of_heads():
    with pytest.raises(mtf.LayoutError, match="heads 24 do not divide by kv_heads 5"):
        mtf.model.config("tiny-lm", heads=24, kv_heads=5)
    with pytest.raises(mtf.LayoutError, match="no field 'groups'; say kv_heads"):
        mtf.model.config("tiny-lm", heads=24, groups=4)


def test_both_verdicts_in_exact_bytes():
    how = {"context": 8192, "capacity": 16 * GIB, "ffn": "ws1d", "n_params": 13e9}
    assert token_bytes(THIRTEEN) * 8192 == 6_710_886_400 == 6.25 * GIB
    held = device_bytes(THIRTEEN, (8, 1, 1), batch=16, **how)
    assert 8 * (held.weights + held.cache) == 26e9 + 16 * 6_710_886_400
    assert 8 * held.total / 1e9 == pytest.approx(133.4, abs=0.05)
    assert 8 * held.total / GIB == pytest.approx(124.2, abs=0.05)
    assert held.fits_raw and not held.fits
    assert 8 * (held.capacity - held.reserve) / GIB == pytest.approx(115.2)
    assert largest_batch(THIRTEEN, (8, 1, 1), reserve=0, **how) == 16
    assert largest_batch(THIRTEEN, (8, 1, 1), **how) == 14


HALVED = [("bf16", 16, 140, 116), ("int8", 8, 70, 58), ("int4", 4, 35, 29)]


@pytest.mark.parametrize(("dtype", "chips", "weights", "left"), HALVED)
def test_a_table_that_does_not_contradict_itself(dtype, chips, weights, left):
    assert evenly(SEVENTY, 1, dtype, 70e9) / 1e9 == weights
    assert (chips * 16e9 - evenly(SEVENTY, 1, dtype, 70e9)) / 1e9 == left
    how = {"context": 8192, "n_params": 70e9, "weights": dtype, "cache_dtype": dtype, "attention": "even", "reserve": 0}
    assert largest_batch(SEVENTY, (chips, 1, 1), capacity=16e9, **how) == 43
    assert largest_batch(SEVENTY, (chips, 1, 1), capacity=16 * GIB, **how) == 50


def test_fewer_heads_than_devices_are_copied():
    how = {"batch": 32, "context": 8192}
    assert cache(SEVENTY, (1, 1, 1), **how).bytes == 80 * GIB
    by_heads = cache(SEVENTY, (2, 8, 1), attention="heads", **how)
    assert (by_heads.bytes, by_heads.head_parts, by_heads.copies) == (10 * GIB, 8, 2)
    both = cache(SEVENTY, (2, 8, 1), attention="batch", ffn="wg_x", **how)
    assert (both.bytes, both.copies) == (5 * GIB, 1)
    assert cache(SEVENTY, (2, 8, 1), attention="heads", ffn="wg_x", **how)[:3] == (5 * GIB, 8, 2)
    # axes that cannot take the heads, and what a better choice of axes for 16 devices would give
    assert [cache(SEVENTY, grid, **how).bytes / GIB for grid in ((16, 1, 1), (4, 4, 1))] == [80, 20]
    assert cache(SEVENTY, (16, 1, 1), few_copies=True, **how).bytes == 10 * GIB


@pytest.mark.parametrize(("devices", "offers"), [(8, ["heads=8", 'attention="batch"']), (6, ["heads=6"])])
def test_heads_that_are_not_copied_must_divide(devices, offers):
    """4 heads of 128 on 8 devices would be 64 features each, on 6 nothing: neither is planned."""
    four = mtf.model.config("llama-3-8b", heads=4, kv_heads=4, d_model=4608, d_ff=9216)
    (fault,) = mtf.model.possible(four, "ws2d", "heads", f"x:1 y:{devices} z:1", 8)
    assert f"4 heads do not divide over y:{devices}" in fault and "4 parts" in fault
    assert all(offer in fault for offer in offers)


def test_one_head_by_heads_is_a_whole_copy_everywhere():
    how = {"context": 2048}
    whole = cache(PALM, (4, 4, 4), batch=512, attention="heads", **how)
    assert whole.bytes == 126_701_535_232 and whole.copies == 64
    by_batch = cache(PALM, (4, 4, 4), batch=512, attention="batch", **how)
    assert by_batch.bytes == 126_701_535_232 / 64 and by_batch.copies == 1
    held = [device_bytes(PALM, (4, 4, 4), batch=512, attention=name, capacity=32 * GIB, **how)
            for name in ("heads", "batch")]  # fmt: skip
    assert [one.fits_raw for one in held] == [False, True]
    few = cache(PALM, (2, 4, 8), batch=8, attention="batch", **how)
    assert few.bytes == 8 * 2048 * 120_832 / 8 and few.copies == 8  # 0.247 GB, not 1.98 / 64
    assert cache(PALM, (4, 4, 4), batch=8, attention="batch", few_copies=True, **how).bytes == few.bytes
    assert cache(PALM, (4, 4, 4), batch=8, attention="batch", **how).copies == 16  # whole axes of 4: one of them
    multihead = PALM.but(heads=48, kv_heads=48, head_size=128)
    assert token_bytes(multihead) * 512 * 2048 / 1e12 == pytest.approx(3.04, abs=5e-3)


def test_prompts_and_prompt_tokens_are_two_rates():
    """Batch 8, prompt 1024, 0.1 s: what one second holds, and what it leaves in the cache."""
    held = cache(PALM, (4, 4, 4), batch=8, context=1024, attention="batch")
    assert 8 / 0.1 == 80 and 8 * 1024 / 0.1 == 81_920
    assert held.bytes * 64 / held.copies == 8 * 1024 * token_bytes(PALM)


# ---- the paper's figures ----------------------------------------------------------------------------------------

# arXiv 2211.05102, Table 1: the longest context where 30 % of the memory of 64 chips of 32 GiB is for the cache. The
# last printed digit of each is a rounding of 10 tokens in 330; the others of their rows are its multiples.
TABLE_1 = [
    (MULTIHEAD, "heads", 128, 1_320, 20), (MULTIHEAD, "heads", 512, 330, 5), (PALM, "heads", 128, 660, 10),
    (PALM, "heads", 512, 165, 2.5), (PALM, "batch", 128, 43_000, 500), (PALM, "batch", 512, 10_700, 50),
]  # fmt: skip


@pytest.mark.parametrize(("cfg", "attention", "batch", "printed", "rounding"), TABLE_1)
def test_table_1_of_longest_contexts(cfg, attention, batch, printed, rounding):
    found = longest_context(cfg, (4, 4, 4), batch=batch, attention=attention, capacity=32 * GIB, cache_share=0.3)
    assert abs(found - printed) <= rounding
    kept = {"layers": cfg.layers, "kv_heads": cfg.kv_heads, "head_size": cfg.head_size, "batch": batch}
    assert found == int(second_paper.longest_context(**kept, hbm_bytes=32 * GIB, devices=64, by=attention))


def test_caches_that_circulate_wrongly_have_the_right_values():
    """arXiv 2211.05102, section 2.1, at batch 512 and context 2048: multihead with 48 heads of 256, multiquery."""
    tokens = 512 * 2048
    assert token_bytes(PALM.but(kv_heads=48)) * tokens / 1e12 == pytest.approx(6.08, abs=5e-3)
    assert token_bytes(PALM) * tokens / 1e9 == pytest.approx(126.7, abs=0.05)


# Section 4.4 and Tables 2 and 3 ran these, so they fit, with the reserve: model, grid, ffn and attention of each pass,
# weights, batch, tokens of the prompt and of the answer.
RAN = [
    (PADDED, (4, 4, 4), "wg_xyz", "batch", "ws2d", "batch", "bf16", 512, 2048, 64),
    (PADDED, (4, 4, 4), "ws2d", "heads", "ws2d", "batch", "int8", 64, 2048, 64),
    (mtf.model.config("palm-62b"), (2, 2, 4), "ws2d", "heads", "ws2d", "batch", "int8", 32, 2048, 64),
    (mtf.model.config("palm-62b"), (2, 4, 4), "wg_xyz", "batch", "ws2d", "batch", "bf16", 512, 2048, 64),
]  # fmt: skip


@pytest.mark.parametrize(("cfg", "grid", "first", "by", "then", "by_then", "weights", "batch", "prompt", "answer"), RAN)
def test_what_the_paper_ran_fits(cfg, grid, first, by, then, by_then, weights, batch, prompt, answer):
    how = {"weights": weights, "batch": batch, "capacity": 32 * GIB}
    assert device_bytes(cfg, grid, ffn=then, attention=by_then, context=prompt + answer, **how).fits
    at_once = batch if first == "wg_xyz" else 1  # section 4.4: the lowest latency prefills one sequence at a time
    how |= {"batch": at_once, "ffn": first, "attention": by, "context": prompt, "new_tokens": prompt}
    assert device_bytes(cfg, grid, **how).fits_raw  # a whole matrix gathered at a time
    assert device_bytes(cfg, grid, gathered_kept="chunks", **how).fits  # as the paper did, section 3.5


# ---- terms by hand ----------------------------------------------------------------------------------------------


def test_weights_in_each_dtype():
    cfg = mtf.model.config("tiny-lm")  # 2 layers, E 64, F 256, H 8, D 16, V 256, P 128; tables apart
    matrices, tables, positions, norms = 2 * (4 * 64 * 128 + 2 * 64 * 256), 2 * 256 * 64, 128 * 64, 5 * 64
    channels = 2 * (3 * 128 + 64 + 256 + 64)
    one = (1, 1, 1)
    assert stored(cfg, one, weights="f32") == (4 * cfg.n_params, 0)
    assert stored(cfg, one, weights="bf16").weights == 2 * cfg.n_params
    others = 2 * (tables + positions + norms)
    assert stored(cfg, one, weights="int8") == (matrices + 2 * channels + others, 2 * channels)
    assert stored(cfg, one, weights="int8", scales="f32").scales == 4 * channels
    assert stored(cfg, one, weights="int4", scales="none").weights == matrices / 2 + others
    assert stored(cfg, one, weights="fp8").weights == matrices + others
    assert stored(cfg, (2, 2, 2)).weights == 2 * ((matrices + tables + positions) / 8 + norms)


def test_what_is_gathered_is_a_matrix_or_a_layer():
    """arXiv 2211.05102, section 3.2.3: XY-gathered weights are E F / Z; here the gate's come with them."""
    matrix = 2 * 2 * 18_432 * 73_728
    for ffn, over in (("wg_x", 16), ("wg_xy", 4), ("wg_xyz", 1)):
        assert gathered(PALM, (4, 4, 4), ffn)["feedforward"] == matrix / over
    assert gathered(PALM, (4, 4, 4), "ws2d") == {"attention": 0, "feedforward": 0}
    assert gathered(PALM, (4, 4, 4), "wg_xyz", "int8", "matrices")["feedforward"] == matrix
    assert gathered(PALM, (4, 4, 4), "wg_xy", kept="chunks")["feedforward"] == 2 * matrix / 4 / 16
    assert gathered(PALM.but(activation="gelu"), (4, 4, 4), "wg_xyz")["feedforward"] == matrix / 2
    layer = 2 * (2 * 18_432 * 48 * 256 + 2 * 18_432 * 256 + 3 * 18_432 * 73_728)
    assert gathered(PALM, (4, 4, 4), "wg_xyz", kept="layer")["attention"] == layer
    assert gathered(PALM, (4, 4, 4), "wg_xyz", kept="layers")["feedforward"] == 2 * layer


def test_the_moments_of_a_weight_stationary_prefill():
    cfg, tokens = SEVENTY, 4 * 512
    found = moments(cfg, (2, 2, 2), batch=4, new_tokens=512, ffn="ws2d", attention="heads")
    stream, inside = tokens * 8192 / 8, tokens * 8192 / 2
    assert found["feedforward"] == 2 * (stream + inside + 2 * tokens * 28_672 / 4)
    projected, mixed = tokens * (64 * 128 + 2 * 8 * 128) / 4, tokens * 64 * 128 / 8
    assert found["attention"] == 2 * (stream + inside + projected + mixed)
    assert found["logits"] == 2 * stream + 4 * 128_256 / 8 * (2 + 4)
    whole = moments(cfg, (2, 2, 2), batch=4, new_tokens=512, context=512, scores="whole")
    assert whole["attention"] - found["attention"] == 64 * tokens * 512 / 8 * (2 + 4)


def test_the_fullest_moment_decides():
    cfg = SEVENTY
    held = device_bytes(cfg, (2, 2, 2), batch=4, new_tokens=np.array([1, 512]), ffn="wg_xyz", attention="batch")
    assert held.moment.tolist() == ["feedforward", "feedforward"] and held.gathered[0] == 2 * 2 * 8192 * 28_672
    assert device_bytes(cfg, (2, 2, 2), batch=4, ffn="ws2d").moment == "logits"
    assert held.total.tolist() == sum(held.terms[term] for term in TERMS).tolist()


PASSES = [
    (PADDED, (4, 4, 4), "wg_xyz", "batch", 64, 512), (PADDED, (4, 4, 4), "ws2d", "heads", 1, 2048),
    (SEVENTY, (2, 2, 2), "wg_xy", "heads", 64, 512), (SEVENTY, (2, 2, 2), "ws1d", "heads", 4, 512),
]  # fmt: skip


@pytest.mark.parametrize(("cfg", "grid", "ffn", "attention", "batch", "length"), PASSES)
def test_the_fullest_moment_is_near_that_of_the_planned_program(cfg, grid, ffn, attention, batch, length):
    """From sizes alone, one layer works where a program also has its turn's weights in hand and a few more values."""
    mesh = "x:{} y:{} z:{}".format(*grid)
    prog = mtf.model.plan_phase(cfg, "prefill", mesh, ffn=ffn, attention=attention, batch=batch, new_tokens=length)
    how = {"ffn": ffn, "attention": attention, "batch": batch, "new_tokens": length, "context": length}
    held = device_bytes(cfg, grid, scores="whole", **how)
    alive = peak_memory(prog).between - held.weights / cfg.layers
    assert 0.65 * alive <= held.activations + held.gathered <= 1.02 * alive


def test_a_trained_model_keeps_gradients_and_moments():
    """What circulates as 80 GB for 20 billion parameters with Adam is 240: 12 bytes each in f32, gradients apart."""
    how = {"n_params": 20e9, "weights": "f32", "attention": "even"}
    held = {name: device_bytes(THIRTEEN, (1, 1, 1), optimizer=name, **how) for name in ("none", "sgd", "adam")}
    assert (held["none"].weights, held["none"].optimizer) == (80e9, 0)
    assert held["adam"].weights + held["adam"].optimizer - held["sgd"].optimizer == 240e9
    assert held["sgd"].optimizer == 80e9  # gradients as the weights are stored


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({"batch": 0, "context": -1, "new_tokens": 1.5}, ["3 faults", "batch is 0;", "context is -1;", "s is 1.5"]),
        ({"grid": (4, 4)}, ["grid is (4, 4); expected three sizes"]),
        ({"grid": (4, 0, 4)}, ["y is 0; expected whole numbers"]),
        ({"batch": np.array([1, 0])}, ["batch is array([1, 0])"]),
        ({"batch": float("nan")}, ["batch is nan"]),
        ({"batch": 10**13}, ["expected whole numbers from 1 to 1e+12"]),
        ({"batch": "many"}, ["batch is 'many'"]),
        ({"reserve": 1.0}, ["reserve is 1.0; expected a share"]),
        ({"capacity": -1, "reserve": -0.1}, ["2 faults", "capacity is -1;"]),
        ({"weights": "int9"}, ["weights: no stored type 'int9'; did you mean 'int8'?"]),
        ({"cache_dtype": ["bf16", "b16"]}, ["cache: no stored type 'b16'"]),
        ({"ffn": "ws3d"}, ["ffn is 'ws3d'; did you mean"]),
        ({"attention": "head"}, ["attention is 'head'; did you mean 'heads'?"]),
        ({"scales": "int8"}, ["scales is 'int8'; legal here: 'bf16'"]),
        ({"gathered_kept": "matrx"}, ["did you mean 'matrix'?"]),
        ({"scores": "flash"}, ["scores is 'flash'"]),
        ({"optimizer": "adm"}, ["did you mean 'adam'?"]),
        ({"cfg": mtf.model.config("tiny-translate")}, ["tiny-translate has an encoder"]),
    ],
)  # fmt: skip
def test_what_is_refused(changes, texts):
    how = {"cfg": mtf.model.config("tiny-lm"), "grid": (1, 1, 1), **changes}
    with pytest.raises(mtf.LayoutError) as refusal:
        device_bytes(how.pop("cfg"), how.pop("grid"), **how)
    for text in texts:
        assert text in str(refusal.value)
