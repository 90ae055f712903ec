"""A training step as one named function, against plain JAX: `jax.grad` of the whole function and optimizers by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.model.optimizers import SGD, Adam
from mtfcore.model.step_function import training_step

SIZES = {"batch": 8, "io": 12, "hidden": 16}
PARAMS = {"w": "io:12 hidden:16", "v": "hidden:16 io:12"}
LAYOUTS = (
    ("one:1", ""),
    ("all:8", "batch:all"),
    ("all:4", "hidden:all"),
    ("rows:2 cols:4", "batch:rows hidden:cols"),
    ("x:2 y:2 z:2", "batch:x hidden:y io:z"),
    ("x:2 y:2 z:2", "batch:(x z) hidden:y"),
)
# f32 sums in another order: each of 4 steps moves a parameter by about 1e-2, so 1e-5 is a thousandth of a step
RTOL, ATOL = 1e-5, 1e-5


@mtf.function
def loss(x: "batch io", w: "io hidden", v: "hidden io", y: "batch io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.mean(mtf.square(mtf.einsum(h, v, out="batch io") - y))


def plain_loss(params, x, y):
    return jnp.mean((jnp.maximum(x @ params["w"], 0) @ params["v"] - y) ** 2)


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"w": (12, 16), "v": (16, 12), "x": (8, 12), "y": (8, 12)}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def trained_plainly(update, steps=4):
    """Losses and parameters of an independent loop: `update(g, state, t) → (change, state)`, one parameter."""
    data = arrays()
    params, state, losses = {name: data.pop(name) for name in PARAMS}, dict.fromkeys(PARAMS), []
    for t in range(1, steps + 1):
        value, grads = jax.value_and_grad(plain_loss)(params, **data)
        losses.append(float(value))
        for name in PARAMS:
            change, state[name] = update(np.asarray(grads[name], np.float64), state[name], t)
            params[name] = (params[name] - change).astype(np.float32)
    return losses, params


def sgd(g, m, t):
    m = g if m is None else 0.9 * m + g
    return 0.05 * m, m


def adam(g, state, t):
    mean, square = (0.0, 0.0) if state is None else state
    mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
    return 0.01 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8), (mean, square)


OPTIMIZERS = {"sgd": (SGD(learning_rate=0.05, momentum=0.9), sgd), "adam": (Adam(learning_rate=0.01), adam)}


def planned(optimizer, mesh, layout):
    return mtf.plan(training_step(loss, PARAMS, optimizer), mesh, layout, sizes=SIZES_TEXT, strict=True)


SIZES_TEXT = " ".join(f"{name}:{size}" for name, size in SIZES.items())


def beginning(optimizer):
    data = arrays()
    slots = optimizer.state(PARAMS).values()
    state = {slot.name: np.full([dim.size for dim in slot.dims], slot.init, np.float32) for slot in slots}
    return {name: data[name] for name in PARAMS} | state, {name: data[name] for name in ("x", "y")}


@pytest.mark.parametrize(
    ("name", "mesh", "layout"), [("adam", *where) for where in LAYOUTS] + [("sgd", *where) for where in LAYOUTS[3:5]]
)
def test_every_layout_trains_as_plain_jax_does(name, mesh, layout):
    optimizer, by_hand = OPTIMIZERS[name]
    run = mtf.simulate(planned(optimizer, mesh, layout))
    state, data = beginning(optimizer)
    losses = []
    for step in range(4):
        state = run.resident(**state, **data, step=np.int32(step))
        losses.append(float(state.pop("loss")))
    expected, params = trained_plainly(by_hand)
    assert expected[-1] < 0.9 * expected[0]
    np.testing.assert_allclose(losses, expected, rtol=RTOL)
    for weight in PARAMS:
        np.testing.assert_allclose(run.fetch(state[weight]), params[weight], rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_what_a_step_returns_lies_where_the_next_takes_it(mesh, layout):
    program = planned(Adam(learning_rate=0.01), mesh, layout)
    made = {port.name: (port.sharding, port.dtype) for port in program.outputs}
    taken = {port.name: (port.sharding, port.dtype) for port in program.inputs}
    assert set(made) - {"loss"} == set(taken) - {"x", "y", "step"}
    assert all(taken[name] == form for name, form in made.items() if name != "loss")


def test_data_parallel_sends_each_gradient_once():
    """Two all-reduces, and the loss's; the optimizer sends nothing."""
    program = planned(Adam(learning_rate=0.01), "all:8", "batch:all")
    n_bytes = 4 * (2 * 12 * 16 + 1)
    assert program.link_bytes().total == 2 * n_bytes * 7 / 8


def test_weights_kept_in_f32_move_where_bf16_would_stand_still():
    """A thousandth of a weight is less than bf16 can add to it; what travels is half of f32's bytes."""
    ones = lambda loss, params: {name: w * 0.0 + 1.0 for name, w in params.items()}  # noqa: E731
    data = {name: np.ones_like(array) for name, array in arrays().items()}
    for kept, moved in (("f32", 1 - 1e-3), (None, 1.0)):
        step = training_step(loss, PARAMS, SGD(learning_rate=1e-3), gradients=ones, kept=kept)
        found = mtf.simulate(mtf.plan(step, "all:8", "batch:all", sizes=SIZES_TEXT, dtype="bf16"))
        made = found(**data, step=np.int32(0))
        np.testing.assert_allclose(np.asarray(made["w"], np.float32), moved, rtol=1e-6)
    program = mtf.plan(
        training_step(loss, PARAMS, Adam(learning_rate=0.01), kept="f32"), "all:8", "batch:all", sizes=SIZES_TEXT,
        dtype="bf16",
    )  # fmt: skip
    assert program.link_bytes().total == 2 * 2 * (2 * 12 * 16 + 1) * 7 / 8


def test_gradients_may_be_given_by_hand():
    """With gradients of one, SGD takes the rate off every weight."""
    ones = lambda loss, params: {name: w * 0.0 + 1.0 for name, w in params.items()}  # noqa: E731
    step = training_step(loss, PARAMS, SGD(learning_rate=0.25), gradients=ones)
    run = mtf.simulate(mtf.plan(step, "rows:2 cols:4", "batch:rows hidden:cols", sizes=SIZES_TEXT))
    data = arrays()
    found = run(**data, step=np.int32(0))
    for name in PARAMS:
        np.testing.assert_allclose(found[name], data[name] - 0.25, rtol=1e-6)
    np.testing.assert_allclose(found["loss"], plain_loss(data, data["x"], data["y"]), rtol=1e-5)


def test_faults_of_names_all_at_once():
    @mtf.function
    def clashing(w: "io hidden", w_mean: "io hidden", step: ""):
        return mtf.sum(w * w_mean) * step

    with pytest.raises(mtf.LayoutError) as error:
        training_step(clashing, {"w": "io:4 hidden:4", "v": "hidden:4"}, Adam(learning_rate=1.0))
    for part in ("3 faults", "no argument 'v'", "'w_mean' of the loss has the name of the optimizer's state",
                 "'step' of the loss has the name of the number of steps"):  # fmt: skip
        assert part in str(error.value)


def test_a_loss_that_is_no_named_function_is_refused():
    with pytest.raises(mtf.LayoutError, match="expected a named function that returns the loss"):
        training_step(plain_loss, PARAMS, SGD(learning_rate=0.1))
