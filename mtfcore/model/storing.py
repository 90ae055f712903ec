"""How a served model's weights are stored: matrices fused, as floats or as whole numbers with scales.

    >>> texts, dtypes = stored_arguments(palm, "i8", "bf16")      # name → dimensions and dtype, for a named function
    >>> texts["wkv"], dtypes["wkv"], texts["wkv_scale"]
    ('layers:118 E:18432 pair:2 D:256', 'i8', 'layers:118 pair:2 D:256')

`mtf.model.stored(cfg, params, "int8")` gives numpy arrays of those names from ordinary parameters.

Matrices that multiply the same x and whose results travel the same way are one matrix, so that they travel in one
collective: `wkv` of wk and wv, `w_in_gate` of w_in and w_gate, with a dimension `pair` behind E: in front of it, every
product on a CPU or GPU would first copy them. A matrix of whole numbers has one scale for each output: w ≈ i8 · scale,
the largest of each output's weights at ±127. Tables, norms and
biases stay floats. Grouped heads have two dimensions, K and G, where a parameter has H: the same elements. Sources:
arXiv 2211.05102, sections 3.4 (fused) and 3.6 (int8). Next file to read: `quantising`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtfcore.dtypes import canonical, long_name
from mtfcore.errors import LayoutError, nearest, sure
from mtfcore.model.configs import Config, config

if TYPE_CHECKING:
    import numpy as np

OUTPUTS = {  # of each matrix: how many of its last dimensions are outputs, none: all behind E
    "wq": 0, "wk": 0, "wv": 0, "wkv": 0, "wo": 1, "w_in": 0, "w_gate": 0, "w_in_gate": 0, "w_out": 1,
}  # fmt: skip
FUSED = {  # the first of two: (both as one, the second)
    "wk": ("wkv", "wv"), "bk": ("bkv", "bv"), "w_in": ("w_in_gate", "w_gate"), "b_in": ("b_in_gate", "b_gate"),
}  # fmt: skip
WEIGHTS = ("f32", "bf16", "i8")


def stored_dtype(dtype: object, about: str) -> str:
    """The short name of a dtype in which weights or a cache may be kept; refuses others."""
    legal = (*WEIGHTS, "int8")
    if not isinstance(dtype, str) or dtype not in legal:
        raise LayoutError(f"{about} is {dtype!r:.100}; {nearest(dtype, legal)}")
    return canonical(dtype)


def stored_texts(cfg: Config) -> dict[str, str]:
    """Name → dimensions with sizes, stack first, of everything that is stored but scales."""
    left = {name: _words(cfg, param.text) for name, param in cfg.params.items()}
    found = {}
    while left:
        name = next(iter(left))
        words = left.pop(name)
        both, second = FUSED.get(name, (name, ""))
        if second in left:
            del left[second]
            place = 2 if both in OUTPUTS else 1  # behind E; a bias has none
            name, words = both, [*words[:place], "pair:2", *words[place:]]
        found[name] = " ".join(words)
    return found


def _words(cfg: Config, text: str) -> list[str]:
    """Dimensions with sizes, H apart into K and G where heads are grouped."""
    apart = f"K:{cfg.kv_heads} G:{cfg.heads // cfg.kv_heads}"
    return (text.replace(f"H:{cfg.heads}", apart) if cfg.attention == "grouped" else text).split()


def outputs(name: str, words: list[str]) -> list[str]:
    """Of a matrix's dimensions, stack first, those that it gives for what it is multiplied with."""
    return words[-OUTPUTS[name] :] if OUTPUTS[name] else words[2:]


def stored_arguments(cfg: Config, weights: str, dtype: str) -> tuple[dict[str, str], dict[str, str]]:
    """(name → dimensions with sizes, name → dtype) of every parameter and scale."""
    texts = stored_texts(cfg)
    dtypes = dict.fromkeys(texts, dtype)
    if weights == "i8":
        matrices = {name: text.split() for name, text in texts.items() if name in OUTPUTS}
        scales = {f"{name}_scale": " ".join([w[0], *outputs(name, w)]) for name, w in matrices.items()}
        return texts | scales, dtypes | dict.fromkeys(matrices, "i8") | dict.fromkeys(scales, dtype)
    return texts, dtypes


def stored(
    cfg: Config | str, params: Mapping[str, Any], weights: object = "bf16", floats: object = None
) -> dict[str, np.ndarray]:
    """Parameters such as `mtf.model.initial(cfg)` in the form in which a phase takes them, all of them at once.

    `cfg`: a configuration or its name; `params`: name → f32 array; `weights`: "f32", "bf16" or "int8"; `floats`: the
    dtype of what is not whole numbers beside int8.

    Source: arXiv 2211.05102, section 3.6 (int8).

        >>> sorted(mtf.model.stored(cfg, mtf.model.initial(cfg)))[:2]
        ['attention_norm_scale', 'embedding']
    """
    return dict(stored_one_by_one(cfg, params, weights, floats))


