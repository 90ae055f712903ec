"""From what a step asks of a device to seconds: the few formulas behind every modelled time of this project.

    >>> v4 = rates("v4", "physical")
    >>> local_time(flops=2 * 512 * 18432 * 1152, n_bytes=2 * 18432 * 1152, dtype="bf16", rates=v4).bound
    'compute'

A local step takes the longer of computing and of reading HBM, a collective what its bytes need on its links (at least
its hops; see `collectives`). Models of a device:

* "physical": published peaks, a product's sizes rounded up to the tile of the matrix unit, exact
  (K−1)/K, rings and lines, hops. Nothing is fitted, so it is a bound rather than a forecast.
* "calibrated": the same with the chip's fitted constants, at most four, each with a meaning: the share of the peak and
  of the links' rate that is reached, what starting a message takes, and over how many axes of a torus a collective
  sends at the same time (`reference/calibration.json` says on which rows they were fitted). Neutral for other chips.
* "first paper" (arXiv 1811.02084, section 8): FLOPs at the peak, then bytes over one link one way.
* "second paper" (arXiv 2211.05102, appendix A.1): a gather of D bytes takes D/W, a reduce-scatter of D the same, an
  all-reduce twice that, W being all links of a chip together and (K−1)/K taken as 1.
* "paper" is the one of the chip's own paper: the first for v2 and v3, else the second.
* `Constants`, fitted to records of one's own (`constants`): as "calibrated", with these.

All functions take numbers or numpy arrays: `price` calls them step by step, `inference` for many settings at once.
Next file to read: `asking`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mtfcore.chips import Chip, chip
from mtfcore.costs.links.collectives import PLAIN, How, Load, Took, collective
from mtfcore.costs.links.numbers_or_arrays import Number, is_array, least, most, product
from mtfcore.costs.pricing.constants import Constants
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError, nearest
from mtfcore.steps import link_bytes

if TYPE_CHECKING:
    from mtfcore.costs.links.wiring import Leg

PAPERS = ("first paper", "second paper")
MODELS = ("paper", *PAPERS, "physical", "calibrated")
FIRST_PAPER_CHIPS = ("v2", "v3")
CONSTANTS = ("compute_share", "link_share", "launch_seconds", "busy_axes")
OF_LINKS = ("link_share", "busy_axes")  # those that collectives take; the others stand in `Rates`
FITTED = Path(__file__).parents[2] / "reference" / "calibration.json"


@dataclass(frozen=True)
class Rates:
    """What one device does, under one model of time."""

    chip: Chip
    model: str
    hbm_bytes_per_second: float
    fast_memory_bytes: float
    tile: tuple[int, int, int]  # what rows that stream, depth and columns of a product are rounded up to
    link_bytes_per_second: float  # one link one way, of one device
    all_links_bytes_per_second: float  # every link of a device together, one way
    how: How = PLAIN
    compute_share: float = 1.0  # of the peak that large products reach
    hbm_share: float = 1.0
    launch_seconds: float = 0.0  # what starting one message takes, latency and all
    is_calibrated: bool = False
    constants: Constants | None = None  # where they come from, if from records of one's own

    @property
    def joins_gathers(self) -> bool:
        """The second paper counts gathers of one tensor that follow each other as one: the last one's result."""
        return self.model == "second paper" and not self.how.exact

    def faster(self, resource: str, times: float = 2.0) -> Rates:
        """The same device with one resource so many times as fast: "compute", "hbm", "link" or "latency"."""
        if resource == "link":
            return replace(self, how=replace(self.how, link_share=self.how.link_share * times))
        if resource == "latency":
            how = replace(self.how, hop_share=self.how.hop_share / times)
            return replace(self, how=how, launch_seconds=self.launch_seconds / times)
        name = f"{resource}_share"
        return replace(self, **{name: getattr(self, name) * times})

    def peak(self, dtype: str) -> float:
        """Peak FLOPs a second for operands of a dtype."""
        return _peak(self.chip, canonical(dtype))

    @property
    def is_paper(self) -> bool:
        """Whether this is the model of one of the papers, not of the hardware."""
        return self.model in PAPERS


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


def rates(of: str | Chip, model: str | Constants = "physical", how: How | None = None) -> Rates:
    """What one device of a chip does, under a model; `how` the collectives run, if not as the model has it."""
    if isinstance(model, Constants):
        return _measured(_rates(chip(of), "physical", how), model)
    if model not in MODELS:
        raise LayoutError(f"no model of time {model!r:.100}; {nearest(model, MODELS)}")
    return _rates(chip(of), model, how)


@cache
def _rates(c: Chip, model: str, how: How | None) -> Rates:
    if model == "paper":
        model = PAPERS[c.name not in FIRST_PAPER_CHIPS]
    how = How(exact=model != "second paper") if how is None else how
    tile = (1, 1, 1) if model in PAPERS else (c.tile_rows, *c.tile)
    plain = Rates(
        c, model, c.hbm_bytes_per_second_per_device, c.fast_memory_bytes_per_device, tile, c.link_bytes_per_second,
        _all_links(c), how,
    )  # fmt: skip
    return _calibrated(plain) if model == "calibrated" else plain


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


@cache
def _peak(of: Chip, dtype: str) -> float:
    return of.peak_flops_per_device(dtype)


def _all_links(of: Chip) -> float:
    """All links of a device together, one way: behind a switch that is the chip's rate already."""
    links = 1 if of.value("switch_bytes_per_second") else of.value("links")
    return links * of.link_bytes_per_second / of.devices


def _calibrated(plain: Rates) -> Rates:
    found = _fitted().get(plain.chip.name)
    if found is None:
        return plain
    constants: dict[str, Any] = {name: value for name, value in found.items() if name in CONSTANTS}
    links = {name: constants.pop(name) for name in OF_LINKS if name in constants}
    return replace(plain, how=replace(plain.how, **links), is_calibrated=True, **constants)


@cache
def _measured(plain: Rates, found: Constants) -> Rates:
    if found.chip != plain.chip.name:
        raise LayoutError(f"these constants are of {found.chip}, not of {plain.chip.name}: {found.words}")
    how = replace(plain.how, link_share=found.link_share, busy_axes=found.busy_axes)
    return replace(
        plain, model=str(found), how=how, compute_share=found.compute_share, hbm_share=found.hbm_share,
        launch_seconds=found.launch_seconds, is_calibrated=True, constants=found,
    )  # fmt: skip


@cache
def _fitted() -> Mapping[str, Mapping[str, float]]:
    """The fitted constants of each chip that has any."""
    return json.loads(FITTED.read_text(encoding="utf-8"))["chips"] if FITTED.exists() else {}
