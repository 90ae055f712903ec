"""The named configurations, as data: the two papers' models, open families, and small ones for lessons.

    >>> mtf.model.CONFIGS["mtf-lm-4.9b"].source
    'Mesh-TensorFlow, arXiv 1811.02084, Table 2'

Sources: Mesh-TensorFlow (arXiv 1811.02084), Tables 2 and 3, with the authors' tensor2tensor hyperparameters for what
the tables leave out (6 layers, 32,768 subwords, 256 tokens); PaLM (arXiv 2204.02311), Table 1; Megatron-Turing NLG as
in Efficiently Scaling Transformer Inference (arXiv 2211.05102), Table D.1; GPT-3 (arXiv 2005.14165), Table 2.1; of open
models, the config.json published with each.

Not here, because a configuration cannot say them: Gemma 2 (norms behind the sublayers, capped scores, local layers),
Mixtral and its kin (experts), Chinchilla (relative positions with weights). Where only values differ and no size does,
`left_out` says it. Next file to read: `configs`; for a model that is not here, `config_files`.
"""

from __future__ import annotations

from typing import Any

from mtfcore.model.configs import Config

_MESH_TF = "Mesh-TensorFlow, arXiv 1811.02084, Table"
_PALM = "PaLM, arXiv 2204.02311, Table 1"
_NLG = "Megatron-Turing NLG 530B; dimensions in arXiv 2211.05102, Table D.1"
_GPT = "GPT-3, arXiv 2005.14165, Table 2.1; vocabulary of GPT-2"
_LONG = {"left_out": "its rotary positions are scaled for long texts"}

# (name's size, d_ff, heads) of Table 2, whose d_model is 1024 and d_k = d_v = 256
_TABLE_2 = (
    ("0.14b", 4_096, 4), ("0.22b", 8_192, 8), ("0.37b", 16_384, 16), ("0.67b", 32_768, 32), ("1.28b", 65_536, 64),
    ("2.48b", 131_072, 128), ("4.9b", 262_144, 256),
)  # fmt: skip
# (name's size, d_ff, heads) of Table 3, whose d_model is 1024 and d_k = d_v = 128
_TABLE_3 = (
    ("0.15b", 2_048, 4), ("0.24b", 4_096, 8), ("0.42b", 8_192, 16), ("0.77b", 16_384, 32), ("1.48b", 32_768, 64),
    ("2.89b", 65_536, 128),
)  # fmt: skip


def _mesh_tf(name: str, table: int, d_ff: int, heads: int, head_size: int, **more: Any) -> Config:
    return Config(
        name, layers=6, d_model=1_024, d_ff=d_ff, heads=heads, head_size=head_size, vocab=32_768, max_length=256,
        source=f"{_MESH_TF} {table}", **more,
    )  # fmt: skip


def _palm(size: str, layers: int, d_model: int, heads: int) -> Config:
    return Config(
        f"palm-{size}", layers=layers, d_model=d_model, d_ff=4 * d_model, heads=heads, head_size=256, vocab=256_128,
        max_length=2_048, kv_heads=1, block="parallel", activation="swiglu", positions="rotary", tied=True,
        source=_PALM,
    )  # fmt: skip


def _open(name: str, home: str, sizes: str, vocab: int, max_length: int, base: float, **more: object) -> Config:
    """One of the Llama family: `sizes` are layers, d_model, d_ff, heads, key and value heads; `home` where it lies."""
    layers, d_model, d_ff, heads, kv_heads = map(int, sizes.split())
    same: dict[str, Any] = {"norm": "rms", "activation": "swiglu", "positions": "rotary", "norm_eps": 1e-5}
    return Config(
        name, layers=layers, d_model=d_model, d_ff=d_ff, heads=heads, head_size=d_model // heads, kv_heads=kv_heads,
        vocab=vocab, max_length=max_length, rotary_base=base, source=f"config.json of huggingface.co/{home}",
        **{**same, **more},
    )  # fmt: skip


