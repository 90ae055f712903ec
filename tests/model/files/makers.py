"""Small model files of random parameters, written by the formats' own libraries: what the tests read back.

How matrices lie in files is written out here once more, as llama.cpp's converter and Hugging Face's models have them.
"""

from __future__ import annotations

import json
import pathlib

import gguf
import numpy as np

import mtfcore as mtf

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
MERGES = ("t h", "th e", "Ġ the", "e r", "Ġ t")
NAMES = {  # ours → (GGUF, Hugging Face)
    "wq": ("attn_q", "self_attn.q_proj"), "wk": ("attn_k", "self_attn.k_proj"), "wv": ("attn_v", "self_attn.v_proj"),
    "wo": ("attn_output", "self_attn.o_proj"), "w_in": ("ffn_up", "mlp.up_proj"),
    "w_gate": ("ffn_gate", "mlp.gate_proj"), "w_out": ("ffn_down", "mlp.down_proj"),
    "attention_norm_scale": ("attn_norm", "input_layernorm"),
    "ffn_norm_scale": ("ffn_norm", "post_attention_layernorm"),
    "bq": ("attn_q", "self_attn.q_proj"), "bk": ("attn_k", "self_attn.k_proj"), "bv": ("attn_v", "self_attn.v_proj"),
    "bo": ("attn_output", "self_attn.o_proj"), "b_in": ("ffn_up", "mlp.up_proj"),
    "b_gate": ("ffn_gate", "mlp.gate_proj"), "b_out": ("ffn_down", "mlp.down_proj"),
    "embedding": ("token_embd", "model.embed_tokens"), "softmax": ("output", "lm_head"),
    "final_norm_scale": ("output_norm", "model.norm"),
}  # fmt: skip


def small(**changes: object) -> mtf.model.Config:
    """A configuration of the Llama family whose rows are whole blocks of 32."""
    sizes = {"layers": 2, "d_model": 64, "d_ff": 96, "heads": 4, "kv_heads": 2, "head_size": 16, "vocab": 264}
    return mtf.model.config("tiny-grouped", **{**sizes, "norm_eps": 1e-5, **changes})


def random_params(cfg: mtf.model.Config, seed: int = 0) -> dict[str, np.ndarray]:
    """Parameters of which no two numbers are the same by construction, norms and biases too."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(param.shape, np.float32) for name, param in cfg.params.items()}


def in_file(cfg: mtf.model.Config, name: str, one: np.ndarray) -> np.ndarray:
    """One layer of a parameter as Hugging Face's models have it: (outputs, inputs)."""
    if name in ("embedding", "softmax"):
        return one
    if name[0] == "b" or name.endswith("scale"):
        return one.ravel()
    if name == "wo":
        return np.moveaxis(one, -1, 0).reshape(cfg.d_model, -1)
    return np.moveaxis(one, 0, -1).reshape(-1, one.shape[0])


