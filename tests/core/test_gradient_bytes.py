"""The planned backward never sends more than `jax.grad` through the explicit forward, on the usual layouts."""

import jax
import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.counting import count, count_stablehlo
from mtfcore.functions import Function


def mlp_loss(x, w, v):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.mean(mtf.square(mtf.einsum(h, v, out="batch io") - x))


def deep_loss(x, w, v):
    def block(x, w, v):
        h = mtf.gelu(mtf.einsum(x, w, out="batch hidden"))
        return x + mtf.einsum(h, v, out="batch io")

    return mtf.mean(mtf.square(mtf.repeat(block, 3, [w, v], x)))


def attention_loss(x, w, v):
    q = mtf.split(mtf.einsum(x, w, out="batch hidden"), "hidden", "heads:4 kv")
    k = mtf.split(mtf.einsum(x, w, out="batch hidden") * 0.5, "hidden", "heads:4 kv")
    k = mtf.rename(k, "batch", "memory")
    p = mtf.softmax(mtf.einsum(q, k, out="batch memory heads"), "memory")
    y = mtf.einsum(p, k, out="batch heads kv")
    return mtf.mean(mtf.square(x + mtf.einsum(mtf.merge(y, "heads kv", "hidden"), v, out="batch io")))


def stationary_loss(x, w, v):
    """The second paper's 2D weight-stationary layer (arXiv 2211.05102, section 3.2.2), moves spelled out."""
    h = mtf.einsum(mtf.reshard(x, "batch io:x"), w, out="batch hidden:zyx")
    h = mtf.reshard(mtf.gelu(h), "batch hidden:zy")
    return mtf.mean(mtf.square(mtf.einsum(h, v, out="batch io:xzy")))


LAYOUTS = {
    "data": ("x:4", "batch:x", {}),
    "model": ("x:4", "hidden:x heads:x", {}),
    "mixed": ("x:2 y:2", "batch:x hidden:y heads:y", {}),
    "all three": ("x:2 y:2 z:2", "batch:x hidden:y heads:y io:z", {}),
    "2D": ("x:2 y:2 z:2", "", {"x": "batch io:xzy", "w": "io:x hidden:zy", "v": "hidden:zy io:x"}),
    "sharded data": ("x:4", "batch:x", {"w": "io:x hidden", "v": "hidden io:x"}),
}
LOSSES = {"mlp": mlp_loss, "deep": deep_loss, "attention": attention_loss, "stationary": stationary_loss}
PAIRS = [(loss, name) for loss in ("mlp", "deep", "attention") for name in LAYOUTS]
PAIRS = [pair for pair in PAIRS if pair[1] != "2D" and pair != ("deep", "sharded data")]
PAIRS += [("stationary", "2D"), ("mlp", "2D"), ("deep", "2D")]


def plans(loss: str, name: str) -> tuple[mtf.Program, mtf.Program]:
    mesh, layout, place = LAYOUTS[name]

    stack = "layers " if loss == "deep" else ""
    arguments = {"x": "batch io", "w": f"{stack}io hidden", "v": f"{stack}hidden io"}
    if stack:
        place = {name: text if name == "x" else f"layers {text}" for name, text in place.items()}

    def backward(x, w, v):
        total = LOSSES[loss](x, w, v)
        return {"loss": total, **mtf.gradients(total, {"x": x, "w": w, "v": v})}

    fns = Function.of("forward", arguments, LOSSES[loss]), Function.of("backward", arguments, backward)
    rules = " ".join(rule for rule in layout.split() if "heads" not in rule or loss == "attention")
    sizes = "batch:16 io:16 hidden:32" + (" layers:3" if stack else "")
    return tuple(mtf.plan(fn, mesh, rules, sizes=sizes, place=place) for fn in fns)


@pytest.mark.parametrize(("loss", "name"), PAIRS)
def test_no_more_bytes_than_jax_grad(loss, name):
    forward, backward = plans(loss, name)
    run = mtf.simulate(forward)
    theirs = count(jax.value_and_grad(lambda *arrays: run.fn(*arrays)[0].sum(), argnums=(0, 1, 2)), *run.shapes)
    assert float(backward.link_bytes()) <= theirs.link_bytes
    ours = mtf.simulate(backward)
    assert count(ours.fn, *ours.shapes).link_bytes == float(backward.link_bytes())
    assert count_stablehlo(ours.lower()).link_bytes == float(backward.link_bytes())


@pytest.mark.parametrize(("loss", "name"), PAIRS)
def test_the_same_values_as_jax_grad(loss, name):
    forward, backward = plans(loss, name)
    rng = np.random.default_rng(1)
    given = [0.2 * rng.normal(size=port.sharding.shape).astype(np.float32) for port in forward.inputs]
    single = mtf.single(forward)
    right = jax.value_and_grad(lambda *arrays: single.fn(*arrays)[0], argnums=(0, 1, 2))(*given)
    got = mtf.simulate(backward)(*given)
    for name_, value in zip(("loss", "x", "w", "v"), (right[0], *right[1]), strict=True):
        np.testing.assert_allclose(got[name_], value, rtol=1e-4, atol=1e-6)


def test_what_every_turn_shares_is_reduced_once():
    @mtf.function
    def shared(x: "batch io", w: "io hidden", v: "hidden io"):
        def block(x):
            return x + mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")

        return mtf.gradients(mtf.mean(mtf.square(mtf.repeat(block, 5, (), x))), {"w": w, "v": v})

    prog = mtf.plan(shared, "x:4", "batch:x", sizes="batch:8 io:8 hidden:16")
    assert [(step.label(), step.times) for step in prog.collectives()] == [("all_reduce over x", 1)] * 2


def test_sharded_weights_of_a_loop_are_gathered_again_rather_than_kept_whole():
    """`jax.grad` keeps every layer's gathered weights and sends less; we do not hold the whole model on each device."""
    _, backward = plans("deep", "sharded data")
    loops = [step for step in backward.steps if step.kind == "repeat"]
    assert [sum(s.kind == "all_gather" for s in loop.body.steps) for loop in loops] == [2, 2]
    whole = 16 * 32
    kept = [s for port, s in zip(loops[0].body.outputs, loops[0].outputs, strict=True)
            if np.prod(port.sharding.local_shape(backward.mesh)) >= whole]  # fmt: skip
    assert kept == []
    assert float(backward.link_bytes()) == 1.5 * float(18432)
