"""The arithmetic of `calibrating`: seconds of many programs as a function of few constants, and their least squares.

    asked = [Asked(compute, hbm, times, link, messages, measured_seconds), …]
    values = fit(asked, {"compute_share": 0.7, "hbm_share": 0.8, …}, free=["compute_share"])
    intervals(asked, values, ["compute_share"], seed=0)     # {'compute_share': (0.69, 0.73)}

No JAX. The derivative of a time's logarithm by a constant's is the part of the time that the constant rules, so
sensitivities and derivatives are one. Next file to read: `calibrating`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mtfcore.costs.pricing.demands import Demands

START = "start_seconds"  # what starting a program takes: in every time, no constant of the chip
FAR = 0.3  # errors of 30 % and more pull no harder
DRAWS, INSIDE = 200, 0.9
LEAST, MOST = np.log(1e-9), np.log(2.0)
ALIKE = 0.05  # the sine of an angle below which two constants rule the same times, so that no fit tells them apart


@dataclass(frozen=True)
class Asked(Demands):
    """What one program asks of a device at published rates, and what it took."""

    measured_seconds: float

    def parts(self, values: Mapping[str, float]) -> dict[str, float]:
        """Seconds by the constant that rules them."""
        compute, hbm = self.compute / values["compute_share"], self.hbm / values["hbm_share"]
        longer = compute >= hbm
        return {
            "compute_share": float((compute * self.times)[longer].sum()),
            "hbm_share": float((hbm * self.times)[~longer].sum()),
            "link_share": self.link / values["link_share"],
            "launch_seconds": self.messages * values["launch_seconds"],
            START: values[START],
        }

    def seconds(self, values: Mapping[str, float]) -> float:
        """All of them together."""
        return sum(self.parts(values).values())


def sensitivities(asked: Sequence[Asked], values: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Constant → which part of each program's time it rules."""
    parts = [each.parts(values) for each in asked]
    totals = np.array([sum(part.values()) or 1.0 for part in parts])
    return {name: np.array([part[name] for part in parts]) / totals for name in parts[0]}


def fit(asked: Sequence[Asked], values: Mapping[str, float], free: Sequence[str]) -> dict[str, float]:
    """The values at which the programs' times are predicted best; only those that are free move."""
    found = dict(values)
    if not free:
        return found
    damping, badness = 1e-3, _badness(asked, found)
    for _ in range(100):
        errors = _errors(asked, found)
        weights = np.minimum(1.0, FAR / np.maximum(np.abs(errors), 1e-12))
        ruled = sensitivities(asked, found)
        slopes = np.stack([ruled[name] * (-1 if name.endswith("share") else 1) for name in free], axis=1)
        normal = slopes.T @ (slopes * weights[:, None])
        wanted = slopes.T @ (weights * errors)
        step = -np.linalg.solve(normal + damping * np.eye(len(free)), wanted)
        tried = found | {name: _moved(found[name], by) for name, by in zip(free, step, strict=True)}
        now = _badness(asked, tried)
        if now < badness:
            done = badness - now < 1e-12
            found, badness, damping = tried, now, max(damping / 5, 1e-9)
            if done:
                break
        else:
            damping *= 5
            if damping > 1e6:
                break
    return found


def intervals(
    asked: Sequence[Asked], values: Mapping[str, float], free: Sequence[str], seed: int
) -> dict[str, tuple[float, float]]:
    """Of each free value the range of 90 % of the fits to as many records drawn from these with repetition."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(len(asked), size=len(asked)) for _ in range(DRAWS)]
    fits = [fit([asked[n] for n in numbers], values, free) for numbers in drawn]
    ends = (50 * (1 - INSIDE), 50 * (1 + INSIDE))
    return {name: tuple(np.percentile([each[name] for each in fits], ends).tolist()) for name in free}


def at_an_end(value: float) -> bool:
    """Whether a fit went as far as it may: then the times are not of what the program asks for."""
    return not LEAST + 0.01 < np.log(value) < MOST - 0.01


def mixed(asked: Sequence[Asked], values: Mapping[str, float], free: Sequence[str]) -> list[str]:
    """The free constants that rule the same parts of all times as others do, as where all records are of one size."""
    if len(free) < 2:
        return []
    ruled = sensitivities(asked, values)
    columns = np.stack([ruled[name] for name in free], axis=1)
    columns /= np.maximum(np.linalg.norm(columns, axis=0), 1e-12)
    _, sines, directions = np.linalg.svd(columns, full_matrices=len(asked) < len(free))
    weakest = np.abs(directions[-1])
    told = len(sines) == len(free) and sines[-1] >= ALIKE
    return [] if told else [name for name, part in zip(free, weakest, strict=True) if part > 0.1]


def _moved(value: float, by: float) -> float:
    return float(np.exp(np.clip(np.log(value) + np.clip(by, -1, 1), LEAST, MOST)))


def _errors(asked: Sequence[Asked], values: Mapping[str, float]) -> np.ndarray:
    """Logarithm of predicted over measured."""
    return np.log([each.seconds(values) / each.measured_seconds for each in asked])


def _badness(asked: Sequence[Asked], values: Mapping[str, float]) -> float:
    """Huber's: squares up to FAR, then straight on."""
    errors = np.abs(_errors(asked, values))
    return float(np.where(errors <= FAR, errors**2 / 2, FAR * (errors - FAR / 2)).sum())
