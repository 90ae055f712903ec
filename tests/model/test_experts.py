"""Mixture of experts: against a plain loop over tokens in numpy, on many layouts; its all-to-alls; its gradients."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core.sweep.checking import check_counts, quick

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.model.experts import mixture

SIZES = {"B": 4, "L": 12, "E": 6, "F": 8, "experts": 4, "experts_all": 4}
TEXT = " ".join(f"{name}:{size}" for name, size in SIZES.items())
SHAPES = {"x": "B L E", "gate": "E experts_all", "w_in": "experts E F", "w_out": "experts F E"}
LAYOUTS = {
    "x:4": "B:x experts:x", "x:2 y:2": "B:x experts:x F:y", "rows:2 cols:2": "B:rows experts:(rows cols)",
    "x:2 y:1 z:2": "B:x experts:z L:z", "x:2 y:3 z:2": "B:x experts:x E:y F:z", "x:8": "F:x",
}  # fmt: skip


@mtf.function
def layer_of(x: "B L E", gate: "E experts_all", w_in: "experts E F", w_out: "experts F E", k=2, factor=1.0):
    return tuple(mixture(x, gate, w_in, w_out, k=k, capacity_factor=factor))


def planned(mesh: str, layout: str, **options: Any) -> mtf.Program:
    @mtf.function
    def layer(x: "B L E", gate: "E experts_all", w_in: "experts E F", w_out: "experts F E"):
        return layer_of(x, gate, w_in, w_out, **options)

    return mtf.plan(layer, mesh, layout, sizes=TEXT)


def drawn(seed: int) -> dict[str, np.ndarray]:
    """Tokens that like some experts more than others, so that these are full."""
    rng = np.random.default_rng(seed)
    arrays = {n: rng.normal(size=[SIZES[d] for d in dims.split()]) for n, dims in SHAPES.items()}
    arrays["x"][..., 0] += 1
    arrays["gate"][0, 2] += 1.5
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def by_loops(x: Any, gate: Any, w_in: Any, w_out: Any, k: int, factor: float) -> tuple[np.ndarray, float, int]:
    """One token after the other: first choices take places in the order of the tokens, then second choices."""
    capacity = min(SIZES["L"], math.ceil(SIZES["L"] * k * factor / SIZES["experts"]))
    result, dropped, balance = np.zeros(x.shape), 0, []
    for b, group in enumerate(x.astype(float)):
        logits = group @ gate
        likely = np.exp(logits - logits.max(1, keepdims=True))
        likely /= likely.sum(1, keepdims=True)
        ranks = np.argsort(-likely, axis=1, kind="stable")[:, :k]
        taken = np.zeros(SIZES["experts"], int)
        for turn in range(k):
            for token, ranked in enumerate(ranks):
                expert = ranked[turn]
                if taken[expert] == capacity:
                    dropped += 1
                    continue
                taken[expert] += 1
                weight = likely[token, expert] / (likely[token, ranked].sum() if k == 2 else 1)
                result[b, token] += weight * (np.maximum(group[token] @ w_in[expert], 0) @ w_out[expert])
        shares = np.bincount(ranks[:, 0], minlength=SIZES["experts"]) / SIZES["L"]
        balance.append((shares * likely.mean(0)).sum() * SIZES["experts"])
    return result, float(np.mean(balance)), dropped


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("mesh", LAYOUTS)
def test_every_layout_gives_what_a_loop_over_tokens_gives(mesh, k):
    factor = {"x:4": 0.5, "x:2 y:2": 4.0}.get(mesh, 1.0)
    prog, arrays = planned(mesh, LAYOUTS[mesh], k=k, factor=factor), drawn(k)
    right = by_loops(**arrays, k=k, factor=factor)
    assert (right[2] == 0) == (factor == 4.0)  # something is dropped wherever there is less room than choices
    for run in (quick(mtf.simulate(prog)), quick(mtf.single(prog))):
        result, balance, dropped = run(**arrays)
        np.testing.assert_allclose(result, right[0], rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(balance, right[1], rtol=1e-5)
        assert dropped == right[2] and dropped.dtype == np.int32


def test_a_tie_goes_to_the_first_expert_and_the_first_token():
    arrays = drawn(0) | {"gate": np.zeros((SIZES["E"], SIZES["experts"]), np.float32)}
    prog = planned("x:4", "B:x experts:x", k=2, factor=1.0)
    result, balance, dropped = quick(mtf.simulate(prog))(**arrays)
    # all want experts 0 and 1, which have 6 places each: the first 6 tokens get both, the others neither
    assert np.all(result[:, 6:] == 0) and np.all(np.abs(result[:, :6]).sum(-1) > 0)
    assert dropped == SIZES["B"] * 2 * 6 and balance == 1.0
    np.testing.assert_allclose(result, by_loops(**arrays, k=2, factor=1.0)[0], rtol=1e-5, atol=1e-6)


# ---- what is sent -------------------------------------------------------------------------------------------------


def layer_only(mesh: str, layout: str, k: int = 2, **more: Any) -> mtf.Program:
    @mtf.function
    def layer(x: "B L E", gate: "E experts_all", w_in: "experts E F", w_out: "experts F E"):
        return mixture(x, gate, w_in, w_out, k=k, capacity_factor=1.0).result

    return mtf.plan(layer, mesh, layout, sizes=TEXT, strict=True, **more)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_dispatch_and_combine_are_one_all_to_all_each(dtype):
    prog = layer_only("x:4", "B:x experts:x", dtype=dtype)
    capacity = SIZES["L"] * 2 // SIZES["experts"]
    held = SIZES["B"] // 4 * SIZES["experts"] * capacity * SIZES["E"] * (4 if dtype == "f32" else 2)
    assert [(step.kind, step.n_bytes) for step in prog.collectives()] == [("all_to_all", held)] * 2
    assert prog.link_bytes() == 2 * held * 3 / 4
    there, back = prog.collectives()
    assert there.label() == "all_to_all over x from B to experts_all"
    assert back.label() == "all_to_all over x from experts_all to B"
    check_counts(prog, quick(mtf.simulate(prog)), stablehlo=True)


def test_the_hidden_dimension_on_another_axis_adds_one_all_reduce():
    prog = layer_only("x:2 y:2", "B:x experts:x F:y")
    assert [(step.kind, step.axes) for step in prog.collectives()] == [
        ("all_to_all", ("x",)), ("all_reduce", ("y",)), ("all_to_all", ("x",))]  # fmt: skip


def test_the_weights_of_experts_never_move():
    for mesh, layout in LAYOUTS.items():
        if "experts" in layout:
            prog = layer_only(mesh, layout)
            weights = [port.value for port in prog.inputs if port.name in ("w_in", "w_out")]
            assert not any(step.is_collective and step.inputs[0] in weights for step in prog.walk()), mesh


# ---- gradients ----------------------------------------------------------------------------------------------------


def in_jax(x: Any, gate: Any, w_in: Any, w_out: Any, k: int, capacity: int) -> jax.Array:
    """The same layer in plain JAX, token by token through its experts' weights; a loss with the balance in it."""
    likely = jax.nn.softmax(jnp.einsum("ble,ex->blx", x, gate))
    _, ranks = jax.lax.top_k(likely, k)
    hot = jax.nn.one_hot(ranks, SIZES["experts"])  # b l k x
    kept, before = [], 0.0
    for turn in range(k):
        queue = jnp.cumsum(hot[:, :, turn], 1) - hot[:, :, turn] + before
        kept.append(jnp.where(queue < capacity, hot[:, :, turn], 0.0))
        before = kept[-1].sum(1, keepdims=True)
    weights = jnp.einsum("blx,blkx->blk", likely, hot)
    weights = weights / weights.sum(-1, keepdims=True) if k == 2 else weights
    every = jnp.einsum("blxf,xfe->blxe", jax.nn.relu(jnp.einsum("ble,xef->blxf", x, w_in)), w_out)
    result = jnp.einsum("bklx,blk,blxe->ble", jnp.stack(kept, 1), weights, every)
    balance = (hot[:, :, 0].mean(1) * likely.mean(1)).mean() * SIZES["experts"] ** 2
    return jnp.sum(jnp.sin(result)) + balance


