"""Gradients of the spatial operations: values against `jax.grad` on whole arrays, bytes against it on the steps."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest
from core.sweep.checking import quick, quick_options

import mtfcore as mtf
from mtfcore.functions import Function

SPATIAL = {"h": "kh", "v": "kv"}
X, W = "b:2 h:8 v:12 c:4", "kh:3 kv:5 c:4 d:6"
CONVOLUTIONS = {
    "same": (X, W, lambda x, w: mtf.conv(x, w, SPATIAL, out="b h v d")),
    "valid": (X, W, lambda x, w: mtf.conv(x, w, SPATIAL, out="b h v d", padding="valid")),
    "causal": (X, W, lambda x, w: mtf.conv(x, w, SPATIAL, out="d h v b", padding="causal")),
    "narrow": (X, "kh:3 c:4", lambda x, w: mtf.conv(x, w, {"h": "kh"}, out="b h v")),
    "by group": (X, "c:4 kv:4 d:2", lambda x, w: mtf.conv(x, w, {"v": "kv"}, out="b h v d c")),
    "even": (X, "kh:2 c:4 d:6", lambda x, w: mtf.conv(x, w, {"h": "kh"}, out="b h v d", padding=(0, 1))),
    "deep": (X, "kh:3 c:4 d:4", lambda x, w: deep(x, w)),
    "shift": (X, "c:4", lambda x, w: mtf.shift(x, "h", 3) * w + mtf.shift(x, "v", -5, wrap=True)),
    "windows": (X, "k:3", lambda x, w: mtf.windows(x, "h", 3, "k") * w),
    "windows, valid": (X, "k:5", lambda x, w: mtf.windows(x, "h", 5, "k", padding="valid") * w),
    "overlap_add": (X, "c:4", lambda x, w: mtf.overlap_add(x * w, "h", "c")),
}
PLACES = ["b h v c", "b h:x v:y c", "b h:xy v c", "b:x h:y v c", "b h v:yx c", "b h v:x c:y", "b h:y v c:x"]


def deep(x, w):
    h = mtf.relu(mtf.conv(x, w, {"h": "kh"}, out="b h v d"))
    return mtf.conv(mtf.rename(h, "d", "c"), w, {"h": "kh"}, out="b h v d")


def plans(name: str, place: str = "", layout: str = "") -> tuple[mtf.Program, mtf.Program]:
    """The loss alone, and the loss with its gradients."""
    x, w, call = CONVOLUTIONS[name]

    def loss_of(x, w):
        return mtf.sum(mtf.square(mtf.sin(call(x, w))))

    def with_gradients(x, w):
        loss = loss_of(x, w)
        return {"loss": loss, **mtf.gradients(loss, {"x": x, "w": w})}

    fns = [Function.of("program", {"x": x, "w": w}, fn) for fn in (loss_of, with_gradients)]
    return tuple(mtf.plan(fn, "x:2 y:2", layout, place={"x": place} if place else {}) for fn in fns)


def agree(forward: mtf.Program, backward: mtf.Program) -> None:
    rng = np.random.default_rng(2)
    given = [rng.normal(size=port.sharding.shape).astype(np.float32) for port in forward.inputs]
    single = mtf.single(forward)
    right = jax.jit(jax.value_and_grad(lambda *t: single.fn(*t)[0], argnums=(0, 1)), compiler_options=quick_options())
    loss, slopes = right(*given)
    run = quick(mtf.simulate(backward))
    got = run(*given)
    for name, value in {"loss": loss, **dict(zip("xw", slopes, strict=True))}.items():
        np.testing.assert_allclose(got[name], value, rtol=3e-4, atol=3e-4, err_msg=name)
    counted = mtf.count(run.fn, *run.shapes)
    assert counted.link_bytes == float(backward.link_bytes())
    assert counted.flops == backward.flops()


CASES = [(name, PLACES[(n + 3 * k) % len(PLACES)]) for n, name in enumerate(CONVOLUTIONS) for k in range(2)]
REST = [(name, place) for name in CONVOLUTIONS for place in PLACES if (name, place) not in CASES]


@pytest.mark.parametrize(("name", "place"), [*CASES, *[pytest.param(*rest, marks=pytest.mark.long) for rest in REST]])
def test_the_same_as_jax_grad_on_whole_arrays(name, place):
    agree(*plans(name, place))


LAYOUTS = ["h:x v:y", "b:x h:y", "v:yx", "b:x v:y", "h:x c:y", "v:x d:y"]
LAID_OUT = [(n, text) for n, (x, w, _) in CONVOLUTIONS.items() for text in LAYOUTS if "d:y" not in text or "d:" in w]


def sent(forward: mtf.Program) -> float:
    """What `jax.grad` through the planned forward sends: traced and counted, not run."""
    run = mtf.simulate(forward)
    return mtf.count(jax.value_and_grad(lambda *t: run.fn(*t)[0].sum(), argnums=(0, 1)), *run.shapes).link_bytes


@pytest.mark.parametrize(("name", "layout"), LAID_OUT)
def test_no_more_bytes_than_jax_grad(name, layout):
    """Each layer's result lies as the layout says, so its rows travel in the backward too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mtf.LayoutWarning)  # not every case has every dimension
        forward, backward = plans(name, layout=layout)
    assert float(backward.link_bytes()) <= sent(forward)
    if "d:y" in layout:
        agree(forward, backward)


