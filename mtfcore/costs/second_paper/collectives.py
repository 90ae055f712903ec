"""What one collective costs: a tensor's size over the network's bandwidth.

    >>> all_gather(64 * 2**20, group=4, bytes_per_second=270e9, exact=True)      # 48 MiB at 270 GB/s
    0.000186413...

D is what a device holds after a gather, or before a reduce-scatter: the larger side. Of it, every device receives the
other members' part, D (K-1)/K in a group of K; the paper then lets (K-1)/K be 1, and so do we unless `exact`. A group
of one moves nothing, in both. W is the bandwidth of one chip's links together, 270 GB/s on TPU v4.

Everything here takes numbers or numpy arrays, and fractions where a result must be exact.

Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), appendix A.1. Next file to read: `feedforward`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtfcore.errors import refuse

Number = Any  # an int, a float, a Fraction, or an array of one of these


def share(group: Number, exact: bool = False) -> Number:
    """The part of D that moves in a group of so many: (K-1)/K, or 1 as the paper simplifies it; 0 in a group of one."""
    return (group - 1) / group if exact else (group > 1) * 1


def all_gather(n_bytes: Number, group: Number, bytes_per_second: Number, exact: bool = False) -> Number:
    """Seconds of an all-gather: D/W (K-1)/K, D the bytes of one device's result. A.1."""
    positive(n_bytes=n_bytes, bytes_per_second=bytes_per_second)
    at_least_one(group=group)
    return n_bytes * share(group, exact) / bytes_per_second


def reduce_scatter(n_bytes: Number, group: Number, bytes_per_second: Number, exact: bool = False) -> Number:
    """Seconds of a reduce-scatter: as an all-gather, D the bytes of one device's operand. A.1."""
    return all_gather(n_bytes, group, bytes_per_second, exact)


def all_reduce(n_bytes: Number, group: Number, bytes_per_second: Number, exact: bool = False) -> Number:
    """Seconds of an all-reduce: a reduce-scatter, then an all-gather. A.1."""
    return 2 * all_gather(n_bytes, group, bytes_per_second, exact)


def overlapped(compute: Number, communicate: Number, turns: Number = 1) -> Number:
    """Seconds of an einsum looped over its collective's parts, in so many turns. Section 3.5.

    One turn is the sum of both; in many, all but a turn of the shorter one is hidden, and the limit is the longer one.
    The paper reports 1.4 times the speed of its compiler's schedule, this limit's reach; the form is ours.
    """
    at_least_one(turns=turns)
    return np.maximum(compute, communicate) + np.minimum(compute, communicate) / turns


def positive(**values: Number) -> None:
    """Refuse, all at once, quantities that are not positive and finite."""
    refuse([f"{name} is {_shown(value)}; expected more than 0" for name, value in values.items() if _bad(value, 0)])


def at_least_one(**values: Number) -> None:
    """Refuse, all at once, counts below one."""
    refuse([f"{name} is {_shown(value)}; expected 1 or more" for name, value in values.items() if _bad(value, 1)])


def _bad(value: Number, least: int) -> bool:
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return True
    return not np.all(np.isfinite(numbers) & ((numbers >= least) if least else (numbers > 0)))


def _shown(value: Number) -> str:
    return f"{value!r:.60}"
