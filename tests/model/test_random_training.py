"""Random named functions, trained for a few steps on random meshes, against plain JAX on one device.

A function is drawn as data: layers, each a line of `KINDS` with its parameters. It is run twice from that data, once
as named operations on a mesh and once as `jax.numpy`, whose gradients are `jax.grad`'s.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.model.optimizers import SGD
from mtfcore.model.step_function import training_step

BATCH, STEPS, RATE, MOMENTUM = 8, 3, 0.01, 0.9
MESHES = ("a:8", "a:2 b:4", "a:4 b:2", "a:2 b:2 c:2", "a:2 b:3", "a:4")
WIDTHS = (12, 24)
POINTWISE = {"relu": (mtf.relu, jax.nn.relu), "tanh": (mtf.tanh, jnp.tanh), "gelu": (mtf.gelu, jax.nn.gelu),
             "silu": (mtf.silu, jax.nn.silu)}  # fmt: skip
KINDS = ("dense", "residual", "gate", "norm", "soft", "loop", "again")


def shapes(layers):
    """Parameter → (dimensions, shape); the state between layers is [batch, d] of the widths drawn."""
    found, d = {}, 0
    for n, (kind, _, width) in enumerate(layers):
        here, new = (f"d{d}", sizes(layers)[f"d{d}"]), (f"h{n}", width)
        if kind in ("dense", "gate"):
            found[f"w{n}"] = [here, new]
        if kind == "gate":
            found[f"g{n}"] = [here, new]
        if kind in ("residual", "again"):
            found[f"w{n}"], found[f"v{n}"] = [here, new], [new, here]
        if kind == "norm":
            found[f"s{n}"] = [here]
        if kind == "loop":
            found[f"w{n}"], found[f"v{n}"] = [(f"t{n}", 3), here, new], [(f"t{n}", 3), new, here]
        d += kind in ("dense", "gate")
    return found


def sizes(layers):
    """Dimension → size: d0 is the input's, each dense or gated layer makes the next."""
    widths = [12, *[width for kind, _, width in layers if kind in ("dense", "gate")]]
    return {"B": BATCH, **{f"d{n}": width for n, width in enumerate(widths)}}


def named_loss(layers):
    """The function as named operations."""

    def call(x, y, **p):
        d = 0
        for n, (kind, name, _) in enumerate(layers):
            fn, own, here = POINTWISE[name][0], p, f"d{d}"

            def two(x, w, v, fn=fn, n=n, here=here):
                h = fn(mtf.einsum(x, w, out=f"B h{n}"))
                return x + mtf.einsum(h, v, out=f"B {here}")

            if kind in ("dense", "gate"):
                h = fn(mtf.einsum(x, own[f"w{n}"], out=f"B h{n}"))
                h = h * mtf.einsum(x, own[f"g{n}"], out=f"B h{n}") if kind == "gate" else h
                d += 1
                x = mtf.rename(h, f"h{n}", f"d{d}")
            elif kind == "norm":
                x = x * mtf.rsqrt(mtf.mean(mtf.square(x), here) + 1e-3) * own[f"s{n}"]
            elif kind == "soft":
                x = x + mtf.softmax(x, here)
            elif kind == "loop":
                x = mtf.repeat(two, 3, [own[f"w{n}"], own[f"v{n}"]], x)
            else:
                x = (mtf.recompute(two) if kind == "again" else two)(x, own[f"w{n}"], own[f"v{n}"])
        return mtf.mean(mtf.square(x - y), out="")

    last = f"d{len(sizes(layers)) - 2}"
    texts = {name: " ".join(f"{d}:{size}" for d, size in dims) for name, dims in shapes(layers).items()}
    return Function.of("drawn", {"x": "B d0", "y": f"B {last}", **texts}, call), texts


