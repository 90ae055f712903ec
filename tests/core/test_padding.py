"""Padded sizes with masks: sums, means, extremes, softmax, losses and gradients equal the unpadded ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core.sweep.checking import quick
from core.sweep.drawing import MESHES, draw_placement
from core.sweep.reference import names_in
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.functions import Function


def log_sum(v: np.ndarray, axis: int) -> np.ndarray:
    return np.log(np.exp(v).sum(axis))


def average(v: np.ndarray, axis: int) -> np.ndarray:
    return np.exp(v) / np.exp(v).sum(axis, keepdims=True)


# masked over the padded dimension B, and what numpy gives without any padding
REDUCTIONS = {
    "sum": (lambda t, m: mtf.sum(t, "B", mask=m), lambda v: v.sum(1)),
    "mean": (lambda t, m: mtf.mean(t, "B", mask=m), lambda v: v.mean(1)),
    "mean of all": (lambda t, m: mtf.mean(t, mask=m), lambda v: v.mean()),
    "max": (lambda t, m: mtf.max(t, "B", mask=m), lambda v: v.max(1)),
    "min": (lambda t, m: mtf.min(t, "B", mask=m), lambda v: v.min(1)),
    "argmax": (lambda t, m: mtf.argmax(t, "B", mask=m), lambda v: v.argmax(1)),
    "logsumexp": (lambda t, m: mtf.logsumexp(t, "B", mask=m), lambda v: log_sum(v, 1)),
    "softmax": (lambda t, m: mtf.softmax(t, "B", mask=m), lambda v: average(v, 1)),
}  # fmt: skip


@st.composite
def padded_cases(draw):
    """(mesh, placement, sizes padded, how many of B are real, what lies in the padding)."""
    mesh = draw(st.sampled_from(MESHES))
    axes = {name: size for name, size in names_in(mesh) if size is not None}
    sizes = {"A": draw(st.sampled_from([2, 4, 6, 8])), "B": draw(st.sampled_from([8, 12, 16]))}
    place = draw_placement(draw, sizes, axes, partial=draw(st.integers(0, 4)) == 4)
    filling = draw(st.sampled_from([0.0, 50.0, -50.0]))  # worse than every real element, both ways
    return mesh, place, sizes, draw(st.integers(1, sizes["B"])), filling


@pytest.mark.parametrize("part", [0, *[pytest.param(n, marks=pytest.mark.long) for n in range(1, 20)]])
@pytest.mark.timeout(300)
def test_masked_reductions_on_random_meshes(part):
    @seed(part)
    @settings(max_examples=12, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(padded_cases())
    def each(case):
        mesh, place, sizes, real, filling = case

        def program(t):
            mask = mtf.valid("B", real, like=t)
            return {name.replace(" ", "_"): ask(t, mask) for name, (ask, _) in REDUCTIONS.items()}

        prog = mtf.plan(Function.of("program", {"t": "A B"}, program), mesh, sizes=sizes, place={"t": place})
        v = np.random.default_rng(part).normal(size=tuple(sizes.values())).astype(np.float32)
        t = np.where(np.arange(sizes["B"]) < real, v, np.float32(filling))
        for name, got in quick(mtf.simulate(prog))(t).items():
            right = REDUCTIONS[name.replace("_", " ")][1](v[:, :real])
            if name == "softmax":
                assert not got[:, real:].any()
                got = got[:, :real]
            np.testing.assert_allclose(got, right, rtol=2e-5, atol=2e-5, err_msg=f"{name} of {case}")

    each()


def losses(x, w, targets):
    """Mean cross-entropy of a classifier whose vocabulary of 50 is padded to divide by 8."""
    w = mtf.pad_to(w, "words", 8, into="vocab", out="io vocab")
    logits = mtf.einsum(x, w, out="batch vocab")
    picked = mtf.gather(mtf.rename(logits, "batch", "b"), mtf.rename(targets, "batch", "b"), "vocab")
    whole = mtf.logsumexp(logits, "vocab", mask=mtf.valid("vocab", 50, like=logits))
    return mtf.mean(mtf.rename(whole, "batch", "b") - picked)


def with_gradients(x, w, targets):
    loss = losses(x, w, targets)
    return {"loss": loss, **mtf.gradients(loss, {"x": x, "w": w})}


def reference(x, w, targets):
    logits = jnp.dot(x, w)
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - logits[jnp.arange(len(targets)), targets])


GIVEN = {"x": "batch:8 io:6", "w": "io:6 words:50", "targets": "batch:8"}


def classifier(mesh: str, layout: str) -> mtf.Program:
    fn = Function.of("losses", GIVEN, with_gradients, dtypes={"targets": "i32"})
    return mtf.plan(fn, mesh, layout)


@pytest.mark.parametrize(("mesh", "layout"), [
    ("x:4", "vocab:x"), ("x:2 y:4", "batch:x vocab:y"), ("x:2 y:2", "vocab:xy"), ("x:2", "batch:x"),
])  # fmt: skip
def test_a_padded_vocabulary_has_the_same_loss_and_gradients(mesh, layout):
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((8, 6), (6, 50)))
    targets = rng.integers(0, 50, 8).astype(np.int32)
    loss, slopes = jax.value_and_grad(reference, argnums=(0, 1))(x, w, targets)
    got = quick(mtf.simulate(classifier(mesh, layout)))(x, w, targets)
    for name, right in {"loss": loss, "x": slopes[0], "w": slopes[1]}.items():
        np.testing.assert_allclose(got[name], right, rtol=1e-5, atol=1e-6, err_msg=name)


def test_without_the_mask_the_loss_would_be_wrong():
    """Six zero logits more: the sum of exp grows by six."""
    prog = mtf.plan(Function.of("f", {"t": "B:50"}, lambda t: mtf.logsumexp(mtf.pad_to(t, "B", 8), "B")), "x:8")
    t = np.full(50, -1, np.float32)
    np.testing.assert_allclose(mtf.simulate(prog)(t), np.log(50 * np.exp(-1) + 6), rtol=1e-6)


def test_a_mask_over_two_dimensions_and_one_that_sums_may_wait_for():
    """Different lengths a row; the mean counts what is there. Masks of a split dimension need no messages."""

    @mtf.function(dtypes={"lengths": "i32"})
    def means(t: "row:4 at:8 k:2", lengths: row):
        mask = mtf.greater(mtf.einsum(lengths, out="row at:8"), mtf.index("at", t))
        return mtf.mean(t, "at k", mask=mask)

    t = np.random.default_rng(1).normal(size=(4, 8, 2)).astype(np.float32)
    lengths = np.array([8, 1, 3, 5], np.int32)
    right = [row[:n].mean() for row, n in zip(t, lengths, strict=True)]
    for place in ("row:x at k", "row at:x k", "row at k:x"):
        prog = mtf.plan(means, "x:2", place={"t": place})
        np.testing.assert_allclose(mtf.simulate(prog)(t, lengths), right, rtol=1e-5)

    fixed = Function.of("f", {"t": "at:8 k:2"}, lambda t: mtf.mean(t, "at", mask=mtf.valid("at", 5, like=t)))
    (only,) = mtf.plan(fixed, "x:2", place={"t": "at:x k"}).collectives() or [None]
    assert only is None  # the count is known everywhere, and the sum of t may stay partial


def test_the_share_of_padding():
    @mtf.function
    def layer(x: "batch:8 io:4", w: "io:4 heads:48"):
        w = mtf.pad_to(w, "heads", 64, into="padded", out="io padded:x")
        return mtf.einsum(x, w, out="batch padded:x")

    prog = mtf.plan(layer, "x:4")
    share = mtf.padding_share(prog)
    assert share.real == {"padded": (48, 64)}
    assert share.flops == pytest.approx(1 - 48 / 64)
    own = (8 * 4 + 4 * 48 + 4 * 48) * 4  # x, w, and w under its new name
    made = (4 * 64 + 4 * 16 + 8 * 16) * 4  # padded, a device's part of it, the product
    assert prog.memory() == own + made
    assert share.memory == pytest.approx(made / 4 / (own + made))
    assert str(share).startswith("padding (padded 48 of 64): 25.0% of the FLOPs and ")
    assert str(share) in str(prog.table())
    assert mtf.padding_share(prog, {"padded": 32}).flops == 0.5
    plain = mtf.plan(Function.of("f", {"t": "heads:4"}, lambda t: mtf.relu(t)), "x:2")
    assert str(mtf.padding_share(plain)) == "nothing is padded" and "padding" not in str(plain.table())


FAULTS = [
    (lambda t: mtf.pad_to(t, "A", 0), "pad_to of t[A:8, B:6]: parts is 0; expected a whole number of at least 1"),
    (lambda t: mtf.pad_to(t, "C", 4), "has no dimension 'C'; legal here: 'A', 'B'"),
    (lambda t: mtf.pad_to(t, "B", 4, into="A"), "pad_to of t[A:8, B:6]: 'A' is one of its dimensions already"),
    (lambda t: mtf.pad_to(t, "B", 4, into="a b"), "into is 'a b'; expected one new name, such as 'vocab'"),
    (lambda t: mtf.valid("B", 7, t), "valid: real is 7; expected 1 to 6, the size of B"),
    (lambda t: mtf.valid("B", 0, t), "valid: real is 0; expected 1 to 6"),
    (lambda t: mtf.valid("C", 1, t), "the size of 'C' is not known; write e.g. valid('C:56', 50, like)"),
    (lambda t: mtf.sum(t, "A", mask=t), "sum: mask of t[A:8, B:6]: dtype is f32, expected bool"),
    (lambda t: mtf.max(t, "A", mask=mtf.valid("D:4", 2, t)), "has 'D', which t[A:8, B:6] has not; legal here: 'A'"),
]


@pytest.mark.parametrize(("call", "words"), FAULTS)
def test_faults_are_named(call, words):
    with pytest.raises(LayoutError) as fault:
        Function.of("f", {"t": "A:8 B:6"}, call).trace("")
    assert words in str(fault.value)


def test_faults_of_shares_are_named():
    prog = mtf.plan(Function.of("f", {"t": "heads:4"}, lambda t: mtf.relu(t)), "x:2")
    with pytest.raises(LayoutError, match="real names 'head', which no tensor has; did you mean 'heads'"):
        mtf.padding_share(prog, {"head": 3})
    with pytest.raises(LayoutError, match="heads has 4 elements, so 1 to 4 are real, not 5"):
        mtf.padding_share(prog, {"heads": 5})
