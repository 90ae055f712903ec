"""top_k and cumsum along a split dimension: values equal to numpy's, and only candidates or totals are sent."""

from __future__ import annotations

import numpy as np
import pytest
from core.sweep.checking import check_counts, quick

import mtfcore as mtf
from mtfcore.rules.operations import PLANNERS, plan_mapped

ROWS, SIZE = 4, 96
CASES = {  # mesh → where the operand lies, and where the result is wanted
    "x:4": ("A V:x", None), "x:2 y:2": ("A:x V:y", None), "x:2 y:3": ("A V:yx", "A V"), "x:8": ("A V:x", "A V"),
    "x:2 y:2 z:2": ("A:z V:xy", "A:z V"),
}  # fmt: skip


def best(t: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest along the last axis; of equal ones the first."""
    order = np.argsort(-t, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(t, order, -1), order


def picked(mesh: str, place: str, out: str | None, k: int, dtype: str = "f32") -> mtf.Program:
    @mtf.function
    def pick(t: "A V"):
        return mtf.top_k(t, "V", k, out=out)

    return mtf.plan(pick, mesh, sizes=f"A:{ROWS} V:{SIZE}", place={"t": place}, dtype=dtype)


@pytest.mark.parametrize("kind", ["no ties", "many ties", "all equal", "infinities"])
@pytest.mark.parametrize("mesh", CASES)
def test_the_largest_and_where_they_stand(mesh, kind):
    place, out = CASES[mesh]
    rng = np.random.default_rng(len(mesh))
    t = {
        "no ties": rng.permutation(ROWS * SIZE).reshape(ROWS, SIZE), "many ties": rng.integers(0, 4, (ROWS, SIZE)),
        "all equal": np.ones((ROWS, SIZE)), "infinities": rng.choice([-np.inf, 0, 1, np.inf], (ROWS, SIZE)),
    }[kind].astype(np.float32)  # fmt: skip
    prog = picked(mesh, place, out, 3)
    assert {step.label() for step in prog.steps if step.kind == "top_k"} == {
        "top_k of each part", "top_k of the candidates"}  # fmt: skip
    run = quick(mtf.simulate(prog))
    check_counts(prog, run, stablehlo=kind == "no ties")
    for got, right in zip(run(t), best(t, 3)):
        np.testing.assert_array_equal(got, right)


def test_only_candidates_are_sent():
    """Each of 8 devices sends a value and a place of 4 bytes a row, not the 12 elements that it holds."""
    prog = picked("x:8", "A V:x", "A V", 1)
    assert [(step.kind, step.n_bytes) for step in prog.collectives()] == [("all_gather", ROWS * 4)] * 2
    counted = quick(mtf.simulate(prog))
    check_counts(prog, counted, stablehlo=True)


def test_values_and_places_share_the_first_stage():
    prog = picked("x:4", "A V:x", None, 2)
    local = [step for step in prog.steps if step.label() == "top_k of each part"]
    assert [step.dtype for step in local] == ["f32", "i32"]

    @mtf.function
    def values_only(t: "A V"):
        return mtf.top_k(t, "V", 2)[0]

    alone = mtf.plan(values_only, "x:4", sizes=f"A:{ROWS} V:{SIZE}", place={"t": "A V:x"})
    assert [step.dtype for step in alone.steps if step.label() == "top_k of each part"] == ["f32"]
    assert alone.link_bytes() * 2 == prog.link_bytes()


@pytest.mark.parametrize("k", [5, 24, 40, 96])
def test_one_stage_where_two_would_send_more(k):
    """Each of 4 devices holds 24: from k = 12 on, values and places together are more bytes than the whole."""
    prog = picked("x:4", "A V:x", None, k)
    stages = {step.label() for step in prog.steps if step.kind == "top_k"}
    assert stages == ({"top_k of each part", "top_k of the candidates"} if k < 12 else {"top_k"})
    t = np.random.default_rng(0).integers(0, 9, (ROWS, SIZE)).astype(np.float32)
    for got, right in zip(quick(mtf.simulate(prog))(t), best(t, k)):
        np.testing.assert_array_equal(got, right)


# ---- running sums -------------------------------------------------------------------------------------------------


def summed(mesh: str, place: str, out: str | None, dtype: str = "f32", dim: str = "V") -> mtf.Program:
    @mtf.function
    def running(t: "A V"):
        return mtf.cumsum(t, dim, out=out)

    return mtf.plan(running, mesh, sizes=f"A:{ROWS} V:{SIZE}", place={"t": place}, dtype=dtype)


@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize("mesh", CASES)
def test_running_sums_over_all_parts(mesh, dtype):
    place, out = CASES[mesh]
    prog = summed(mesh, place, out, dtype)
    t = np.random.default_rng(1).integers(-50, 50, (ROWS, SIZE)).astype("float32" if dtype == "f32" else "int32")
    run = quick(mtf.simulate(prog))
    check_counts(prog, run, stablehlo=dtype == "f32")
    np.testing.assert_array_equal(run(t), np.cumsum(t, axis=1))


def test_only_the_totals_of_parts_are_sent():
    prog = summed("x:8", "A V:x", None)
    assert [(step.kind, step.n_bytes) for step in prog.collectives()] == [("all_gather", ROWS * 4)]
    assert prog.outputs[0].sharding.text() == "A V:x"
    assert prog.link_bytes() == 7 * ROWS * 4


def test_parts_of_a_single_row_and_addends_of_a_sum():
    single = summed("x:4", "A:x V", None, dim="A")
    assert not any(step.kind == "edge" for step in single.steps)
    t = np.arange(ROWS * SIZE, dtype=np.float32).reshape(ROWS, SIZE)
    np.testing.assert_array_equal(quick(mtf.simulate(single))(t), np.cumsum(t, axis=0))
    waiting = summed("x:4 y:2", "A V:x partialsum:y", None)
    assert waiting.outputs[0].sharding.text() == "A V:x partialsum:y"
    np.testing.assert_array_equal(quick(mtf.simulate(waiting))(t), np.cumsum(t, axis=1))


def test_nothing_is_sent_where_nothing_has_to_be():
    assert summed("x:4", "A V", "A V:x").collectives() == []
    assert summed("x:4", "A:x V", None).collectives() == []
    assert picked("x:4", "A:x V", None, 2).collectives() == []


@pytest.mark.parametrize("out", [None, "A V", "A V:x", "A:x V", "A:yx V", "A V:yx"])
@pytest.mark.parametrize("place", ["A:x V:y", "A V:xy", "A:y V:x", "A V:x"])
def test_two_stages_never_send_more_than_one(place, out, monkeypatch):
    """Compared with the plans that a dimension made whole gets, which repeat no work either."""
    programs = [lambda: summed("x:2 y:2", place, out), lambda: picked("x:2 y:2", place, out, 4)]
    two = [make().link_bytes() for make in programs]
    for kind in ("cumsum", "top_k"):
        monkeypatch.setitem(PLANNERS, kind, plan_mapped)
    assert all(sent <= make().link_bytes() for sent, make in zip(two, programs))


def test_sampling_one_of_the_k_best_over_a_split_vocabulary():
    """top_k, softmax, running sums and a random number, with nothing of the vocabulary's size on a link."""

    @mtf.function(dtypes={"seed": "i32"})
    def sample(logits: "A V", seed: ""):
        values, places = mtf.top_k(logits, "V", 4)
        values, places = mtf.rename(values, "V", "k"), mtf.rename(places, "V", "k")
        sums = mtf.cumsum(mtf.softmax(values, "k"), "k")
        chance = mtf.random_uniform("A", logits, seed)
        spot = mtf.sum(mtf.cast(mtf.less(sums, chance), "i32"), "k")
        return mtf.sum(mtf.where(mtf.equal(mtf.index("k:4", spot), spot, out="A k"), places, 0), "k")

    prog = mtf.plan(sample, "x:4 y:2", "V:x A:y", sizes=f"A:{ROWS} V:{SIZE}")
    assert max(step.n_bytes for step in prog.collectives()) <= ROWS // 2 * 4 * 4 * 4
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(ROWS, SIZE)).astype(np.float32)
    allowed = np.argsort(-logits, axis=1)[:, :4]
    runs = [quick(make(prog)) for make in (mtf.simulate, mtf.single)]
    for seed in range(8):
        got, right = (run(logits, np.int32(seed)) for run in runs)
        np.testing.assert_array_equal(got, right)
        assert all(token in row for token, row in zip(got, allowed))