def stored_one_by_one(
    cfg: Config | str, params: Mapping[str, Any], weights: object = "bf16", floats: object = None
) -> Iterator[tuple[str, np.ndarray]]:
    """(name, array) of each, made when its turn comes, so that one at a time need be held.

    Weights in f32 or bf16 are all of that dtype. Beside whole numbers, tables, norms, biases and scales have the dtype
    `floats`, or else that of their parameter; scales are rounded to it before they divide.

    `cfg`, `params` and `weights` as in `stored`.

    Raises `LayoutError` for dtypes that are not stored, and parameters that lack or have other shapes.
    """
    cfg, kept = config(cfg), stored_dtype(weights, "weights")
    wanted = kept if kept != "i8" else None if floats is None else stored_dtype(floats, "floats")
    if not isinstance(params, Mapping):
        raise LayoutError(f"params is {params!r:.100}; expected a mapping of names to arrays, e.g. "
                          "mtf.model.initial(cfg)")  # fmt: skip
    for name, text in stored_texts(cfg).items():
        words = text.split()
        array = _as_stored(name, words, params, cfg)
        if kept == "i8" and name in OUTPUTS:
            array, scale = whole_numbers(array, summed(name, words), wanted)
            yield f"{name}_scale", scale
        elif wanted is not None:
            array = as_floats(array, wanted)
        yield name, array


def as_floats(array: np.ndarray, dtype: str) -> np.ndarray:
    """The array in another floating dtype, itself if it has that already."""
    import ml_dtypes  # noqa: F401  (gives numpy the name bfloat16)

    return array.astype(long_name(dtype), copy=False)


def summed(name: str, words: list[str]) -> tuple[int, ...]:
    """The places of the dimensions over which a matrix is summed: all but the stack and its outputs."""
    kept = outputs(name, words)
    return tuple(place for place, word in enumerate(words[1:], 1) if word not in kept)


def _as_stored(name: str, words: Sequence[str], params: Mapping[str, Any], cfg: Config) -> np.ndarray:
    """One parameter, or two fused, in the dimensions in which it is stored."""
    shape = [int(word.partition(":")[2]) for word in words]
    if "pair:2" in words:
        first = next(first for first, (both, _) in FUSED.items() if both == name)
        return _fused((first, FUSED[first][1]), words.index("pair:2"), shape, params, cfg)
    return _given(params, name, cfg).reshape(shape)


def _fused(
    names: tuple[str, str], place: int, shape: Sequence[int], params: Mapping[str, Any], cfg: Config
) -> np.ndarray:
    """Two parameters along a new dimension, fetched one after the other: they may be large, and read from a file."""
    import numpy as np

    found: np.ndarray | None = None
    for n, name in enumerate(names):
        array = _given(params, name, cfg)
        found = np.empty(shape, array.dtype) if found is None else found
        half = found[(slice(None),) * place + (n,)]
        half[...] = array.reshape(half.shape)
        del array  # before the next one is fetched
    return sure(found)


def _given(params: Mapping[str, Any], name: str, cfg: Config) -> np.ndarray:
    """A parameter; refuses one that is missing, or is not as the model has it."""
    import numpy as np

    try:
        array = np.asarray(params[name])
    except KeyError:
        hint = nearest(name, map(str, params))
        raise LayoutError(f"{cfg.name} needs a parameter {name!r}, which is missing; {hint}") from None
    declared = cfg.params[name]
    if array.shape != declared.shape or array.dtype.kind not in "fiubV":
        raise LayoutError(f"parameter {name} is {array.dtype}{list(array.shape)}, but {cfg.name} has it as numbers "
                          f"{list(declared.shape)} ({declared.text})")  # fmt: skip
    return array


def whole_numbers(
    array: np.ndarray, summed: tuple[int, ...], dtype: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(i8, scales) of a matrix that is summed over some axes; scales are rounded to `dtype`, or that of the matrix,
    before they divide."""
    import numpy as np

    scale = np.abs(array.astype(np.float32)).max(axis=summed, keepdims=True) / 127
    scale = np.where(scale == 0, 1, scale)
    scale = scale.astype(array.dtype) if dtype is None else as_floats(scale, dtype)
    found = np.rint(array.astype(np.float32) / scale.astype(np.float32)).clip(-127, 127)
    return found.astype(long_name("i8")), scale.squeeze(axis=summed)
