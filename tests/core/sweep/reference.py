"""Every operation again, in numpy and float64, written without the library: what the right values are.

A `Ref` carries, element by element, the value and a bound of the rounding error that any correct run in the program's
dtype may have made so far. A bound of 0 means: only whole numbers that the dtype holds exactly, so results must be
equal to the last bit; operations with jumps (argmax, top_k, equal, …) are only drawn for such tensors.

Next file to read: programs.py, which evaluates whole programs with these.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# What one operation may add to the error, relative to the sum of the absolute values that it adds up, for each
# addend. float32 rounds to 2^-24, bfloat16 to 2^-9; 8 and 4 times that leaves room for the polynomials of exp, tanh
# and log, and for the few roundings inside gelu or softmax. Both hold whatever the order of the sums.
ROUNDOFF = {"f32": 2.0**-21, "bf16": 2.0**-7, "i32": 0.0, "bool": 0.0}
WHOLE = {"f32": 2**24, "bf16": 2**8, "i32": 2**31 - 1, "bool": 1}  # whole numbers up to here are exact


@dataclass(frozen=True)
class Ref:
    """A named array of right values, and how far from them a result may lie.

    `mass` bounds the absolute values of its addends where a run may still hold it as a partial sum: a linear function
    of it rounds each addend, so 1 - 1 may come out as 1e-9 after a division by 3.
    """

    names: tuple[str, ...]
    value: np.ndarray
    error: np.ndarray
    dtype: str
    mass: np.ndarray = None

    def __post_init__(self) -> None:
        if self.mass is None:
            object.__setattr__(self, "mass", np.abs(self.value.astype(float)))

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.names, self.value.shape, strict=True))

    @property
    def exact(self) -> bool:
        return not self.error.any()

    @property
    def reach(self) -> float:
        """The largest absolute value that a run may meet here."""
        return float((np.abs(self.value.astype(float)) + self.error).max())


def names_in(text: str) -> tuple[tuple[str, int | None], ...]:
    """(name, size or None) of each dimension in a text of the library's notation."""
    found = []
    for name, value in re.findall(r"(\w+)(?::(\([^)]*\)|\w+))?", text):
        if name != "partialsum":
            found.append((name, int(value) if value.isdigit() else None))
    return tuple(found)


def rounded(
    names: tuple, value: np.ndarray, error: np.ndarray, scale: np.ndarray, dtype: str, n: int = 1, linear: bool = False
) -> Ref:
    """A result whose rounding adds to its error, unless it is made of whole numbers that the dtype holds."""
    value, error = np.asarray(value), np.broadcast_to(np.asarray(error, float), np.shape(value))
    whole = not error.any() and np.array_equal(value, np.rint(value)) and np.max(scale) <= WHOLE[dtype]
    return Ref(names, value, error if whole else error + n * ROUNDOFF[dtype] * scale, dtype, scale if linear else None)


def alike(t: Ref, names: tuple, change: Callable[[np.ndarray], np.ndarray]) -> Ref:
    """Elements moved about, not computed with: values and errors go the same way."""
    return Ref(tuple(names), change(t.value), change(t.error), t.dtype, change(t.mass))


def ordered(t: Ref, names: tuple | str | None) -> Ref:
    """Dimensions in another order; a text counts by the names in it, None leaves all as it is."""
    if names is None:
        return t
    names = tuple(name for name, _ in names_in(names)) if isinstance(names, str) else names
    return alike(t, names, lambda v: np.transpose(v, [t.names.index(name) for name in names]))


def spread(t: Ref, sizes: dict[str, int]) -> Ref:
    """The same over all of `sizes`: missing dimensions are copied."""
    here = ordered(t, tuple(name for name in sizes if name in t.names))
    open_shape, shape = [sizes[name] if name in t.names else 1 for name in sizes], tuple(sizes.values())
    return alike(here, tuple(sizes), lambda v: np.broadcast_to(v.reshape(open_shape), shape))


# ---- sums of products ---------------------------------------------------------------------------------------------


def einsum(*operands: Ref, out: str, **_: object) -> Ref:
    sizes = {name: size for t in operands for name, size in t.sizes.items()}
    letters = {name: chr(ord("a") + number) for number, name in enumerate(sizes)}
    kept = [name for name, _ in names_in(out) if name in sizes]
    text = ",".join("".join(letters[n] for n in t.names) for t in operands) + "->" + "".join(letters[n] for n in kept)
    values = [t.value.astype(float) for t in operands]
    value = np.einsum(text, *values)
    scale = np.einsum(text, *[t.mass for t in operands])
    reach = np.einsum(text, *[t.mass + t.error for t in operands])
    gone = math.prod(size for name, size in sizes.items() if name not in kept)
    error = reach - scale if any(not t.exact for t in operands) else np.zeros_like(scale)
    result = rounded(tuple(kept), value, error, scale, operands[0].dtype, max(gone, 1) + len(operands) - 2, True)
    return broadcast(result, out)


def broadcast(t: Ref, out: str) -> Ref:
    sizes = {name: t.sizes.get(name, size) for name, size in names_in(out)}
    return spread(t, sizes)


def kept_names(t: Ref, dims: str | None, out: str | None) -> tuple[str, ...]:
    gone = [name for name, _ in names_in(dims)] if dims is not None else list(t.names)
    return tuple(n for n, _ in names_in(out)) if out is not None else tuple(n for n in t.names if n not in gone)


