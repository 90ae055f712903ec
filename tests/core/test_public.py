"""The public names as the design writes them; and that importing and planning load no JAX."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mtfcore as mtf

ROOT = Path(mtf.__file__).parent.parent


def test_a_mesh_a_layout_and_a_sharding() -> None:
    mesh = mtf.Mesh("rows:4 cols:2")
    assert mesh == mtf.Mesh(rows=4, cols=2) == mtf.Mesh([("rows", 4), ("cols", 2)])
    layout = mtf.Layout("batch:rows hidden:cols")
    assert layout == mtf.Layout([("batch", "rows"), ("hidden", "cols")])
    s = mtf.Sharding("B:64 L:1 E:18432", "E:xyz")
    cube = mtf.Mesh("x:4 y:4 z:4")
    assert s.local_shape(cube) == (64, 1, 288) and isinstance(s.local_shape(cube), tuple)
    found = layout.sharding("batch:64 io:512", mesh)
    assert isinstance(found, mtf.Sharding) and found.local_shape(mesh) == (16, 512)
    by_index, by_name = found.slices(mesh, 2), found.slices(mesh, {"rows": 1, "cols": 0})
    assert by_index == by_name == (slice(16, 32), slice(0, 512))
    assert found.bytes_per_device(mesh, "bf16") == 16 * 512 * 2 and found.copies(mesh) == 2
    assert tuple(found.partition_spec()) == ("rows", None)
    with pytest.raises(mtf.LayoutError):
        layout.sharding("batch:63 io:512", mesh)


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def program(**more: object) -> mtf.Program:
    mesh, layout = mtf.Mesh("rows:4 cols:2"), mtf.Layout("batch:rows hidden:cols")
    sizes, place = "batch:64 io:512 hidden:2048", {"x": "batch:rows io"}
    return mtf.plan(two_layers, mesh, layout, **{"sizes": sizes, "place": place, "dtype": "bf16", **more})


def test_a_plan() -> None:
    prog = program()
    assert isinstance(prog, mtf.Program) and all(isinstance(step, mtf.Step) for step in prog.steps)
    (reduced,) = prog.collectives()
    assert reduced.kind == "all_reduce" and reduced.axes == ("cols",) and reduced.times == 1
    assert prog.flops() == 2 * 2 * 64 * 512 * 2048 // 8
    sent = prog.link_bytes()  # 2 n_bytes (g-1)/g of bf16[16, 512]
    assert sent == sent.total == 16 * 512 * 2 and sent.by_axis == {"rows": 0, "cols": 16_384}
    assert "all_reduce over cols" in str(prog.table()) and len(prog.table().rows) >= len(prog.steps)


def test_a_simulated_run_and_its_values() -> None:
    prog = program(dtype="f32")
    run = mtf.simulate(prog)
    rng = np.random.default_rng(1)
    x, w, v = (rng.standard_normal(port.sharding.shape).astype(np.float32) for port in prog.inputs)
    expected = np.maximum(x.astype(float) @ w, 0) @ v
    y = run(x, w, v)
    assert isinstance(y, np.ndarray)
    np.testing.assert_allclose(y, expected, rtol=2e-4, atol=2e-2)
    np.testing.assert_allclose(run(v=v, w=w, x=x), y)
    rows = slice(16, 32)
    first = run.values(0, 2)
    np.testing.assert_allclose(first, (x @ w)[rows, :1024], rtol=2e-4, atol=1e-3)
    np.testing.assert_array_equal(first, run.values(prog.steps[0], {"rows": 1, "cols": 0}))
    np.testing.assert_allclose(run.values(-1, device=2), expected[rows], rtol=2e-4, atol=2e-2)
    for way in (mtf.single, mtf.partitioned):
        np.testing.assert_allclose(way(prog)(x, w, v), y, rtol=2e-4, atol=2e-2)
    np.testing.assert_allclose(two_layers(x, w, v), y, rtol=2e-4, atol=2e-2)
    counted = mtf.count(run.fn, *run.shapes)
    assert counted.link_bytes == prog.link_bytes() and counted.flops == prog.flops()


def test_attach_never_falls_back_to_the_cpu() -> None:
    with pytest.raises(mtf.DeviceError, match="no TPU or GPU is attached"):
        mtf.attach(program())


def test_out_is_exact_where_it_names_an_axis_or_partialsum() -> None:
    def product(out: str) -> mtf.Program:
        @mtf.function
        def einsum(x: "B E", w: "E F", out=out):
            return mtf.einsum(x, w, out=out)

        return mtf.plan(einsum, "x:2 y:2", "E:x F:y", sizes="B:4 E:4 F:4")

    assert product("B F").outputs[0].sharding.text() == "B F:y"  # the layout's, reduced at once
    assert product("B:x F").outputs[0].sharding.text() == "B:x F"
    assert product("B F:y partialsum:x").outputs[0].sharding.text() == "B F:y partialsum:x"
    assert [step.kind for step in product("B F").collectives()] == ["all_reduce"]
    assert product("B F:y partialsum:x").collectives() == []


def test_reshard_and_repeat() -> None:
    @mtf.function
    def moved(t: "B L E", w: "layers E E_out"):
        t = mtf.reshard(t, "B L E:x")
        block = lambda h, w: mtf.rename(mtf.einsum(h, w, out="B L E_out"), "E_out", "E")  # noqa: E731
        return mtf.repeat(block, 3, w, t)

    prog = mtf.plan(moved, "x:2", sizes="B:2 L:2 E:4 E_out:4 layers:3", place={"t": "B:x L E"})
    assert prog.collectives()[0].kind == "all_to_all"
    loops = [step for step in prog.steps if step.kind == "repeat"]
    assert [loop.times for loop in loops] == [3] and loops[0].body.flops() * 3 == prog.flops()
    rng = np.random.default_rng(2)
    t, w = rng.standard_normal((2, 2, 4)).astype(np.float32), rng.standard_normal((3, 4, 4)).astype(np.float32)
    np.testing.assert_allclose(mtf.simulate(prog)(t, w), t @ w[0] @ w[1] @ w[2], rtol=1e-4, atol=1e-4)


def test_at_fixes_where_operands_lie() -> None:
    @mtf.function
    def product(x: "B E", w: "E F"):
        return mtf.einsum(x, w, out="B F:x", at={"x": "B E", "w": "E F:x"})

    prog = mtf.plan(product, "x:2", sizes="B:4 E:4 F:4", place={"x": "B E:x", "w": "E:x F"})
    step = next(step for step in prog.steps if step.kind == "einsum")
    assert [s.text() for s in step.before] == ["B E", "E F:x"]


def test_devices_and_doctor() -> None:
    assert "64 devices" in repr(mtf.devices(64)) and mtf.doctor().rows


def test_every_public_name_is_there_and_none_is_also_a_module() -> None:
    modules = {path.stem for path in (ROOT / "mtfcore").iterdir()} - {"__init__", "__pycache__"}
    assert len(mtf.__all__) == len(set(mtf.__all__)) and not modules & set(mtf.__all__)
    assert all(getattr(mtf, name) is not None and name in dir(mtf) for name in mtf.__all__)
    with pytest.raises(AttributeError, match="module 'mtfcore' has no attribute 'nothing'"):
        _ = mtf.nothing


@pytest.mark.parametrize(
    "packages", ["mtfcore", "mtfcore, widgets", "tpu_runs.entries, tpu_runs.running, tpu_runs.compare"]
)
def test_importing_loads_no_jax(packages: str) -> None:
    code = f"import sys, {packages}; print([name for name in sys.modules if name.split('.')[0] in ('jax', 'jaxlib')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr


def test_planning_loads_no_jax() -> None:
    code = """
import sys, mtfcore as mtf
@mtf.function
def product(x: "B E", w: "E F"):
    return mtf.einsum(x, w, out="B F")
prog = mtf.plan(product, "x:512", "E:x", sizes="B:8 E:1024 F:8")
print(prog.table()); print(prog.source()); print(prog.link_bytes())
print("jax" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert done.stdout.strip().endswith("False"), done.stdout + done.stderr
