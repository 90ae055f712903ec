"""Inputs that trip neighbouring tools, and the right outcome here. One test a case, named by the case's number.

Sources of the cases are public issue threads, named in each docstring. What a docstring calls later is the part of
a case that needs what does not exist yet: prices, compiled slices, real timing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import warnings
from collections import Counter

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.counting import count_hlo_text

RNG = np.random.default_rng(7)


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def kinds(program: mtf.Program) -> list[str]:
    return [step.kind for step in program.collectives()]


def in_a_new_process(code: str, devices: int | None = None) -> str:
    """What a fresh Python prints; `devices` are the simulated devices that its environment asks for."""
    env = {k: v for k, v in os.environ.items() if k not in ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS")}
    env |= {"JAX_NUM_CPU_DEVICES": str(devices)} if devices else {}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


@mtf.function
def keep(x: "batch d"):
    return x * 1.0


S01 = (
    "dimension d of size 10 does not divide over mesh axis x:4 (4 parts); nearest sizes that do: 8 or 12, or leave d "
    "whole, or pad on request: mtf.pad(t, 'd', 12)"
)  # fmt: skip


def test_s01_the_same_words_wherever_a_size_does_not_divide() -> None:
    """jax 27808, t5 219: names d, 10, x, 4; offers 8 or 12; never pads in silence."""

    @mtf.function
    def product(x: "batch e", w: "e d"):
        return mtf.einsum(x, w, out="batch d:x")

    @mtf.function
    def flat(x: "a:2 b:5"):
        return mtf.reshape(x, "d:10")

    sizes = "batch:8 d:10 e:4"
    refusals = [
        lambda: mtf.Sharding("batch:8 d:10", "d:x").local_shape("x:4"),
        lambda: mtf.Layout("d:x").sharding("batch:8 d:10", "x:4"),
        lambda: mtf.plan(keep, "x:4", "d:x", sizes="batch:8 d:10"),
        lambda: mtf.plan(keep, "x:4", sizes="batch:8 d:10", place={"x": "batch d:x"}),
        lambda: mtf.plan(product, "x:4", sizes=sizes),
        lambda: mtf.plan(flat, "x:4", "d:x"),
    ]
    for refusal in refusals:
        with pytest.raises(mtf.LayoutError, match=re.escape(S01)):
            refusal()


def test_s02_a_name_twice_in_one_tensor_is_refused_with_the_rename() -> None:
    """haliax 13 and 53."""
    with pytest.raises(mtf.LayoutError, match=r"rename one of them, e\.g\. 'hidden' and 'hidden_out'"):
        mtf.Sharding("hidden:8 hidden:8")
    with pytest.raises(mtf.LayoutError, match=r"rename one of them, e\.g\. 'hidden' and 'hidden_out'"):

        @mtf.function
        def square(w: "hidden hidden"):
            return w

    mtf.Layout("hidden:x hidden_out:y").sharding("hidden:8 hidden_out:8", "x:2 y:2")


def test_s03_two_dimensions_on_one_axis_are_fine_until_one_tensor_has_both() -> None:
    """flax 1702, maxtext 4205: no order of priority."""
    layout = mtf.Layout("heads:model d_ff:model")
    assert layout.sharding("heads:16 kv:4", "model:8").on["heads"] == ("model",)
    assert layout.sharding("d_ff:64", "model:8").local_shape("model:8") == (8,)
    with pytest.raises(mtf.LayoutError, match="mesh axis 'model' is used twice in one tensor: on heads and on d_ff"):
        layout.sharding("heads:16 d_ff:64", "model:8")


def test_s06_a_rule_that_matches_nothing_warns_and_is_an_error_when_strict() -> None:
    """t5 219: rules contain batch->batch, but the mesh is only model=8."""
    layout, dims = mtf.Layout("batch:batch"), "batch:128 d:4"
    text = "batch -> batch ignored, mesh has no axis 'batch'; batch is copied on 8 devices"
    with pytest.warns(mtf.LayoutWarning, match=text):
        assert layout.sharding(dims, "model:8").copies("model:8") == 8
    with pytest.warns(mtf.LayoutWarning, match=text):
        mtf.plan(keep, "model:8", layout, sizes=dims)
    with pytest.warns(mtf.LayoutWarning, match="seq -> model ignored, no tensor has a dimension 'seq'"):
        mtf.plan(keep, "model:8", "seq:model", sizes=dims)
    with pytest.raises(mtf.LayoutError, match="batch -> batch ignored") as caught:
        mtf.plan(keep, "model:8", "batch:batch seq:model", sizes=dims, strict=True)
    assert "seq -> model ignored" in str(caught.value)  # all at once


def test_s07_a_mesh_smaller_than_the_devices_names_the_idle_ones() -> None:
    """t5 488, mesh 19: JAX takes four devices and says nothing."""
    run = mtf.simulate(mtf.plan(keep, "x:2 y:2", "batch:x", sizes="batch:8 d:2"))
    assert "60 of 64 simulated devices idle" in run.note and run.note in repr(run)


def test_s07_a_mesh_larger_than_the_devices_says_how_many_it_needs() -> None:
    code = """