def plain_loss(layers, p, x, y):
    """The same in jax.numpy."""
    for n, (kind, name, _) in enumerate(layers):
        fn = POINTWISE[name][1]
        if kind in ("dense", "gate"):
            x = fn(x @ p[f"w{n}"]) * (x @ p[f"g{n}"] if kind == "gate" else 1.0)
        elif kind == "norm":
            x = x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * p[f"s{n}"]
        elif kind == "soft":
            x = x + jax.nn.softmax(x)
        else:
            w, v = p[f"w{n}"], p[f"v{n}"]
            for turn in range(3 if kind == "loop" else 1):
                x = x + fn(x @ (w[turn] if kind == "loop" else w)) @ (v[turn] if kind == "loop" else v)
    return jnp.mean((x - y) ** 2)


def arrays(layers, seed):
    rng = np.random.default_rng(seed)
    of = sizes(layers)
    params = {name: (rng.normal(size=[size for _, size in dims]) * 0.15).astype(np.float32)
              for name, dims in shapes(layers).items()}  # fmt: skip
    last = list(of)[-1]
    return params, {"x": rng.normal(size=(BATCH, 12)).astype(np.float32),
                    "y": rng.normal(size=(BATCH, of[last])).astype(np.float32)}  # fmt: skip


def trained_plainly(layers, params, data):
    momentum, losses = {name: np.zeros_like(p) for name, p in params.items()}, []
    both = jax.jit(jax.value_and_grad(lambda p: plain_loss(layers, p, **data)))
    for _ in range(STEPS):
        value, grads = both(params)
        losses.append(float(value))
        momentum = {name: MOMENTUM * momentum[name] + np.asarray(grads[name]) for name in params}
        params = {name: params[name] - np.float32(RATE) * momentum[name] for name in params}
    return losses, params


@st.composite
def drawn(draw):
    """Layers, a mesh, and a layout that puts some dimensions on its axes."""
    layer = st.tuples(st.sampled_from(KINDS), st.sampled_from(sorted(POINTWISE)), st.sampled_from(WIDTHS))
    layers = tuple(draw(st.lists(layer, min_size=1, max_size=4)))
    assume(shapes(layers))
    mesh = mtf.Mesh(draw(st.sampled_from(MESHES)))
    names = [*sizes(layers), *[f"h{n}" for n, (kind, *_) in enumerate(layers) if kind not in ("norm", "soft")]]
    rules = {axis: draw(st.sampled_from(names)) for axis in mesh.names if draw(st.booleans())}
    placed = {dim: tuple(axis for axis in rules if rules[axis] == dim) for dim in dict.fromkeys(rules.values())}
    return layers, mesh, mtf.Layout(list(placed.items())), draw(st.integers(0, 2**16))


@pytest.mark.timeout(1_200)  # of `make test-long`: 166 programs, each compiled twice
@settings(max_examples=settings().max_examples // 12, suppress_health_check=list(HealthCheck))
@given(drawn())
def test_drawn_functions_train_as_plain_jax_does(case):
    layers, mesh, layout, seed = case
    loss, texts = named_loss(layers)
    step = training_step(loss, texts, SGD(learning_rate=RATE, momentum=MOMENTUM))
    try:
        program = mtf.plan(step, mesh, layout, sizes=f"B:{BATCH}")
    except mtf.LayoutError:  # sizes that do not divide over the axes drawn
        assume(False)
    params, data = arrays(layers, seed)
    expected, after = trained_plainly(layers, params, data)
    assume(max(expected) < 100)  # a run that diverges doubles its rounding at every step
    run = mtf.simulate(program)
    state = run.put(params | {f"{name}_momentum": np.zeros_like(p) for name, p in params.items()})
    losses = []
    for number in range(STEPS):
        state = run.resident(**state, **data, step=np.int32(number))
        losses.append(float(state.pop("loss")))
    np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-5)
    for name, array in after.items():
        np.testing.assert_allclose(run.fetch(state[name]), array, rtol=2e-4, atol=2e-5, err_msg=name)
