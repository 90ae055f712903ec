"""Times of moves from what the page noted, and their medians; no browser here.

    >>> painted({"at": 10.0, "was": 3, "is": 5, "frames": [[40.0, 4], [60.0, 5], [90.0, 5]]})
    50.0
    >>> share([10, 20, 30, 40], 0.95)
    40

Next file to read: limits.py.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Noted = Mapping[str, Any]


def painted(move: Noted) -> float | None:
    """Milliseconds from the input to the first painted frame with the picture that stays; None: nothing changed."""
    if not move["moved"] or move["is"] == move["was"]:
        return None
    return next(at for at, picture in move["frames"] if picture == move["is"] and at >= move["at"]) - move["at"]


def after_release(drag: Noted) -> float:
    """Milliseconds from a release to the picture that stays; 0 where it stood already."""
    others = [n for n, (_, picture) in enumerate(drag["frames"]) if picture != drag["is"]]
    kept = drag["frames"][max(others, default=-1) + 1 :]
    return max(kept[0][0] - drag["at"], 0.0) if kept else 0.0


def share(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of all does not exceed."""
    ranked = sorted(values)
    return ranked[max(math.ceil(part * len(ranked)) - 1, 0)]


def summary(values: Sequence[float]) -> dict[str, float]:
    """What the table shows of many times."""
    return {"n": len(values), "median": statistics.median(values), "share95": share(values, 0.95)}


def unsteady(moves: Sequence[Noted]) -> list[str]:
    """Settings that had another picture at another visit: then some picture was not that of its settings."""
    pictures: dict[tuple[str, str], set[int]] = {}
    for move in moves:
        pictures.setdefault((move["name"], move["state"]), set()).add(move["is"])
    return sorted({name for (name, _), found in pictures.items() if len(found) > 1})


def sweep(start: int, low: int, high: int, n: int) -> list[int]:
    """`n` neighbouring positions to visit, up to three from the start, first upward, turning at the ends."""
    low, high = max(low, start - 3), min(high, start + 3)
    found, step = [start], 1
    while len(found) <= n and low < high:
        if not low <= found[-1] + step <= high:
            step = -step
        found.append(found[-1] + step)
    return found[1:]