@pytest.mark.parametrize(("mesh", "k"), [("x:4", 1), ("x:2 y:2", 2), ("x:2 y:3 z:2", 2)])
def test_gradients_are_those_of_jax(mesh, k):
    @mtf.function
    def slopes(x: "B L E", gate: "E experts_all", w_in: "experts E F", w_out: "experts F E"):
        mixed = mixture(x, gate, w_in, w_out, k=k, capacity_factor=1.0)
        loss = mtf.sum(mtf.sin(mixed.result)) + mixed.balance
        return mtf.gradients(loss, {"x": x, "gate": gate, "w_in": w_in, "w_out": w_out})

    prog, arrays = mtf.plan(slopes, mesh, LAYOUTS[mesh], sizes=TEXT), drawn(7)
    got = quick(mtf.simulate(prog))(**arrays)
    capacity = math.ceil(SIZES["L"] * k / SIZES["experts"])
    right = jax.jit(jax.grad(in_jax, (0, 1, 2, 3)), static_argnums=(4, 5))(*arrays.values(), k, capacity)
    for name, slope in zip(arrays, right, strict=True):
        np.testing.assert_allclose(got[name], slope, rtol=1e-4, atol=1e-4, err_msg=name)


def test_the_backward_of_the_all_to_alls_is_two_more():
    @mtf.function
    def slopes(x: "B L E", gate: "E experts_all", w_in: "experts E F", w_out: "experts F E"):
        result = mixture(x, gate, w_in, w_out, k=1).result
        return mtf.gradients(mtf.sum(mtf.square(result)), (w_in, w_out, x))

    prog = mtf.plan(slopes, "x:4", "B:x experts:x", sizes=TEXT)
    assert [step.kind for step in prog.collectives()] == ["all_to_all"] * 4


