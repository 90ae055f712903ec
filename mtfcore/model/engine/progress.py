"""What an engine tells while it works: one line for every launch.

    for now in eng.generate(prompts): print(now.phase, now.tokens, now.traffic)

Seconds are measured on whatever runs the program; where that are simulated devices they say nothing of hardware, and
nothing shows them as speed. Bytes are those of the steps that ran. Next file to read: `engine`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from mtfcore.steps import Program


@dataclass(frozen=True)
class Progress:
    """One launch of an engine."""

    phase: str  # prefill, give, take, decode, move
    tokens: Mapping[int, list[int]]  # request → what it made, in order
    finished: tuple[int, ...]  # requests that ended with it
    seconds: float  # of this launch, waited for; the first of its shape compiles too
    n_read: int  # tokens of prompts read in it
    traffic: Mapping[str, float]  # bytes that one device has sent so far, by mesh axis
    cache: tuple[int, int]  # tokens kept, and room for how many
    program: Program = field(repr=False)
    times: int = 1  # tokens of each sequence in this launch

    def of(self, numbers: range) -> Progress:
        """Only what concerns these requests, numbered from 0."""
        tokens = {number - numbers.start: made for number, made in self.tokens.items() if number in numbers}
        finished = tuple(number - numbers.start for number in self.finished if number in numbers)
        return dataclasses.replace(self, tokens=tokens, finished=finished)
