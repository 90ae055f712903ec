"""An estimate in words: what binds each phase, and what a reader should be told besides.

    >>> est = mtf.costs.inference("palm-540b", "v4:4x4x4", batch=64, input_tokens=2048, weights="int8")
    >>> {name: str(bound(phase)[0]) for name, phase in est.phases.items()}
    {'prefill': 'compute', 'decode': 'launch'}

Next file to read: `request`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtfcore.costs.pricing.rates import rates
from mtfcore.numbers import format_bytes

if TYPE_CHECKING:
    from mtfcore.costs.serving.choosing import Phase
    from mtfcore.costs.serving.estimate import Estimate


def bound(phase: Phase) -> np.ndarray:
    """What most of the time of a pass goes to; "" where the phase cannot be."""
    parts, reads = phase.parts, phase.reads
    names = np.array([*parts, ""], object)
    most = np.stack(list(parts.values())).argmax(0)
    found = names[np.where(phase.chosen >= 0, most, -1)]
    kinds = np.array([f"HBM: {name}" for name in reads], object)
    hbm = kinds[np.stack(list(reads.values())).argmax(0)]
    return np.where(found == "hbm", hbm, found)


def _too_large(est: Estimate) -> str:
    """Of one setting: by how much, and the nearest that would do."""
    held, room = est.memory["total"], est.memory["capacity"] - est.memory["reserve"]
    what = f"does not fit: {format_bytes(held)} a device, of {format_bytes(room)} with the reserve kept free"
    if est.fits_by_phase["decode"] and (most := est.max_batch_by_phase["prefill"]):
        offer = f"decoding fits, and {most:,} sequences may be read at a time: prefill_batch={most}"
        return f"{what}, while it is read; {offer}"
    limits = (("batch", est.max_batch), ("a context of", est.max_context))
    ways = [f"{name} {most:,}" for name, most in limits if most > 0]
    return f"{what}; {'largest that do: ' + ', or '.join(ways) if ways else 'more chips, or int8 weights'}"


def warnings_of(est: Estimate) -> list[str]:
    """Sentences, each once."""
    said = []
    for slice_ in est.asked.topologies:
        at = rates(slice_.chip, est.model)
        if est.model == "calibrated" and not at.is_calibrated:
            said.append(f"{slice_.chip.title} has no fitted constants: peaks and hops as published, so a bound")
        if at.constants is not None:
            said.append(f"with {at.constants.words}")
    if not np.all(est.fits):
        said.append(_too_large(est) if not est.asked.shape else f"{np.sum(~est.fits):,} settings do not fit")
    return list(dict.fromkeys(said))
