"""Configurations from files on disk: a model's config.json of the Llama family, or one that `save_config` wrote.

    >>> cfg = mtf.model.config("models/mine/config.json")           # or its folder
    >>> mtf.model.save_config(cfg.but(kv_heads=4), "fewer-heads.json")

Read are the names that such files share: hidden_size, intermediate_size, num_hidden_layers, num_attention_heads,
num_key_value_heads, head_dim, vocab_size, max_position_embeddings, hidden_act, rms_norm_eps, rope_theta,
tie_word_embeddings, biases. What changes values but no size (scaled rotary positions, a sliding window) is said in
`left_out` and as a warning; other unknown names are warned of, all at once; with `strict=True` both are errors. A file
is data: nothing in it is run, it may have a megabyte, and whatever cannot be is refused with every fault. How heads are
shared is said by key and value heads alone; "groups" of any kind are refused. Next file to read:
`plain_json`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mtfcore.errors import LayoutError, LayoutWarning, expect, nearest, refuse
from mtfcore.model.configs import MOST_PARAMS, SIZES, Config, config
from mtfcore.model.plain_json import read_json
from mtfcore.notation import as_size

OWN = "meshwork"  # the model_type of files that `save_config` writes
FAMILIES = {  # model_type → what differs from Llama
    "llama": {}, "mistral": {}, "qwen2": {"qkv_biases": True},
}  # fmt: skip
CLASSES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "mistral", "Qwen2ForCausalLM": "qwen2"}
NAMES = {  # the file's name → ours
    "hidden_size": "d_model", "intermediate_size": "d_ff", "num_hidden_layers": "layers",
    "num_attention_heads": "heads", "num_key_value_heads": "kv_heads", "head_dim": "head_size", "vocab_size": "vocab",
    "max_position_embeddings": "max_length", "rms_norm_eps": "norm_eps", "rope_theta": "rotary_base",
    "tie_word_embeddings": "tied",
}  # fmt: skip
NEEDED = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
    "max_position_embeddings",
)  # fmt: skip
ACTIVATIONS = {"silu": "swiglu", "swish": "swiglu", "gelu_pytorch_tanh": "geglu", "gelu_new": "geglu"}
NO_MATTER = (  # says nothing about sizes or values of a forward pass
    "model_type", "architectures", "hidden_act", "rope_scaling", "rope_parameters", "sliding_window",
    "use_sliding_window", "max_window_layers", "layer_types", "attention_bias", "mlp_bias", "_name_or_path", "id2label",
    "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "torch_dtype", "dtype", "transformers_version",
    "use_cache", "initializer_range", "attention_dropout", "hidden_dropout", "pretraining_tp", "is_llama_config",
    "rope_interleaved", "tokenizer_class", "label2id", "_attn_implementation", "auto_map", "transformers.js_config",
    "quantization_config", "bos_token", "eos_token", "pad_token", "max_sequence_length",
)  # fmt: skip


def config_file(path: str | os.PathLike[str], strict: bool = False) -> Config:
    """The configuration in a file, or in the config.json of a folder.

    `path`: a file of this library, or config.json of the Llama family; `strict`: what is not understood is refused,
    not warned of.

    Raises `LayoutError` with every fault at once.
    """
    path = _path(path)
    path = path / "config.json" if os.path.isdir(path) else path
    found = read_json(path)
    if found.get("model_type") == OWN:
        return _own(found, path)
    return _family(found, path, strict)


def save_config(cfg: Config | str, path: str | os.PathLike[str]) -> Path:
    """Write a configuration so that `config_file` reads the same one.

    `cfg`: a configuration; `path`: the file to write, which is returned.

    Raises `LayoutError` where no such file can be written, for want of its folder, say.
    """
    path = _path(path)
    text = json.dumps({"model_type": OWN, **dataclasses.asdict(config(cfg))}, indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except (OSError, ValueError) as why:  # a name with a zero byte, say
        cure = "give the path of a file, such as 'config.json'"
        if isinstance(why, FileNotFoundError):
            cure = f"make its folder first: os.makedirs({str(path.parent)!r:.200})"
        problem = getattr(why, "strerror", None) or "this cannot be the name of a file"
        raise LayoutError(f"{str(path)!r:.200} cannot be written: {problem}; {cure}") from None
    return path


def _path(path: object) -> Path:
    text = os.fspath(expect(path, (str, os.PathLike), "the path of a file"))
    return Path(expect(text, str, "the path of a file, as text"))


# ---- our own files ----------------------------------------------------------------------------------------------


def _own(found: Mapping[str, Any], path: Path) -> Config:
    fields = {field.name: field for field in dataclasses.fields(Config)}
    given = {name: value for name, value in found.items() if name != "model_type"}
    faults = [f"no field {name!r:.100}; {_hint(name, nearest(name, fields))}" for name in given if name not in fields]
    needed = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    faults += [f"{name} is missing" for name in needed if name not in given]
    faults += [f"{name} is {given[name]!r:.100}; expected a text" for name in ("name", "source", "left_out")
               if not isinstance(given.get(name, ""), str)]  # fmt: skip
    refuse(faults + _too_large(given), path.name)
    return _checked(Config(**given), path)


# ---- the Llama family -------------------------------------------------------------------------------------------


def _family(found: Mapping[str, Any], path: Path, strict: bool) -> Config:
    found = {name: value for name, value in found.items() if value is not None}
    kind, faults = _kind(found)
    refuse(faults, path.name)
    given = {ours: found[theirs] for theirs, ours in NAMES.items() if theirs in found}
    faults = [f"{name} is missing" for name in _needed(kind) if name not in found]
    faults += [f"{name}: {_hint(name, '')}" for name in found if "group" in name.casefold()]
    faults += _unlike(found, kind) + _no_sizes(found) + _no_numbers(found)
    refuse(faults, path.name)
    given.setdefault("head_size", _head_size(found, path))
    given["activation"] = ACTIVATIONS[found.get("hidden_act", "silu")]
    given |= _rotary(found) | FAMILIES[kind]
    if found.get("attention_bias") and found.get("mlp_bias"):
        given["biases"] = True
    left_out = "; ".join(_left_out(found))
    _warn(path, left_out, [name for name in found if name not in NAMES and name not in NO_MATTER], strict)
    name = path.parent.name if path.name == "config.json" and path.parent.name else path.stem
    common = {"norm": "rms", "positions": "rotary", "source": f"the file {path.name}", "left_out": left_out}
    return _checked(Config(name or kind, **{**common, **given}), path)


def _kind(found: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Which family a file is of, or why none."""
    named = found.get("model_type")
    classes = found.get("architectures")
    if named is None and isinstance(classes, list):
        named = next((CLASSES[name] for name in classes if isinstance(name, str) and name in CLASSES), None)
        named = named or next((name for name in classes if isinstance(name, str)), None)
    if isinstance(named, str) and named in FAMILIES:
        return named, []
    what = "model_type is missing" if named is None else f"model_type {named!r:.100} is not supported"
    return "", [f"{what}; {nearest(named, [*FAMILIES, OWN])}. Experts, norms elsewhere and the like cannot be said"]


