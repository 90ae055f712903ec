"""One device's share: local shapes, nothing left out but collectives, and nothing of it mistaken for the whole."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from core.sweep.making import programs
from hypothesis import given, seed, settings
from measuring.measured_programs import layers, looped, updating

import mtfcore as mtf
from mtfcore.counting import count_hlo_text
from mtfcore.measuring import WrongAnswer, places, share
from mtfcore.measuring.cutting import function_of, shapes_of, without_collectives

MODEL = "tiny-grouped"


def phase(partition, kind="prefill", mesh="x:2 y:2 z:2", **more):
    ffn, attention = partition.split("-")
    sizes = {"new_tokens": 8} if kind == "prefill" else {"cached_tokens": 16}
    return mtf.model.plan_phase(MODEL, kind, mesh, ffn=ffn, attention=attention, batch=8, weights="f32", cache="f32",
                                **sizes, **more)  # fmt: skip


def traced(prog):
    alone = without_collectives(prog)
    return alone, function_of(alone, len(prog.inputs))


PARTITIONS = ("ws1d-heads", "ws2d-batch", "wg_x-heads", "wg_xyz-batch")
PROGRAMS = [(name, *how) for name in PARTITIONS for how in (("prefill", False), ("decode", True))]


@pytest.mark.parametrize(("partition", "kind", "rings"), PROGRAMS)
def test_what_is_left_has_the_plans_flops_and_no_collective(partition, kind, rings):
    prog = phase(partition, kind)
    prog = mtf.looped(prog) if rings else prog
    alone, fn = traced(prog)
    found = mtf.count(fn, *shapes_of(alone))
    assert found.flops == prog.flops() > 0 and not found.collectives
    assert not alone.collectives() and len([s for s in alone.walk() if s.kind == "stand_in"]) == len(prog.collectives())
    shapes = [tuple(s.shape) for s in shapes_of(alone)[: len(prog.inputs)]]
    assert shapes == [port.sharding.local_shape(prog.mesh) for port in prog.inputs]


@seed(6)
@settings(max_examples=25, database=None)
@given(programs())
def test_of_any_program_only_collectives_are_left_out(case):
    prog = case.build()
    alone, fn = traced(prog)
    found = mtf.count(fn, *shapes_of(alone))
    assert found.flops == prog.flops() and not found.collectives


@pytest.mark.parametrize("make", [lambda: phase("wg_xy-batch", mesh="x:2 y:2"), looped], ids=["phase", "looped"])
def test_the_compiler_leaves_no_product_out(make):
    """Nor does it find two that are one: the text that runs has every FLOP of the plan, loops multiplied."""
    prog = make()
    alone, fn = traced(prog)
    text = jax.jit(fn).lower(*shapes_of(alone)).compile().as_text()
    assert count_hlo_text(text).flops == prog.flops()


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not here: no wheel, or LITE=1")
def test_the_compiler_for_tpus_leaves_no_product_out():
    """Loops, rings and all, compiled for a v5e in a process of its own."""
    script = Path(__file__).with_name("share_for_tpu.py")
    root = Path(mtf.__file__).parent.parent
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100, cwd=root,
                          env=os.environ | {"PYTHONPATH": str(root)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    planned, compiled = done.stdout.split()
    assert planned == compiled and int(planned) > 0


def test_a_barrier_alone_would_not_do(monkeypatch):
    """Why there is a mark: with a stand-in that only waits, what is sent is never computed."""
    prog = layers(sizes="batch:16 io:64 hidden:64")

    def waits(call, buffer, mark, *sent):
        return jax.lax.optimization_barrier((buffer, mark))

    from mtfcore.kernels.basic import KERNELS

    alone, fn = traced(prog)
    monkeypatch.setitem(KERNELS, "stand_in", waits)
    text = jax.jit(fn).lower(*shapes_of(alone)).compile().as_text()
    assert count_hlo_text(text).flops < prog.flops()


def given_what_others_send(prog, run):
    """A device's share whose buffers hold what the collectives really gave it."""
    alone, fn = traced(prog)
    buffers = {step.inputs[0]: run.values(n) for n, step in enumerate(alone.steps) if step.kind == "stand_in"}
    arrays = [run._value((-1, n), 0, -1) for n in range(len(prog.inputs))]
    arrays += [buffers[port.value] for port in alone.inputs[len(prog.inputs) : -1]]
    return fn, [*arrays, np.float32(0), np.zeros(len(prog.mesh.names) + 1, np.int32)]


def test_with_the_others_answers_a_share_gives_its_own():
    """Given what it would have been sent, it computes device 0's part of the whole program."""
    prog = layers()
    run = mtf.simulate(prog)
    rng = np.random.default_rng(4)
    whole = run(*[rng.standard_normal(port.sharding.shape).astype(np.float32) for port in prog.inputs])
    fn, arrays = given_what_others_send(prog, run)
    result, mark = jax.jit(fn)(*arrays)
    np.testing.assert_allclose(result, whole[prog.outputs[0].sharding.slices(prog.mesh, 0)], rtol=1e-5, atol=1e-5)
    sent = run.before(next(n for n, step in enumerate(prog.steps) if step.is_collective), 0)[0]
    np.testing.assert_allclose(mark, sent[0, 0], rtol=1e-5)  # one element of what would have been sent


