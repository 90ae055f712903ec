"""One formatter for every number shown to a person, and the five words that say where a number comes from.

    >>> quantity(16_384, "iB"), quantity(3.2e9, "B"), quantity(4.5e-5, "s"), quantity(2.75e14, "FLOP/s")
    ('16 KiB', '3.2 GB', '45 µs', '275 TFLOP/s')
    >>> origin(quantity(16_384, "iB"), "modelled")
    '16 KiB [modelled]'

GB is 1e9 bytes and GiB is 2^30: ask for "B" or for "iB". The word in square brackets is drawn as a small tag by
the views and reads as it stands everywhere else. Next file to read: `theme`.
"""

from __future__ import annotations

import html
import math
import re

ORIGINS = ("modelled", "counted", "compiled", "measured", "published")

_POWERS = range(6, -1, -1)
_DECIMAL = [(1e3**power, prefix) for power, prefix in zip(_POWERS, ("E", "P", "T", "G", "M", "k", ""))]
_BINARY = [(2.0 ** (10 * power), prefix) for power, prefix in zip(_POWERS, ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki", ""))]
_SMALL = [(1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")]
_TAG = re.compile(r"\[(" + "|".join(ORIGINS) + r")\]")


def quantity(value: float, unit: str = "") -> str:
    """A value with three significant digits and the prefix that fits; units: B, iB, B/s, s, FLOP, FLOP/s, or none."""
    if not math.isfinite(value):
        return f"{value} {unit}".strip()
    steps, unit = (_BINARY, "B") if unit == "iB" else (_SMALL, unit) if unit == "s" else (_DECIMAL, unit)
    # rounded first, so that 999.9 becomes 1 of the next decimal prefix and not 1000 of this one
    size = abs(value if steps is _BINARY else float(f"{value:.3g}"))
    scale, prefix = next(((s, p) for s, p in steps if size >= s), steps[-1])
    return f"{digits(value / scale)} {prefix}{unit}".strip()


def digits(value: float) -> str:
    """Three significant digits, never as a power of ten, no trailing zeros; whole numbers keep all digits."""
    if value == 0:
        return "0"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(number: int, one: str, many: str = "") -> str:
    """A whole number with its noun: `count(1, "device")` is '1 device', `count(8, "copy", "copies")` is '8 copies'."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def origin(text: str, word: str) -> str:
    """Mark where a number comes from; only the five words are allowed."""
    if word not in ORIGINS:
        raise ValueError(f"unknown origin {word!r}; the words are {', '.join(ORIGINS)}")
    return f"{text} [{word}]"


def tagged_html(text: str) -> str:
    """Escape a text for a page and turn its [modelled] and the like into small tags."""
    return _TAG.sub(r'<span class="mw-origin">\1</span>', html.escape(text))
