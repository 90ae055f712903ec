"""The Transformer written again, in float64 numpy and with loops over heads: what the model's tests compare with.

It shares no code with `mtfcore.model`, only the names of the parameters.
"""

from __future__ import annotations

import math

import numpy as np


def norm(cfg, x, w, name):
    if cfg.norm == "layer":
        x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + cfg.norm_eps) * w[f"{name}_scale"]
    return x + w.get(f"{name}_bias", 0)


def gelu(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def feedforward(cfg, x, w):
    h = x @ w["w_in"] + w.get("b_in", 0)
    if cfg.activation in ("swiglu", "geglu"):
        gate = x @ w["w_gate"] + w.get("b_gate", 0)
        h = h * (gate / (1 + np.exp(-gate)) if cfg.activation == "swiglu" else gelu(gate))
    else:
        h = np.maximum(h, 0) if cfg.activation == "relu" else gelu(h)
    return h @ w["w_out"] + w.get("b_out", 0)


def turned(cfg, t):
    """Rotary positions as complex numbers; t is [batch, length, head_size]."""
    half = cfg.head_size // 2
    speed = cfg.rotary_base ** (-np.arange(half) / half)
    turn = np.exp(1j * np.arange(t.shape[1])[:, None] * speed)
    pairs = (t[..., :half] + 1j * t[..., half:]) * turn
    return np.concatenate([pairs.real, pairs.imag], -1)


def head(w, name, number):
    """One head's matrix [E, D] and bias [D]; a matrix without heads serves them all."""
    matrix, bias = w[f"w{name}"], w.get(f"b{name}", np.zeros(w[f"w{name}"].shape[1:]))
    return (matrix, bias) if matrix.ndim == 2 else (matrix[:, number], bias[number])


def attention(cfg, x, other, w, seen, rotary):
    """`seen` is bool[batch, length, other length]."""
    total = 0
    for number in range(cfg.heads):
        shared = number // (cfg.heads // cfg.kv_heads)
        q, k, v = (
            part @ matrix + bias
            for part, (matrix, bias) in zip(
                (x, other, other), (head(w, "q", number), head(w, "k", shared), head(w, "v", shared)), strict=True
            )
        )
        if rotary:
            q, k = turned(cfg, q), turned(cfg, k)
        scores = np.where(seen, q @ k.transpose(0, 2, 1) / math.sqrt(cfg.head_size), -np.inf)
        chances = np.exp(scores - scores.max(-1, keepdims=True))
        total = total + chances / chances.sum(-1, keepdims=True) @ v @ w["wo"][number]
    return total + w.get("bo", 0)


def layers(cfg, n, params, prefix, x, seen, memory=None, seen_memory=None):
    rotary = cfg.positions == "rotary"
    for number in range(n):
        names = [name for name in params if name.startswith("encoder_") == bool(prefix)]
        w = {name.removeprefix(prefix): params[name][number] for name in names if len(params[name]) == n}
        cross = {name.removeprefix("cross_"): value for name, value in w.items() if name.startswith("cross_")}
        own = lambda h: attention(cfg, h, h, w, seen, rotary)  # noqa: B023, E731
        other = lambda h: attention(cfg, h, memory, cross, seen_memory, False)  # noqa: B023, E731
        if cfg.block == "parallel":
            h = norm(cfg, x, w, "norm")
            x = x + own(h) + (0 if memory is None else other(h)) + feedforward(cfg, h, w)
        else:
            x = x + own(norm(cfg, x, w, "attention_norm"))
            x = x if memory is None else x + other(norm(cfg, x, w, "cross_norm"))
            x = x + feedforward(cfg, norm(cfg, x, w, "ffn_norm"), w)
    return x


def embed(params, tokens, prefix):
    x = params["embedding"][tokens]
    return x + params[f"{prefix}positions"][: tokens.shape[1]] if f"{prefix}positions" in params else x


def logits(cfg, params, inputs, source=None, pad=None):
    params = {name: np.asarray(value, np.float64) for name, value in params.items()}
    length = inputs.shape[1]
    seen = np.tril(np.ones((length, length), bool)) if cfg.causal else np.ones((length, length), bool)
    seen, memory, seen_memory = np.broadcast_to(seen, (len(inputs), length, length)), None, None
    if cfg.encoder_layers:
        real = np.ones(source.shape, bool) if pad is None else source != pad
        among = np.broadcast_to(real[:, None, :], (*source.shape, source.shape[1]))
        memory = layers(cfg, cfg.encoder_layers, params, "encoder_", embed(params, source, "encoder_"), among)
        memory = norm(cfg, memory, params, "encoder_final_norm")
        seen_memory = np.broadcast_to(real[:, None, :], (len(inputs), length, source.shape[1]))
    x = layers(cfg, cfg.layers, params, "", embed(params, inputs, ""), seen, memory, seen_memory)
    return norm(cfg, x, params, "final_norm") @ params["embedding" if cfg.tied else "softmax"].T


def loss(cfg, params, inputs, targets, source=None, pad=None, label_smoothing=0.0):
    found = logits(cfg, params, inputs, source, pad)
    log_p = found - found.max(-1, keepdims=True)
    log_p = log_p - np.log(np.exp(log_p).sum(-1, keepdims=True))
    picked = np.take_along_axis(log_p, targets[..., None], -1)[..., 0]
    lost = -(1 - label_smoothing) * picked - label_smoothing * log_p.mean(-1)
    counted = np.ones(targets.shape) if pad is None else targets != pad
    return (lost * counted).sum() / counted.sum()
