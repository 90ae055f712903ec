"""What must hold: an explorer's median and 95 %, a lesson's CPU, the first picture; and which rows miss.

    >>> missed({"sliders": [{"name": "slices", "median": 120.0, "share95": 250.0}]})
    ['slices: median 120 ms, more than 100 ms']

Next file to read: table.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MEDIAN_MS = 100.0
SHARE95_MS = 300.0
CPU_SECONDS = 60.0
FIRST_PICTURE_SECONDS = 10.0

Found = Mapping[str, Sequence[Mapping[str, Any]]]
LIMITS = {  # part → figure → (limit, unit, words)
    "sliders": {"median": (MEDIAN_MS, "ms", "median"), "share95": (SHARE95_MS, "ms", "95 %")},
    "lessons": {
        "cpu": (CPU_SECONDS, "s", "CPU"),
        "first_picture": (FIRST_PICTURE_SECONDS, "s", "first picture"),
    },
    "start": {"first_picture": (FIRST_PICTURE_SECONDS, "s", "first picture")},
}


def misses(part: str, row: Mapping[str, Any]) -> list[str]:
    """What a row misses, in words."""
    return list(_misses(part, row))


def _misses(part: str, row: Mapping[str, Any]) -> Iterator[str]:
    for figure, (limit, unit, words) in LIMITS[part].items():
        if (value := row.get(figure)) is not None and value > limit:
            yield f"{words} {value:.3g} {unit}, more than {limit:.0f} {unit}"
    for control in row.get("unsteady", ()):
        yield f"{control} showed two pictures for the same settings"


def missed(found: Found) -> list[str]:
    """Every miss of everything that was measured."""
    return [
        f"{row.get('name', part)}: {words}"
        for part, rows in found.items()
        for row in rows
        for words in misses(part, row)
    ]