def total(t: Ref, dims: str | None = None, out: str | None = None) -> Ref:
    return einsum(t, out=" ".join(kept_names(t, dims, out)))


def mean(t: Ref, dims: str | None = None, out: str | None = None) -> Ref:
    summed = total(t, dims, out)
    n = t.value.size / summed.value.size
    return rounded(summed.names, summed.value / n, summed.error / n, summed.mass / n, t.dtype, 2, True)


def running(t: Ref, dim: str, out: str | None = None) -> Ref:
    axis = t.names.index(dim)
    value, error, scale = (np.cumsum(v, axis) for v in (t.value, t.error, t.mass))
    return rounded(t.names, value, error, scale, t.dtype, t.sizes[dim], True)


# ---- largest, softmax ---------------------------------------------------------------------------------------------


def reduced(fn: Callable) -> Callable[..., Ref]:
    def reduce(t: Ref, dims: str | None = None, out: str | None = None) -> Ref:
        kept = kept_names(t, dims, out)
        axes = tuple(axis for axis, name in enumerate(t.names) if name not in kept)
        rest = tuple(name for name in t.names if name in kept)
        return ordered(Ref(rest, fn(t.value, axis=axes), np.max(t.error, axis=axes), t.dtype), kept)

    return reduce


def logsumexp(t: Ref, dims: str | None = None, out: str | None = None) -> Ref:
    kept = kept_names(t, dims, out)
    axes = tuple(axis for axis, name in enumerate(t.names) if name not in kept)
    largest, smallest = t.value.max(axis=axes), t.value.min(axis=axes)
    value = largest + np.log(np.exp(t.value - largest.max()).sum(axis=axes)) + (largest.max() - largest)
    n = t.value.size / value.size
    scale = np.abs(value) + np.abs(largest) + (largest - smallest) + n + 4
    rest = tuple(name for name in t.names if name in kept)
    return ordered(Ref(rest, value, t.error.max(axis=axes) + 2 * ROUNDOFF[t.dtype] * scale, t.dtype), kept)


def softmax(t: Ref, dim: str, out: str | None = None) -> Ref:
    axis = t.names.index(dim)
    powers = np.exp(t.value)
    value = powers / powers.sum(axis=axis, keepdims=True)
    spread_of = np.ptp(t.value, axis=axis, keepdims=True)
    relative = 2 * t.error.max() + ROUNDOFF[t.dtype] * (spread_of + t.sizes[dim] + 4)
    return ordered(Ref(t.names, value, value * relative + 1e-30, t.dtype), out)


# ---- indices ------------------------------------------------------------------------------------------------------


def whole(names: tuple, value: np.ndarray, dtype: str = "i32") -> Ref:
    return Ref(tuple(names), value, np.zeros(np.shape(value)), dtype)


def argmax(t: Ref, dim: str, out: str | None = None) -> Ref:
    axis = t.names.index(dim)
    return ordered(whole([n for n in t.names if n != dim], np.argmax(t.value, axis=axis)), out)


def top_k(t: Ref, dim: str, k: int, out: str | None = None) -> tuple[Ref, Ref]:
    axis = t.names.index(dim)
    order = np.argsort(-t.value.astype(float), axis=axis, kind="stable").take(range(k), axis=axis)
    return alike(t, t.names, lambda v: np.take_along_axis(v, order, axis)), whole(t.names, order)


def one_hot(ids: Ref, dim: str, dtype: str | None = None, out: str | None = None) -> Ref:
    ((name, size),) = names_in(dim)
    return whole((*ids.names, name), (ids.value[..., None] == np.arange(size)).astype(float), dtype or "f32")


def gather(table: Ref, ids: Ref, dim: str, out: str | None = None) -> Ref:
    rest = [name for name in table.names if name != dim and name not in ids.names]
    shape = (*ids.value.shape, *[table.sizes[name] for name in rest])
    value, error, mass = np.zeros(shape, table.value.dtype), np.zeros(shape), np.zeros(shape)
    for place in np.ndindex(ids.value.shape):
        row = int(ids.value[place])
        if 0 <= row < table.sizes[dim]:
            at = dict(zip(ids.names, place, strict=True)) | {dim: row}
            where = tuple(at[name] if name in at else slice(None) for name in table.names)
            value[place], error[place], mass[place] = table.value[where], table.error[where], table.mass[where]
    return Ref((*ids.names, *rest), value, error, table.dtype, mass)


def write(t: Ref, rows: Ref, at: Ref, dim: str) -> Ref:
    (own,) = [name for name in rows.names if name not in t.names]
    parts = {part: getattr(t, part).copy() for part in ("value", "error", "mass")}
    for place in np.ndindex(at.value.shape):
        here = dict(zip(at.names, place, strict=True))
        to = {**here, dim: int(at.value[place])}
        if 0 <= to[dim] < t.sizes[dim]:
            where = tuple(to.get(name, slice(None)) for name in t.names)
            row = ordered(rows, (*[own], *[name for name in t.names if name != dim]))
            source = tuple(here.get(name, slice(None)) for name in row.names)
            for part, kept in parts.items():
                kept[where] = getattr(row, part)[source]
    return Ref(t.names, parts["value"], parts["error"], t.dtype, parts["mass"])


def index(dim: str, like: Ref) -> Ref:
    ((name, size),) = names_in(dim)
    return whole((name,), np.arange(size if size is not None else like.sizes[name]))
