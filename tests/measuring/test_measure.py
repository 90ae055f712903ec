"""Timing: what is waited for, what comes before a time is shown, what is refused. No test says how long."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from measuring.measured_programs import NAP_SECONDS, layers, slow, updating

import mtfcore as mtf
from mtfcore.measuring import Measured, Share, WrongAnswer, checking, places, steps, timing


def ran_out(going):
    """What a generator told, and what it returned."""
    told = []
    while True:
        try:
            told.append(next(going))
        except StopIteration as done:
            return told, done.value


def test_a_slow_operation_shows_at_least_its_sleep():
    found = mtf.measure(slow(), on="simulated", repeats=3, warm_up=0)
    assert len(found.seconds) == 3 and min(found.seconds) >= NAP_SECONDS  # not the time of handing it over


def test_repetitions_are_raw_and_the_rest_is_said():
    found = mtf.measure(layers(), on="simulated", repeats=4, warm_up=2)
    assert len(found.seconds) == 4 and min(found.seconds) > 0 and found.compile_seconds > 0
    assert found.warm_up == 3  # the run whose answer is checked, and the two asked for
    assert found.median == np.median(found.seconds)
    assert found.spread == (max(found.seconds) - min(found.seconds)) / found.median
    assert found.where["platform"] == "simulated" and found.where["devices"] == 8 and found.where["hosts"] == 1
    assert found.check["error"] <= found.check["tolerance"] == 1e-3
    assert found.counts["flops"] == layers().flops() and found.counts["link_bytes"] == layers().link_bytes()
    assert found.versions["jax"] and found.origin == "measured" and found.words().endswith(" UTC")


def test_times_of_simulated_devices_are_never_speed():
    found = mtf.measure(layers(), on="simulated", repeats=1)
    assert found.simulated and found.mfu is None and found.total_seconds is None
    assert "this computer's time, playing the devices; never hardware speed" in found.words()
    assert "simulated" in repr(found) and "NVIDIA" not in str(found)


def test_it_can_be_stopped_between_repetitions(monkeypatch):
    runs = []
    real = timing.Runs.run
    monkeypatch.setattr(timing.Runs, "run", lambda self, keep=False: (runs.append(keep), real(self, keep))[1])
    going = steps(layers(), on="simulated", repeats=50, warm_up=1)
    told = [next(going) for _ in range(6)]
    going.close()
    assert [now.text for now in told] == [
        "compiling", "making the inputs on the devices", "checking the answer", "warming up", "repetition 1 of 50",
        "repetition 2 of 50",
    ]  # fmt: skip
    assert [now.done for now in told] == [*range(6)] and told[0].total == 54
    assert runs == [True, False, False]  # checked, warm-up, repetition 1; the second was never begun


def test_a_wrong_answer_raises_before_any_time_is_shown(monkeypatch):
    from mtfcore import execute

    monkeypatch.setitem(execute.MOVES, "all_reduce", lambda step, array, mesh: array)  # sums of its own part alone
    going = steps(layers(), on="simulated")
    with pytest.raises(WrongAnswer, match=r"two_layers: result .* on device 0 differs from mtf.single .* no time"):
        ran_out(going)
    assert next(going, None) is None
    unchecked = mtf.measure(layers(), on="simulated", repeats=1, check=False)
    assert unchecked.check["error"] is None and "answer not checked: not asked" in unchecked.words()


def test_one_wrong_device_is_found():
    import jax

    prog = layers()
    run = mtf.simulate(prog)
    arrays = [np.ones(port.sharding.shape, np.float32) for port in prog.inputs]
    right = mtf.single(prog)(*arrays)
    at = jax.sharding.NamedSharding(run.jax_mesh, prog.outputs[0].sharding.partition_spec())
    wrong = right.copy()
    wrong[5] += 30.0
    words = "mtf.single"
    assert checking.compared(prog, [jax.device_put(right, at)], [right], words, "cpu")["error"] == 0
    with pytest.raises(WrongAnswer, match=r"on device [23] differs"):
        checking.compared(prog, [jax.device_put(wrong, at)], [right], words, "cpu")


def test_errors_are_shares_of_the_largest_value():
    right = np.array([1.0, -4.0], np.float32)
    assert checking.error_of(right, right, right) == 0
    assert checking.error_of(right + np.array([0, 1], np.float32), right, right) == 0.25
    nan = np.array([np.nan, 1.0])
    assert checking.error_of(nan, nan, nan) == 0
    assert checking.error_of(nan, right.astype(float), right) == math.inf
    assert checking.error_of(np.array([1, 2]), np.array([1, 3]), np.array([1, 3])) == 0.5
    assert checking.error_of(np.zeros(2), np.zeros(3), np.zeros(3)) == math.inf


@mtf.function
def stored(x: "b k", w: "k n"):
    return mtf.cast(mtf.einsum(x, w, out="b n") * 96.0, "i8")


def test_a_cache_in_int8_is_compared_as_what_it_stores():
    """A rounded number's neighbour is as right: of hundreds of them many differ by one step."""
    import jax

    prog = mtf.plan(stored, "x:4", "k:x", sizes="b:32 k:256 n:32", dtype="bf16")
    right = np.arange(-127, 127, dtype=np.int8)[:, None] * np.ones((1, 32), np.int8)
    at = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    lost = np.where(right < 0, right, 0).astype(np.int8)
    near = checking.compared(prog, [jax.device_put(right + np.int8(1), at)], [right], "mtf.single", "cpu")
    assert 0 < near["error"] < 0.01 < near["tolerance"]
    with pytest.raises(WrongAnswer, match=r"differs from mtf\.single"):
        checking.compared(prog, [jax.device_put(lost, at)], [right], "mtf.single", "cpu")


