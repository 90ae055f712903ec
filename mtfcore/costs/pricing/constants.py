"""Constants of a chip fitted to measurements of one's own: a model of time that says where it comes from.

    >>> found = Constants("h200", compute_share=0.7, intervals=(("compute_share", 0.69, 0.72),), n=24, first="2026-11")
    >>> found.words
    'constants of h200 from 24 records (h200, 2026-11): compute_share 0.7 (0.69 to 0.72), hbm_share 1 (not measured)...'
    >>> mtf.price(prog, "h200:8", model=found).compute_seconds > mtf.price(prog, "h200:8").compute_seconds
    True

`mtfcore.measuring.calibrating` makes them from records; `mtf.costs.inference(…, model=found)` takes them too. They mean
what those of the "calibrated" model mean (`step_time`). Each that the records could not tell keeps the value of that
model, or, where the chip has none there, neutral; the words name them. Next file to read: `rates`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mtfcore.chips import chip
from mtfcore.errors import LayoutError
from mtfcore.numbers import count, format_seconds

NEUTRAL = {"compute_share": 1.0, "hbm_share": 1.0, "link_share": 1.0, "launch_seconds": 0.0}


@dataclass(frozen=True)
class Constants:
    """What a chip reaches, as measured, with 90 % intervals of what was fitted."""

    chip: str
    compute_share: float = 1.0  # of the peak that products reach
    hbm_share: float = 1.0  # of the memory's rate
    link_share: float = 1.0  # of the links' rate
    launch_seconds: float = 0.0  # what starting one message takes
    busy_axes: int | None = None  # over how many axes of a torus a collective sends at once
    intervals: tuple[tuple[str, float, float], ...] = ()  # of each that was fitted: name, low, high
    n: int = 0  # records
    first: str = ""  # date of the earliest record
    last: str = ""
    device_kind: str = ""
    versions: tuple[str, ...] = ()  # "jax 0.10.2"

    @property
    def fitted(self) -> tuple[str, ...]:
        """The names of those that records told."""
        return tuple(name for name, _, _ in self.intervals)

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of those that they did not."""
        return tuple(name for name in NEUTRAL if name not in self.fitted)

    def value(self, name: str) -> float:
        """A constant by name."""
        return getattr(self, name)

    @property
    def words(self) -> str:
        """Which records, when, how many, and each constant with its interval."""
        dates = self.first if self.last in ("", self.first) else f"{self.first} to {self.last}"
        made = ", ".join([self.device_kind or self.chip, *self.versions, dates])
        told = [f"{name} {_shown(name, self.value(name))} ({_shown(name, low)} to {_shown(name, high)})"
                for name, low, high in self.intervals]  # fmt: skip
        left = [f"{name} {_shown(name, self.value(name))} (not measured)" for name in self.kept]
        return f"constants of {self.chip} from {count(self.n, 'record')} ({made}): {', '.join(told + left)}"

    def to_json(self) -> str:
        """As text that `from_json` reads."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Constants:
        """What `to_json` wrote; anything else is a `LayoutError`."""
        try:
            found: Mapping[str, Any] = json.loads(text)
            parts = {"intervals": tuple(map(tuple, found["intervals"])), "versions": tuple(map(str, found["versions"]))}
            made = cls(**{**found, **parts})
            chip(made.chip)
            values = [made.value(name) for name in NEUTRAL]
            values += [value for name, *ends in made.intervals for value in (NEUTRAL[name], *ends)]
            _ = made.words
        except LayoutError as fault:
            raise LayoutError(f"these are no constants as calibrate keeps them ({fault})") from None
        except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
            raise LayoutError(
                "these are no constants as calibrate keeps them: expected the JSON text that Constants.to_json wrote, "
                f"got {text[:60]!r}"
            ) from None
        least = min(made.compute_share, made.hbm_share, made.link_share)
        if not all(0 <= value < math.inf for value in values) or least <= 0:  # NaN is refused too
            raise LayoutError("these are no constants as calibrate keeps them: shares are above 0, seconds 0 or more")
        return made

    def __str__(self) -> str:
        return f"measured constants of {self.chip}"


def _shown(name: str, value: float) -> str:
    return format_seconds(value) if name.endswith("_seconds") else f"{value:.3g}"
