"""A budget for one rendering of a template that somebody else wrote: steps, seconds, and sizes of values and output.

    meter = Meter(Limits())
    meter.value("x" * 100)              # counts 100 towards what values may be, alone and together
    meter.value("x" * 10**7)            # LayoutError: … a value of 10,000,000 characters and items, over 1,048,576

A template is a program: it can loop for ever, double a text sixty times, or build a list that contains itself twice,
sixty levels deep. So each step costs, and each value is measured as a tree, as it would be printed, before it is used
further. Nothing is interrupted from outside: it works on any thread. This is the last file of
real models; then `mtfcore/model/chat`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from mtfcore.errors import LayoutError

MOST_WHOLE = 1 << 64


@dataclass(frozen=True)
class Limits:
    """What a chat template may take; the templates of published models take a hundredth of it."""

    source: int = 1 << 16  # characters of the template
    steps: int = 200_000  # turns of loops, calls, operations
    seconds: float = 2.0
    value: int = 1 << 20  # characters and items of one value
    values: int = 1 << 24  # of all that are made
    output: int = 1 << 20  # characters


class Meter:
    """What one rendering has used so far."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.steps, self.values, self.output = limits, 0, 0, 0
        self._until = time.monotonic() + limits.seconds

    def over(self, what: str) -> NoReturn:
        """End the rendering."""
        raise LayoutError(f"the chat template was stopped: {what}; a template's limits are {self.limits}")

    def step(self) -> None:
        """One more step."""
        self.steps += 1
        if self.steps > self.limits.steps:
            self.over(f"over {self.limits.steps:,} steps")
        if time.monotonic() > self._until:
            self.over(f"over {self.limits.seconds} seconds")

    def looped(self, items: Iterable[Any]) -> Iterator[Any]:
        """The same items, a step each."""
        for item in items:
            self.step()
            yield item

    def sized(self, size: int) -> None:
        """Refuse a value of that size before it is made."""
        if size > self.limits.value:
            self.over(f"a value of {size:,} characters and items, over {self.limits.value:,}")

    def value(self, value: Any) -> None:
        """Measure plain data, and refuse what is too large or no plain data."""
        self.step()
        size, left = 0, [(value, 0)]
        while left:
            item, depth = left.pop()
            size += len(item) if isinstance(item, str) else 1
            if isinstance(item, (list, tuple, dict)):
                if depth > 50:
                    self.over("data nested more than 50 deep")
                inner = [*item.keys(), *item.values()] if isinstance(item, dict) else item
                self.sized(size + len(inner))
                left += [(part, depth + 1) for part in inner]
            elif not self._plain(item):
                self.over(f"a value of type {type(item).__name__} where texts, numbers and lists may be")
            self.sized(size)
        self.values += size
        if self.values > self.limits.values:
            self.over(f"values of over {self.limits.values:,} characters and items together")

    def _plain(self, item: Any) -> bool:
        from jinja2 import Undefined

        if isinstance(item, int) and abs(item) > MOST_WHOLE:
            self.over("a whole number beyond 64 bits")
        if isinstance(item, range):
            self.sized(len(item))
        return item is None or isinstance(item, (str, int, float, range, Undefined))

    def printed(self, value: Any) -> str:
        """A value's text, counted as output."""
        self.value(value)
        text = str(value)
        self.output += len(text)
        if self.output > self.limits.output:
            self.over(f"an output of over {self.limits.output:,} characters")
        return text