def test_the_first_call_of_a_process_finds_simulated_devices():
    """JAX must not have been started with one device by asking how many there are: then a share would run instead."""
    code = ("import mtfcore as mtf\nfrom measuring.measured_programs import layers\n"
            "found = mtf.measure(layers(), on='simulated', repeats=1)\n"
            "print(found.share is None, found.where['devices'])")  # fmt: skip
    root = Path(mtf.__file__).parent.parent
    paths = os.pathsep.join([str(root), str(root / "tests")])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=root,
                          env=os.environ | {"PYTHONPATH": paths})  # fmt: skip
    assert done.stdout.split() == ["True", "8"], done.stderr


def test_more_is_allowed_where_products_run_narrower():
    assert checking.tolerance(layers(), "cpu") == 1e-3
    assert checking.tolerance(layers(), "gpu") == 1e-2 and checking.tolerance(layers(), "tpu") == 5e-2
    assert checking.tolerance(layers(dtype="bf16"), "cpu") == 5e-2


def test_a_program_too_large_for_the_oracle_says_so(monkeypatch):
    monkeypatch.setattr(checking, "ORACLE_BYTES", 1000)
    found = mtf.measure(layers(), on="simulated", repeats=1)
    assert found.check["error"] is None and "mtf.single would hold" in found.words()


def test_what_is_updated_in_place_is_carried_and_said():
    found = mtf.measure(updating(), on="simulated", repeats=2)
    assert found.carried == ("w",) and "state carried from run to run (w)" in found.words()
    w, x = np.full((4, 16), 8.0, np.float32), np.ones((8, 4), np.float32)
    subject = timing.whole_of(updating(), {"w": w, "x": x}, "simulated")
    runs = timing.Runs(subject)
    runs.fill()
    first = runs.run(keep=True)
    np.testing.assert_array_equal(np.asarray(first[0]), w / 2)
    runs.run()
    np.testing.assert_array_equal(np.asarray(runs.arrays[0]), w / 4)  # the second began where the first ended


def test_arrays_of_ones_own_are_not_used_up():
    import jax

    prog = updating()
    run = mtf.simulate(prog)
    own = run.put({"w": np.ones((4, 16), np.float32), "x": np.ones((8, 4), np.float32)})
    for arrays in (own, list(own.values())):  # by name, and in order
        found = mtf.measure(prog, arrays, on="simulated", repeats=2)
        assert found.check["error"] <= 1e-6
    assert not own["w"].is_deleted() and isinstance(own["w"], jax.Array)
    with pytest.raises(mtf.LayoutError, match="no input 'y'"):
        mtf.measure(prog, {"y": 1}, on="simulated")


