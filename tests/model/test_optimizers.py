"""Optimizers: several steps on random meshes against the published formulas, written again in numpy and float64."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.sweep.checking import quick

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.functions import Function
from mtfcore.model.optimizers import SGD, Adafactor, Adam, Optimizer, warmup

PARAMS = {"w": "E:8 F:12", "stack": "layers:2 F:12 E:8", "heads": "E:8 H:4 D:2", "bias": "F:12", "scale": ""}
MESHES = {
    "x:4": "F:x", "x:2 y:2": "E:x F:y", "rows:2 cols:4": "F:rows E:cols", "x:2 y:2 z:2": "layers:z F:y E:x",
    "x:2 y:1 z:3": "F:(x z) E:y",
}  # fmt: skip
STEPS = 4


def sizes_of(text: str) -> dict[str, int]:
    return {dim.name: dim.size for dim in mtf.dims.parse_dims(text)}


def one_step(optimizer: Optimizer, params: dict[str, str] = PARAMS, dtype: str = "f32") -> tuple[Function, str]:
    """A named function of parameters, gradients and state that takes one step; and all sizes."""
    slots = optimizer.state(params)
    texts = {**params, **{f"d_{name}": text for name, text in params.items()}}
    texts |= {name: " ".join(map(str, slot.dims)) for name, slot in slots.items()}
    arguments = {**{name: " ".join(sizes_of(text)) for name, text in texts.items()}, "step": ""}

    def call(**t: Any) -> dict[str, Any]:
        grads = {name: t[f"d_{name}"] for name in params}
        new, state = optimizer.update({name: t[name] for name in params}, grads, {name: t[name] for name in slots},
                                      t["step"])  # fmt: skip
        return new | state

    dtypes = {"step": "i32", **{name: slot.dtype for name, slot in slots.items()}}
    sizes = {name: size for text in texts.values() for name, size in sizes_of(text).items()}
    return Function.of("one_step", arguments, call, dtypes), " ".join(f"{name}:{size}" for name, size in sizes.items())


def train(run: Any, optimizer: Optimizer, params: dict[str, np.ndarray], grads: list[dict]) -> dict[str, np.ndarray]:
    texts = {name: " ".join(f"{d}:{n}" for d, n in sizes_of(PARAMS[name]).items()) for name in params}
    slots = optimizer.state(texts)
    state = {name: np.full([dim.size for dim in slot.dims], slot.init) for name, slot in slots.items()}
    values = {**params, **state}
    for step, given in enumerate(grads):
        values = run(**values, **{f"d_{name}": g for name, g in given.items()}, step=np.int32(step))
    return values


def drawn(number: int) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
    """Parameters and gradients of every step; gradients grow, so that clipping is met on both sides."""
    rng = np.random.default_rng(number)
    shapes = {name: tuple(sizes_of(text).values()) for name, text in PARAMS.items()}
    params = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    grads = [
        {name: (0.02 * 4**step * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}
        for step in range(STEPS)
    ]
    return params, grads


# ---- the formulas again -------------------------------------------------------------------------------------------


def clipped(grads: dict[str, np.ndarray], most: float | None) -> dict[str, np.ndarray]:
    norm = np.sqrt(sum((g**2).sum() for g in grads.values()))
    return {name: g * (most / norm if most and norm > most else 1.0) for name, g in grads.items()}


def sgd(w: np.ndarray, grads: list[np.ndarray], rate: Callable, momentum: float = 0.0) -> np.ndarray:
    velocity = np.zeros_like(w)
    for t, g in enumerate(grads, 1):
        velocity = momentum * velocity + g
        w = w - rate(t) * velocity
    return w


def adam(w: np.ndarray, grads: list[np.ndarray], rate: Callable, decay: float = 0.0) -> np.ndarray:
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(grads, 1):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        unbiased = m / (1 - 0.9**t), v / (1 - 0.99**t)
        w = w - rate(t) * (unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8) + decay * w)
    return w


def adafactor(w: np.ndarray, grads: list[np.ndarray], rate: Callable, momentum: float, axes: tuple) -> np.ndarray:
    """Algorithms 4 and 5 for one parameter; `axes` are those of its rows and columns."""
    second, m = 0.0, np.zeros_like(w)
    factors = [0.0, 0.0]
    for t, g in enumerate(grads, 1):
        beta2, squares = 1 - t**-0.8, g**2 + 1e-30
        if axes:
            factors = [beta2 * old + (1 - beta2) * squares.mean(axis, keepdims=True)
                       for old, axis in zip(factors, reversed(axes))]  # fmt: skip
            second = factors[0] * factors[1] / factors[0].mean(axes[0], keepdims=True)
        else:
            second = beta2 * second + (1 - beta2) * squares
        update = g / np.sqrt(second)
        update = update / max(1.0, np.sqrt((update**2).mean()))
        change = max(1e-3, np.sqrt((w**2).mean())) * rate(t) * update
        m = momentum * m + (1 - momentum) * change
        w = w - m
    return w


FACTORED = {"w": (0, 1), "stack": (0, 1), "heads": (0, 1), "bias": (), "scale": ()}


def expected(kind: str, params: dict, grads: list[dict], rate: Callable, clip: float | None, **more: Any) -> dict:
    right = [clipped({n: g.astype(float) for n, g in given.items()}, clip) for given in grads]
    found = {}
    for name, w in params.items():
        own, w = [given[name] for given in right], w.astype(float)
        if kind == "adafactor":
            parts = [(w, own)] if name != "stack" else [(w[i], [g[i] for g in own]) for i in range(len(w))]
            done = [adafactor(a, b, rate, axes=FACTORED[name], **more) for a, b in parts]
            found[name] = done[0] if name != "stack" else np.stack(done)
        else:
            found[name] = {"sgd": sgd, "adam": adam}[kind](w, own, rate, **more)
    return found


def relative(t: int) -> float:
    return min(1e-2, t**-0.5)


def rising(t: int) -> float:
    return 0.1 * min(t / 2, (2 / t) ** 0.5)


CASES = {
    "SGD": (SGD(0.1), ("sgd", lambda t: 0.1, None), {}),
    "SGD with momentum, clipped": (
        SGD(warmup(0.1, 2), momentum=0.9, clip=2.0), ("sgd", rising, 2.0), {"momentum": 0.9}),
    "Adam": (Adam(0.01, beta2=0.99), ("adam", lambda t: 0.01, None), {}),
    "Adam with decay, clipped": (
        Adam(warmup(0.1, 2), beta2=0.99, weight_decay=0.1, clip=2.0), ("adam", rising, 2.0), {"decay": 0.1}),
    "Adafactor": (Adafactor(), ("adafactor", relative, None), {"momentum": 0.0}),
    "Adafactor with momentum": (
        Adafactor(warmup(0.1, 2), momentum=0.5, clip=2.0), ("adafactor", rising, 2.0), {"momentum": 0.5}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_several_steps_are_those_of_the_formulas_on_one_device_and_on_a_mesh(name):
    optimizer, (kind, rate, clip), more = CASES[name]
    params, grads = drawn(list(CASES).index(name))
    right = expected(kind, params, grads, rate, clip, **more)
    fn, sizes = one_step(optimizer)
    mesh = random.Random(name).choice(list(MESHES))
    prog = mtf.plan(fn, mesh, MESHES[mesh], sizes=sizes, strict=False)
    for run in (quick(mtf.single(prog)), quick(mtf.simulate(prog))):
        got = train(run, optimizer, params, grads)
        for param, w in right.items():
            np.testing.assert_allclose(got[param], w, rtol=3e-5, atol=3e-6, err_msg=f"{name}, {param} on {mesh}")


# ---- where things lie -----------------------------------------------------------------------------------------------


def planned(optimizer: Optimizer, mesh: str, layout: str, params: dict[str, str] = PARAMS, **more: Any) -> mtf.Program:
    fn, sizes = one_step(optimizer, params, **more)
    return mtf.plan(fn, mesh, layout, sizes=sizes)


def state_bytes(prog: mtf.Program, optimizer: Optimizer, params: dict[str, str]) -> int:
    """Bytes of the state on one device, where the step takes it in."""
    slots = optimizer.state(params)
    return sum(p.sharding.bytes_per_device(prog.mesh, p.dtype) for p in prog.inputs if p.name in slots)


MATRICES = {"w": "E:64 F:256", "v": "F:256 E:64"}


def test_the_state_of_adam_is_twice_the_parameters_and_that_of_adafactor_almost_nothing():
    weights = 2 * 64 * 256 * 4 // 8  # two matrices in f32, split over all eight devices
    layout = ("x:2 y:4", "E:x F:y")
    adam = planned(Adam(0.1), *layout, MATRICES)
    assert state_bytes(adam, Adam(0.1), MATRICES) == 2 * weights == 32_768
    factored = planned(Adafactor(), *layout, MATRICES)
    assert state_bytes(factored, Adafactor(), MATRICES) == 2 * (64 // 2 + 256 // 4) * 4 == 768
    momentum = planned(SGD(0.1, momentum=0.9), *layout, MATRICES)
    assert state_bytes(momentum, SGD(0.1, momentum=0.9), MATRICES) == weights
    assert SGD(0.1).state(MATRICES) == {}
    half = planned(Adam(0.1, dtype="bf16"), *layout, MATRICES)
    assert state_bytes(half, Adam(0.1, dtype="bf16"), MATRICES) == weights


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", CASES)
def test_everything_ends_where_it_began_and_little_is_sent(name, mesh):
    """Parameters and state go into the next step as they come out of this one."""
    optimizer = CASES[name][0]
    prog = planned(optimizer, mesh, MESHES[mesh])
    begins = {port.name: (port.sharding, port.dtype) for port in prog.inputs}
    assert all(begins[port.name] == (port.sharding, port.dtype) for port in prog.outputs)
    assert len(prog.outputs) == len(PARAMS) + len(optimizer.state(PARAMS))
    sent = prog.collectives()
    if not optimizer.clip and not isinstance(optimizer, Adafactor):
        assert sent == []
    if optimizer.clip and not isinstance(optimizer, Adafactor):
        assert [(step.kind, step.n_bytes) for step in sent] == [("all_reduce", 4)]  # whatever the parameters' axes
    assert {step.kind for step in sent} <= {"all_reduce", "all_gather"}  # the latter where copies share the sending
    # sums of all elements, one number a layer; rows and columns of the largest parameter
    largest = 2 * 12 * 4 if isinstance(optimizer, Adafactor) else 4
    assert all(step.n_bytes <= largest for step in sent), [step.n_bytes for step in sent]


def test_the_norm_of_all_gradients_is_one_small_all_reduce_an_axis():
    prog = planned(SGD(0.1, clip=1.0), "x:2 y:4", "E:x F:y", MATRICES)
    assert [(step.kind, step.n_bytes, step.axes) for step in prog.collectives()] == [("all_reduce", 4, ("x", "y"))]


def test_stacking_layers_changes_nothing():
    """Adafactor clips and scales each layer of a stack as if it stood alone."""
    alone = {f"w{i}": "F:12 E:8" for i in range(2)}
    rng = np.random.default_rng(5)
    w, g = (rng.normal(size=(2, 12, 8)).astype(np.float32) * [[[1]], [[9]]] for _ in range(2))
    results = []
    for params, parts in (({"w": "layers:2 F:12 E:8"}, {"w": slice(None)}), (alone, {"w0": 0, "w1": 1})):
        optimizer = Adafactor(momentum=0.5)
        fn, sizes = one_step(optimizer, params)
        run = quick(mtf.single(mtf.plan(fn, "x:1", sizes=sizes)))
        state = {n: np.zeros([d.size for d in slot.dims]) for n, slot in optimizer.state(params).items()}
        given = {name: w[part] for name, part in parts.items()} | {f"d_{n}": g[part] for n, part in parts.items()}
        results.append(run(**given, **state, step=np.int32(3)))
    np.testing.assert_allclose(results[0]["w"], np.stack([results[1]["w0"], results[1]["w1"]]), rtol=1e-6)


def test_parameters_in_bfloat16_are_updated_in_float32():
    fn, sizes = one_step(Adam(1e-3), {"w": "E:8"})
    prog = mtf.plan(fn, "x:2", "E:x", sizes=sizes, dtype="bf16")
    types = {port.name: port.dtype for port in prog.outputs}
    assert types == {"w": "bf16", "w_mean": "f32", "w_square": "f32"}
    zeros = {"w_mean": np.zeros(8, np.float32), "w_square": np.zeros(8, np.float32)}
    got = mtf.simulate(prog)(w=np.ones(8), d_w=np.full(8, 1e-3), **zeros, step=np.int32(0))
    np.testing.assert_allclose(got["w_mean"], 1e-4, rtol=4e-3)  # the gradient was rounded to 8 bits
    np.testing.assert_allclose(got["w"].astype(float), 1 - 1e-3, atol=2.0**-8)


@pytest.mark.parametrize(
    ("params", "grads", "state", "said"),
    [
        ({"w": "w"}, {}, {}, "no gradient of 'w'"),
        ({"w": "w"}, {"w": "v"}, {}, "w is w[E:8, F:4], its gradient v[E:8]: they must have the same dimensions"),
        ({"w": "w"}, {"w": "w"}, {}, "no state 'w_square'"),
        ({"w": "w"}, {"w": "w"}, {"w_mean": "w", "w_square": "v"}, "state w_square is 'E:8', expected 'E:8 F:4'"),
        ({}, {}, {}, "no parameters; expected e.g. {'w': w}"),
    ],
)
def test_what_does_not_fit_together_is_refused(params, grads, state, said):
    @mtf.function(dtypes={"step": "i32"})
    def update(w: "E F", v: "E:8", step: ""):
        tensors = {"w": w, "v": v}
        picked = ({name: tensors[t] for name, t in given.items()} for given in (params, grads, state))
        return Adam(0.1).update(*picked, step)[0]["w"]

    with pytest.raises(LayoutError) as error:
        mtf.plan(update, "x:2", sizes="F:4")
    assert said in str(error.value)


def test_a_parameter_without_sizes_is_refused():
    with pytest.raises(LayoutError, match=r"state of parameter w: dimension 'F' has no size; write e.g. 'F:512'"):
        Adam(0.1).state({"w": "E:8 F"})
