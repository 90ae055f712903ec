"""A model out of a GGUF file: configuration from its metadata, parameters, tokenizer, chat template.

    >>> found = read(Path("SmolLM2-135M-Instruct.Q4_1.gguf"))
    >>> found.cfg.layers, found.cfg.heads, found.cfg.kv_heads
    (30, 9, 3)

Architectures "llama" (which Mistral's files say too) and "qwen2". Sizes come from the metadata and are held against
the tensors; whatever is missing, misshapen or unknown is said at once. Next file to read: `gguf_tokenizer`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mtfcore.errors import LayoutError, LayoutWarning, nearest, refuse
from mtfcore.model.configs import Config
from mtfcore.model.files import gguf_check
from mtfcore.model.files.chat_template import ChatTemplate
from mtfcore.model.files.gguf_tokenizer import tokenizer_of
from mtfcore.model.files.llama import forms_differ, too_few
from mtfcore.model.files.loaded import LoadedModel
from mtfcore.model.files.weights import GgufTensors, Weights
from mtfcore.notation import as_size

# architecture → whether rows of queries and keys lie pair by pair, and what differs from Llama
ARCHITECTURES = {"llama": (True, {}), "qwen2": (False, {"qkv_biases": True})}
SIZES = {  # ours → the metadata's, behind the architecture's name
    "layers": "block_count", "max_length": "context_length", "d_model": "embedding_length",
    "d_ff": "feed_forward_length", "heads": "attention.head_count",
}  # fmt: skip
MOST_SIZE = 1 << 31
IGNORED = ("rope_freqs.weight", "attn_rot_embd.weight")  # rotary positions as numbers; scaled ones are said in left_out


def read(path: Path, name: str | None = None) -> LoadedModel:
    """The model in a file; its configuration gets the file's name, or another."""
    gguf_check.check(path)
    reader = _reader(path)
    values = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    forms = {tensor.name: tuple(int(size) for size in reversed(tensor.shape)) for tensor in reader.tensors}
    cfg, interleaved = configuration(Metadata(path.name, values), forms, name or path.stem)
    source = GgufTensors(path, reader, interleaved)
    kinds = Counter(tensor.tensor_type.name for tensor in reader.tensors)
    said = f"{path.name}, {path.stat().st_size:,} bytes: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    metadata = Metadata(path.name, values)
    tokenizer = tokenizer_of(metadata, cfg.vocab)
    template = metadata.text("tokenizer.chat_template", "")
    chat = ChatTemplate(template, tokenizer, path.name) if template and tokenizer else None
    return LoadedModel(cfg, Weights(cfg, source), tokenizer, chat, said)


def _reader(path: Path) -> Any:
    from gguf import GGUFReader

    try:
        return GGUFReader(path)
    except (ValueError, KeyError, IndexError, OSError) as fault:  # what its own checks say
        raise LayoutError(f"{path.name} cannot be read by the library gguf: {fault!s:.200}") from None


