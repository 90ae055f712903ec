"""A reader's own price of a chip-hour, as text: one number for all chips, or one a chip.

    >>> read_prices("v5e 1.2, h100 3")
    {'v5e': 1.2, 'h100': 3.0}
    >>> price_of(read_prices("2.5"), "v4")
    2.5

There is no price of ours: prices are what somebody agreed on, and differ by place and day. Next file to read:
`estimates`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from mtfcore.chips import chips
from mtfcore.errors import LayoutError, nearest

ALL = "*"


def read_prices(text: str) -> dict[str, float]:
    """Chip → price of a chip-hour; one number stands for all."""
    found: dict[str, float] = {}
    for entry in filter(None, (entry.strip() for entry in text.replace(";", ",").split(","))):
        name, _, number = entry.rpartition(" ")
        name = name.strip().rstrip(":").casefold() or ALL
        if name != ALL and name not in chips():
            raise LayoutError(f"price of {name!r}: {nearest(name, chips())}")
        found[name] = _number(number, entry)
    return found


def _number(word: str, entry: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 < value < 1e9:
        raise LayoutError(f"price {entry!r}: write a number above 0, e.g. 1.2, or by chip, e.g. v5e 1.2, h100 3")
    return value


def price_of(prices: Mapping[str, float], chip: str) -> float | None:
    """The price for a chip, if the reader gave one."""
    return prices.get(chip, prices.get(ALL))
