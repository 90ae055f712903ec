"""What a device does in a second, under one model: peaks, shares, links, what a start takes.

    >>> rates("v4", "physical").peak("bf16")
    275000000000000

Models of a device:

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

Next file to read: `step_time`, which turns rates into seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtfcore.chips import Chip, chip
from mtfcore.costs.links.collectives import PLAIN, How
from mtfcore.costs.pricing.constants import Constants
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError, nearest

if TYPE_CHECKING:
    pass


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


def rates(of: str | Chip, model: str | Constants = "physical", how: How | None = None) -> Rates:
    """What one device of a chip does, under a model; `how` the collectives run, if not as the model has it."""
    if isinstance(model, Constants):
        return _measured(_rates(chip(of), "physical", how), model)
    if not isinstance(model, str) or model not in MODELS:
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


@cache
def _peak(of: Chip, dtype: str) -> float:
    return of.peak_flops_per_device(dtype)


def _all_links(of: Chip) -> float:
    """All links of a device together, one way: behind a switch that is the chip's rate already."""
    links = 1 if of.value("switch_bytes_per_second") else of.value("links")
    return links * of.link_bytes_per_second / of.devices


def _calibrated(plain: Rates) -> Rates:
    found = fitted().get(plain.chip.name)
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
def fitted() -> Mapping[str, Mapping[str, Any]]:
    """The fitted constants of each chip that has any."""
    return json.loads(FITTED.read_text(encoding="utf-8"))["chips"] if FITTED.exists() else {}