def test_another_device_stands_elsewhere():
    """Coordinates are numbers given at run time: a slice taken by device 3 begins at its place."""

    @mtf.function
    def sliced(t: "B E"):
        return mtf.reshard(t, mtf.Sharding("B:8 E:2", "B:xy E"))

    prog = mtf.plan(sliced, "x:2 y:2", sizes="B:8 E:2", dtype="f32")
    _, fn = traced(prog)
    t = np.arange(16, dtype=np.float32).reshape(8, 2)
    result, _ = jax.jit(fn)(t, np.float32(0), np.array([1, 1, 0], np.int32))
    np.testing.assert_array_equal(result, t[6:8])


def test_measured_it_says_what_it_is():
    prog = layers()
    found = mtf.measure(prog, on="simulated", share=True, topology="v4:2x2x2", repeats=2)
    cost = mtf.price(prog, "v4:2x2x2", model="calibrated")
    assert found.share.modelled_link_seconds == cost.exposed_seconds > 0
    assert found.share.left_out == sum(step.times for step in prog.collectives())
    assert found.where["devices"] == 1 and found.mesh == "rows:4 cols:2" and len(found.seconds) == 2
    assert found.check["error"] is None and found.check["flops"] == prog.flops()
    assert found.total_seconds is None  # this computer's time and a v4's links make no sum
    words = found.words()
    assert "one device's share of mesh 'rows:4 cols:2' at its exact local shapes" in words
    assert "modelled beside it" in words and "on v4:2x2x2 (calibrated)" in words


def test_more_devices_than_there_are_means_a_share():
    prog = layers("rows:64 cols:2", sizes="batch:128 io:8 hidden:32")
    found = mtf.measure(prog, on="simulated", repeats=1)
    assert found.share is not None and found.share.modelled_link_seconds is None
    assert "not modelled (no topology is known)" in found.words()


def test_state_is_carried_and_arrays_of_ones_own_are_cut():
    prog = updating()
    w, x = np.full((4, 16), 8.0, np.float32), np.ones((8, 4), np.float32)
    found = mtf.measure(prog, {"w": w, "x": x}, on="simulated", share=True, repeats=2)
    assert found.carried == ("w",) and w[0, 0] == 8.0
    subject = share.share_of(prog, {"w": w, "x": x}, jax.devices("cpu")[0], None, "calibrated")
    arrays = subject.make(subject.places)
    ports = {port.name: port for port in prog.inputs}
    np.testing.assert_array_equal(arrays[0], w[ports["w"].sharding.slices(prog.mesh, 0)])


def as_on_a_chip(monkeypatch):
    """The CPU that runs the share is taken for a chip; another one beside it checks."""
    monkeypatch.setattr(share, "_cpu_beside", lambda program, device: jax.devices("cpu")[1])


def test_a_chips_share_is_checked_by_the_same_steps_on_the_cpu(monkeypatch):
    as_on_a_chip(monkeypatch)
    found = mtf.measure(layers(), on="simulated", share=True, repeats=1)
    assert found.check["against"] == "the same steps on the CPU" and found.check["error"] <= found.check["tolerance"]
    real = share._on
    monkeypatch.setattr(share, "_on", lambda *args: [array + 1 for array in real(*args)])
    with pytest.raises(WrongAnswer, match="differs from the same steps on the CPU"):
        mtf.measure(layers(), on="simulated", share=True, repeats=1)


def test_a_share_that_lost_work_is_not_shown(monkeypatch):
    prog = layers()
    short = dataclasses.replace(prog, steps=(dataclasses.replace(prog.steps[0], flops=1), *prog.steps[1:]))
    with pytest.raises(WrongAnswer, match=r"one device's share has .* FLOPs .* no time is shown"):
        mtf.measure(short, on="simulated", share=True, repeats=1)


def test_a_share_that_cannot_fit_is_refused(monkeypatch):
    monkeypatch.setattr(places, "free_bytes", lambda device: 2**20)
    prog = mtf.model.plan_phase("palm-540b", "decode", "x:4 y:4 z:4", ffn="ws2d", attention="batch", batch=64,
                                cached_tokens=2048, weights="int8", cache="bf16")  # fmt: skip
    with pytest.raises(mtf.DeviceError, match=r"one device's share of decode .* is expected .* 8\.\d+ GiB .* 1 MiB"):
        mtf.measure(prog, on="simulated", share=True)


def test_the_slice_whose_links_are_modelled():
    assert str(share.slice_for(mtf.Mesh("x:4 y:4 z:4"), "TPU v4")) == "v4:4x4x4"
    assert str(share.slice_for(mtf.Mesh("x:8"), "NVIDIA H200")) == "h200:8"
    assert share.slice_for(mtf.Mesh("x:7"), "TPU v4") is None and share.slice_for(mtf.Mesh("x:2"), "cpu") is None