# ---- refused ------------------------------------------------------------------------------------------------------

PLAIN = {"x": "B L E", "gate": "E experts_all", "w_in": "experts E F", "w_out": "experts F E"}


@pytest.mark.parametrize(
    ("dims", "options", "said"),
    [
        ({"x": "B L E F"}, {}, "x is x[B:4, L:12, E:6, F:8]; expected B, L and the model's dimension"),
        ({"x": "B E"}, {}, "x[B:4, E:6] has no dimension 'L'"),
        ({"gate": "E"}, {}, "gate is gate[E:6]; expected E and one dimension for the experts"),
        ({"w_in": "experts F"}, {}, "w_in is w_in[experts:4, F:8], w_out w_out[experts:4, F:8, E:6]; expected"),
        ({"gate": "E experts"}, {}, "so gate calls its experts otherwise, e.g. 'experts_all'"),
        ({"gate": "E L"}, {}, "12 and 4 experts (experts comes first, so it is theirs)"),
        ({}, {"k": 1.5}, "k is 1.5; expected 1 or 2 experts a token"),
        ({}, {"k": 3}, "k is 3; expected 1 or 2 experts a token"),
        ({}, {"capacity_factor": 0}, "capacity_factor is 0; expected a number above 0"),
        ({}, {"activation": 3}, "activation is 3; expected a function of a tensor"),
        ({}, {"tokens": "T"}, "x[B:4, L:12, E:6] has no dimension 'T'"),
    ],
)
def test_what_does_not_fit_together_is_refused(dims, options, said):
    fn = mtf.functions.Function.of("layer", PLAIN | dims, lambda **t: mixture(*t.values(), **options).result)
    with pytest.raises(LayoutError) as error:
        mtf.plan(fn, "x:2", sizes=TEXT)
    assert said in str(error.value)
