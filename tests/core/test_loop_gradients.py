"""Gradients through loops where they are easily wrong: of gradients, of outputs of turns, of names that clash."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
from core.sweep.checking import check_counts, quick, quick_options

import mtfcore as mtf
from mtfcore.functions import Function


def sine(c):
    return mtf.sin(c * 1.1)


def slope_of_loop(c):
    return mtf.sin(mtf.gradients(mtf.sum(mtf.repeat(sine, 2, (), c)), c))


def slope_loss(y: mtf.Tensor | tuple, t: mtf.Tensor) -> mtf.Tensor:
    """A loss that depends on a gradient."""
    first, *others = y if isinstance(y, tuple) else (y,)
    inner = mtf.mean(mtf.square(first))
    for other in others:
        inner = inner + mtf.mean(mtf.sin(other))
    (slope,) = mtf.gradients(inner, [t])
    return mtf.mean(mtf.sin(slope)) + mtf.mean(first)


def twice_read(t):
    """The turns' outputs are read by the function, and kept for two backwards besides."""
    y, each = mtf.repeat(lambda c: (sine(c), mtf.cos(c)), 3, (), t, over="turns")
    return slope_loss((y, each), t) + mtf.mean(mtf.square(each))


def reading(t):
    """All that the inner loop is given lies outside of the outer one, whose carry it reads."""
    stack, start = mtf.rename(t, "a", "turns"), mtf.sum(t, "a")
    block = lambda c: c + mtf.repeat(lambda d, part: mtf.sin(mtf.max(c, "a") * d + part), 4, stack, start)  # noqa: E731
    return mtf.mean(mtf.repeat(block, 2, (), t))


def named_as_kept(t):
    """Parts that are called what a backward would call its own."""
    stack = mtf.rename(t, "a", "turns")
    y = mtf.repeat(
        lambda c, kept2, outer_0: mtf.sin(c * kept2 + outer_0) * mtf.sum(t, "a"), 4, [stack, stack * 2], mtf.sum(t, "a")
    )
    return slope_loss(y, t)


def turns_only(t):
    """What is carried has no gradient: the backward of the loop carries nothing."""
    number = mtf.cast(mtf.sum(mtf.index("a", t)), "i32")
    stack = mtf.rename(t, "a", "turns")
    _, each = mtf.repeat(lambda n, part: (n + 1, mtf.sin(part) * mtf.cast(n, "f32")), 4, stack, number)
    return mtf.mean(mtf.square(each))


def flat(t):
    """A loop that reads what the loss depends on, and gives nothing of it on."""
    stack = mtf.rename(t, "a", "turns")
    _, each = mtf.repeat(
        lambda n, part: (n + 1, mtf.stop_gradient(part)), 4, stack, mtf.cast(mtf.sum(mtf.index("a", t)), "i32")
    )
    return mtf.mean(mtf.square(each)) + mtf.mean(t)


LOSSES: dict[str, Callable[[mtf.Tensor], mtf.Tensor]] = {
    "gradient of a gradient": lambda t: slope_loss(mtf.repeat(sine, 3, (), t), t),
    "two carries": lambda t: slope_loss(mtf.repeat(lambda c, e: (mtf.sin(c * 1.1 + e), mtf.sin(e)), 3, (), t, t), t),
    "recomputed": lambda t: slope_loss(mtf.repeat(mtf.recompute(lambda c: mtf.sin(c * t)), 3, (), t), t),
    "in a recomputed block": lambda t: slope_loss(mtf.recompute(lambda c: mtf.repeat(sine, 3, (), c))(mtf.sin(t)), t),
    "inside a loop": lambda t: mtf.mean(mtf.repeat(slope_of_loop, 2, (), t)),
    "reads a carry": reading,
    "read twice": twice_read, "names": named_as_kept, "turns only": turns_only, "nothing goes on": flat,
}  # fmt: skip


@pytest.mark.parametrize("case", LOSSES)
def test_the_same_as_jax_grad(case):
    def both(t):
        loss = LOSSES[case](t)
        return {"loss": loss, "slope": mtf.gradients(loss, t)}

    forward, training = (
        mtf.plan(Function.of(name, {"t": "a:4 b:6"}, call), "x:2", "b:x")
        for name, call in (("f", LOSSES[case]), ("t", both))
    )
    t = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    whole = mtf.single(forward)
    slope = jax.value_and_grad(lambda t: whole.fn(t)[0])
    loss, right = jax.jit(slope, compiler_options=quick_options())(t)
    run = quick(mtf.simulate(training))
    check_counts(training, run, stablehlo=False)
    got = run(t)
    np.testing.assert_allclose(got["loss"], loss, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got["slope"], right, rtol=1e-3, atol=1e-5)
