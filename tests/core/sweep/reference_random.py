"""Random numbers again, in numpy with 64-bit words: the published Threefry-2x32, and what JAX makes of its bits.

Next file to read: programs.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from core.sweep.reference import Ref, names_in, ordered, rounded

WORD = 2**32
TURNS = [13, 15, 26, 6, 17, 29, 16, 24]
FRACTION = {"f32": (32, 23), "bf16": (8, 7)}  # bits drawn, and bits that the dtype keeps


def threefry(key: tuple[int, int], high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """20 rounds; the key is added before the first and after every fourth (Salmon et al. 2011)."""
    schedule = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA]
    a, b = (high + key[0]) % WORD, (low + key[1]) % WORD
    for turn in range(20):
        a = (a + b) % WORD
        b = a ^ ((b << TURNS[turn % 8]) % WORD | b >> 32 - TURNS[turn % 8])
        if turn % 4 == 3:
            done = turn // 4 + 1
            a, b = (a + schedule[done % 3]) % WORD, (b + schedule[(done + 1) % 3] + done) % WORD
    return a, b


def number_of(seed: Ref | int) -> int:
    return int(seed.value if isinstance(seed, Ref) else seed) % WORD


def unit(seed: Ref | int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers in [0, 1) for every index of a tensor."""
    index = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    high, low = threefry((0, number_of(seed)), index >> 32, index % WORD)
    drawn, kept = FRACTION[dtype]
    return ((high ^ low) % 2**drawn >> drawn - kept) / 2**kept


def sized(dims: str, like: Ref) -> dict[str, int]:
    return {name: size or like.sizes[name] for name, size in names_in(dims)}


def random(change: Callable, scale: Callable) -> Callable[..., Ref]:
    def call(dims: str, like: Ref, seed: Ref | int, out: str | None = None) -> Ref:
        sizes = sized(dims, like)
        u = unit(seed, tuple(sizes.values()), like.dtype)
        value = change(u)
        exact = Ref(tuple(sizes), value, np.zeros(value.shape), like.dtype)
        return exact if change is same else rounded(exact.names, value, exact.error, scale(u, value), like.dtype)

    return call


def same(u: np.ndarray) -> np.ndarray:
    return u


def gumbel(u: np.ndarray) -> np.ndarray:
    return -np.log(-np.log(np.maximum(u, 1.1754944e-38)))


def gumbel_scale(u: np.ndarray, value: np.ndarray) -> np.ndarray:
    """A relative error of the inner logarithm is an absolute one of the outer."""
    return 2 + np.abs(value)


def dropout(t: Ref, rate: float, seed: Ref | int, out: str | None = None) -> Ref:
    keep = 1 - rate
    kept = unit(seed, t.value.shape, "f32") < np.float32(keep)
    value, error, mass = (np.where(kept, part / keep, 0.0) for part in (t.value, t.error, t.mass))
    return ordered(rounded(t.names, value, error, mass, t.dtype, 1, True), out)


def fold_in(seed: Ref | int, number: Ref | int) -> Ref:
    zero = np.zeros((), np.int64)
    first = int(threefry((0, number_of(seed)), zero, zero + number_of(number))[0])
    value = np.int64(first - WORD if first >= WORD // 2 else first)
    return Ref((), value, np.zeros(()), "i32")


RANDOM: dict[str, Callable] = {
    "random_uniform": random(same, lambda u, value: 0 * u), "random_gumbel": random(gumbel, gumbel_scale),
    "dropout": dropout, "fold_in": fold_in,
}  # fmt: skip