# ---- NaN ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("mesh", ["x:4", "x:2 y:2"])
def test_nan_and_infinities_reach_the_largest_and_the_smallest_over_split_dimensions(mesh, dtype):
    """XLA's own all-reduce of floats on CPU loses NaN; negative numbers and both zeros keep their order as well."""

    @mtf.function
    def extremes(t: "A V"):
        return mtf.max(t, "V"), mtf.min(t, "V"), mtf.argmax(t, "V"), mtf.max(t)

    place = "A V:x" if mesh == "x:4" else "A V:yx"
    prog = mtf.plan(extremes, mesh, sizes=f"A:9 V:{SIZE}", place={"t": place}, dtype=dtype)
    t = np.random.default_rng(3).integers(-9, -1, (9, SIZE)).astype(np.float32)
    for row, column in enumerate((0, 30, 95)):
        t[row, column] = np.nan
    t[3, 5], t[4, 60], t[5, 7], t[6, 90], t[7] = np.inf, -np.inf, 0.0, -0.0, -np.inf
    t[2, 20] = -np.nan
    assert any(step.params.get("fn") == "max" for step in prog.collectives())
    run = quick(mtf.simulate(prog))
    check_counts(prog, run, stablehlo=True)
    for got, right in zip(run(t), (t.max(1), t.min(1), t.argmax(1), t.max())):
        np.testing.assert_array_equal(np.asarray(got, float), np.asarray(right, float))
    for got, right in zip(quick(mtf.single(prog))(t), (t.max(1), t.min(1), t.argmax(1), t.max())):
        np.testing.assert_array_equal(np.asarray(got, float), np.asarray(right, float))