def by_pairs(heads: int, matrix: np.ndarray) -> np.ndarray:
    """Rows of queries or keys as llama.cpp's converter writes them for the architecture "llama"."""
    half = matrix.reshape(heads, 2, matrix.shape[0] // heads // 2, *matrix.shape[1:])
    return half.swapaxes(1, 2).reshape(matrix.shape)


def layers_of(cfg: mtf.model.Config, params: dict[str, np.ndarray], kind: int) -> dict[str, tuple[str, np.ndarray]]:
    """Tensor's name in that kind of file → (parameter, matrix)."""
    found = {}
    for name, array in params.items():
        ending = ".bias" if name[0] == "b" else ".weight"
        if cfg.params[name].dims[0].name == "layers":
            for n, one in enumerate(array):
                prefix = (f"blk.{n}.", f"model.layers.{n}.")[kind]
                found[prefix + NAMES[name][kind] + ending] = name, in_file(cfg, name, one)
        else:
            found[NAMES[name][kind] + ending] = name, in_file(cfg, name, array)
    return found


# ---- GGUF -------------------------------------------------------------------------------------------------------


def vocabulary(n: int) -> tuple[list[str], list[int]]:
    """Special tokens, the letters that stand for bytes, a few merges, and unused ones up to n."""
    from tokenizers.pre_tokenizers import ByteLevel

    merged = ["".join(pair.split(" ")) for pair in MERGES]
    tokens = [*SPECIALS, *sorted(ByteLevel.alphabet()), *merged]
    tokens = tokens[:n]
    kinds = [3] * len(SPECIALS) + [1] * (len(tokens) - len(SPECIALS))
    return tokens + [f"<unused {i}>" for i in range(n - len(tokens))], kinds + [5] * (n - len(tokens))


def write_gguf(
    path: pathlib.Path, cfg: mtf.model.Config, params: dict[str, np.ndarray], *, architecture: str = "llama",
    types: dict[str, str] | None = None, leave_out: tuple[str, ...] = (), values: dict[str, object] | None = None,
) -> pathlib.Path:  # fmt: skip
    """A whole file. `types`: parameter → type of its numbers; `values`: metadata that replaces what stands there."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in {**metadata(cfg, architecture), **(values or {})}.items():
        add(writer, key, value)
    for tensor, (name, matrix) in layers_of(cfg, params, 0).items():
        if name in ("wq", "wk", "bq", "bk") and architecture == "llama":
            matrix = by_pairs(cfg.heads if name[1] == "q" else cfg.kv_heads, matrix)
        kind = gguf.GGMLQuantizationType[(types or {}).get(name, "F32")]
        if tensor not in leave_out:
            writer.add_tensor(tensor, gguf.quantize(np.ascontiguousarray(matrix), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def metadata(cfg: mtf.model.Config, architecture: str) -> dict[str, object]:
    tokens, kinds = vocabulary(cfg.vocab)
    sizes = {
        "block_count": cfg.layers, "context_length": cfg.max_length, "embedding_length": cfg.d_model,
        "feed_forward_length": cfg.d_ff, "attention.head_count": cfg.heads, "attention.head_count_kv": cfg.kv_heads,
        "attention.key_length": cfg.head_size, "attention.value_length": cfg.head_size,
        "attention.layer_norm_rms_epsilon": cfg.norm_eps, "rope.freq_base": float(cfg.rotary_base),
    }  # fmt: skip
    ours = {f"{architecture}.{name}": value for name, value in sizes.items()}
    text = {
        "model": "gpt2", "pre": "smollm", "tokens": tokens, "token_type": kinds, "merges": list(MERGES),
        "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    return {**ours, **{f"tokenizer.ggml.{k}": v for k, v in text.items()}, "tokenizer.chat_template": TEMPLATE}


def add(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    """One value of the metadata, by the type that Python gives it; None leaves it out."""
    if value is None:
        return
    if isinstance(value, list):
        return writer.add_array(key, value)
    kinds = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    return kinds[type(value)](key, value)


# ---- folders ----------------------------------------------------------------------------------------------------


def write_folder(
    folder: pathlib.Path, cfg: mtf.model.Config, params: dict[str, np.ndarray], dtype: str = "float32", shards: int = 1
) -> pathlib.Path:
    """A folder as Hugging Face's tools save it; several files and an index where `shards` is over 1."""
    import ml_dtypes  # noqa: F401  (gives numpy the name bfloat16)
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        name: np.ascontiguousarray(matrix.astype(dtype)) for name, (_, matrix) in layers_of(cfg, params, 1).items()
    }
    if shards == 1:
        save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        files = {name: f"model-{n % shards + 1:05}-of-{shards:05}.safetensors" for n, name in enumerate(arrays)}
        for file in sorted(set(files.values())):
            save_file({name: arrays[name] for name in arrays if files[name] == file}, folder / file)
        write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": files})
    write_json(folder / "config.json", config_json(cfg))
    return folder


def config_json(cfg: mtf.model.Config) -> dict[str, object]:
    return {
        "model_type": "qwen2" if cfg.qkv_biases else "llama", "hidden_size": cfg.d_model,
        "intermediate_size": cfg.d_ff, "num_hidden_layers": cfg.layers, "num_attention_heads": cfg.heads,
        "num_key_value_heads": cfg.kv_heads, "head_dim": cfg.head_size, "vocab_size": cfg.vocab,
        "max_position_embeddings": cfg.max_length, "hidden_act": "silu", "rms_norm_eps": cfg.norm_eps,
        "rope_theta": cfg.rotary_base, "tie_word_embeddings": cfg.tied,
        **({"attention_bias": True, "mlp_bias": True} if cfg.biases else {}),
    }  # fmt: skip


def write_json(path: pathlib.Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