def test_in_a_loop():
    """Nothing of the forward's halos is kept there, and still no more is sent than by `jax.grad`, which keeps them."""

    def layer(x, w):
        return mtf.relu(mtf.rename(mtf.conv(x, w, {"h": "kh"}, out="h d"), "d", "c"))

    def forward(x, w):
        return mtf.sum(mtf.square(mtf.repeat(layer, 3, w, x)))

    def backward(x, w):
        loss = forward(x, w)
        return {"loss": loss, **mtf.gradients(loss, {"x": x, "w": w})}

    given = {"x": "h:16 c:4", "w": "layers:3 kh:3 c:4 d:4"}
    programs = [mtf.plan(Function.of("program", given, fn), "x:4", "h:x") for fn in (forward, backward)]
    agree(*programs)
    assert float(programs[1].link_bytes()) <= sent(programs[0])


def test_twice():
    """A kernel's gradient has a gradient too."""

    @mtf.function
    def f(x: "h:8 c:2", w: "kh:3 c:2"):
        y = mtf.sum(mtf.sin(mtf.conv(x, w, {"h": "kh"}, out="h")))
        dx, dw = mtf.gradients(y, [x, w])
        return mtf.gradients(mtf.sum(mtf.square(dx)) + mtf.sum(mtf.square(dw)), [x, w])

    @mtf.function
    def once(x: "h:8 c:2", w: "kh:3 c:2"):
        return mtf.sum(mtf.sin(mtf.conv(x, w, {"h": "kh"}, out="h")))

    program, plain = (mtf.plan(fn, "x:4", place={"x": "h:x c"}) for fn in (f, once))
    rng = np.random.default_rng(5)
    given = [rng.normal(size=shape).astype(np.float32) for shape in ((8, 2), (3, 2))]
    loss = mtf.single(plain).fn

    def slopes(x, w):
        dx, dw = jax.grad(lambda *t: loss(*t)[0], argnums=(0, 1))(x, w)
        return (dx**2).sum() + (dw**2).sum()

    for got, right in zip(mtf.simulate(program)(*given), jax.grad(slopes, argnums=(0, 1))(*given), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["same", "narrow", "valid"])
def test_printed_as_plain_jax(name):
    """The text of a backward runs by itself: kernels' gradients, those found back to front too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mtf.LayoutWarning)
        program = plans(name, layout="h:x v:y")[1]
    found: dict = {}
    exec(compile(program.source(), "printed", "exec"), found)
    rng = np.random.default_rng(4)
    given = [rng.normal(size=port.sharding.shape).astype(np.float32) for port in program.inputs]
    printed, own = found["program"](*found["place"](*given)), quick(mtf.simulate(program))(*given)
    for key in ("x", "w"):
        np.testing.assert_allclose(printed[key], own[key], rtol=1e-4, atol=1e-4)