class Metadata:
    """A file's values by name, each of the kind that was asked for."""

    def __init__(self, file: str, values: Mapping[str, Any]) -> None:
        self.file, self._values = file, values

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def _get(self, key: str, legal: type | tuple[type, ...], what: str, default: Any) -> Any:
        if key not in self._values:
            if default is None:
                raise LayoutError(f"{self.file}: {key!r} is missing")
            return default
        found = self._values[key].contents()
        if not isinstance(found, legal) or (isinstance(found, bool) and legal is not bool):
            raise LayoutError(f"{self.file}: {key!r} is {found!r:.60}; expected {what}")
        return found

    def text(self, key: str, default: str | None = None) -> str:
        """A text."""
        return self._get(key, str, "a text", default)

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number."""
        return self._get(key, int, "a whole number", default)

    def truth(self, key: str, default: bool) -> bool:
        """True or False."""
        return self._get(key, bool, "true or false", default)

    def number(self, key: str, default: float) -> float:
        """A number, with the digits that a person wrote: f32 keeps 1e-05 as 9.999999747378752e-06."""
        return float(str(np.float32(self._get(key, (int, float), "a number", default))))

    def items(self, key: str, kind: type) -> list[Any]:
        """A list of texts, or of whole numbers."""
        found = self._get(key, list, "a list", None)
        if not all(isinstance(item, kind) for item in found):
            raise LayoutError(f"{self.file}: {key!r} is a list of other things than {kind.__name__}")
        return found


# ---- the configuration ------------------------------------------------------------------------------------------


def configuration(metadata: Metadata, forms: Mapping[str, tuple[int, ...]], name: str) -> tuple[Config, bool]:
    """(configuration, whether queries and keys lie pair by pair), held against the tensors' shapes."""
    kind = metadata.text("general.architecture")
    if kind not in ARCHITECTURES:
        what = "an adapter or a projector, not a model" if kind == "clip" else "which is not built here"
        raise LayoutError(f"{metadata.file} has the architecture {kind!r:.60}, {what}; {nearest(kind, ARCHITECTURES)}")
    interleaved, more = ARCHITECTURES[kind]
    given = _sizes(metadata, kind, len(forms)) | _vocabulary(metadata, forms) | more | _biases(forms, more)
    refuse(_unlike(metadata, kind, given), metadata.file)
    given["tied"] = "output.weight" not in forms
    given["norm_eps"] = metadata.number(f"{kind}.attention.layer_norm_rms_epsilon", 1e-5)
    given["rotary_base"] = metadata.number(f"{kind}.rope.freq_base", 10_000.0)
    given["left_out"] = _left_out(metadata, kind, forms)
    same: dict[str, Any] = {
        "norm": "rms",
        "activation": "swiglu",
        "positions": "rotary",
        "source": f"the file {metadata.file}",
    }
    try:
        cfg = Config(name, **same, **given)
    except LayoutError as fault:
        raise LayoutError(f"{metadata.file}: {fault}") from None
    refuse(forms_differ(cfg, "gguf", forms, IGNORED), metadata.file)
    return cfg, interleaved


def _sizes(metadata: Metadata, kind: str, n_tensors: int) -> dict[str, Any]:
    found = {ours: metadata.whole(f"{kind}.{theirs}") for ours, theirs in SIZES.items()}
    found["kv_heads"] = metadata.whole(f"{kind}.attention.head_count_kv", found["heads"])
    if found["heads"] > 0:
        found["head_size"] = metadata.whole(f"{kind}.attention.key_length", found["d_model"] // found["heads"])
    faults = [f"{name} is {size!r:.40}; expected 1 to {MOST_SIZE:,}" for name, size in found.items()
              if as_size(size) is None or size > MOST_SIZE]  # fmt: skip
    refuse([*faults, *too_few(found["layers"], n_tensors)], metadata.file)
    return found


def _vocabulary(metadata: Metadata, forms: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    table = forms.get("token_embd.weight", ())
    if len(table) != 2:
        raise LayoutError(f"{metadata.file}: the table 'token_embd.weight' is missing or of shape {table}")
    return {"vocab": table[0]}


def _biases(forms: Mapping[str, tuple[int, ...]], more: Mapping[str, Any]) -> dict[str, bool]:
    """Files do not say whether products have biases; their tensors do."""
    return {"biases": True} if not more and {"blk.0.attn_q.bias", "blk.0.ffn_up.bias"} <= set(forms) else {}


def _unlike(metadata: Metadata, kind: str, given: Mapping[str, Any]) -> list[str]:
    """What a configuration cannot say."""
    size, faults = given["head_size"], []
    for key in ("attention.value_length", "rope.dimension_count"):
        found = metadata.whole(f"{kind}.{key}", size)
        if found != size:
            faults.append(f"{key} is {found:,} and heads have {size}; they must be the same here")
    if metadata.whole(f"{kind}.expert_count", 0):
        faults.append("it has experts, which the block here has not")
    return faults


def _left_out(metadata: Metadata, kind: str, forms: Mapping[str, tuple[int, ...]]) -> str:
    """What changes values and no size, as a warning too."""
    said = []
    if metadata.text(f"{kind}.rope.scaling.type", "none") != "none" or "rope_freqs.weight" in forms:
        said.append("its rotary positions are scaled for long texts")
    if metadata.whole(f"{kind}.attention.sliding_window", 0):
        said.append("it attends to a window of positions only")
    if said:
        warnings.warn(f"{metadata.file}: left out: {'; '.join(said)}", LayoutWarning, stacklevel=5)
    return "; ".join(said)
