"""The next token from logits whose vocabulary is split over devices: greedy, temperature, top-k and top-p.

    token = pick(logits, chance, temperature=0.8, top_k=40)   # f32[batch, vocab], f32[batch] → i32[batch]

Nothing of the size of the vocabulary moves. Whatever is kept is kept by a threshold: for top-k the k-th largest logit,
for top-p the largest probability whose tokens and all likelier ones reach p together, found by halving an interval.
Tokens that tie with the last one kept are kept too. The draw inverts the running sum of the probabilities at `chance`,
a number in [0, 1) that depends on the seed, the sequence and the position alone: so the same seed writes the same text
on every mesh and in every batch. Sources: arXiv 1805.04833 (top-k), arXiv 1904.09751 (top-p). Next file to read:
`experts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.errors import refuse
from mtfcore.notation import as_whole
from mtfcore.ops import plain_number
from mtfcore.tensor import Tensor

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
    size = logits.dim(vocab).size
    refuse(option_faults(size, temperature, top_k, top_p, n_tokens), f"pick of {logits!r}")
    logits = mtf.settle(logits)
    if n_tokens is not None and n_tokens < size:
        logits = _only(logits, mtf.less(mtf.index(vocab, logits), n_tokens))
    if temperature == 0:
        return mtf.argmax(logits, vocab)
    logits = logits * (1 / temperature)
    if top_k is not None and top_k < size:
        least = mtf.min(mtf.top_k(logits, vocab, top_k)[0], vocab)
        logits = _only(logits, mtf.logical_not(mtf.less(logits, least)))
    likely = mtf.softmax(logits, vocab)
    if top_p is not None and top_p < 1:
        likely = mtf.where(mtf.less(likely, nucleus(likely, vocab, top_p)), 0.0, likely)
    return draw(likely, chance, vocab)


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


def nucleus(likely: Tensor, vocab: str, top_p: float) -> Tensor:
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
    last = likely.dim(vocab).size - 1
    return mtf.min(mtf.where(passed, mtf.index(vocab, likely), last), vocab)


def _only(logits: Tensor, kept: Tensor) -> Tensor:
    return mtf.where(kept, logits, float("-inf"), out=" ".join(logits.names))


def chances(seed: int, sequences: Sequence[int], position: int) -> np.ndarray:
    """A number in [0, 1) for each sequence, f32: a function of the seed, the sequence's number and the position."""
    drawn = [np.random.default_rng((seed, number, position)).random(dtype=np.float32) for number in sequences]
    return np.array(drawn, np.float32)
