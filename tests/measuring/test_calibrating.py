"""Constants from records: found again where they are known, with intervals, and refused where nothing tells them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.costs.pricing.constants import Constants
from mtfcore.measuring.calibrating import calibrate

TRUE = Constants("h200", compute_share=0.7, hbm_share=0.85, link_share=0.5, launch_seconds=8e-6)
START = 4e-5
SQUARE = [{"m": n, "k": n, "n": n} for n in (256, 2048, 4096, 8192, 12288, 16384)]
FLAT = [{"m": 8, "k": n, "n": n} for n in (2048, 8192, 12288, 16384, 24576)]
SENT = [{"n_bytes": 2**power, "devices": g} for power in (12, 16, 20, 24, 26) for g in (2, 8)]


@mtf.function
def product(a: "m k", b: "k n"):
    return mtf.einsum(a, b, out="m n")


@mtf.function
def gathered(a: "m k"):
    return mtf.reshard(a, mtf.Sharding("m k"))


def program_of(record):
    p = record["params"]
    if record["case"] == "product":
        return mtf.plan(product, "x:1", sizes=p, dtype="bf16")
    if record["case"] == "collective":
        sizes = {"m": p["devices"], "k": p["n_bytes"] // 2}
        return mtf.plan(gathered, f"x:{p['devices']}", "m:x", sizes=sizes, dtype="bf16")
    return None


def record(case, params, rng, **more):
    topology = f"h200:{params.get('devices', 1)}"
    found = {"case": case, "params": params, "status": "ok", "origin": "measured", "when": "2026-11-30T10:00:00Z",
             "where": {"platform": "gpu", "device_kind": "NVIDIA H200", "devices": 1, "topology": topology},
             "versions": {"jax": "0.10.2"}, "share": None} | more  # fmt: skip
    exact = mtf.price(program_of(found), topology, model=TRUE).seconds + START
    return {**found, "seconds": list(exact * np.exp(rng.normal(0, 0.02, 5)))}


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(7)
    products = [record("product", params, rng) for params in SQUARE + FLAT]
    return products + [record("collective", params, rng) for params in SENT]


@pytest.fixture(scope="module")
def found(records):
    return calibrate(records, program_of)


def test_constants_are_found_again(found):
    for name in ("compute_share", "hbm_share", "link_share", "launch_seconds"):
        assert found.constants.value(name) == pytest.approx(TRUE.value(name), rel=0.1), name
    for name, low, high in found.constants.intervals:
        assert low <= found.constants.value(name) <= high and 0 < high / low - 1 < 0.25, name
    assert found.start_seconds == pytest.approx(START, rel=0.05) and found.missing == {}
    assert found.median_error < 0.02 and len(found.points) == 21


def test_noise_widens_the_intervals(records, found):
    rng = np.random.default_rng(8)
    loud = [{**r, "seconds": [t * np.exp(rng.normal(0, 0.2)) for t in r["seconds"][:1]]} for r in records]
    wide = {name: high / low for name, low, high in calibrate(loud, program_of).constants.intervals}
    narrow = {name: high / low for name, low, high in found.constants.intervals}
    assert wide["compute_share"] > narrow["compute_share"]


def test_predictions_name_the_constants_they_use(found):
    cost = mtf.price(program_of({"case": "product", "params": SQUARE[2]}), "h200:1", model=found.constants)
    assert "constants of h200 from 21 records (NVIDIA H200, jax 0.10.2, 2026-11-30)" in str(cost)
    assert cost.compute_seconds == pytest.approx(2 * 4096**3 / 989.5e12 / found.constants.compute_share, rel=1e-2)
    asked = {"batch": 8, "input_tokens": 128, "ffn": "ws1d", "attention": "heads"}
    est = mtf.costs.inference("palm-8b", "h200:8", model=found.constants, **asked)
    plain = mtf.costs.inference("palm-8b", "h200:8", model="physical", **asked)
    assert est.step_seconds > plain.step_seconds and any("from 21 records" in said for said in est.warnings)
    with pytest.raises(mtf.LayoutError, match="these constants are of h200, not of v4"):
        mtf.price(program_of({"case": "product", "params": SQUARE[2]}), "v4:2x2x1", model=found.constants)


def test_one_chip_tells_no_links(records):
    alone = calibrate(records[: len(SQUARE + FLAT)], program_of)
    assert set(alone.constants.fitted) == {"compute_share", "hbm_share"}
    assert "collectives of 16 MiB a device" in alone.missing["link_share"]
    assert "link_share 1 (not measured)" in alone.constants.words and "not told: launch_seconds" in str(alone)


def test_a_share_tells_of_its_local_steps_alone(records):
    """A collective that was left out of a share says nothing of links."""
    rng = np.random.default_rng(9)
    shares = [record("product", params, rng, share={"mesh": "x:1"}) for params in SQUARE + FLAT]
    alone = calibrate(shares, program_of)
    assert alone.constants.compute_share == pytest.approx(0.7, rel=0.1) and "link_share" in alone.missing


def test_constants_are_kept_as_text(found):
    assert Constants.from_json(found.constants.to_json()) == found.constants


@pytest.mark.parametrize(
    "wrong",
    ['[]', "{}", '{"chip": "h200"}', {"compute_share": 0.0}, {"hbm_share": float("nan")}, {"link_share": "0.5"},
     {"launch_seconds": -1.0}, {"chip": "h900"}, {"intervals": [["hbm_share", 1]]}, {"intervals": [["speed", 1, 2]]}],
)  # fmt: skip
def test_what_is_no_constants_is_refused(wrong):
    text = wrong if isinstance(wrong, str) else json.dumps({**json.loads(TRUE.to_json()), **wrong})
    with pytest.raises(mtf.LayoutError):
        Constants.from_json(text)


def refused(*args, **kwargs):
    with pytest.raises(mtf.LayoutError) as fault:
        calibrate(*args, **kwargs)
    return str(fault.value)


def test_simulated_times_are_no_chips(records):
    simulated = [{**r, "where": {"platform": "simulated", "device_kind": "cpu"}} for r in records]
    said = refused(simulated, program_of)
    assert "21 left out: simulated devices: this computer's time, no chip's" in said and "at least 3" in said
    mixed = calibrate(simulated + records, program_of)
    assert mixed.constants.n == 21 and len(mixed.left_out) == 21


def test_too_few_records_say_what_to_measure(records):
    assert "2 records of h200 tell no constant; measure for compute_share at least 3" in refused(
        records[:2], program_of
    )
    assert "no measured record to fit" in refused([], program_of)
    assert "no measured record of v4 to fit constants to; there are some of h200" in refused(
        records, program_of, chip="v4"
    )


def test_records_of_one_size_do_not_tell_a_constant_from_what_starting_takes():
    """Equal times fit many pairs of the two equally well; no pair may be taken for told."""
    rng = np.random.default_rng(10)
    same = calibrate([record("product", SQUARE[2], rng) for _ in range(5)], program_of)
    ratio = (2 * 4096**3 / 989.5e12) / np.median([point.measured_seconds for point in same.points])
    assert same.start_seconds is None and same.constants.compute_share == pytest.approx(ratio, rel=0.02)


@pytest.mark.parametrize("factor", [1e-3, 1e12])
def test_times_that_no_chip_takes_tell_nothing(records, factor):
    odd = [{**r, "seconds": [t * factor for t in r["seconds"]]} for r in records[: len(SQUARE)]]
    assert "tell no constant" in refused(odd, program_of)


def test_what_cannot_be_used_is_named(records):
    other = {**records[0], "where": {**records[0]["where"], "device_kind": "TPU v4", "topology": "v4:2x2x1"}}
    assert "records of h200, v4; say which" in refused([*records, other], program_of)
    failed = {**records[0], "status": "failed", "seconds": []}
    unknown = {**records[0], "case": "generate"}
    compiled = {**records[0], "origin": "compiled"}
    nameless = {**records[0], "where": {"platform": "gpu", "device_kind": "GeForce"}}
    timeless = {**records[0], "seconds": [1e-3, 0.0]}
    elsewhere = {**records[0], "where": {**records[0]["where"], "topology": "v4:2x2x1"}}
    odd = [other, failed, unknown, compiled, nameless, timeless, elsewhere]
    found = calibrate([*records, *odd], program_of, chip="h200")
    whys = " | ".join(why for _, why in found.left_out)
    for part in ("of v4", "no time was measured", "no program is known", "compiled, not measured", "'GeForce'",
                 "took no time", "has other chips"):  # fmt: skip
        assert part in whys
