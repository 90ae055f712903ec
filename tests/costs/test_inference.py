"""`mtf.costs.inference`: equal to pricing the planned programs, in any shape, with the best partition, or a reason."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.costs.pricing.price import price
from mtfcore.costs.serving.grids import orientations
from mtfcore.costs.serving.timing import tokens
from mtfcore.errors import LayoutError
from mtfcore.model.serving import ATTENTION, FEEDFORWARD, PHASES

PALM = mtf.model.config("palm-540b", heads=64)
MODELS = (PALM, *[mtf.model.config(name) for name in (
    "palm-540b", "palm-62b", "palm-8b", "llama-3-70b", "llama-2-13b", "qwen2.5-7b", "smollm2-135m")],
    mtf.model.config("mt-nlg-530b", max_length=10**5))  # fmt: skip
SLICES = ("v4:4x4x4", "v4:4x4x8", "v4:2x2x4", "v5e:4x8", "v5p:4x8x8", "v6e:16x16", "v2:8x8", "v7x:2x2x2", "h100:8",
          "a100:2x8", "h200:4x8", "v3:8x8", "v5e:2x2")  # fmt: skip


def drawn(rng: random.Random) -> dict:
    """A setting, one partition for both phases."""
    return {
        "cfg": rng.choice(MODELS), "topology": rng.choice(SLICES),
        "batch": rng.choice((1, 4, 7, 8, 16, 48, 64, 96, 512)),
        "input_tokens": rng.choice((20, 128, 333, 1000, 2048)), "output_tokens": rng.choice((0, 1, 8, 63)),
        "cached_tokens": rng.choice((0, 0, 100, 2048)), "weights": rng.choice(("bf16", "int8", "f32")),
        "cache": rng.choice(("bf16", "int8")), "ffn": rng.choice(tuple(FEEDFORWARD)),
        "attention": rng.choice(tuple(ATTENTION)), "model": rng.choice(("calibrated", "physical", "paper")),
    }  # fmt: skip


def priced(asked: dict, est: object, phase: str) -> float:
    """The same phase planned and priced step by step, on the best way round of the mesh; nan where it cannot be."""
    new, cached = (int(column[0]) for column in tokens(est.asked, phase))
    found = [np.nan]
    for wired in orientations(mtf.topology(asked["topology"]), asked["ffn"]):
        try:
            program = mtf.model.plan_phase(
                asked["cfg"], phase, wired.mesh, ffn=asked["ffn"], attention=asked["attention"], batch=asked["batch"],
                new_tokens=new, cached_tokens=cached, weights=asked["weights"], cache=asked["cache"],
            )  # fmt: skip
        except LayoutError:
            continue
        found.append(price(program, asked["topology"], asked["model"], wired).additive_seconds)
    return np.nanmin(found) if len(found) > 1 else np.nan


def check(seed: int, times: int, least: int) -> None:
    """Settings of one call each against programs priced step by step."""
    rng, equal = random.Random(seed), 0
    for _ in range(times):
        asked = drawn(rng)
        est = mtf.costs.inference(**{**asked, "cfg": [asked["cfg"]]})
        for phase in PHASES:
            ours, theirs = float(est.phases[phase].seconds[0]), priced(asked, est, phase)
            assert ours == pytest.approx(theirs, rel=1e-9, nan_ok=True), (asked, phase)
            equal += not np.isnan(ours)
    assert equal >= least


def test_settings_equal_their_priced_programs():
    check(0, 30, 25)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 11))
def test_a_thousand_settings_equal_their_priced_programs(seed):
    check(seed, 100, 80)


def test_arrays_broadcast_and_equal_single_settings():
    batches, weights = np.array([16, 64, 256]), np.array([["int8"], ["bf16"]], object)
    est = mtf.costs.inference(PALM, ["v4:4x4x4"], batch=batches, weights=weights, output_tokens=32)
    assert est.step_seconds.shape == est.fits.shape == est.layouts["decode"].shape == (2, 3)
    for (i, j), seconds in np.ndenumerate(est.step_seconds):
        one = mtf.costs.inference(PALM, "v4:4x4x4", batch=int(batches[j]), weights=weights[i, 0], output_tokens=32)
        assert one.step_seconds == pytest.approx(seconds, rel=1e-12)
        assert one.prefill_seconds == pytest.approx(est.prefill_seconds[i, j], rel=1e-12)
        assert one.layouts["decode"] == est.layouts["decode"][i, j]
        assert one.memory["total"] == est.memory["total"][i, j]
        assert one.max_batch == est.max_batch[i, j]


def test_prompts_of_one_token_stand_beside_longer_ones():
    """Nothing looks ahead in them, so their steps are others."""
    for lengths in ([1, 7, 64], [64, 7, 1]):
        est = mtf.costs.inference("palm-8b", "v4:2x2x2", batch=8, input_tokens=lengths)
        each = [mtf.costs.inference("palm-8b", "v4:2x2x2", batch=8, input_tokens=n) for n in lengths]
        assert est.prefill_seconds == pytest.approx([one.prefill_seconds for one in each], rel=1e-12)


def test_models_and_slices_may_be_arrays_too():
    names, slices = ["palm-8b", "palm-62b"], [["v4:2x2x2"], ["v5e:4x4"], ["h100:8"]]
    est = mtf.costs.inference(names, slices, batch=32, input_tokens=512)
    assert est.step_seconds.shape == (3, 2)
    for (i, j), seconds in np.ndenumerate(est.step_seconds):
        one = mtf.costs.inference(names[j], slices[i][0], batch=32, input_tokens=512)
        assert one.step_seconds == pytest.approx(seconds)


def test_prices_broadcast_like_everything_else():
    est = mtf.costs.inference("palm-8b", "v4:2x2x2", batch=8, price_per_chip_hour=[1, 2.5])
    assert est.cost_per_million_tokens.shape == est.fits.shape == (2,)
    assert est.cost_per_million_tokens[1] == pytest.approx(2.5 * est.cost_per_million_tokens[0])


def test_whole_numbers_may_come_as_any_type():
    plain = mtf.costs.inference("palm-8b", "v4:2x2x2", batch=[8, 16]).step_seconds
    for batch in (np.array([8, 16], object), np.array([8.0, 16.0]), (np.int8(8), np.uint64(16)), range(8, 17, 8)):
        assert np.array_equal(mtf.costs.inference("palm-8b", "v4:2x2x2", batch=batch).step_seconds, plain)
    assert mtf.costs.inference("palm-8b", "v4:2x2x2", batch=np.array(8)).step_seconds == plain[0]


def test_what_fills_hbm_is_named():
    chip = {"topology": "v5e:1x1", "weights": "int8", "attention": "heads"}
    found = [mtf.costs.inference("llama-3-8b", batch=batch, input_tokens=context, **chip).bottleneck["decode"]
             for batch, context in ((1, 128), (64, 8000))]  # fmt: skip
    assert found == ["HBM: weights", "HBM: cache"]
    long = mtf.costs.inference("palm-62b", "v4:2x2x2", batch=64, input_tokens=4096, ffn="ws1d", model="physical")
    assert long.phases["prefill"].reads["values between"] > long.phases["prefill"].reads["weights"]


def test_a_single_setting_gives_plain_values():
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=64, weights="int8", price_per_chip_hour=3.0)
    assert isinstance(est.step_seconds, float) and isinstance(est.fits, bool) and isinstance(est.max_batch, int)
    assert est.decode_seconds == pytest.approx(64 * est.step_seconds)
    assert est.total_seconds == est.prefill_seconds + est.decode_seconds
    assert est.cost_per_million_tokens == pytest.approx(est.chip_seconds_per_token * 3.0 / 3600 * 1e6)
    assert est.chip_seconds_per_output_token == pytest.approx(64 * est.step_seconds / 64)  # chips, and sequences
    assert est.origin == "modelled" and est.is_calibrated and not est.warnings


@pytest.mark.parametrize("phase", PHASES)
def test_parts_add_up_to_a_pass(phase):
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=[1, 64, 512])
    assert np.allclose(sum(est.parts[phase].values()), est.phases[phase].seconds, rtol=1e-12)


def test_the_best_of_those_that_fit_is_chosen():
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=256, weights="int8")
    for phase in PHASES:
        chosen = est.candidates[phase][est.layouts[phase]]
        fit = [each["seconds"] for name, each in est.candidates[phase].items()
               if each["fits"] and not name.startswith("ws1d")]  # fmt: skip
        assert chosen["fits"] and chosen["seconds"] == min(fit)


def test_ws1d_is_taken_for_both_phases_or_none():
    """It cuts the weights otherwise than the others, so they would have to be moved or held twice."""
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=2 ** np.arange(10), input_tokens=[[32], [512], [4096]])
    with_ws1d = [np.char.startswith(est.layouts[phase].astype(str), "ws1d") for phase in PHASES]
    assert np.array_equal(*with_ws1d) and with_ws1d[0].any() and not with_ws1d[0].all()


def test_phases_may_be_told_apart():
    est = mtf.costs.inference(
        PALM, "v4:4x4x4", batch=512, ffn={"prefill": "wg_xyz", "decode": "ws2d"},
        attention={"prefill": "heads", "decode": "batch"},
    )  # fmt: skip
    assert est.layouts == {"prefill": "wg_xyz-heads", "decode": "ws2d-batch"}
    assert list(est.candidates["prefill"]) == ["wg_xyz-heads"]


def test_throughput_is_labelled_by_what_it_counts():
    """8 prompts of 1,024 tokens in 0.1 s are 80 prompts and 81,920 tokens a second."""
    est = mtf.costs.inference("llama-2-13b", "v5e:2x4", batch=8, input_tokens=1024, weights="int8")
    assert est.prompts_per_second == pytest.approx(8 / est.prefill_seconds)
    assert est.prompt_tokens_per_second == pytest.approx(1024 * est.prompts_per_second)
    assert est.output_tokens_per_second == pytest.approx(8 / est.step_seconds)


def test_tables_that_are_only_looked_up_count_for_no_share_of_the_peak():
    cfg = mtf.model.config("llama-3-8b")
    est = mtf.costs.inference([cfg, cfg.but(tied=True)], "v5p:1x1x1", batch=64, input_tokens=2048)
    assert est.decode_mfu[0] * est.step_seconds[0] == pytest.approx(est.decode_mfu[1] * est.step_seconds[1])
    multiplied = 2 * (cfg.n_params - cfg.vocab * cfg.d_model) * 64
    assert est.decode_mfu[0] == pytest.approx(multiplied / est.step_seconds[0] / 459e12)


def test_cached_tokens_spare_their_prefill():
    """The chat turn of arXiv 2211.05102, section 1: 64 new tokens after 1,920 that are cached."""
    kept = mtf.costs.inference(PALM, "v4:4x4x4", batch=1, input_tokens=64, cached_tokens=1920, weights="int8")
    anew = mtf.costs.inference(PALM, "v4:4x4x4", batch=1, input_tokens=1984, weights="int8")
    assert kept.prefill_seconds < anew.prefill_seconds / 5
    assert kept.step_seconds == pytest.approx(anew.step_seconds)


# ---- the rule that depends on the phase: arXiv 2211.05102, sections 3.2 to 3.4 and 4.1 ------------------------------


def test_prefill_gathers_more_weights_as_the_batch_grows():
    """Figure 3: from weight-stationary over X and XY to XYZ weight-gathered."""
    ffn = [["ws2d"], ["wg_x"], ["wg_xy"], ["wg_xyz"]]
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=2 ** np.arange(10), ffn=ffn, model="physical")
    seconds = np.where(np.isnan(est.prefill_seconds), np.inf, est.prefill_seconds)
    winners = seconds.argmin(0)
    assert winners[0] == 0 and winners[-1] == 3 and (np.diff(winners) >= 0).all()


def test_decode_stays_weight_stationary():
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=2 ** np.arange(3, 11))
    assert all(name.startswith("ws") for name in est.layouts["decode"])


def test_two_dimensions_win_where_there_are_many_chips():
    """n > 4F/E (ERRATA): at F/E = 4 from 16 chips on, counting bytes as the paper does."""
    found = []
    for where in ("v4:2x2x2", "v4:4x4x4", "v4:4x8x8"):
        est = mtf.costs.inference(
            PALM, where, batch=512, input_tokens=1, ffn=["ws1d", "ws2d"], attention="batch", model="paper"
        )
        one, two = est.phases["decode"].parts["link"]
        found.append(two / one)
    assert found[0] > 1 > found[1] > found[2]


def test_attention_by_batch_is_what_long_contexts_need():
    est = mtf.costs.inference(
        PALM, "v4:4x4x4", batch=128, prefill_batch=1, input_tokens=8192, attention=["heads", "batch"], ffn="ws2d"
    )
    assert est.step_seconds[1] < est.step_seconds[0] / 2 and est.fits_by_phase["decode"].tolist() == [False, True]


def test_int8_helps_where_weights_are_waited_for_only():
    how = {"ffn": "ws2d", "attention": "batch"}
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=[[16], [512]], weights=["bf16", "int8"], **how)
    gain = est.step_seconds[:, 0] / est.step_seconds[:, 1]
    assert gain[0] > 1.2 and gain[1] < 1.02


def test_serial_blocks_are_slower():
    """Section 4.3: 14 % higher latency a step, 540B on 64 chips at batch 512."""
    est = mtf.costs.inference([PALM, PALM.but(block="serial")], "v4:4x4x4", batch=512, ffn="ws2d", attention="batch")
    assert 1.10 < est.step_seconds[1] / est.step_seconds[0] < 1.20


# ---- refused, kindly ----------------------------------------------------------------------------------------------


def refused(**asked: object) -> str:
    with pytest.raises(LayoutError) as caught:
        mtf.costs.inference(**{"cfg": "palm-540b", "topology": "v4:4x4x4", **asked})
    return str(caught.value)


def test_everything_wrong_is_said_at_once():
    text = refused(
        cfg="palm-541b", topology="v4:4x4x5", batch=0, weights="int9", ffn="ws3d", attention="head", reserve=2
    )
    for part in ("palm-540b", "'v4:4x4x4'", "batch is 0", "int9", "ws3d", "head", "reserve is 2"):
        assert part in text


@pytest.mark.parametrize(("asked", "named"), [
    ({"batch": 2.5}, "batch is 2.5"), ({"input_tokens": 0}, "input_tokens is 0"),
    ({"batch": "many"}, "batch is 'many'"), ({"batch": b"4"}, "batch is b'4'"),
    ({"batch": bytearray(b"x:4")}, "batch is bytearray(b'x:4')"), ({"batch": memoryview(b"4")}, "batch is <memory"),
    ({"price_per_chip_hour": bytearray(b"4")}, "is bytearray"), ({"reserve": bytearray(1)}, "reserve is bytearray"),
    ({"cfg": bytearray(b"palm")}, "bytearray(b'palm') is neither a word"),
    ({"batch": [1, -3]}, "batch is -3"), ({"model": "exact"}, "no model of time 'exact'"),
    ({"price_per_chip_hour": -1}, "price_per_chip_hour is -1"), ({"batch": [1, 2], "input_tokens": [1, 2, 3]}, "(2,)"),
    ({"batch": [[1, 2], [3]]}, "rows differ in length"), ({"ffn": [{"a": 1}]}, "{'a': 1} is neither a word"),
    ({"topology": [["v4:2x2x2"], ["v4:2x2x1", "v4:2x2x2"]]}, "rows differ in length"),
    ({"cfg": []}, "[] is empty"), ({"topology": []}, "[] is empty"),
    ({"cfg": "gpt-3-175b"}, "decode under every partition: gpt-3-175b has 2,048 learned positions"),
    ({"ffn": {"prefil": "ws2d"}}, "did you mean 'prefill'?"), ({"attention": {0: "heads"}}, "attention of 0"),
    ({"price_per_chip_hour": [[1], [2, 3]]}, "price_per_chip_hour is [[1], [2, 3]]"),
    ({"price_per_chip_hour": [1, 2, 3], "batch": [1, 2]}, "price (3,)"),
    ({"batch": 2, "ffn": "wg_xyz"}, "batch=64"), ({"cfg": "mt-nlg-530b", "input_tokens": 4096}, "learned positions"),
])  # fmt: skip
def test_what_cannot_be_is_named_with_what_can(asked, named):
    assert named in refused(**asked)


def test_among_many_what_cannot_be_has_a_reason_and_harms_no_other():
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=[2, 64], ffn="wg_xyz", attention="batch")
    assert np.isnan(est.prefill_seconds).tolist() == [True, False] and est.fits.tolist()[0] is False
    assert "batch=64" in est.candidates["prefill"]["wg_xyz-batch"]["reason"][0]
    assert est.candidates["prefill"]["wg_xyz-batch"]["reason"][1] == "" and est.layouts["prefill"][0] == ""


def test_what_does_not_fit_says_what_would():
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=512, input_tokens=32768, ffn="ws2d", attention="batch")
    assert not est.fits and "does not fit" in est.warnings[0] and f"batch {est.max_batch}" in est.warnings[0]
    how = {"input_tokens": 32768, "ffn": "ws2d", "attention": "batch"}
    assert mtf.costs.inference(PALM, "v4:4x4x4", batch=est.max_batch, **how).fits


def test_what_decodes_may_be_read_in_smaller_passes():
    how = {"input_tokens": 8192, "ffn": "ws2d", "attention": "batch"}
    est = mtf.costs.inference(PALM, "v4:4x4x4", batch=128, **how)
    most = est.max_batch_by_phase["prefill"]
    assert est.fits_by_phase == {"prefill": False, "decode": True} and f"prefill_batch={most}" in est.warnings[0]
    fewer = mtf.costs.inference(PALM, "v4:4x4x4", batch=128, prefill_batch=most, **how)
    assert fewer.fits and fewer.step_seconds == est.step_seconds and fewer.prefill_seconds < est.prefill_seconds


def test_a_chip_without_fitted_rows_says_so():
    assert "no fitted constants" in mtf.costs.inference("palm-8b", "v5e:4x4", batch=8).warnings[0]