import mtfcore as mtf
@mtf.function
def keep(x: "batch d"):
    return x * 1.0
prog = mtf.plan(keep, "x:4 y:4", "batch:x", sizes="batch:8 d:2")
mtf.devices(8)
try:
    mtf.simulate(prog)
except mtf.DeviceError as error:
    print(error)
"""
    said = in_a_new_process(code, devices=8)
    assert "mesh 'x:4 y:4' needs 16 devices, this kernel has 8 simulated; restart the kernel" in said
    assert "make mtf.devices(16) its first cell" in said


def test_s08_an_axis_of_size_one_is_free() -> None:
    """jax 39309, tt-xla 3285: equal results, 0 bytes; what runs has no group of one to count."""

    @mtf.function
    def product(x: "batch io", w: "io hidden"):
        return mtf.einsum(x, w, out="batch hidden")

    sizes, x, w = "batch:8 io:16 hidden:8", random(8, 16), random(16, 8)
    with_ones = mtf.plan(product, "x:1 y:8", "io:x hidden:y", sizes=sizes)
    without = mtf.plan(product, "y:8", "hidden:y", sizes=sizes)
    summed = mtf.plan(product, "x:1 y:8", "io:x", sizes=sizes)
    assert with_ones.link_bytes() == without.link_bytes() == summed.link_bytes() == 0
    assert summed.link_bytes()["x"] == 0 and kinds(summed) == []
    run = mtf.simulate(with_ones)
    np.testing.assert_array_equal(run(x, w), mtf.simulate(without)(x, w))
    assert mtf.count(run.fn, *run.shapes).link_bytes == 0


def test_s09_a_missing_dimension_broadcasts_and_size_one_does_not() -> None:
    """mesh 22 asks for numpy's rule of size 1."""

    @mtf.function
    def bias(x: "batch hidden", b: hidden):
        return x + b

    program = mtf.plan(bias, "x:4 y:2", "batch:x hidden:y", sizes="batch:8 hidden:64")
    assert kinds(program) == [] and program.inputs[1].sharding.copies(program.mesh) == 4
    x, b = random(8, 64), random(64)
    np.testing.assert_array_equal(mtf.simulate(program)(x, b), x + b)

    @mtf.function
    def one(x: "batch hidden:64", b: "hidden:1"):
        return x + b

    with pytest.raises(mtf.LayoutError, match="hidden has sizes 64 and 1; drop the dim to broadcast"):
        mtf.plan(one, "x:4", sizes="batch:8")


def test_s09_an_outer_sum_needs_its_shape_said() -> None:
    def outer(out: str | None) -> mtf.tensor.Function:
        @mtf.function
        def added(u: batch, v: seq, out=out):
            return mtf.add(u, v, out=out)

        return added

    with pytest.raises(mtf.LayoutError, match="no operand has all the dimensions batch, seq"):
        mtf.plan(outer(None), "x:4", sizes="batch:1024 seq:1024")
    program = mtf.plan(outer("batch seq"), "x:4", "batch:x", sizes="batch:1024 seq:1024")
    assert np.prod(program.outputs[0].sharding.shape) == 1_048_576
    u, v = random(1024), random(1024)
    np.testing.assert_array_equal(mtf.simulate(program)(u, v), u[:, None] + v)


