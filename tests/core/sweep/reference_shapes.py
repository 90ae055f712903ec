"""The rest of the reference: elementwise functions, and operations that move elements about.

`CALLS` names every operation as the library does. Next file to read: programs.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from core.sweep import reference
from core.sweep.reference import Ref, alike, names_in, ordered, reduced, rounded, spread, whole
from core.sweep.reference_random import RANDOM
from core.sweep.reference_spatial import SPATIAL


class Smooth(NamedTuple):
    """A function of one number: how steep it is at most, and the size of what it rounds, from x, |error| and y.

    `on` says of which numbers: "any", "small" ones (it grows fast) or those "above 0".
    """

    fn: Callable
    slope: Callable
    scale: Callable
    on: str = "any"


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ONE = lambda x, e, y: 1.0  # noqa: E731
SMOOTH = {  # the sweep, the random programs and the gradients' tests all take their functions from here
    "relu": Smooth(lambda x: np.maximum(x, 0), ONE, lambda x, e, y: 0 * y),
    "tanh": Smooth(np.tanh, ONE, lambda x, e, y: 1 + 0 * y),
    "absolute": Smooth(np.abs, ONE, lambda x, e, y: 0 * y),
    "square": Smooth(np.square, lambda x, e, y: 2 * np.abs(x) + e, lambda x, e, y: y),
    "sigmoid": Smooth(_sigmoid, ONE, lambda x, e, y: 1 + 0 * y),
    "silu": Smooth(lambda x: x * _sigmoid(x), lambda x, e, y: 1.1, lambda x, e, y: np.abs(x) + 1),
    "gelu": Smooth(_gelu, lambda x, e, y: 1.2, lambda x, e, y: 2 * np.abs(x)),
    "sin": Smooth(np.sin, ONE, lambda x, e, y: 1 + 0 * y),
    "cos": Smooth(np.cos, ONE, lambda x, e, y: 1 + 0 * y),
    "exp": Smooth(np.exp, lambda x, e, y: np.exp(x + e), lambda x, e, y: y * (1 + np.abs(x)), "small"),
    "log": Smooth(np.log, lambda x, e, y: 1 / (x - e), lambda x, e, y: 1 + np.abs(y), "above 0"),
    "sqrt": Smooth(np.sqrt, lambda x, e, y: 0.5 / np.sqrt(x - e), lambda x, e, y: y, "above 0"),
    "rsqrt": Smooth(lambda x: 1 / np.sqrt(x), lambda x, e, y: 0.5 * (x - e) ** -1.5, lambda x, e, y: y, "above 0"),
}


def functions(on: str) -> list[str]:
    """The functions of one number that take any, small ones, or those above 0."""
    return [name for name, function in SMOOTH.items() if function.on == on]


def smooth(name: str) -> Callable[..., Ref]:
    def call(t: Ref, out: str | None = None) -> Ref:
        fn, slope, scale, _ = SMOOTH[name]
        y = fn(t.value)
        error = t.error if t.exact else slope(t.value, t.error, y) * t.error
        return ordered(rounded(t.names, y, error, scale(t.value, t.error, y), t.dtype), out)

    return call


def together(operands: tuple, out: str | None) -> tuple[list[Ref], str]:
    """The operands made equally large, numbers too, and the dtype of those that are not bool."""
    tensors = [t for t in operands if isinstance(t, Ref)]
    sizes = {name: size for t in tensors for name, size in t.sizes.items()}
    largest = next((t.names for t in tensors if len(t.names) == len(sizes)), tuple(sizes))
    if out is not None:
        sizes |= {name: size for name, size in names_in(out) if size is not None}
        largest = tuple(name for name, _ in names_in(out))
    sizes = {name: sizes[name] for name in largest}
    dtype = next((t.dtype for t in tensors if t.dtype != "bool"), "bool")
    return [spread(t if isinstance(t, Ref) else whole((), np.asarray(t), dtype), sizes) for t in operands], dtype


def add(a: Ref, b: Ref | float, out: str | None = None, sign: int = 1) -> Ref:
    (x, y), dtype = together((a, b), out)
    return rounded(x.names, x.value + sign * y.value, x.error + y.error, x.mass + y.mass, dtype, 1, True)


def subtract(a: Ref, b: Ref | float, out: str | None = None) -> Ref:
    return add(a, b, out, sign=-1)


def multiply(a: Ref, b: Ref | float, out: str | None = None) -> Ref:
    (x, y), dtype = together((a, b), out)
    error = x.mass * y.error + y.mass * x.error + x.error * y.error
    return rounded(x.names, x.value * y.value, error, x.mass * y.mass, dtype, 1, True)


def divide(a: Ref, b: Ref | float, out: str | None = None) -> Ref:
    (x, y), dtype = together((a, b), out)
    scale = x.mass / np.abs(y.value)
    error = (x.error + scale * y.error) / (np.abs(y.value) - y.error)
    return rounded(x.names, x.value / y.value, error, scale, dtype, 1, True)


def power(a: Ref, b: float, out: str | None = None) -> Ref:
    (x, y), dtype = together((a, b), out)
    value = x.value**y.value
    slope = y.value * (np.abs(x.value) + x.error) ** (y.value - 1)
    return rounded(x.names, value, slope * x.error, 4 * np.abs(value), dtype)


def chosen(fn: Callable) -> Callable[..., Ref]:
    def call(a: Ref, b: Ref | float, out: str | None = None) -> Ref:
        (x, y), dtype = together((a, b), out)
        return Ref(x.names, fn(x.value, y.value), np.maximum(x.error, y.error), dtype)

    return call


def compared(fn: Callable) -> Callable[..., Ref]:
    def call(*operands: Ref | float, out: str | None = None) -> Ref:
        parts, _ = together(operands, out)
        return whole(parts[0].names, fn(*[t.value for t in parts]), "bool")

    return call


def where(condition: Ref, a: Ref | float, b: Ref | float, out: str | None = None) -> Ref:
    (yes, x, y), dtype = together((condition, a, b), out)
    return Ref(yes.names, np.where(yes.value, x.value, y.value), np.where(yes.value, x.error, y.error), dtype)


def sort_key(t: Ref, out: str | None = None) -> Ref:
    """Whole numbers whose bits are those of the floats, the negative ones turned round."""
    bits = (t.value + 0.0).astype(np.float32).view(np.int32)
    return whole(t.names, np.where(bits < 0, bits ^ 0x7FFFFFFF, bits))


def cast(t: Ref, dtype: str, out: str | None = None) -> Ref:
    value = t.value.astype(np.int64 if dtype == "i32" else float)
    return replace(rounded(t.names, value, t.error, np.abs(value), dtype), dtype=dtype)


# ---- shapes -------------------------------------------------------------------------------------------------------


def reshape(t: Ref, dims: str, out: str | None = None) -> Ref:
    found = [(name, size if size is not None else t.sizes[name]) for name, size in names_in(dims)]
    return alike(t, [name for name, _ in found], lambda v: v.reshape([size for _, size in found]))


def rename(t: Ref, old: str, new: str, out: str | None = None) -> Ref:
    return alike(t, tuple(new if name == old else name for name in t.names), lambda v: v)


def split(t: Ref, dim: str, into: str, out: str | None = None) -> Ref:
    parts, place = names_in(into), t.names.index(dim)
    sizes = [t.sizes[dim] // math.prod(s or 1 for _, s in parts) if size is None else size for _, size in parts]
    names = (*t.names[:place], *[name for name, _ in parts], *t.names[place + 1 :])
    return alike(t, names, lambda v: v.reshape(*v.shape[:place], *sizes, *v.shape[place + 1 :]))


def merge(t: Ref, dims: str, into: str, out: str | None = None) -> Ref:
    gone = [name for name, _ in names_in(dims)]
    first = min(t.names.index(name) for name in gone)
    rest = [name for name in t.names if name not in gone]
    moved = ordered(t, (*rest[:first], *gone, *rest[first:]))
    shape = moved.value.shape
    names = (*rest[:first], into, *rest[first:])
    return alike(moved, names, lambda v: v.reshape(*shape[:first], -1, *shape[first + len(gone) :]))


def transpose(t: Ref, dims: str, out: str | None = None) -> Ref:
    return ordered(t, dims)


def cut(t: Ref, dim: str, start: int, stop: int, out: str | None = None) -> Ref:
    return alike(t, t.names, lambda v: v.take(range(start, stop), axis=t.names.index(dim)))


def pad(t: Ref, dim: str, size: int, value: float = 0.0, out: str | None = None) -> Ref:
    widths = [(0, size - n if name == dim else 0) for name, n in t.sizes.items()]
    longer = np.pad(t.value, widths, constant_values=value)
    return Ref(t.names, longer, np.pad(t.error, widths), t.dtype, np.pad(t.mass, widths, constant_values=abs(value)))


def concat(tensors: tuple[Ref, ...], dim: str, out: str | None = None) -> Ref:
    names, axis = tensors[0].names, tensors[0].names.index(dim)
    parts = [ordered(t, names) for t in tensors]
    value, error, mass = (np.concatenate([getattr(t, p) for t in parts], axis) for p in ("value", "error", "mass"))
    return Ref(names, value, error, tensors[0].dtype, mass)


def same(t: Ref, where: str | None = None) -> Ref:
    return t


CALLS: dict[str, Callable] = {
    "einsum": reference.einsum, "sum": reference.total, "mean": reference.mean, "cumsum": reference.running,
    "max": reduced(np.max), "min": reduced(np.min), "any": reduced(np.any), "all": reduced(np.all),
    "logsumexp": reference.logsumexp, "softmax": reference.softmax, "argmax": reference.argmax,
    "top_k": reference.top_k, "one_hot": reference.one_hot, "gather": reference.gather, "index": reference.index,
    "add": add, "subtract": subtract, "multiply": multiply, "divide": divide, "power": power,
    "maximum": chosen(np.maximum), "minimum": chosen(np.minimum), "where": where, "cast": cast, "sort_key": sort_key,
    "equal": compared(np.equal), "less": compared(np.less), "greater": compared(np.greater),
    "logical_and": compared(np.logical_and), "logical_or": compared(np.logical_or),
    "logical_not": compared(np.logical_not), **{name: smooth(name) for name in SMOOTH},
    "reshape": reshape, "rename": rename, "split": split, "merge": merge, "transpose": transpose,
    "write": reference.write,
    "slice": cut, "pad": pad, "concat": concat, "reshard": same, "settle": same,
    "stop_gradient": lambda t, out=None: ordered(t, out), **RANDOM, **SPATIAL,
}  # fmt: skip