def _needed(kind: str) -> tuple[str, ...]:
    """Llama's first models have no key and value heads of their own; elsewhere readers' defaults differ."""
    return NEEDED if kind == "llama" else (*NEEDED, "num_key_value_heads")


def _hint(name: str, otherwise: str) -> str:
    if "group" not in name.casefold():
        return otherwise
    return "groups are read as a number of heads by some and as a divisor by others; say key and value heads"


def _no_sizes(found: Mapping[str, Any]) -> list[str]:
    faults = [
        f"{theirs} is {found[theirs]!r:.100}; expected a whole number of at least 1"
        for theirs, ours in NAMES.items()
        if ours in SIZES and theirs in found and as_size(found[theirs]) is None
    ]
    return faults + _too_large(found)


def _too_large(found: Mapping[str, Any]) -> list[str]:
    """Sizes that no model has: refused before anything is multiplied or printed."""
    return [f"{name} is over {MOST_PARAMS:.0e}; no model has that" for name, value in found.items()
            if (name in NAMES or name in SIZES or name == "encoder_layers")
            and (as_size(value) or 0) > MOST_PARAMS]  # fmt: skip


def _no_numbers(found: Mapping[str, Any]) -> list[str]:
    faults = []
    for name in ("rms_norm_eps", "rope_theta"):
        value = found.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            faults.append(f"{name} is {value!r:.100}; expected a positive number")
    for name in ("tie_word_embeddings", "attention_bias", "mlp_bias", "use_sliding_window"):
        if not isinstance(found.get(name, False), bool):
            faults.append(f"{name} is {found[name]!r:.100}; expected true or false")
    return faults


def _unlike(found: Mapping[str, Any], kind: str) -> list[str]:
    """What a configuration cannot say."""
    faults, act = [], found.get("hidden_act", "silu")
    if not isinstance(act, str) or act not in ACTIVATIONS:
        faults.append(f"hidden_act is {act!r:.100}; {nearest(act, ACTIVATIONS)}")
    if kind == "llama" and bool(found.get("attention_bias")) != bool(found.get("mlp_bias")):
        faults.append("attention_bias and mlp_bias differ; biases are beside every product or beside none")
    return faults


def _head_size(found: Mapping[str, Any], path: Path) -> int:
    if "head_dim" in found:
        return found["head_dim"]
    size, heads = found["hidden_size"], found["num_attention_heads"]
    if size % heads:
        raise LayoutError(f"{path.name}: hidden_size {size} does not divide by num_attention_heads {heads}; "
                          "give head_dim")  # fmt: skip
    return size // heads


def _rotary(found: Mapping[str, Any]) -> dict[str, float]:
    """Newer files keep the base among `rope_parameters`."""
    inner = found.get("rope_parameters")
    base = inner.get("rope_theta") if isinstance(inner, dict) else None
    usable = isinstance(base, (int, float)) and not isinstance(base, bool) and 0 < base < math.inf
    return {"rotary_base": float(base)} if base is not None and usable else {}


def _left_out(found: Mapping[str, Any]) -> list[str]:
    """What changes values and no size."""
    said = []
    if any(_scales(found.get(name)) for name in ("rope_scaling", "rope_parameters")):
        said.append("its rotary positions are scaled for long texts")
    if found.get("sliding_window") and found.get("use_sliding_window", True):
        said.append(f"it attends to a window of {found['sliding_window']!r:.30} positions only")
    return said


def _scales(said: Any) -> bool:
    """Whether what a file says of rotary positions changes their turns; newer files say "default" for none."""
    if isinstance(said, dict):
        return (said.get("rope_type") or said.get("type") or "default") != "default"
    return bool(said)


def _warn(path: Path, left_out: str, unknown: list[str], strict: bool) -> None:
    said = [f"left out: {left_out}"] if left_out else []
    if unknown:
        said.append(f"not read: {', '.join(f'{name:.60}' for name in unknown[:20])}")
    if said and strict:
        raise LayoutError(f"{path.name}: {'; '.join(said)}")
    if said:
        warnings.warn(f"{path.name}: {'; '.join(said)}", LayoutWarning, stacklevel=4)


def _checked(cfg: Config, path: Path) -> Config:
    if cfg.n_params > MOST_PARAMS:
        raise LayoutError(f"{path.name} describes {cfg.n_params:.1e} parameters; no model has over {MOST_PARAMS:.0e}")
    return cfg
