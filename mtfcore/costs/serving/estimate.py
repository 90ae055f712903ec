"""What `inference` answers: what a request takes (`request`), what runs, what binds, what fits. All modelled.

    >>> est = mtf.costs.inference("palm-540b", "v4:4x4x4", batch=[64, 512], input_tokens=8192, weights="int8")
    >>> est.step_seconds.shape, est.layouts["decode"].tolist(), est.fits.tolist()
    ((2,), ['ws2d-batch', 'ws2d-batch'], [True, False])

Fields have the shape of what was asked, and are plain numbers and words where that was single. Times are seconds of
the whole slice; `parts` and `candidates` are those of one pass, a prefill or one step of decoding. Next file to read:
`pricing/demands`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtfcore.costs.pricing.rates import rates
from mtfcore.costs.serving import limits
from mtfcore.costs.serving.request import Request
from mtfcore.costs.serving.words import bound, warnings_of


@dataclass(frozen=True, eq=False)
class Estimate(Request):
    """A request, and besides what runs, what binds it, and whether it fits. Made by `mtf.costs.inference`."""

    origin = "modelled"

    # ---- choices -------------------------------------------------------------------------------------------------

    @cached_property
    def layouts(self) -> dict[str, Any]:
        """Phase → the partition that it runs, "" where none can."""
        return self._shaped({phase: np.array([*each.names, ""], object)[each.chosen]
                             for phase, each in self.phases.items()})  # fmt: skip

    @cached_property
    def meshes(self) -> dict[str, Any]:
        """Phase → the sizes of x, y and z, as "4x4x4"."""
        grids = {p: each.pick([t.took.grid for t in each.tried]) for p, each in self.phases.items()}
        return self._shaped({p: np.array(["x".join(map(str, g)) for g in grid.tolist()], object)
                             for p, grid in grids.items()})  # fmt: skip

    @cached_property
    def candidates(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Phase → partition → seconds of one pass, and the reason where it cannot be."""
        return {phase: {each.took.name: self._candidate(each) for each in of.tried}
                for phase, of in self.phases.items()}  # fmt: skip

    def _candidate(self, tried: Any) -> dict[str, Any]:
        reason = np.full(self.asked.n, "", object)
        for row, why in tried.took.reasons.items():
            reason[row] = "; ".join(why)
        reason[~tried.asked] = "not asked for"
        return self._shaped({"seconds": tried.took.total, "reason": reason, "fits": tried.fits})

    @cached_property
    def bottleneck(self) -> dict[str, Any]:
        """Phase → what most of its time goes to: "compute", "link", "launch", "HBM: weights", "HBM: cache", or
        "HBM: values between", what is too large for the fast memory."""
        return self._shaped({phase: bound(each) for phase, each in self.phases.items()})

    @cached_property
    def warnings(self) -> list[str]:
        """What a reader should know besides: chips without fitted constants, what does not fit and what would."""
        return warnings_of(self)

    @property
    def is_calibrated(self) -> bool:
        """Whether every chip asked about has constants fitted to measurements."""
        return all(rates(slice_.chip, self.model).is_calibrated for slice_ in self.asked.topologies)

    # ---- memory --------------------------------------------------------------------------------------------------

    @cached_property
    def memory(self) -> dict[str, Any]:
        """Bytes of one device by term, those of the fuller phase; `total` is without the reserve."""
        each = {phase: of.memory for phase, of in self.phases.items()}
        totals = {phase: sum(terms.values()) for phase, terms in each.items()}
        fuller = totals["prefill"] > totals["decode"]
        found = {term: np.where(fuller, each["prefill"][term], each["decode"][term]) for term in each["decode"]}
        found["total"] = np.maximum(totals["prefill"], totals["decode"])
        found["capacity"] = self._capacity
        found["reserve"] = self._capacity * self.asked.reserve
        return self._shaped(found)

    @property
    def _capacity(self) -> np.ndarray:
        return self.asked.of_topology(lambda slice_: slice_.hbm_bytes_per_device).astype(float)

    @cached_property
    def fits(self) -> Any:
        """Whether both phases can be, and fit with the reserve kept free."""
        can = np.all([each.chosen >= 0 for each in self.phases.values()], axis=0)
        return self._shaped(can & (self._flat(self.memory["total"]) <= self._capacity * (1 - self.asked.reserve)))

    @cached_property
    def fits_raw(self) -> Any:
        """The same without any reserve."""
        can = np.all([each.chosen >= 0 for each in self.phases.values()], axis=0)
        return self._shaped(can & (self._flat(self.memory["total"]) <= self._capacity))

    @cached_property
    def fits_by_phase(self) -> dict[str, Any]:
        """Phase → the same for it alone: what decodes may still have to be read in smaller passes."""
        room = self._capacity * (1 - self.asked.reserve)
        return self._shaped({phase: (of.chosen >= 0) & (sum(of.memory.values()) <= room)
                             for phase, of in self.phases.items()})  # fmt: skip

    @cached_property
    def max_batch(self) -> Any:
        """The largest batch that fits in both phases, lengths and partitions as they are; 0 if none does.

        Where fewer prompts are read at a time, and these fit, it is that of decoding.
        """
        each = {phase: self._flat(most) for phase, most in self.max_batch_by_phase.items()}
        return self._shaped(limits.batch_of_both(self.asked, self.phases, each))

    @cached_property
    def max_batch_by_phase(self) -> dict[str, Any]:
        """Phase → the largest batch of one pass."""
        return self._shaped(limits.batches(self.asked, self.phases))

    @cached_property
    def max_context(self) -> Any:
        """The longest context that fits in both phases, batch and partitions as they are; 0 if none does.

        Cached and written tokens stay as they are: only what is read in one pass gets longer.
        """
        most, numbers = np.minimum(*map(self._flat, self.max_context_by_phase.values())), self.asked.numbers
        return self._shaped(np.where(most > numbers["cached_tokens"] + numbers["output_tokens"], most, 0))

    @cached_property
    def max_context_by_phase(self) -> dict[str, Any]:
        """Phase → the longest context that can be read in one pass, written tokens included; that can be decoded."""
        return self._shaped(limits.contexts(self.asked, self.phases))

    def __repr__(self) -> str:
        many = "x".join(map(str, self.asked.shape)) or "one"
        return f"<Estimate of {many} {'setting' if many == 'one' else 'settings'}, {self.model}, modelled>"
