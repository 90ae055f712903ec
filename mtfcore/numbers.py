"""The one way to write a quantity for people: three significant digits and the prefix that fits.

    >>> format_bytes(16_384), format_bytes(3.2e9, decimal=True), format_flops(2.75e14), format_seconds(4.5e-5)
    ('16 KiB', '3.2 GB', '275 TFLOP', '45 µs')

GB is 1e9 bytes and GiB is 2^30: memory and messages are counted in KiB and GiB, rates of hardware in GB/s, as
their makers publish them. `quantity(value, unit)` is the general form; `widgets.numbers` adds the origin words.
Next file to read: `tables`.
"""

from __future__ import annotations

import math
from fractions import Fraction

Number = float | int | Fraction

_LETTERS = ("", "k", "M", "G", "T", "P", "E")
_DECIMAL = tuple((10.0 ** (3 * power), letter) for power, letter in enumerate(_LETTERS))
_BINARY = tuple((2.0 ** (10 * power), letter.upper() + "i" * (power > 0)) for power, letter in enumerate(_LETTERS))
_TIMES = ((1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1.0, ""))


def quantity(value: Number, unit: str = "") -> str:
    """A value with its prefix and unit; units: B, iB (bytes by powers of 1024), B/s, s, FLOP, FLOP/s, or none."""
    value = float(value)
    if not math.isfinite(value):
        return f"{value} {unit}".strip()
    scales, unit = (_BINARY, "B") if unit == "iB" else (_TIMES if unit == "s" else _DECIMAL, unit)
    # decimal: rounded first, so that 999.9 is 1 of the next prefix and not 1000 of this one
    size = abs(value if scales is _BINARY else float(f"{value:.3g}"))
    smallest = scales[0] if size else (1.0, "")
    scale, prefix = next((pair for pair in reversed(scales) if size >= pair[0]), smallest)
    return f"{digits(value / scale)} {prefix}{unit}".strip()


def digits(value: float) -> str:
    """Three significant digits, never as a power of ten, no trailing zeros; whole parts keep all their digits."""
    if value == 0:
        return "0"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(number: int, one: str, many: str = "") -> str:
    """A whole number with its noun: `count(1, "device")` is '1 device', `count(8, "copy", "copies")` is '8 copies'."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def format_bytes(n_bytes: Number, *, decimal: bool = False) -> str:
    """Bytes in KiB, MiB, GiB (powers of 1024), or with `decimal` in kB, MB, GB (powers of 1000)."""
    return quantity(n_bytes, "B" if decimal else "iB")


def format_flops(flops: Number) -> str:
    """Floating point operations, 2 a multiply-add: `1.5 GFLOP`."""
    return quantity(flops, "FLOP")


def format_seconds(seconds: Number) -> str:
    """Seconds down to nanoseconds: `45 µs`."""
    return quantity(seconds, "s")
