"""A decoder language model and its training in plain JAX, written without mtfcore: what the tests compare with.

Serial blocks, layer norm without bias, relu, learned positions, multihead attention, separate softmax weights.
"""

import jax
import jax.numpy as jnp
import numpy as np


def norm(x, scale, eps=1e-6):
    x = x - x.mean(-1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps) * scale


def layer(p, n, x):
    h = norm(x, p["attention_norm_scale"][n])
    q, k, v = (jnp.einsum("ble,ehd->blhd", h, p[name][n]) for name in ("wq", "wk", "wv"))
    scores = jnp.einsum("blhd,bshd->bhls", q, k) / np.sqrt(q.shape[-1])
    length = x.shape[1]
    scores = jnp.where(np.tril(np.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhls,bshd->blhd", jax.nn.softmax(scores), v)
    x = x + jnp.einsum("blhd,hde->ble", mixed, p["wo"][n])
    h = norm(x, p["ffn_norm_scale"][n])
    return x + jnp.maximum(h @ p["w_in"][n], 0) @ p["w_out"][n]


def loss(p, inputs, targets):
    x = p["embedding"][inputs] + p["positions"][: inputs.shape[1]]
    for n in range(p["wq"].shape[0]):
        x = layer(p, n, x)
    logits = norm(x, p["final_norm_scale"]) @ p["softmax"].T
    found = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return -found.mean()


def adam(p, g, state, t, rate, beta1=0.9, beta2=0.999, eps=1e-8):
    """One update of every parameter; `t` is 1 the first time."""
    mean = {name: beta1 * state[0][name] + (1 - beta1) * g[name] for name in p}
    square = {name: beta2 * state[1][name] + (1 - beta2) * g[name] ** 2 for name in p}
    step = {name: mean[name] / (1 - beta1**t) / (jnp.sqrt(square[name] / (1 - beta2**t)) + eps) for name in p}
    return {name: p[name] - rate * step[name] for name in p}, (mean, square)


def train(p, batches, steps, rate):
    """Losses and parameters after so many steps of Adam."""

    @jax.jit
    def step(p, state, t, batch):
        value, g = jax.value_and_grad(loss)(p, **batch)
        return value, *adam(p, g, state, t, rate)

    zeros = {name: np.zeros_like(array) for name, array in p.items()}
    state, losses = (zeros, zeros), []
    for number in range(steps):
        value, p, state = step(p, state, np.float32(number + 1), batches(number))
        losses.append(float(value))
    return losses, {name: np.asarray(array) for name, array in p.items()}
