"""What this library says beside a published figure: a value, where it comes from, and what sets it.

    >>> Prediction(in_unit(532_480_000, "GB"))
    Prediction(value=0.53248, bound='', origin='modelled', agrees=None)

Units are those of the tables: seconds and their parts, GB of 1e9 bytes, billions, percent, chip-milliseconds a token.
Next file to read: `dimensions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mtfcore.reference import Published

UNITS = {
    "": 1.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "B": 1.0, "GB": 1e9, "TB": 1e12, "GiB": 2.0**30, "%": 0.01, "×": 1.0,
    "u": 1.0, "tokens": 1.0, "billion": 1e9, "chip-ms/token": 1e-3, "TFLOP/s": 1e12, "PFLOP/s": 1e15, "GB/s": 1e9,
}  # fmt: skip


@dataclass(frozen=True)
class Prediction:
    """Our value in the row's unit, or our words; `agrees` where it is not a question of rounding."""

    value: float | str
    bound: str = ""  # the resource that sets a time
    origin: str = "modelled"
    agrees: bool | None = None


def in_unit(value: float, unit: str) -> float:
    """A value in base units as the table prints it."""
    return float(value) / UNITS[unit]


def said(row: Published, value: float | str, bound: str = "") -> Prediction:
    """A number in base units, or a word, beside a row."""
    return Prediction(value if isinstance(value, str) else in_unit(value, row.unit), bound)
