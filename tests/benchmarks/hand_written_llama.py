"""One decode step of a Llama-like model as anybody would write it in plain JAX: what the engine's is compared with.

Nothing of mtfcore but the parameters' names and shapes. The cache is updated in place, layers are one scan.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

STACKED = ("attention_norm_scale", "wq", "wk", "wv", "wo", "ffn_norm_scale", "w_in", "w_gate", "w_out")


def norm(x, scale, eps):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * scale


def turned(t, cos, sin):
    a, b = jnp.split(t, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def decode_step(cfg):
    """(parameters, caches, token i32[B], length i32[]) → (the likeliest next token, caches), caches donated."""
    group, half = cfg.heads // cfg.kv_heads, cfg.head_size // 2

    def step(p, keys, values, token, length):
        angle = length / cfg.rotary_base ** (jnp.arange(half) / half)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        seen = jnp.arange(keys.shape[2]) <= length
        x = p["embedding"][token]

        def layer(carry, parts):
            x, keys, values = carry
            n, w = parts
            h = norm(x, w["attention_norm_scale"], cfg.norm_eps)
            q = turned(jnp.einsum("be,ehd->bhd", h, w["wq"]), cos, sin)
            k = turned(jnp.einsum("be,ekd->bkd", h, w["wk"]), cos, sin)
            v = jnp.einsum("be,ekd->bkd", h, w["wv"])
            keys = jax.lax.dynamic_update_slice(keys, k[None, :, None], (n, 0, length, 0, 0))
            values = jax.lax.dynamic_update_slice(values, v[None, :, None], (n, 0, length, 0, 0))
            q = q.reshape(*q.shape[:1], -1, group, q.shape[-1]) / jnp.sqrt(cfg.head_size)
            scores = jnp.where(seen, jnp.einsum("bkgd,bskd->bkgs", q, keys[n]), -1e9)
            mixed = jnp.einsum("bkgs,bskd->bkgd", jax.nn.softmax(scores), values[n])
            x = x + jnp.einsum("bhd,hde->be", mixed.reshape(*mixed.shape[:1], -1, cfg.head_size), w["wo"])
            h = norm(x, w["ffn_norm_scale"], cfg.norm_eps)
            x = x + (jax.nn.silu(h @ w["w_gate"]) * (h @ w["w_in"])) @ w["w_out"]
            return (x, keys, values), None

        stack = jnp.arange(cfg.layers), {name: p[name] for name in STACKED}
        (x, keys, values), _ = jax.lax.scan(layer, (x, keys, values), stack)
        logits = norm(x, p["final_norm_scale"], cfg.norm_eps) @ p["embedding"].T
        return jnp.argmax(logits, -1), keys, values

    return jax.jit(step, donate_argnums=(1, 2))
