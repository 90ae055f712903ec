"""The first paper's model of time: computation at peak, then communication at one link's bandwidth, added.

    >>> once = cost(ROWS["batch:rows hidden:cols"], Sizes(8192, 4096, 131072), Parts(batch=16, hidden=32))
    >>> round(paper_time(once, peak_flops=22.5e12, link_bytes_per_second=60e9).efficiency, 2)
    0.66

Nothing overlaps, matrix products run at the device's peak, every all-reduce moves its bytes over one link in one
direction, and messages have no start-up time. So it is no forecast: real products stay below the peak, several links
work at once, and compilers overlap. What it answers is the paper's question, which of two layouts spends the smaller
share of its time on the network, and how that share moves as the mesh grows. Every number is modelled.

Source: "Mesh-TensorFlow" (arXiv 1811.02084), section 8: the network-boundedness of a layout is its ratio of
communication to computation. Next file to read: `scaling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mtfcore.costs.first_paper.two_layers import Cost
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError

MODELS = ("paper",)


@dataclass(frozen=True)
class Seconds:
    """Seconds of one step on one device, by what they go to."""

    compute: float
    communicate: float

    @property
    def total(self) -> float:
        """One after the other."""
        return self.compute + self.communicate

    @property
    def efficiency(self) -> float:
        """The share of the time that computes."""
        return self.compute / self.total

    @property
    def ratio(self) -> float:
        """Communication over computation: Table 1's ratio, in time."""
        return self.communicate / self.compute


def paper_time(cost: Cost, peak_flops: float, link_bytes_per_second: float) -> Seconds:
    """Computation at `peak_flops` a second, then what a device sends at one link's one-way bandwidth."""
    return Seconds(cost.flops / peak_flops, float(cost.sent_bytes) / link_bytes_per_second)


def step_seconds(cost: Cost, chip: Any, dtype: str = "bf16", model: str = "paper") -> Seconds:
    """The same on a chip's record: peak, memory and links of one device, as `mtf.chip("v2")` gives them."""
    if model not in MODELS:
        raise LayoutError(f"no model of time {model!r}; legal here: {', '.join(map(repr, MODELS))}")
    return paper_time(cost, chip.peak_flops_per_device(canonical(dtype)), chip.link_bytes_per_second)