_QWEN = {"norm_eps": 1e-6, "qkv_biases": True}
_OPEN = (
    _open("llama-2-7b", "meta-llama/Llama-2-7b-hf", "32 4096 11008 32 32", 32_000, 4_096, 1e4),
    _open("llama-2-13b", "meta-llama/Llama-2-13b-hf", "40 5120 13824 40 40", 32_000, 4_096, 1e4),
    _open("llama-2-70b", "meta-llama/Llama-2-70b-hf", "80 8192 28672 64 8", 32_000, 4_096, 1e4),
    _open("llama-3-8b", "meta-llama/Meta-Llama-3-8B", "32 4096 14336 32 8", 128_256, 8_192, 5e5),
    _open("llama-3-70b", "meta-llama/Meta-Llama-3-70B", "80 8192 28672 64 8", 128_256, 8_192, 5e5),
    _open("llama-3.1-8b", "meta-llama/Llama-3.1-8B", "32 4096 14336 32 8", 128_256, 131_072, 5e5, **_LONG),
    _open("llama-3.1-70b", "meta-llama/Llama-3.1-70B", "80 8192 28672 64 8", 128_256, 131_072, 5e5, **_LONG),
    _open("llama-3.1-405b", "meta-llama/Llama-3.1-405B", "126 16384 53248 128 8", 128_256, 131_072, 5e5, **_LONG),
    _open("mistral-7b", "mistralai/Mistral-7B-v0.3", "32 4096 14336 32 8", 32_768, 32_768, 1e6),
    _open("qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct", "28 3584 18944 28 4", 152_064, 32_768, 1e6, **_QWEN),
    _open("qwen2.5-72b", "Qwen/Qwen2.5-72B-Instruct", "80 8192 29568 64 8", 152_064, 32_768, 1e6, **_QWEN),
    _open("smollm2-135m", "HuggingFaceTB/SmolLM2-135M-Instruct", "30 576 1536 9 3", 49_152, 8_192, 1e5, tied=True),
)  # fmt: skip


def _tiny(name: str, **more: Any) -> Config:
    """Small enough for simulated devices; sizes differ, so that a mix-up of dimensions cannot hide."""
    sizes: dict[str, Any] = {
        "layers": 2,
        "d_model": 64,
        "d_ff": 256,
        "heads": 8,
        "head_size": 16,
        "vocab": 256,
        "max_length": 128,
    }
    return Config(name, **{**sizes, **more})


_ALL = (
    *[_mesh_tf(f"mtf-lm-{size}", 2, d_ff, heads, 256) for size, d_ff, heads in _TABLE_2],
    *[_mesh_tf(f"mtf-translate-{size}", 3, d_ff, heads, 128, encoder_layers=6) for size, d_ff, heads in _TABLE_3],
    _mesh_tf("mtf-translate-0.21b", 3, 4_096, 16, 64, encoder_layers=6, tied=True),  # the table's baseline
    _palm("8b", 32, 4_096, 16),
    _palm("62b", 64, 8_192, 32),
    _palm("540b", 118, 18_432, 48),
    Config(
        "mt-nlg-530b", layers=105, d_model=20_480, d_ff=81_920, heads=128, head_size=160, vocab=51_200,
        max_length=2_048, activation="gelu", tied=True, biases=True, source=_NLG,
    ),
    Config(
        "gpt-3-175b", layers=96, d_model=12_288, d_ff=49_152, heads=96, head_size=128, vocab=50_257, max_length=2_048,
        activation="gelu", tied=True, biases=True, norm_eps=1e-5, source=_GPT,
        left_out="every other layer attends to a band of positions only",
    ),
    *_OPEN,
    _tiny("tiny-lm"),
    _tiny("tiny-grouped", kv_heads=2, norm="rms", activation="swiglu", positions="rotary", tied=True),
    _tiny("tiny-palm", kv_heads=1, block="parallel", activation="swiglu", positions="rotary", tied=True),
    _tiny("tiny-translate", encoder_layers=2),
)  # fmt: skip

CONFIGS: dict[str, Config] = {cfg.name: cfg for cfg in _ALL}