@pytest.mark.parametrize(
    ("before", "after", "expected", "received"),
    [
        ("heads:x", "hk:x", [], 0),
        ("kv:x", "hk:x", ["all_to_all"], 384),
        ("heads:x", "", ["all_gather"], 1_536),
        ("", "hk:x", [], 0),
    ],
)
def test_s10_merging_dimensions(before: str, after: str, expected: list[str], received: int) -> None:
    """jax 29859, tt-xla 3643: f32 [batch=8, heads=4, kv=16] → [batch, hk=64] on x=4; 512 bytes a device before."""

    @mtf.function
    def merged(t: "batch heads kv"):
        return mtf.merge(t, "heads kv", "hk", out=f"batch {after or 'hk'}")

    place = {"t": f"batch {before or 'heads kv'}"}
    program = mtf.plan(merged, "x:4", sizes="batch:8 heads:4 kv:16", place=place)
    # in each of these groups a device receives as much as it sends
    assert kinds(program) == expected and program.link_bytes() == received
    assert before or [step.kind for step in program.steps if step.kind == "slice"] == ["slice"]
    t = random(8, 4, 16)
    run = mtf.simulate(program)
    np.testing.assert_array_equal(run(t), t.reshape(8, 64))
    assert mtf.count(run.fn, *run.shapes).link_bytes == received


def test_s12_reduce_scatter_planned_all_reduce_compiled() -> None:
    """rwitten 6. The bytes follow the plan (half of an all-reduce); on the CPU XLA's partitioner chooses an all-reduce.

    Later: a table of the plan beside the compiled one with the backend's name, and prices.
    """

    @mtf.function
    def product(a: "i j", b: "j k"):
        return mtf.einsum(a, b, out="i:x k")

    program = mtf.plan(product, "x:4", sizes="i:64 j:64 k:64", place={"a": "i j:x", "b": "j:x k"})
    whole = 64 * 64 * 4
    assert kinds(program) == ["reduce_scatter"] and program.link_bytes() == whole * 3 // 4
    run, theirs = mtf.simulate(program), mtf.partitioned(program)
    assert [c.kind for c in mtf.count(run.fn, *run.shapes).collectives] == ["reduce_scatter"]
    compiled = count_hlo_text(theirs.compiled.lower(*run.shapes).compile().as_text())
    assert "all_reduce" in {c.kind for c in compiled.collectives} and compiled.link_bytes == 2 * program.link_bytes()
    a, b = random(64, 64), random(64, 64)
    np.testing.assert_allclose(run(a, b), theirs(a, b), rtol=2e-5, atol=2e-5)


def test_s14_scales_of_whole_numbers_go_in_before_the_sum() -> None:
    """jetstream-pytorch 152: column [127, 1] split over 2 devices where it is contracted, x = [1, 1]: 128, not 254.

    The scale is one for the whole column (made before the split) and multiplies before the sum, so what travels is
    scaled floats and never i32. Later: a type of weights that carries its scales.
    """

    @mtf.function(dtypes={"w": "i8"})
    def scaled(x: "batch io", w: "io hidden", scale: hidden):
        return mtf.einsum(x, mtf.cast(w, x.dtype) * scale, out="batch hidden")

    program = mtf.plan(scaled, "x:2", "io:x", sizes="batch:1 io:2 hidden:1")
    column = np.array([[127.0], [1.0]], np.float32)
    scale = np.abs(column).max(axis=0) / 127
    found = mtf.simulate(program)(np.ones((1, 2)), np.round(column / scale).astype(np.int8), scale)
    np.testing.assert_array_equal(found, [[128.0]])

    large = mtf.plan(scaled, "x:2", "io:x", sizes="batch:96 io:4 hidden:8192", dtype="bf16")
    (step,) = [step for step in large.collectives() if step.kind != "all_gather"][:1]
    assert step.dtype == "bf16" and step.n_bytes == 96 * 8192 * 2 == 1_572_864
    # a split result has its scales split alike: they lie as the layout puts their dimension
    split = mtf.plan(scaled, "x:2", "hidden:x", sizes="batch:4 io:4 hidden:8")
    assert split.inputs[2].sharding.local_shape("x:2") == (4,) and kinds(split) == []


def test_s15_a_batch_smaller_than_its_axis_is_refused_with_what_would_work() -> None:
    """LWM 39, EasyDeL 172. Later: the choice to copy, and throughput that counts one sequence."""
    text = "dimension batch of size 1 does not divide over mesh axis x:8 (8 parts); nearest sizes that do: 8, or leave"
    with pytest.raises(mtf.LayoutError, match=re.escape(text)):
        mtf.plan(keep, "x:8", "batch:x", sizes="batch:1 d:8")
    copied = mtf.plan(keep, "x:8", sizes="batch:1 d:8")
    assert copied.outputs[0].sharding.copies("x:8") == 8 and "the same work on all 8 devices" in copied.steps[-1].why
    assert mtf.plan(keep, "x:8", "d:x", sizes="batch:1 d:8").outputs[0].sharding.copies("x:8") == 1


