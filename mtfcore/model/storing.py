"""How a served model's weights are stored: matrices as floats or as whole numbers with scales, grouped heads apart.

    texts, dtypes = stored_arguments(cfg, "i8", "bf16")      # name → dimensions and dtype, for a named function
    arrays = mtf.model.stored(cfg, params, "int8")           # numpy arrays of those names from ordinary parameters

A matrix of whole numbers has one scale for each output, over all layers' inputs alike: w ≈ i8 · scale, with the largest
of each output's weights at ±127. Tables, norms and biases stay floats. Grouped heads have two dimensions, K and G,
where a parameter has H, outer first: the same elements. Source: arXiv 2211.05102, section 3.6; case S14.
Next file to read: `past`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtfcore.dtypes import canonical, long_name
from mtfcore.errors import LayoutError, nearest
from mtfcore.model.configs import Config
from mtfcore.model.params import Param

if TYPE_CHECKING:
    import numpy as np

MATRICES = ("wq", "wk", "wv", "wo", "w_in", "w_gate", "w_out")
WEIGHTS = ("f32", "bf16", "i8")


def stored_dtype(dtype: object, about: str) -> str:
    """The short name of a dtype in which weights or a cache may be kept; refuses others."""
    legal = (*WEIGHTS, "int8")
    if dtype not in legal:
        raise LayoutError(f"{about} is {dtype!r:.100}; {nearest(dtype, legal)}")
    return canonical(dtype)


def outputs_of(cfg: Config, name: str) -> list[str]:
    """The output dimensions of a matrix as stored, without sizes."""
    words = _words(cfg, cfg.params[name])[1:]
    names = [word.partition(":")[0] for word in words]
    return names[-1:] if name in ("wo", "w_out") else names[1:]


def _words(cfg: Config, param: Param) -> list[str]:
    """Dimensions with sizes, H apart into K and G where heads are grouped."""
    apart = f"K:{cfg.kv_heads} G:{cfg.heads // cfg.kv_heads}"
    grouped = cfg.attention == "grouped"
    words = [apart if grouped and word.startswith("H:") else word for word in param.text.split()]
    return " ".join(words).split()


def stored_arguments(cfg: Config, weights: str, dtype: str) -> tuple[dict[str, str], dict[str, str]]:
    """(name → dimensions with sizes, name → dtype) of every parameter and scale."""
    texts, dtypes = {}, {}
    for name, param in cfg.params.items():
        words = _words(cfg, param)
        texts[name], dtypes[name] = " ".join(words), dtype
        if weights == "i8" and name in MATRICES:
            made = outputs_of(cfg, name)
            dtypes[name] = "i8"
            texts[f"{name}_scale"] = " ".join([words[0], *[w for w in words[1:] if w.partition(":")[0] in made]])
            dtypes[f"{name}_scale"] = dtype
    return texts, dtypes


def stored(cfg: Config, params: Mapping[str, Any], weights: object = "bf16") -> dict[str, np.ndarray]:
    """Parameters such as `mtf.model.initial(cfg)` in the form in which a phase takes them; floats stay as they are."""
    import numpy as np

    weights = stored_dtype(weights, "weights")
    found: dict[str, np.ndarray] = {}
    for name, param in cfg.params.items():
        words = _words(cfg, param)
        array = np.asarray(params[name]).reshape([int(word.partition(":")[2]) for word in words])
        if weights == "i8" and name in MATRICES:
            names = [word.partition(":")[0] for word in words]
            summed = tuple(n for n, letter in enumerate(names[1:], 1) if letter not in outputs_of(cfg, name))
            scale = np.abs(array.astype(np.float32)).max(axis=summed, keepdims=True) / 127
            scale = np.where(scale == 0, 1, scale).astype(array.dtype).astype(np.float32)
            found[f"{name}_scale"] = scale.squeeze(axis=summed)
            array = np.rint(array / scale).clip(-127, 127).astype(long_name("i8"))
        found[name] = array
    return found
