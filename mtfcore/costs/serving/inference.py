"""`inference`: prefill and decode of a model on a slice, for one setting or hundreds of thousands at once.

    >>> est = mtf.costs.inference("palm-540b", "v4:4x4x4", batch=64, input_tokens=2048, weights="int8")
    >>> est.layouts, est.fits
    ({'prefill': 'wg_x-heads', 'decode': 'ws2d-batch'}, True)
    >>> mtf.costs.inference("palm-540b", "v4:4x4x4", batch=2 ** np.arange(4, 11)).step_seconds.shape
    (7,)

The steps that are timed are those of `mtf.model.plan_phase`, which also run: each structure is planned once, as a
template (`structures`), and worked out for all settings that share it with the formulas of `mtf.price`. Source: arXiv
2211.05102, sections 3 and 4. Next file to read: `settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtfcore.costs.serving.choosing import Phase, phases
from mtfcore.costs.serving.estimate import Estimate
from mtfcore.costs.serving.settings import read_settings
from mtfcore.errors import refuse


def inference(
    cfg: Any, topology: Any, batch: Any = 1, input_tokens: Any = 2048, output_tokens: Any = 64, cached_tokens: Any = 0,
    weights: Any = "bf16", cache: Any = "bf16", ffn: Any = "auto", attention: Any = "auto", model: Any = "calibrated",
    reserve: Any = 0.1, price_per_chip_hour: Any = None, prefill_batch: Any = None,
) -> Estimate:  # fmt: skip
    """Times, memory, shares and choices of serving `batch` sequences together, of which at most `prefill_batch` (by
    default all) are read at a time.

    `cfg` (configurations or their names), `topology` and all others may be arrays, which broadcast. Each sequence has
    `cached_tokens` from before, reads `input_tokens` and writes `output_tokens`. `ffn` is ws1d, ws2d, wg_x, wg_xy,
    wg_xyz or auto; `attention` heads, batch or auto; a mapping {"prefill": …, "decode": …} says each phase. `model` is
    that of time: "calibrated", "physical", "paper", or measured constants (`pricing.constants`). `reserve` is the share
    of memory kept free. A single setting that no partition allows is refused, with every reason; among many it has nan,
    and its reasons stand in `candidates`.

    `weights` and `cache`: dtypes in which these are kept, "bf16" or "int8"; `price_per_chip_hour`: of a chip, in any
    currency. Times are seconds and sizes bytes of one device (modelled).

    Raises `LayoutError` with every fault at once.

    Source: arXiv 2211.05102, sections 2 to 4.

        >>> round(mtf.costs.inference("palm-540b", "v4:4x4x4", batch=64, weights="int8").step_seconds, 3)
        0.03
    """
    asked = read_settings(
        cfg, topology, weights=weights, cache=cache, ffn=ffn, attention=attention, model=model, reserve=reserve,
        batch=batch, prefill_batch=prefill_batch, input_tokens=input_tokens, output_tokens=output_tokens,
        cached_tokens=cached_tokens, price=price_per_chip_hour,
    )  # fmt: skip
    found = phases(asked, model)
    if not asked.shape:
        refuse(_impossible(found), f"inference of {asked.models[0].name} on {asked.topologies[0]}")
    return Estimate(asked, model, found)


def _impossible(found: Mapping[str, Phase]) -> list[str]:
    """Of a single setting: why a phase has no partition at all. Of many, each says so in `candidates`."""
    faults = []
    for phase, of in found.items():
        under: dict[str, list[str]] = {}
        for each in of.tried if of.chosen[0] < 0 else ():
            for reason in each.took.reasons.get(0, ()):
                under.setdefault(reason, []).append(each.took.name)
        faults += [f"{phase} under {_named(names, len(of.tried))}: {reason}" for reason, names in under.items()]
    return faults


def _named(names: list[str], n_tried: int) -> str:
    return "every partition" if len(names) == n_tried > 1 else ", ".join(names)
