"""In how many parts a dimension can lie over some of a grid's axes, and how many devices then hold the same part.

    >>> ways(64, 4, 4, 4), ways(48, 4, 4, 4), ways(8, 16), ways(1, 4, 4, 4)
    (64, 16, 8, 1)

Axes are used whole. 48 heads on 4 x 4 x 4 lie over two of the axes, 16 ways, and each is held by 4 devices. Fewer heads
than an axis is long still lie one a device, each on several: 8 heads on an axis of 16 are 8 ways, 2 copies. Where
neither number divides the other (4 heads on 6 devices) there is one way only: all of it everywhere. Everything takes
numpy arrays, broadcast. Source: Efficiently Scaling Transformer Inference (arXiv 2211.05102), section 3.3, with the
copies that its Figure 4(b) draws. Next file to read: `weight_bytes`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

Numbers = Any  # a number, or an array of them


def product(axes: tuple[Numbers, ...]) -> Numbers:
    """How many devices differ along these axes: 1 for none. Not `math.prod`: arrays broadcast."""
    total: Numbers = 1
    for axis in axes:
        total = total * axis
    return total


def ways(size: Numbers, *axes: Numbers) -> Numbers:
    """The most parts in which `size` things can lie over some of the axes, equal parts on every device."""
    best: Numbers = 1
    for n in range(1, len(axes) + 1):
        for chosen in itertools.combinations(axes, n):
            best = np.maximum(best, _over(size, product(chosen)))
    return best


def _over(size: Numbers, devices: Numbers) -> Numbers:
    """Over all of these devices: as many parts as devices, or as things, or one where neither divides the other."""
    fewer = np.where(devices % size == 0, size, 1)
    return np.where(size % devices == 0, devices, fewer)


def divides(size: Numbers, *axes: Numbers) -> Numbers:
    """Whether `size` things lie over all the axes together without a copy."""
    return np.asarray(size) % product(axes) == 0
