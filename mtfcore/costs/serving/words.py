"""An estimate in words: what binds each phase, and what a reader should be told besides. Next: `estimate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtfcore.costs.step_time import rates

if TYPE_CHECKING:
    from mtfcore.costs.serving.choosing import Phase
    from mtfcore.costs.serving.estimate import Estimate


def bound(phase: Phase) -> np.ndarray:
    """What most of the time of a pass goes to; "" where the phase cannot be."""
    parts, reads = phase.parts, phase.reads
    names = np.array([*parts, ""], object)
    most = np.stack(list(parts.values())).argmax(0)
    found = names[np.where(phase.chosen >= 0, most, -1)]
    hbm = np.where(reads["cache"] > reads["weights"], "HBM: cache", "HBM: weights").astype(object)
    return np.where(found == "hbm", hbm, found)


def warnings_of(est: Estimate) -> list[str]:
    """Sentences, each once."""
    said = []
    for slice_ in est.asked.topologies:
        at = rates(slice_.chip, est.model)
        if est.model == "calibrated" and not at.is_calibrated:
            said.append(f"{slice_.chip.title} has no fitted constants: peaks and hops as published, so a bound")
    if not np.all(est.fits):
        said.append("does not fit" if not est.asked.shape else "some settings do not fit")
    return list(dict.fromkeys(said))
