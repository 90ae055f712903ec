"""Latencies, MFU and costs: `mtf.costs.inference` asked for the setup that a row describes.

    >>> row = latency_rows()[1]                                 # PaLM 540B, decode of 64 tokens, batch 64, int8
    >>> row.seconds, abs(latency(row).value / row.seconds - 1) < 0.12
    (1.82, True)

MFU and cost follow from the time as the paper computes them: 2 N tokens over chips, peak and time, with the round N
that it prints (540e9, 62e9, 530e9), and chips times time over tokens. A total is prefill and generation; a turn of a
chat prefills one sequence and generates for a batch. Source: arXiv 2211.05102, sections 2 and 4.4. Next file to read:
`predicting`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from mtfcore.costs.against_published.dimensions import model_of
from mtfcore.costs.against_published.prediction import Prediction, said
from mtfcore.costs.second_paper import chip_seconds_per_token, mfu
from mtfcore.reference import Published, rows
from mtfcore.topologies import topology

ASKED = ("batch", "input_tokens", "output_tokens", "cached_tokens", "weights", "cache", "ffn", "attention")
PARTS = {"prefill": ("prefill",), "decode": ("decode",), "total": ("prefill", "decode")}


def estimated(setup: Mapping[str, Any], **changes: Any) -> Any:
    """What `mtf.costs.inference` says of a setup."""
    from mtfcore.costs import inference

    asked = {name: setup[name] for name in ASKED if name in setup}
    return inference(model_of(setup).but(**changes), setup["topology"], **asked)


@cache
def _of(table: str, name: str) -> tuple[float, str]:
    """Seconds of a row's phase, and what binds the longer part of it."""
    setup = next(row.setup for row in rows(table=table) if row.name == name)
    est = estimated(setup)
    seconds = {part: float(getattr(est, f"{part}_seconds")) for part in PARTS[setup["phase"]]}
    if "prefill_batch" in setup:
        alone = estimated({**setup, "batch": setup["prefill_batch"]})
        seconds["prefill"] = float(alone.prefill_seconds)
    longest = max(seconds, key=seconds.__getitem__)
    return sum(seconds.values()), str(est.bottleneck[longest])


def tokens(setup: Mapping[str, Any]) -> int:
    """Tokens of one sequence that a phase handles."""
    counts = {"prefill": setup.get("input_tokens", 0), "decode": setup.get("output_tokens", 0)}
    return sum(counts[part] for part in PARTS[setup["phase"]])


def latency(row: Published) -> Prediction:
    """A time, or what follows from it."""
    seconds, bound = _of(row.table, row.name)
    setup = row.setup
    if row.quantity == "latency":
        return said(row, seconds, bound)
    if row.quantity == "step latency":
        return said(row, seconds / setup["output_tokens"], bound)
    all_tokens, slice_ = setup["batch"] * tokens(setup), topology(setup["topology"])
    if row.quantity == "cost":
        return said(row, chip_seconds_per_token(all_tokens, seconds, slice_.chips), bound)
    if row.quantity == "MFU":
        peak = slice_.chip.value("peak_bf16")
        return said(row, mfu(setup["counted_params"], all_tokens, seconds, slice_.chips, peak), bound)
    return said(row, _slower(setup) - 1, bound)


def _slower(setup: Mapping[str, Any]) -> float:
    """How many times the step takes with the setup's other choice: serial blocks, say."""
    return float(estimated(setup, **setup["against"]).step_seconds / estimated(setup).step_seconds)