def test_s17_heads_that_do_not_divide_are_refused_or_padded_on_request() -> None:
    """48 query heads on 64 chips. Padding by zeros changes no output and adds a third to the heads' parameters.

    Later: the share of padding in memory and FLOPs of a model.
    """

    def attend(pad: bool) -> mtf.tensor.Function:
        @mtf.function
        def projected(x: "batch io", q: "io heads size", o: "heads size io_out", pad=pad):
            if pad:
                q, o = (mtf.reshard(mtf.pad(t, "heads", 64), w) for t, w in
                        ((q, "io heads:chips size"), (o, "heads:chips size io_out")))  # fmt: skip
            h = mtf.einsum(x, q, out="batch heads size" if not pad else "batch heads:chips size")
            return mtf.einsum(h, o, out="batch io_out")

        return projected

    sizes = "batch:2 io:8 heads:48 size:4 io_out:8"
    text = "dimension heads of size 48 does not divide over mesh axis chips:64 (64 parts); nearest sizes that do: 64"
    with pytest.raises(mtf.LayoutError, match=re.escape(text)):
        mtf.plan(attend(False), "chips:64", "heads:chips", sizes=sizes)
    plain = mtf.plan(attend(False), "chips:64", sizes=sizes)
    padded = mtf.plan(attend(True), "chips:64", sizes=sizes)
    x, q, o = random(2, 8), random(8, 48, 4), random(48, 4, 8)
    np.testing.assert_allclose(mtf.simulate(padded)(x, q, o), mtf.single(plain)(x, q, o), rtol=2e-5, atol=2e-5)
    heads = next(step.before[1] for step in padded.steps if step.kind == "einsum")
    assert heads.shape[1] == 64 and 64 / 48 - 1 == pytest.approx(1 / 3)
    assert 64 * padded.flops() == pytest.approx(64 / 48 * plain.flops(), rel=1e-9)


def test_s18_axis_types_do_not_leak() -> None:
    """jax 31799, marin 2100: meshes of both kinds of axes around a run change nothing, and none is mentioned."""
    import jax

    program = mtf.plan(keep, "x:4", "batch:x", sizes="batch:8 d:2")
    run, value = mtf.simulate(program), random(8, 2)
    assert set(run.jax_mesh.axis_types) == {jax.sharding.AxisType.Auto}
    for kind in (jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto):
        around = jax.make_mesh((4,), ("x",), axis_types=(kind,), devices=jax.devices("cpu")[:4])
        placed = jax.device_put(value, jax.sharding.NamedSharding(around, jax.sharding.PartitionSpec("x")))
        for way in (mtf.simulate, mtf.single, mtf.partitioned):
            np.testing.assert_array_equal(way(program)(placed), value)
            with jax.set_mesh(around):
                np.testing.assert_array_equal(way(program)(value), value)
    assert not re.search(r"Explicit|Manual|Auto\b", f"{run!r} {program.table()} {program!r}")


R01 = """
import jax
print(len(jax.devices()), jax.numpy.ones(2).sum())       # JAX has started
import mtfcore as mtf
try:
    mtf.devices(16)
except mtf.DeviceError as error:
    print(error)
print(mtf.devices(8))                                     # what is there already is fine
"""


def test_r01_asking_too_late_says_what_to_do() -> None:
    """jax 6887, 13148: the flag is ignored without a word, or a RuntimeError of JAX's own."""
    said = in_a_new_process(R01, devices=8)
    assert "asked for 16 simulated devices, but JAX is running already with 8 (something used it before)" in said
    assert "restart the kernel (menu Kernel > Restart Kernel) and make mtf.devices(16) its first cell" in said
    assert said.splitlines()[-1].startswith("simulated CPU mesh, 8 devices")


def test_r01_in_time_any_number_is_set() -> None:
    said = in_a_new_process("import mtfcore as mtf, jax\nprint(mtf.devices(12)); print(len(jax.devices()))")
    assert said.startswith("simulated CPU mesh, 12 devices") and said.splitlines()[-1] == "12"


@pytest.mark.parametrize("n", [0, -1, 2.5, "64", None, True])
def test_r01_a_number_of_devices_is_a_whole_number(n: object) -> None:
    with pytest.raises(mtf.DeviceError, match=re.escape(f"mtf.devices({n!r}): expected a whole number of at least 1")):
        mtf.devices(n)


