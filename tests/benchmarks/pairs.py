"""Comparing two things on a noisy computer: call them in turn, and look at the ratio within each pair.

A disturbance that lasts longer than one call falls on both halves of a pair, so it leaves the ratio alone; which of
the two goes first alternates. What is printed is the median and the quartiles, never one lucky number.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mtfcore.numbers import format_seconds

Call = Callable[[], object]


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of several measurements."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        return cls(tuple(values))

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, _, high = statistics.quantiles(self.values, n=4)
        return low, high

    def __str__(self) -> str:
        low, high = self.quartiles
        return f"{self.median:.3f} (half of them {low:.3f} to {high:.3f}, n = {len(self.values)})"

    def seconds(self) -> str:
        """The same as times."""
        low, high = map(format_seconds, self.quartiles)
        return f"{format_seconds(self.median)} (half of them {low} to {high}, n = {len(self.values)})"


def seconds(call: Call) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def repeated(call: Call, n: int, before: Call = lambda: None) -> Spread:
    """Times of `n` calls, each after `before`, which is not timed."""
    found = []
    for _ in range(n):
        before()
        found.append(seconds(call))
    return Spread.of(found)


def interleaved(ours: Call, theirs: Call, n: int) -> tuple[Spread, Spread, Spread]:
    """(ratio ours / theirs, times of ours, times of theirs) of `n` pairs, after one of each to warm up."""
    ours(), theirs()
    pairs = []
    for number in range(n):
        if number % 2:
            second, first = seconds(theirs), seconds(ours)
        else:
            first, second = seconds(ours), seconds(theirs)
        pairs.append((first, second))
    ratios = Spread.of(first / second for first, second in pairs)
    return ratios, Spread.of(first for first, _ in pairs), Spread.of(second for _, second in pairs)


def report(what: str, measured: str, target: str) -> None:
    """One line of a benchmark."""
    print(f"  {what:<50} {measured:<64} target {target}")
