"""What a request takes: its seconds, what a slice then gives a second, its share of the peak, its cost. All modelled.

    >>> est = mtf.costs.inference("palm-540b", "v4:4x4x4", batch=[64, 512], input_tokens=2048, weights="int8")
    >>> est.decode_mfu.round(2), est.chip_seconds_per_output_token.round(3)
    (array([0.13, 0.36]), array([0.03 , 0.011]))

A larger batch costs less a token and takes longer: `Estimate` says besides which partition runs, and whether it fits.
FLOPs and costs are counted as the second paper does (arXiv 2211.05102, sections 2 and 4.4). Next file to read:
`estimate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtfcore.costs.serving.choosing import Phase
from mtfcore.costs.serving.settings import Settings
from mtfcore.model.configs import Config

HOUR = 3600.0


@dataclass(frozen=True, eq=False)
class Request:
    """Prefill and decode of every setting: their times, and what follows from them alone."""

    asked: Settings
    model: str
    phases: Mapping[str, Phase]

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

    # ---- throughput: three quantities that are not to be mixed up -------------------------------------------------

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

    # ---- shapes --------------------------------------------------------------------------------------------------

    def _shaped(self, value: Any) -> Any:
        """In the shape that was asked; a plain value where that is single."""
        if isinstance(value, Mapping):
            return {name: self._shaped(each) for name, each in value.items()}
        shaped = np.asarray(value).reshape(self.asked.shape)
        return shaped if self.asked.shape else shaped[()].item() if hasattr(shaped[()], "item") else shaped[()]

    def _flat(self, value: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(value), self.asked.shape).ravel()


def _multiplied(cfg: Config) -> int:
    """The parameters that are multiplied with every token: all but tables that are only looked up."""
    looked_up = cfg.vocab * (not cfg.tied) + cfg.max_length * (cfg.positions == "learned")
    return cfg.n_params - looked_up * cfg.d_model
