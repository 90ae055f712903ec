"""The reference of shift, windows, overlap_add and conv: plain numpy on whole arrays. Next file: programs.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from core.sweep import reference
from core.sweep.reference import Ref, alike, names_in, ordered, rounded


def shift(t: Ref, dim: str, by: int, wrap: bool = False, out: str | None = None) -> Ref:
    axis, size = t.names.index(dim), t.sizes[dim]
    kept = [i for i in range(size) if 0 <= i - by < size]

    def moved(v: np.ndarray) -> np.ndarray:
        rolled = np.roll(v, by, axis)
        inside = np.isin(np.arange(size), kept).reshape([-1 if i == axis else 1 for i in range(v.ndim)])
        return rolled if wrap else np.where(inside, rolled, np.zeros((), v.dtype))

    return ordered(alike(t, t.names, moved), out)


def zeros_around(padding: str | tuple, size: int) -> tuple[int, int]:
    """Zeros before and after the elements, by the definition of each word."""
    if isinstance(padding, tuple):
        return padding
    return {"valid": (0, 0), "causal": (size - 1, 0), "same": ((size - 1) // 2, size // 2)}[padding]


def windows(t: Ref, dim: str, size: int, into: str, padding: str | tuple = "same", out: str | None = None) -> Ref:
    axis, around = t.names.index(dim), zeros_around(padding, size)

    def seen(v: np.ndarray) -> np.ndarray:
        longer = np.pad(v, [around if i == axis else (0, 0) for i in range(v.ndim)])
        return np.lib.stride_tricks.sliding_window_view(longer, size, axis)

    return ordered(alike(t, (*t.names, into), seen), out)


def overlap_add(t: Ref, dim: str, into: str, padding: str | tuple = "same", out: str | None = None) -> Ref:
    axis, size, length = t.names.index(dim), t.sizes[into], t.sizes[dim]
    before, after = zeros_around(padding, size)
    names = tuple(name for name in t.names if name != into)

    def added(v: np.ndarray) -> np.ndarray:
        rows = np.moveaxis(v.astype(float), (axis, t.names.index(into)), (0, 1))
        total = np.zeros((length + size - 1, *rows.shape[2:]))
        for i, j in np.ndindex(length, size):
            total[i + j] += rows[i, j]
        return np.moveaxis(total[before : length + size - 1 - after], 0, names.index(dim))

    value, error, mass = (added(v) for v in (t.value, t.error, t.mass))
    return ordered(rounded(names, value, error, mass, t.dtype, size, True), out)


def conv(x: Ref, w: Ref, spatial: Mapping[str, str], out: str, padding: str | tuple = "same") -> Ref:
    for dim, kernel in spatial.items():
        x = windows(x, dim, w.sizes[kernel], kernel, padding)
    names = " ".join(name for name, _ in names_in(out))
    return reference.einsum(x, w, out=names)


SPATIAL: dict[str, Callable] = {"shift": shift, "windows": windows, "overlap_add": overlap_add, "conv": conv}
