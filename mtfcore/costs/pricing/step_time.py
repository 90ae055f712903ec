"""From what a step asks of a device to seconds: the few formulas behind every modelled time of this project.

    >>> v4 = rates("v4", "physical")
    >>> local_time(flops=2 * 512 * 18432 * 1152, n_bytes=2 * 18432 * 1152, dtype="bf16", rates=v4).bound
    'compute'

A local step takes the longer of computing and of reading HBM, a collective what its bytes need on its links (at least
its hops; see `collectives`).

All functions take numbers or numpy arrays: `price` calls them step by step, `inference` for many settings at once.
Next file to read: `asking`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtfcore.costs.links.collectives import Load, Took, collective
from mtfcore.costs.links.numbers_or_arrays import Number, is_array, least, most, product
from mtfcore.costs.pricing.rates import Rates
from mtfcore.traffic import link_bytes

if TYPE_CHECKING:
    from mtfcore.costs.links.wiring import Leg


class Seconds(NamedTuple):
    """The time of one step on one device: each resource by itself, and how long the step takes."""

    compute: Number = 0.0
    hbm: Number = 0.0
    link: Number = 0.0
    hops: Number = 0.0  # the floor that the hops of a collective set
    launch: Number = 0.0
    total: Number = 0.0

    @property
    def bound(self) -> str:
        """What decides how long the step takes: compute, hbm, link or hops."""
        return max(("compute", "hbm", "link", "hops"), key=lambda part: getattr(self, part))


# ---- local steps ------------------------------------------------------------------------------------------------


def local_time(flops: Number, n_bytes: Number, dtype: str, rates: Rates) -> Seconds:
    """Computing `flops` (padding included) while `n_bytes` move between HBM and the device: the longer of both."""
    compute = compute_seconds(flops, dtype, rates)
    hbm = n_bytes * 0.0 if rates.model == "first paper" else hbm_seconds(n_bytes, rates)
    return Seconds(compute, hbm, total=most([compute, hbm]))


def compute_seconds(flops: Number, dtype: str, rates: Rates) -> Number:
    """FLOPs at the peak, or the share of it that is reached."""
    if not is_array(flops) and not flops:
        return 0.0
    return flops / (rates.peak(dtype) * rates.compute_share)


def hbm_seconds(n_bytes: Number, rates: Rates) -> Number:
    """Bytes at the rate of HBM, or the share of it that is reached."""
    return n_bytes / (rates.hbm_bytes_per_second * rates.hbm_share)


def padded_flops(batch: Number, rows: Number, columns: Number, depth: Number, tile: tuple[int, int, int]) -> Number:
    """What a matrix unit does for a product: it works on whole tiles, so rows, columns and depth are rounded up.

    One operand stays in the unit and the rows of the other stream through it: whichever way round pads less. One row
    and one column make no matrix: such sums of products are done element by element, without padding.
    """
    streamed, high, wide = tile
    plain = 2 * batch * rows * columns * depth
    faces = [rounded_up(a, streamed) * rounded_up(b, wide) for a, b in ((rows, columns), (columns, rows))]
    whole = 2 * batch * rounded_up(depth, high) * least(faces)
    one = rows * columns == 1
    return np.where(one, plain, whole) if is_array(one) else plain if one else whole


def rounded_up(size: Number, tile: int) -> Number:
    """The next multiple of a tile."""
    if isinstance(size, np.ndarray):  # ten times as fast as dividing whole numbers
        return np.ceil(size / tile) * tile
    return -(-size // tile) * tile


# ---- collectives ------------------------------------------------------------------------------------------------


def collective_time(
    kind: str, n_bytes: Number, legs: Sequence[Leg], rates: Rates, loads: Sequence[Load] | None = None
) -> Seconds:
    """A collective of a group that runs along these legs, each device holding `n_bytes` before."""
    group = product([leg.size for leg in legs])
    if rates.is_paper:
        link = _paper_seconds(kind, n_bytes, group, rates)
        return Seconds(link=link, total=link)
    took = _took(kind, n_bytes, legs, rates, loads)
    if not rates.launch_seconds:
        return Seconds(link=took.link_seconds, hops=took.hop_seconds, total=took.seconds)
    launch = rates.launch_seconds * messages(kind, legs)  # a fitted launch has the hops' latency in it
    return Seconds(link=took.link_seconds, launch=launch, total=took.link_seconds + launch)


def messages(kind: str, legs: Sequence[Leg]) -> Number:
    """How many messages a device starts one after the other: along a ring or line size − 1, behind a switch one."""
    if kind in ("permute", "halo_exchange"):
        return most([leg.size > 1 for leg in legs]) * 1
    steps = (least([leg.size - 1, leg.size * 0 + 1]) if leg.direct else leg.size - 1 for leg in legs)
    return sum(steps) * (2 if kind == "all_reduce" else 1)


def collective_label(kind: str, legs: Sequence[Leg], rates: Rates, loads: Sequence[Load] | None = None) -> str:
    """How such a collective runs: algorithm, exact or large-K, one way or both ways, hop floor."""
    if not rates.is_paper:
        return _took(kind, 0, legs, rates, loads).label
    links = "one link, one way" if rates.model == "first paper" else "all links of a chip together, one way"
    return f"{rates.model}: {links}, {'exact (K−1)/K' if rates.how.exact else 'large-K'}, no hop floor"


def _took(kind: str, n_bytes: Number, legs: Sequence[Leg], rates: Rates, loads: Sequence[Load] | None) -> Took:
    return collective(kind, n_bytes, legs, rates.how, loads)


def _paper_seconds(kind: str, n_bytes: Number, group: Number, rates: Rates) -> Number:
    """Seconds of a collective as a paper has them: what a device sends in a ring, (K−1)/K exact or 1, over links."""
    whole = n_bytes * group if kind == "all_gather" else n_bytes
    sent = whole * (2 if kind == "all_reduce" else 1) * (group > 1)
    if rates.how.exact and kind not in ("permute", "halo_exchange"):
        sent = float(link_bytes(kind, n_bytes, group)) if _whole(n_bytes, group) else sent * (group - 1) / group
    first = rates.model == "first paper"
    rate = rates.link_bytes_per_second if first else rates.all_links_bytes_per_second
    return sent / (rate * rates.how.link_share)


def _whole(*numbers: Number) -> bool:
    return all(isinstance(number, int) for number in numbers)


# ---- the chip ---------------------------------------------------------------------------------------------------
