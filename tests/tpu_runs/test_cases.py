"""Cases: each list can be planned, what is planned is what was asked for, and faults are told all at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtfcore as mtf
from mtfcore.model.serving import SERVING
from tpu_runs.cases import CASES, SWEEPS, case, check
from tpu_runs.cases.collective import KINDS

ROOT = Path(mtf.__file__).parents[1]
TINY = {"model": "tiny-palm", "weights": "f32", "cache": "f32"}


@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("name", CASES)
def test_everything_in_a_list_can_be_planned_and_sized(name: str, sweep: str) -> None:
    found = CASES[name]
    for params in found.sweep(sweep, 8):
        full = check(found, params)
        assert set(full) == set(found.params) and check(found, full) == full
        assert found.bytes(full) > 0
        if found.program:
            assert found.program(full).mesh.size == found.devices(full)
        if sweep == "simulated":
            assert found.bytes(full) * found.devices(full) < 2**24
        if sweep == "chip":  # one chip of the smallest kind that a class is likely to have, or a share of its size
            assert found.bytes(full) < 0.9 * mtf.chip("v5e").hbm_bytes_per_device
    json.dumps(found.schema())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("mesh", "axes"), [("x:4", ""), ("x:2 y:4", "y"), ("x:2 y:2 z:2", "zx"), ("rows:2 cols:4", "cols")]
)
def test_a_collective_is_the_one_that_was_asked_for(kind: str, mesh: str, axes: str) -> None:
    found = CASES["collective"]
    named = mtf.Mesh(mesh)
    over = tuple(axes) if axes in ("y", "zx") else ("cols",) if axes else named.names
    asked = {"kind": kind, "mesh": mesh, "axes": axes, "n_bytes": 2**14, "dtype": "f32"}
    program = found.program(check(found, asked))
    (step,) = program.collectives()
    assert step.kind == ("halo_exchange" if kind == "permute" else kind)
    assert (set(step.axes), step.n_bytes) == (set(over), 2**14)
    group = named.group_size(over)
    share = {"all_gather": group - 1, "all_reduce": 2 * (group - 1) / group, "permute": 1}.get(
        kind, (group - 1) / group
    )
    assert program.link_bytes() == 2**14 * share and program.flops() == 0
    assert all(other.kind in ("einsum", "reshape") for other in program.steps if not other.is_collective)
    assert mtf.price(program, f"h200:{named.size}").local_seconds == 0


@pytest.mark.parametrize("partition", SERVING)
def test_a_layer_is_what_a_phase_repeats(partition: str) -> None:
    ffn, attention = partition.split("-")
    asked = {**TINY, "ffn": ffn, "attention": attention, "mesh": "x:2 y:2", "batch": 8, "cached_tokens": 8}
    layer = CASES["layer"].program(check(CASES["layer"], {**asked, "layers": 2}))
    phase = CASES["phase"].program(check(CASES["phase"], asked))

    def repeated(program: mtf.Program) -> list[tuple]:
        (loop,) = [step for step in program.steps if step.kind == "repeat"]
        assert loop.times == 2
        return [(s.kind, s.axes, s.n_bytes) for s in loop.body.collectives()], loop.body.flops()

    assert repeated(layer) == repeated(phase)
    (x,) = [port for port in layer.inputs if port.name == "x"]
    (after,) = [port for port in layer.outputs if port.name == "y"]
    assert x.sharding == after.sharding


def test_a_product_for_each_device() -> None:
    program = CASES["product"].program(check(CASES["product"], {"m": 8, "k": 16, "n": 4, "mesh": "x:2 y:2"}))
    assert program.collectives() == [] and program.flops() == 2 * 8 * 16 * 4


def test_rings_only_where_there_is_a_collective() -> None:
    asked = {**TINY, "mesh": "x:2 y:2 z:2", "batch": 8, "cached_tokens": 8, "looped": "latency"}
    kinds = {step.kind for step in CASES["layer"].program(check(CASES["layer"], asked)).walk()}
    assert "permute" in kinds
    with pytest.raises(mtf.LayoutError, match=r"nothing in layer can be looped.*looped='' leaves"):
        check(CASES["layer"], {**asked, "mesh": "x:1"})


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("product", {"kk": 512, "dtype": "bf61", "m": 0}, [
            "product: 3 faults", "no parameter 'kk'; did you mean 'k'?", "did you mean 'bf16'?", "m is 0; legal are",
        ]),
        ("product", {"m": "12x"}, ["m is '12x'; expected a whole number, 1 to 1048576"]),
        ("product", {"m": True, "n": 2.5, "k": "--5"}, ["m is True", "n is 2.5", "k is '--5'"]),
        ("layer", {"mesh": "x:4096", "looped": "latency", "ffn": "wg_x", "batch": 4096}, ["of 4,096 turns here"]),
        ("product", {"mesh": "x:100000"}, ["100,000 devices; at most 4,096"]),
        ("product", {"mesh": ["x"]}, ["mesh is ['x']; expected a mesh"]),
        ("collective", {"mesh": "x:1"}, ["groups of 1, in which nothing is sent"]),
        ("collective", {"mesh": "x:4", "axes": "y"}, ["has no axis 'y'"]),
        ("collective", {"mesh": "x:3", "n_bytes": 1000}, ["nearest 768 or 1536"]),
        ("layer", {"model": "palm-62B"}, ["did you mean 'palm-62b'?"]),
        ("layer", {"mesh": "rows:4"}, ["lie on mesh axes x, y and z"]),
        ("layer", {"ffn": "wg_x", "mesh": "x:4", "batch": 2}, ["batch 2 does not divide over x:4"]),
        ("phase", {"new_tokens": 4}, ["decode takes 1 token a sequence"]),
        ("generate", {"model": "palm-540b"}, ["model is 'palm-540b'"]),
        ("generate", {"mesh": "rows:2"}, ["an engine's axes are called x, y and z"]),
    ],
)  # fmt: skip
def test_faults_name_every_part_and_what_is_legal(name: str, params: dict, said: list[str]) -> None:
    with pytest.raises(mtf.LayoutError) as told:
        check(case(name), params)
    assert all(words in str(told.value) for words in said), str(told.value)


def test_an_unknown_case_offers_the_nearest() -> None:
    with pytest.raises(mtf.LayoutError, match="did you mean 'product'"):
        case("prodct")
    with pytest.raises(mtf.LayoutError, match="expected parameters by name"):
        check(case("product"), ["m"])


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=30)
    | st.sampled_from(["x:2", "x:2 y:2", "4096", "palm-8b", "bf16", "xy", "x:-1", "x:2 x:2"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=4,
)  # fmt: skip


@settings(max_examples=60)
@given(st.data())
def test_whatever_comes_is_checked_or_refused(data: st.DataObject) -> None:
    """As from a network: no value makes anything but parameters in full, or a `LayoutError`."""
    found = CASES[data.draw(st.sampled_from(list(CASES)))]
    names = st.sampled_from([*found.params, "other"])
    try:
        full = check(found, data.draw(st.dictionaries(names, PLAIN, max_size=4)))
    except mtf.LayoutError:
        return
    assert set(full) == set(found.params) and json.loads(json.dumps(full)) == full


def test_values_are_right_where_groups_send_at_once() -> None:
    found = CASES["collective"]
    asked = {"kind": "reduce_scatter", "mesh": "x:2 y:2", "axes": "y", "n_bytes": 2**10, "dtype": "f32"}
    program = found.program(check(found, asked))
    t = np.random.default_rng(3).standard_normal(program.inputs[0].sharding.shape).astype(np.float32)
    np.testing.assert_allclose(mtf.simulate(program)(t), mtf.single(program)(t), rtol=1e-6)
    np.testing.assert_allclose(mtf.single(program)(t), t.sum(1), rtol=1e-6)


def test_cases_load_no_jax() -> None:
    sized = "c = CASES['phase']; c.bytes(check(c, {}))"
    code = f"import sys; from tpu_runs.cases import CASES, check; {sized}; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert done.stdout.strip() == "False", done.stderr
