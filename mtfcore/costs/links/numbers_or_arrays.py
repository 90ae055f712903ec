"""Products and extremes of numbers and numpy arrays alike: what prices one step prices thousands of settings.

    >>> most([1, np.array([0, 3])]), product([2, np.array([1, 2])])
    (array([1, 3]), array([2, 4]))

Plain numbers stay plain, and quick. Next file to read: `collectives`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

Number = Any  # a number, or a numpy array of them


def is_array(value: Number) -> bool:
    """Whether it stands for many numbers."""
    return isinstance(value, np.ndarray)


def product(values: Sequence[Number]) -> Number:
    """All multiplied; 1 of nothing."""
    return functools.reduce(lambda a, b: a * b, values, 1)


def most(values: Sequence[Number]) -> Number:
    """The largest, element by element where there are arrays; 0 of nothing."""
    if any(map(is_array, values)):
        return functools.reduce(np.maximum, values)
    return max(values, default=0.0)


def least(values: Sequence[Number]) -> Number:
    """The smallest, element by element where there are arrays."""
    return functools.reduce(np.minimum, values) if any(map(is_array, values)) else min(values)
