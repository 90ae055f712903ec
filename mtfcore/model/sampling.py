"""The next token from logits whose vocabulary is split over devices: greedy, temperature, top-k and top-p.

    token = pick(logits, chance, temperature=0.8, top_k=40)             # f32[batch, vocab], f32[batch] → i32[batch]
    token = pick_each(logits, chance, temperature, top_k, top_p)        # options of each row, as tensors

Nothing of the size of the vocabulary moves. Whatever is kept is kept by a threshold: for top-k the k-th largest logit,
for top-p the largest probability whose tokens and all likelier ones reach p together, found by halving an interval.
Tokens that tie with the last one kept are kept too. The draw inverts the running sum of the probabilities at `chance`,
a number in [0, 1) that depends on the seed, the sequence and the position alone: so the same seed writes the same text
on every mesh and in every batch. With options of each row the k-th largest is found by halving too, bit by bit of the
numbers that `sort_key` makes of the logits, so one compiled program serves requests of every kind. Sources: arXiv
1805.04833 (top-k), arXiv 1904.09751 (top-p). Next file to read: `experts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.elementwise import constant
from mtfcore.errors import refuse
from mtfcore.notation import as_whole
from mtfcore.ops import plain_number
from mtfcore.tensor import Tensor

Whole = int | Sequence[int] | np.ndarray
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # odd, and nearest to 2^64 over the golden ratio
COLDEST, HOTTEST = 1e-30, 1e30  # temperatures beyond make infinities, and choose no differently
HALVINGS = 32  # of the threshold of top-p: to the last bit of the likeliest token's probability


def pick(
    logits: Tensor,
    chance: Tensor,
    *,
    vocab: str = "V",
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    n_tokens: int | None = None,
) -> Tensor:
    """One token for each row of logits; temperature 0 takes the likeliest. `n_tokens`: ids from there on only pad.

    Top-k applies first, then top-p to what it leaves.
    """
    size = logits.size(vocab)
    refuse(option_faults(size, temperature, top_k, top_p, n_tokens), f"pick of {logits!r}")
    logits = mtf.settle(logits)
    if n_tokens is not None and n_tokens < size:
        logits = _only(logits, mtf.less(mtf.index(vocab, logits), n_tokens))
    if temperature == 0:
        return mtf.argmax(logits, vocab)
    logits = logits * (1 / min(max(temperature, COLDEST), HOTTEST))
    if top_k is not None and top_k < size:
        least = mtf.min(mtf.top_k(logits, vocab, top_k)[0], vocab)
        logits = _only(logits, mtf.logical_not(mtf.less(logits, least)))
    likely = mtf.softmax(logits, vocab)
    if top_p is not None and top_p < 1:
        likely = mtf.where(mtf.less(likely, nucleus(likely, vocab, top_p)), 0.0, likely)
    return draw(likely, chance, vocab)


def pick_each(
    logits: Tensor,
    chance: Tensor,
    temperature: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    *,
    vocab: str = "V",
    n_tokens: int | None = None,
) -> Tensor:
    """What `pick` gives, with the options of each row: f32, i32 and f32 tensors with the dimensions of `chance`.

    temperature 0: the likeliest; top_k 0, or at least the vocabulary: off; top_p 1: off.
    """
    size = logits.size(vocab)
    refuse(option_faults(size, 1.0, None, None, n_tokens), f"pick_each of {logits!r}")
    logits = mtf.cast(mtf.settle(logits), "f32")
    if n_tokens is not None and n_tokens < size:
        logits = _only(logits, mtf.less(mtf.index(vocab, logits), n_tokens))
    likeliest, drawn = mtf.argmax(logits, vocab), mtf.greater(temperature, 0)
    warmth = mtf.minimum(mtf.maximum(mtf.where(drawn, temperature, 1.0), COLDEST), HOTTEST)
    logits = logits * mtf.divide(1.0, warmth)
    key = mtf.sort_key(logits)
    least = kth_largest(key, vocab, mtf.where(mtf.less(top_k, 1), size, top_k))
    likely = mtf.softmax(_only(logits, mtf.logical_not(mtf.less(key, least))), vocab)
    share = mtf.where(mtf.less(top_p, 1.0), nucleus(likely, vocab, top_p), 0.0)
    likely = mtf.where(mtf.less(likely, share), 0.0, likely)
    return mtf.where(drawn, draw(likely, chance, vocab), likeliest)


def option_faults(size: int, temperature: Any, top_k: Any, top_p: Any, n_tokens: Any) -> list[str]:
    """What is wrong with the options, each with what is legal."""
    faults, heat, share = [], plain_number(temperature), plain_number(top_p)
    if heat is None or not 0 <= heat < float("inf"):
        faults.append(f"temperature is {temperature!r:.200}; expected a number of at least 0 (0: the likeliest token)")
    for name, n in (("top_k", top_k), ("n_tokens", n_tokens)):
        if n is not None and ((whole := as_whole(n)) is None or not 1 <= whole <= size):
            faults.append(f"{name} is {n!r:.200}; expected a whole number from 1 to {size}, or None")
    if top_p is not None and (share is None or not 0 < share <= 1):
        faults.append(f"top_p is {top_p!r:.200}; expected a number above 0 and at most 1, or None")
    return faults


def kth_largest(key: Tensor, vocab: str, k: Tensor) -> Tensor:
    """The largest i32 that at least k keys of each row reach: their k-th largest, the least i32 if they are fewer.

    Sign first, then bit by bit: each turn sends one number a row.
    """

    def reached(least: Tensor) -> Tensor:
        there = mtf.cast(mtf.logical_not(mtf.less(key, least)), "i32")
        return mtf.logical_not(mtf.less(mtf.sum(there, vocab), k))

    def turn(least: Tensor, bit: Tensor) -> tuple[Tensor, Tensor]:
        higher = least + mtf.cast(bit, "i32")
        return mtf.where(reached(higher), higher, least), bit * 0.5

    sign = mtf.where(reached(k * 0), k * 0, -(2**31))
    return mtf.repeat(turn, 31, (), sign, constant(key.graph, 2.0**30, "f32"))[0]


def nucleus(likely: Tensor, vocab: str, top_p: float | Tensor) -> Tensor:
    """The largest threshold that leaves at least `top_p`: each turn asks one bit, and sends one number a row."""

    def turn(least: Tensor, share: Tensor) -> Tensor:
        higher = least + most * share
        left = mtf.sum(mtf.where(mtf.less(likely, higher), 0.0, likely), vocab)
        return mtf.where(mtf.less(left, top_p), least, higher)

    most = mtf.max(likely, vocab)
    shares = mtf.power(0.5, mtf.index(mtf.Dim("halvings", HALVINGS), likely, likely.dtype) + 1)
    return mtf.repeat(turn, HALVINGS, shares, most * 0.0)


def draw(likely: Tensor, chance: Tensor, vocab: str) -> Tensor:
    """The first token at which the running sum of the probabilities passes `chance` of their total."""
    possible = mtf.greater(likely, 0)
    # An impossible token must not be drawn through a rounded sum, so its place in the running sum does not count.
    running = mtf.where(possible, mtf.cumsum(likely, vocab), 0.0)
    passed = mtf.greater(running, mtf.max(running, vocab) * chance)
    last = likely.size(vocab) - 1
    return mtf.min(mtf.where(passed, mtf.index(vocab, likely), last), vocab)


def _only(logits: Tensor, kept: Tensor) -> Tensor:
    return mtf.where(kept, logits, float("-inf"), out=" ".join(logits.names))


def chances(seed: Whole, sequence: Whole, position: Whole) -> np.ndarray:
    """Numbers in [0, 1), f32: each a function of a seed, a sequence's number and a position alone.

    Whole numbers or arrays of them, which broadcast: `chances(1, range(B), np.arange(n)[:, None])` is f32[n, B]. Seeds
    and numbers count modulo 2^64. Each of the three in turn moves a 64-bit state on by a multiple of an odd number,
    and the state is then mixed: the generator SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", 2014) with a stream for each seed, of each seed for each sequence. The upper 24 bits are the number.
    """
    state = np.zeros((), np.uint64)
    with np.errstate(over="ignore"):  # all of it counts modulo 2^64
        for part in (seed, sequence, position):
            numbers = np.asarray(np.asarray(part, object) % 2**64, np.uint64)
            state = _mixed(state + (numbers + np.uint64(1)) * GOLDEN)
    return (state >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def _mixed(state: np.ndarray) -> np.ndarray:
    """Each bit of the result depends on all: the last steps of SplitMix64, which lose nothing."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