def test_r03_no_accelerator_is_said_and_never_replaced() -> None:
    """colabtools 4336. Later: measured numbers, with their columns of hardware speed left blank."""
    assert repr(mtf.devices(64)).startswith("simulated CPU mesh, 64 devices")
    assert "no hardware speed); no accelerator attached" in repr(mtf.devices(64))
    program = mtf.plan(keep, "x:4", "batch:x", sizes="batch:8 d:2")
    assert "simulated CPU devices" in repr(mtf.simulate(program))
    with pytest.raises(mtf.DeviceError, match=r"no TPU or GPU is attached .* mtf\.simulate runs the same steps"):
        mtf.attach(program)


def test_r04_a_launch_waits_for_its_result() -> None:
    """jax 1988: dispatch alone looks a hundred times faster. A slow operation takes at least as long as it sleeps.

    Later: repeats, medians and compile time apart.
    """
    import jax

    from mtfcore.device_pool import launch

    def sleep(x: np.ndarray) -> np.ndarray:
        time.sleep(0.3)
        return np.asarray(x)

    slow = jax.jit(lambda x: jax.pure_callback(sleep, jax.ShapeDtypeStruct((2,), np.float32), x))
    slow(np.ones(2, np.float32)).block_until_ready()  # compiled
    start = time.perf_counter()
    launch(slow, np.ones(2, np.float32))
    assert time.perf_counter() - start >= 0.3


def test_r05_a_stuck_collective_ends_and_counts_do_not_depend_on_this_computer() -> None:
    """pytorch/xla 3898. Bytes and FLOPs come from the plan, so 1 to 64 devices need none; a wait has an end.

    Later: sweeps that hide clock time.
    """
    code = "import mtfcore as mtf, os; mtf.devices(2); print(os.environ['XLA_FLAGS'])"
    flags = dict(re.findall(r"--(\w+)=(\d+)", in_a_new_process(code)))
    assert 0 < int(flags["xla_cpu_collective_call_terminate_timeout_seconds"]) <= 300

    @mtf.function
    def product(x: "batch io", w: "io hidden"):
        return mtf.einsum(x, w, out="batch hidden")

    for n in (1, 2, 4, 8, 16, 32, 64, 4096):
        program = mtf.plan(product, f"x:{n}", "io:x", sizes="batch:8 io:4096 hidden:64")
        assert program.flops() == 2 * 8 * 4096 // n * 64
        assert program.link_bytes() == pytest.approx(2 * 8 * 64 * 4 * (n - 1) / n)


def test_r05_a_flag_that_is_set_already_stays() -> None:
    code = """
import os
os.environ["XLA_FLAGS"] = "--xla_cpu_collective_call_terminate_timeout_seconds=7"
import mtfcore as mtf
mtf.devices(2)
print(os.environ["XLA_FLAGS"])
"""
    assert in_a_new_process(code).count("terminate_timeout_seconds=7") == 1


def test_r07_every_collective_of_a_run_is_counted_in_all_three_texts() -> None:
    """TransformerEngine 3412: all-to-alls have tuple results and were missed; loops count each turn; groups of one.

    Fixture texts for each are beside the counters' own tests.
    """

    @mtf.function
    def moved(t: "a b c", w: "layers c c_out"):
        t = mtf.reshard(t, "a b:x c")  # one all-to-all
        body = lambda h, w: mtf.rename(mtf.einsum(h, w, out="a b c_out"), "c_out", "c")  # noqa: E731
        return mtf.repeat(lambda h, w: mtf.reshard(body(h, w), "a b:x c"), 5, w, t)

    program = mtf.plan(
        moved, "x:4 y:1", sizes="a:4 b:8 c:4 c_out:4 layers:5", place={"t": "a:x b c", "w": "layers c:x c_out"}
    )
    planned = Counter(step.kind for step in program.collectives() for _ in range(step.times))
    assert planned["all_to_all"] == 1
    run = mtf.simulate(program)
    counted = Counter(c.kind for c in mtf.count(run.fn, *run.shapes).collectives for _ in range(c.times))
    compiled = count_hlo_text(run.lower().compile().as_text())
    seen = Counter(c.kind for c in compiled.collectives for _ in range(c.times))
    assert counted == planned and seen["all_to_all"] == 1
    assert all(c.group_size > 1 for c in compiled.collectives if c.link_bytes)


def test_a_layout_whose_rules_all_match_says_nothing() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        mtf.plan(keep, "x:4", "batch:x", sizes="batch:8 d:2")
    assert said == []
