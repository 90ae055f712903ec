"""Which tensors of a file a parameter of ours is made of, and how they lie: the Llama family in both kinds of files.

    >>> place_of("wq", "gguf"), place_of("wq", "safetensors")
    ('blk.{n}.attn_q.weight', 'model.layers.{n}.self_attn.q_proj.weight')
    >>> matrix(cfg.params["wq"])        # the file's matrix, outputs first: 9 heads of 64, from 576
    (576, 576)

Files keep a matrix as (outputs, inputs), we with the inputs first, `E H D`: transposed on reading. Tables (embedding,
softmax) lie as ours do, `V E`. Of a head's pairs that rotary positions turn together, ours and Hugging Face's are
element j of each half (the paper's adjacent pairs, reordered); llama.cpp wants its rows of queries and keys with each
pair's two side by side, for models of the architecture "llama". Next file to read: `gguf_tokenizer`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mtfcore.model.configs import Config
from mtfcore.model.params import Param

# ours → (in GGUF, in safetensors), without layer and ending
_WHOLE = {
    "embedding": ("token_embd.weight", "model.embed_tokens.weight"),
    "final_norm_scale": ("output_norm.weight", "model.norm.weight"),
    "softmax": ("output.weight", "lm_head.weight"),
}
_LAYERED = {
    "attention_norm_scale": ("attn_norm.weight", "input_layernorm.weight"),
    "ffn_norm_scale": ("ffn_norm.weight", "post_attention_layernorm.weight"),
}
_PRODUCTS = {
    "q": ("attn_q", "self_attn.q_proj"), "k": ("attn_k", "self_attn.k_proj"), "v": ("attn_v", "self_attn.v_proj"),
    "o": ("attn_output", "self_attn.o_proj"), "_in": ("ffn_up", "mlp.up_proj"), "_gate": ("ffn_gate", "mlp.gate_proj"),
    "_out": ("ffn_down", "mlp.down_proj"),
}  # fmt: skip
_KINDS = ("gguf", "safetensors")
_LAYER = ("blk.{n}.", "model.layers.{n}.")
TABLES = ("embedding", "softmax")


def place_of(name: str, kind: str) -> str:
    """The tensor that a parameter is made of; `{n}` stands for the layer's number."""
    at = _KINDS.index(kind)
    if name in _WHOLE:
        return _WHOLE[name][at]
    if name in _LAYERED:
        return _LAYER[at] + _LAYERED[name][at]
    ending = {"w": ".weight", "b": ".bias"}[name[0]]
    return _LAYER[at] + _PRODUCTS[name[1:]][at] + ending


def matrix(param: Param) -> tuple[int, ...]:
    """Shape of one layer of a parameter as files have it: (outputs, inputs), or a vector."""
    shape = layer_shape(param)
    if param.name in TABLES:
        return shape
    if not param.name.startswith("w"):
        return (math.prod(shape),)
    ins = 2 if param.name == "wo" else 1  # `H D E`; all others have one dimension in front
    return math.prod(shape[ins:]), math.prod(shape[:ins])


def layer_shape(param: Param) -> tuple[int, ...]:
    """Its shape, without the dimension that stacks layers."""
    return param.shape[1:] if param.dims[0].name == "layers" else param.shape


def tensors(cfg: Config, kind: str) -> dict[str, tuple[int, ...]]:
    """Every tensor that a file of this configuration has, with its shape."""
    found: dict[str, tuple[int, ...]] = {}
    for param in cfg.params.values():
        place = place_of(param.name, kind)
        layers = range(cfg.layers) if "{n}" in place else range(1)
        found |= {place.format(n=n): matrix(param) for n in layers}
    return found


def row_order(cfg: Config, name: str) -> np.ndarray | None:
    """For rows of queries and keys as GGUF's "llama" has them, where each of them goes; None: as they lie."""
    if name not in ("wq", "wk", "bq", "bk"):
        return None
    heads = cfg.heads if name[1] == "q" else cfg.kv_heads
    rows = np.arange(heads * cfg.head_size).reshape(heads, 2, cfg.head_size // 2)
    return rows.swapaxes(1, 2).ravel()  # (head, pair, which of the two) → row of ours


def too_few(layers: int, n_tensors: int) -> list[str]:
    """A fault where not even one tensor is there for each layer."""
    return [f"it says {layers:,} layers and has {n_tensors:,} tensors"] if layers > n_tensors else []


def forms_differ(cfg: Config, kind: str, found: Mapping[str, tuple[int, ...]], ignored: tuple[str, ...]) -> list[str]:
    """A fault for each tensor that is missing, misshapen or unknown; the first dozen, and how many more."""
    if faults := too_few(cfg.layers, len(found)):
        return faults  # before any layer's tensors are named: a file may say two thousand million
    wanted = tensors(cfg, kind)
    faults = [f"tensor {name!r} is missing" for name in wanted if name not in found]
    faults += [f"tensor {name!r} has shape {found[name]}, expected {shape} by its configuration"
               for name, shape in wanted.items() if name in found and tuple(found[name]) != shape]  # fmt: skip
    faults += [f"tensor {name!r:.100} is none that this architecture has, and leaving it out would change what the "
               "model says" for name in found if name not in wanted and not name.endswith(ignored)]  # fmt: skip
    return faults if len(faults) <= 12 else [*faults[:12], f"and {len(faults) - 12:,} more of the same kind"]
