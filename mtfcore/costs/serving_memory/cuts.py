"""In how many parts dimensions lie under the second paper's partitions: `model.places`' rules on arrays of sizes.

    >>> hand_out([4, 4, 4], {"H": 48, "D": 256})
    ({'H': array(16), 'D': array(4)}, array(1))
    >>> fewest([8, 48, 4], [16, 64, 6])
    array([ 8, 16,  2])

Axes are handed out in order, each whole, to the first dimension that it divides: 48 heads take two axes of 4, and the
third goes to the head size. `model.places` says it of one model, mesh and batch, with axes' names; here sizes may be
numpy arrays and only the numbers of parts come out, so that 100,000 deployments are counted at once. A test holds the
two against each other. `fewest` is what the best choice of axes for as many devices would give. Source:
Efficiently Scaling Transformer Inference (arXiv 2211.05102), sections 3.2 and 3.3. Next file to read: `weight_bytes`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from mtfcore.errors import LayoutError, nearest
from mtfcore.model.configs import Config
from mtfcore.model.params import KV_HEADS
from mtfcore.model.serving import FEEDFORWARD, Feedforward

Numbers = Any  # a number, or an array of them
Grid = tuple[Numbers, Numbers, Numbers]  # sizes of x, y and z
ATTENTION = ("heads", "batch", "even")
ORDER = "zyx"  # in which heads take axes
HEADS = {"multihead": "H", "grouped": "KG", "multiquery": "H"}  # the dimensions of query heads


class Core(NamedTuple):
    """In how many parts attention itself is cut: sequences, key heads, query heads, and the queries' length."""

    batch: Numbers
    keys: Numbers
    queries: Numbers
    length: Numbers


def partition(ffn: str) -> Feedforward:
    """A feedforward partition by name."""
    return FEEDFORWARD[among("ffn", ffn, FEEDFORWARD)]


def dimensions(cfg: Config) -> dict[str, int]:
    """Letter → size, with G, the query heads that share one key head, and the two of a fused pair."""
    return {
        "E": cfg.d_model, "F": cfg.d_ff, "H": cfg.heads, "K": cfg.kv_heads, "G": cfg.heads // cfg.kv_heads,
        "D": cfg.head_size, "V": cfg.vocab, "P": cfg.max_length,
        "pair": 2,
    }  # fmt: skip


def sizes_of_axes(grid: Grid, names: Iterable[str]) -> list[Numbers]:
    """`sizes_of_axes((4, 2, 8), "zy")` is [8, 2]."""
    return [grid["xyz".index(name)] for name in names]


def product(sizes: Iterable[Numbers]) -> Numbers:
    """All of them multiplied, 1 for none. Not `math.prod`: arrays broadcast."""
    total: Numbers = 1
    for size in sizes:
        total = total * size
    return total


def across(grid: Grid, axes: Iterable[str]) -> Numbers:
    """How many devices differ along some of the axes."""
    return product(sizes_of_axes(grid, axes))


def hand_out(axes: Sequence[Numbers], dims: Mapping[str, Numbers]) -> tuple[dict[str, Numbers], Numbers]:
    """Dimension → its parts, and the product of the axes that none could take."""
    left, over = dict(dims), cast(Numbers, 1)
    parts: dict[str, Numbers] = dict.fromkeys(dims, 1)
    for axis in axes:
        free: Numbers = True
        for name, size in left.items():
            here = free & (size % axis == 0)
            left[name] = np.where(here, size // axis, size)
            parts[name] = np.where(here, parts[name] * axis, parts[name])
            free = free & ~np.asarray(here)
        over = np.where(free, over * axis, over)
    return parts, over


def spread(grid: Grid, axes: Iterable[str], dims: Mapping[str, Numbers]) -> tuple[dict[str, Numbers], Numbers]:
    """The same with axes of a grid by name, in this order."""
    return hand_out(sizes_of_axes(grid, axes), dims)


def parts(cfg: Config, grid: Grid, axes: str, letters: Iterable[str]) -> Numbers:
    """In how many parts these dimensions of a model lie together, when the axes have been handed out to them."""
    known, order = dimensions(cfg), [axis for axis in ORDER if axis in axes]
    return product(spread(grid, order, {letter: known[letter] for letter in letters})[0].values())


def core(cfg: Config, grid: Grid, ffn: str, attention: str, batch: Numbers, new_tokens: Numbers = 1) -> Core:
    """How attention is cut: sequences as the feedforward has them, and by batch over all further axes that divide."""
    first = partition(ffn).batch
    cut, rest = across(grid, first), [axis for axis in ORDER if axis not in first]
    sizes = dict(zip(rest, sizes_of_axes(grid, rest), strict=True))
    if among("attention", attention, ATTENTION) == "batch":
        more, sizes = _most_sequences(np.maximum(batch // cut, 1), sizes)
        cut = cut * more
    known = dimensions(cfg)
    heads, over = hand_out(list(sizes.values()), {name: known[name] for name in HEADS[cfg.attention]})
    keys = product(heads[name] for name in KV_HEADS[cfg.attention])
    length = np.where(np.asarray(new_tokens) % over == 0, over, 1)  # of prefill; one new token cannot be cut
    return Core(cut, keys, product(heads.values()), length)


def _most_sequences(sequences: Numbers, sizes: dict[str, Numbers]) -> tuple[Numbers, dict[str, Numbers]]:
    """The axes that cut the sequences into most parts; x and then y are taken where several are as good."""
    names = list(sizes)
    sets = [chosen for n in range(len(names) + 1) for chosen in itertools.combinations(names, n)]
    sets.sort(key=lambda chosen: ("x" in chosen, "y" in chosen))  # a later one wins where it is as good
    best, which = np.ones((), int), np.zeros((), np.int8)
    for number, chosen in enumerate(sets):
        ways = product(sizes[name] for name in chosen)
        better = (sequences % ways == 0) & (ways >= best)
        best, which = np.where(better, ways, best), np.where(better, number, which)
    taken = {name: np.array([name in chosen for chosen in sets])[which] for name in names}
    return best, {name: np.where(taken[name], 1, size) for name, size in sizes.items()}


def fewest(size: Numbers, devices: Numbers) -> Numbers:
    """The parts of `size` things over so many devices, if axes may be chosen for it: what divides both numbers."""
    return np.gcd(np.asarray(size, np.int64), np.asarray(devices, np.int64))


def among(about: str, value: Any, legal: Any) -> Any:
    """The value, if it is one of these."""
    if not isinstance(value, str) or value not in legal:
        raise LayoutError(f"{about} is {value!r:.100}; {nearest(value, legal)}")
    return value
