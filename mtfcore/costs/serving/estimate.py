"""What `inference` answers: times, shares, memory and choices of every setting, modelled.

    >>> est = mtf.costs.inference("palm-540b", "v4:4x4x4", batch=[64, 512], input_tokens=8192, weights="int8")
    >>> est.step_seconds.shape, est.layouts["decode"].tolist(), est.fits.tolist()
    ((2,), ['ws2d-batch', 'ws2d-batch'], [True, False])

Fields have the shape of what was asked, and are plain numbers and words where that was single. Times are seconds of
the whole slice; `parts` and `candidates` are those of one pass, a prefill or one step of decoding. Next file to read:
`calibration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtfcore.costs.pricing.step_time import rates
from mtfcore.costs.serving import limits
from mtfcore.costs.serving.choosing import Phase
from mtfcore.costs.serving.settings import Settings
from mtfcore.costs.serving.words import bound, warnings_of
from mtfcore.model.configs import Config

HOUR = 3600.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """Prefill and decode of every setting. Made by `mtf.costs.inference`."""

    asked: Settings
    model: str
    phases: Mapping[str, Phase]

    origin = "modelled"

    # ---- seconds -------------------------------------------------------------------------------------------------

    @cached_property
    def prefill_seconds(self) -> Any:
        """One pass of prefill: until the input of so many sequences has been read and their first token is known."""
        return self._shaped(self.phases["prefill"].seconds)

    @cached_property
    def step_seconds(self) -> Any:
        """A token of every sequence: the mean over the output, taken at its middle token."""
        return self._shaped(self.phases["decode"].seconds)

    @cached_property
    def decode_seconds(self) -> Any:
        """The whole output, token by token."""
        return self._shaped(self.phases["decode"].seconds * self.asked.numbers["output_tokens"])

    @cached_property
    def total_seconds(self) -> Any:
        """A request from beginning to end, if its prefill comes first."""
        return self.prefill_seconds + self.decode_seconds

    @property
    def _busy(self) -> np.ndarray:
        """Seconds of the slice for the whole batch: every pass of prefill, then decoding."""
        passes = self.asked.batch("decode") / self.asked.batch("prefill")
        return self.phases["prefill"].seconds * passes + self._flat(self.decode_seconds)

    @cached_property
    def parts(self) -> dict[str, dict[str, Any]]:
        """Phase → seconds of one pass by what binds: compute, hbm, link, launch."""
        return self._shaped({phase: each.parts for phase, each in self.phases.items()})

    # ---- throughput: three quantities that are not to be mixed up (case C21) --------------------------------------

    @cached_property
    def prompts_per_second(self) -> Any:
        """Prompts read a second, while the slice only prefills."""
        return self._shaped(self.asked.batch("prefill") / self.phases["prefill"].seconds)

    @cached_property
    def prompt_tokens_per_second(self) -> Any:
        """Tokens of prompts read a second, while the slice only prefills."""
        numbers = self.asked.numbers
        return self._shaped(self.asked.batch("prefill") * numbers["input_tokens"] / self.phases["prefill"].seconds)

    @cached_property
    def output_tokens_per_second(self) -> Any:
        """Tokens written a second, while the slice only decodes."""
        return self._shaped(self.asked.numbers["batch"] / self.phases["decode"].seconds)

    # ---- shares and costs ----------------------------------------------------------------------------------------

    @cached_property
    def prefill_mfu(self) -> Any:
        """FLOPs of the model, 2 a parameter and token, over what the chips could do in that time.

        So the paper counts. Tables that are only looked up do not count; that of the logits does for every token,
        though prefill needs it for the last one alone: where it is much of a model, the share is a little too high.
        """
        return self._mfu("prefill", self.asked.numbers["input_tokens"], self.phases["prefill"].seconds)

    @cached_property
    def decode_mfu(self) -> Any:
        """The same of a step of decoding."""
        return self._mfu("decode", 1, self.phases["decode"].seconds)

    @cached_property
    def mfu(self) -> Any:
        """The same of the whole request."""
        numbers = self.asked.numbers
        return self._mfu("decode", numbers["input_tokens"] + numbers["output_tokens"], self._busy)

    def _mfu(self, phase: str, tokens: Any, seconds: np.ndarray) -> Any:
        params = self.asked.of_model(_multiplied)
        dtypes = np.where(self.asked.per_row("weights") == "f32", "f32", "bf16")
        peak = np.where(dtypes == "f32", self._peak("f32"), self._peak("bf16"))
        devices = self.asked.of_topology(lambda slice_: slice_.devices)
        return self._shaped(2.0 * params * self.asked.batch(phase) * tokens / (devices * peak * seconds))

    def _peak(self, dtype: str) -> np.ndarray:
        return self.asked.of_topology(lambda slice_: slice_.peak_flops_per_device(dtype))

    @cached_property
    def chip_seconds_per_token(self) -> Any:
        """Chips times seconds over all tokens of the request, read and written (arXiv 2211.05102, section 4.4)."""
        numbers = self.asked.numbers
        tokens = numbers["batch"] * (numbers["input_tokens"] + numbers["output_tokens"])
        return self._shaped(self._chips * self._busy / tokens)

    @cached_property
    def chip_seconds_per_output_token(self) -> Any:
        """Chips times the seconds of a step over the tokens that it makes: the cost of Figure 1 of arXiv 2211.05102."""
        return self._shaped(self._chips * self.phases["decode"].seconds / self.asked.numbers["batch"])

    @cached_property
    def cost_per_million_tokens(self) -> Any:
        """In the money of the price a chip-hour that was given; None without one."""
        if self.asked.price is None:
            return None
        return self._shaped(self._flat(self.chip_seconds_per_token) * self.asked.price / HOUR * 1e6)

    @property
    def _chips(self) -> np.ndarray:
        return self.asked.of_topology(lambda slice_: slice_.chips)

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
        """Phase → what most of its time goes to: "compute", "HBM: weights", "HBM: cache", "link", "launch"."""
        return self._shaped({phase: bound(each) for phase, each in self.phases.items()})

    @cached_property
    def warnings(self) -> list[str]:
        """What a reader should know besides: no fitted constants, memory, repeated work."""
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

    # ---- shapes --------------------------------------------------------------------------------------------------

    def _shaped(self, value: Any) -> Any:
        """In the shape that was asked; a plain value where that is single."""
        if isinstance(value, Mapping):
            return {name: self._shaped(each) for name, each in value.items()}
        shaped = np.asarray(value).reshape(self.asked.shape)
        return shaped if self.asked.shape else shaped[()].item() if hasattr(shaped[()], "item") else shaped[()]

    def _flat(self, value: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(value), self.asked.shape).ravel()

    def __repr__(self) -> str:
        many = "x".join(map(str, self.asked.shape)) or "one"
        return f"<Estimate of {many} {'setting' if many == 'one' else 'settings'}, {self.model}, modelled>"


def _multiplied(cfg: Config) -> int:
    """The parameters that are multiplied with every token: all but tables that are only looked up."""
    looked_up = cfg.vocab * (not cfg.tied) + cfg.max_length * (cfg.positions == "learned")
    return cfg.n_params - looked_up * cfg.d_model