def test_faults_are_told_all_at_once():
    with pytest.raises(mtf.LayoutError) as fault:
        mtf.measure(layers(), on="tpu", repeats=0, warm_up=-1, share="yes", check=1)
    for word in ("on is 'tpu'", "repeats is 0", "warm_up is -1", "share is 'yes'", "check is 1"):
        assert word in str(fault.value)
    for odd, said in (({"arrays": 5}, "arrays is 5"), ({"model": "zz"}, "no model of time 'zz'"),
                      ({"topology": "v9:2x2"}, "no topology 'v9:2x2'")):  # fmt: skip
        with pytest.raises(mtf.LayoutError, match=said):
            mtf.measure(layers(), **{"on": "simulated", **odd})
    with pytest.raises(mtf.LayoutError, match="expected a program"):
        mtf.measure(object(), on="simulated")


def test_without_a_chip_nothing_falls_back_to_the_cpu():
    for share in ("auto", True):
        with pytest.raises(mtf.DeviceError, match="no TPU or GPU is attached"):
            mtf.measure(layers(), share=share)


def test_what_cannot_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(places, "free_bytes", lambda device: 1000)
    with pytest.raises(mtf.DeviceError, match=r"8 simulated devices \(modelled\), and .* are free on this computer"):
        mtf.measure(layers(), on="simulated")


def test_a_device_that_is_full_after_all_says_so(monkeypatch):
    import jax

    def full(*arrays):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes\nmore")

    subject = timing.whole_of(layers(), None, "simulated")
    runs = timing.Runs(subject)
    runs.fill()
    runs.compiled = full
    with pytest.raises(MemoryError, match=r"two_layers on mesh 'rows:4 cols:2' did not fit .* allocate 9"):
        runs.run()


def real(**more):
    """As if on a GPU."""
    where = {"platform": "gpu", "device_kind": "NVIDIA H200", "devices": 1, "hosts": 1, "topology": "h200:1"}
    check = {"against": "mtf.single", "error": 1e-3, "tolerance": 1e-2}
    fields = {"name": "p", "mesh": "x:1", "seconds": (0.001, 0.003, 0.002), "compile_seconds": 1.0, "warm_up": 1,
              "where": where, "versions": {"jax": "0.10.2"}, "check": check, "counts": {"flops": 1e12},
              "peak_flops": 1e15}  # fmt: skip
    return Measured(**fields | more)


def test_on_a_chip_there_is_a_share_of_the_peak():
    found = real()
    assert found.total_seconds == 0.002 and found.mfu == 0.5 and found.total_origin == "measured"
    assert found.spread == 1.0 and "1 x NVIDIA H200" in found.words() and "never hardware" not in found.words()
    assert "warm-up run" in found.words()


def test_a_share_is_measured_and_its_links_modelled_never_mixed_in_silence():
    share = Share("x:8", 3, 0.002, "h200:8", "calibrated")
    found = real(share=share)
    assert found.median == 0.002 and found.total_seconds == 0.004 and found.total_origin == "measured + modelled"
    assert "3 collectives left out" in found.words() and "2 ms exposed on h200:8 (calibrated)" in share.words
    unknown = dataclasses.replace(found, share=Share("x:8", 3, None))
    assert unknown.total_seconds is None and unknown.mfu is None and "not modelled" in unknown.share.words
    none = real(share=Share("x:1", 0, 0.0, "h200:1"))
    assert none.total_origin == "measured" and "which has no collectives" in none.share.words


def test_the_compiler_may_order_inputs_where_it_gains(monkeypatch):
    monkeypatch.setattr(timing, "may_choose_order", lambda device: True)  # as on a TPU
    for prog in (layers(), updating()):
        assert mtf.measure(prog, on="simulated", repeats=1).check["error"] <= 1e-3
